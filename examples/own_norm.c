/* A normalization of one's own, as a plug-in: y = weight x / (mean(x^2) + eps)^(p/2) over the channels of a token; p = 1 is rms.
 *
 *   cc -O3 -shared -fPIC own_norm.c $(pkg-config --cflags norma) -o own_norm.so
 *   norma --plugin ./own_norm.so train --norm partial:p=0.5 --data fashion-mnist
 *   norma check own_norm.c */
#include <norma/plugin.h>

struct partial { float p, eps; };
static const struct nr_option options[] = { NR_OPT_FLOAT(struct partial, p, 0.5, 0, 1, "how much of the size is taken off"),
	NR_OPT_FLOAT(struct partial, eps, 1e-6, 0, 1, "added to the mean square"), NR_OPT_END };

static int shape(struct nr_node *k)                                     /* x (.., C), weight (C) -> y like x */
{
	nr_out_like(k, 0, k->in[0]);
	k->scratch = nr_rows_scratch(k->in[0], nr_cols(k->in[0]));      /* sums for the gradient of the weight */
	return nr_expect(k, nr_len(k->in[1]) == nr_cols(k->in[0]), "one weight per channel");
}
static void forward_row(const struct nr_call *k, int64_t r, nr_real *sum)
{
	const struct partial *o = k->node->attr;
	const nr_real *x = nr_row(&k->x[0], r), *weight = k->x[1].p, s = nr_dot_of(k->x[0].c, x, x) / (nr_real)k->x[0].c + o->eps;
	const nr_real d = nr_pow(s, -o->p / 2);
	(void)sum;
	for (int64_t i = 0; i < k->x[0].c; i++) nr_row(&k->y[0], r)[i] = weight[i] * x[i] * d;
}
static void backward_row(const struct nr_call *k, int64_t r, nr_real *sum) /* g = dy weight; dx = d (g - x p mean(g x) / s) */
{
	const struct partial *o = k->node->attr;
	const nr_real *x = nr_row(&k->x[0], r), *dy = nr_row(&k->dy[0], r), *weight = k->x[1].p, C = (nr_real)k->x[0].c;
	const nr_real s = nr_dot_of(k->x[0].c, x, x) / C + o->eps, d = nr_pow(s, -o->p / 2);
	const nr_real shared = o->p * nr_dot3_of(k->x[0].c, dy, weight, x) / (C * s);
	for (int64_t i = 0; i < k->x[0].c; i++) sum[i] += dy[i] * x[i] * d;
	for (int64_t i = 0; i < k->x[0].c; i++) nr_put(&nr_row(&k->dx[0], r)[i], d * (dy[i] * weight[i] - x[i] * shared), k->add[0]);
}
static void forward(const struct nr_call *k) { nr_rows_each(k, 0, forward_row); }
static void backward(const struct nr_call *k) { nr_put_all(k->x[0].c, nr_rows_each(k, k->x[0].c, backward_row), k->dx[1].p, k->add[1]); }
static const struct nr_op op = { .name = "partial", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_STRIDED };    /* backward reads both inputs; rows may have gaps */

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	return nr_apply(n, &op, conf, sizeof(struct partial), x, nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x))));
}
static const char *const laws[] = { "partial:p=1 = rms", NULL };        /* what `norma prove all` shows of it */
static const struct nr_norm partial = { .name = "partial", .title = "a part of RMS normalization", .cite = "none", .laws = laws,
	.equation = "y = weight x / (mean_C x^2 + eps)^(p/2)", .about = "Between nothing (p = 0) and rms (p = 1).",
	.conf_size = sizeof(struct partial), .options = options, .build = build, .op = { &op } };
NR_PLUGIN(.norms = NR_LIST(nr_norm, &partial))
