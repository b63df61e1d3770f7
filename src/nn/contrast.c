/* Images against texts: the losses of CLIP and LiT (softmax; Radford et al. 2021, arXiv:2103.00020, Figure 3) and of SigLIP
 * (sigmoid; Zhai et al. 2023, arXiv:2303.15343, Eq. 1).
 *
 *   contrast   l = e^t u v' + b, rows are images, columns their texts; u, v (B,C) of length 1, t and b (1)
 *     softmax  half the mean cross entropy along rows, half that along columns; no b
 *     sigmoid  mean over images of -sum_j log sigmoid(+-l_ij), + on the diagonal
 *
 * Sums over the batch are products or go row by row, so that their order does not depend on threads. */
#include <stdbool.h>

#include "math/gemm.h"
#include "math/softmax.h"
#include "nn/op.h"

/* ---- contrast ---------------------------------------------------------------------------------------------------------------- */

static struct nr_gemm logits_of(int64_t B, int64_t C, const real *u, const real *v, real *l)
{
	return (struct nr_gemm){ .m = B, .n = B, .k = C, .a = u, .lda = C, .b = v, .ldb = C, .tb = 1, .c = l, .ldc = B };
}
/* du = d v, or dv = d' u */
static struct nr_gemm gradient_of(int64_t B, int64_t C, const real *d, int transposed, const real *other, real *to, int add)
{
	return (struct nr_gemm){ .m = B, .n = C, .k = B, .a = d, .lda = B, .ta = transposed, .b = other, .ldb = C, .c = to, .ldc = C,
		.add = add };
}

/* Scratch: the products' own, then the gradient of the logits and their other order (B,B), targets (B,B), three sums of each row (B),
 * labels (B). */
struct scratch { void *product; real *d, *flip, *target, *loss, *with_logit, *alone; int32_t *label; };
static size_t layout(int64_t B, int64_t C, void *base, struct scratch *s)
{
	const struct nr_gemm g[] = { logits_of(B, C, NULL, NULL, NULL), gradient_of(B, C, NULL, 0, NULL, NULL, 0),
		gradient_of(B, C, NULL, 1, NULL, NULL, 0) };
	size_t most = 0;
	for (int i = 0; i < 3; i++) most = nr_gemm_scratch_of(&g[i]) > most ? nr_gemm_scratch_of(&g[i]) : most;
	most = (most + 63) / 64 * 64;
	if (base) {
		s->product = base;
		s->d = (real *)((char *)base + most);
		s->flip = s->d + B * B;
		s->target = s->flip + B * B;
		s->loss = s->target + B * B;
		s->with_logit = s->loss + B;
		s->alone = s->with_logit + B;
		s->label = (int32_t *)(s->alone + B);
	}
	return most + (size_t)(3 * B * B + 3 * B) * sizeof(real) + (size_t)B * sizeof(int32_t);
}

static int shape(struct nr_node *k)
{
	const nr_t *u = k->in[0], *v = k->in[1];
	char su[64], sv[64];
	if (nr_expect(k, u->nd == 2 && v->nd == 2 && u->d[0] == v->d[0] && u->d[1] == v->d[1],
		      "as many texts as images, of one width (B,C), are needed, not %s and %s", nr_shape_text(u, su, sizeof su),
		      nr_shape_text(v, sv, sizeof sv)) ||
	    nr_expect(k, nr_len(k->in[2]) == 1 && (k->n_in < 4 || nr_len(k->in[3]) == 1), "temperature and bias are one number each"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	nr_out(k, 1, NR_REAL, 2, (int64_t[]){ u->d[0], u->d[0] }, NULL);
	k->scratch = layout(u->d[0], u->d[1], NULL, NULL);
	return 0;
}

static void flip(int64_t B, const real *from, real *to, int add)
{
#pragma omp parallel for schedule(static) if (B > 128)
	for (int64_t i = 0; i < B; i++)
		for (int64_t j = 0; j < B; j++) nr_put(&to[i * B + j], from[j * B + i], add);
}

/* The losses of the rows, in s->loss, or the gradient times scale in s->d. */
static void run(bool sigmoid, int64_t B, const real *logits, real scale, bool back, struct scratch *s)
{
	real *loss = back ? NULL : s->loss, *d = back ? s->d : NULL;
	if (sigmoid) {
		for (int64_t i = 0; i < B * B; i++) s->target[i] = i % (B + 1) == 0;
		nr_xent_sigmoid(B, B, logits, B, s->target, B, scale, loss, d, B, 0);
		return;
	}
	for (int64_t i = 0; i < B; i++) s->label[i] = (int32_t)i;
	flip(B, logits, s->flip, 0);
	nr_xent_labels(B, B, logits, B, s->label, -1, 0, scale / 2, loss, d, B, 0);
	nr_xent_labels(B, B, s->flip, B, s->label, -1, 0, scale / 2, back ? NULL : s->with_logit, back ? s->flip : NULL, B, 0);
	if (back) flip(B, s->flip, s->d, 1);
	for (int64_t i = 0; !back && i < B; i++) s->loss[i] = (s->loss[i] + s->with_logit[i]) / 2;
}

static void forward(const struct nr_call *k)
{
	const int64_t B = k->x[0].rows, C = k->x[0].c;
	const real t = nr_exp(*(const real *)k->x[2].p), b = k->node->n_in > 3 ? *(const real *)k->x[3].p : 0;
	real *logits = k->y[1].p;
	struct scratch s;
	double loss = 0;
	layout(B, C, k->scratch, &s);
	const struct nr_gemm g = logits_of(B, C, k->x[0].p, k->x[1].p, logits);
	nr_gemm_run(&g, s.product);
	for (int64_t i = 0; i < B * B; i++) logits[i] = t * logits[i] + b;
	run(k->node->n_in > 3, B, logits, 1, false, &s);
	for (int64_t i = 0; i < B; i++) loss += (double)s.loss[i];
	*(real *)k->y[0].p = (real)(loss / (double)B);
}

/* d t = sum d (l - b), d b = sum d; d is left as the gradient of the products. */
static void scalars_backward(const struct nr_call *k, int64_t B, struct scratch *s)
{
	const real *logits = k->y[1].p, t = nr_exp(*(const real *)k->x[2].p), b = k->node->n_in > 3 ? *(const real *)k->x[3].p : 0;
	double with_logit = 0, alone = 0;
#pragma omp parallel for schedule(static) if (B > 128)
	for (int64_t i = 0; i < B; i++) {
		real *d = s->d + i * B, sum = 0, all = 0;
		for (int64_t j = 0; j < B; j++) {
			sum += d[j] * (logits[i * B + j] - b);
			all += d[j];
			d[j] *= t;
		}
		s->with_logit[i] = sum;
		s->alone[i] = all;
	}
	for (int64_t i = 0; i < B; i++) with_logit += (double)s->with_logit[i], alone += (double)s->alone[i];
	if (k->want & 4) nr_put(k->dx[2].p, (real)with_logit, k->add[2]);
	if (k->want & 8) nr_put(k->dx[3].p, (real)alone, k->add[3]);
}

static void backward(const struct nr_call *k)
{
	const int64_t B = k->x[0].rows, C = k->x[0].c;
	const real dloss = k->dy[0].p ? *(const real *)k->dy[0].p : 0;
	struct scratch s;
	layout(B, C, k->scratch, &s);
	run(k->node->n_in > 3, B, k->y[1].p, dloss / (real)B, true, &s);
	if (k->dy[1].p) nr_row_put(B * B, k->dy[1].p, s.d, 1);
	scalars_backward(k, B, &s);
	const struct nr_gemm du = gradient_of(B, C, s.d, 0, k->x[1].p, k->dx[0].p, k->add[0]);
	const struct nr_gemm dv = gradient_of(B, C, s.d, 1, k->x[0].p, k->dx[1].p, k->add[1]);
	if (k->want & 1) nr_gemm_run(&du, s.product);
	if (k->want & 2) nr_gemm_run(&dv, s.product);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	const bool sigmoid = strstr(options, "sigmoid") != NULL;
	nr_t *logits, *loss = nr_contrast_loss(n, x[0], x[1], x[2], sigmoid ? x[3] : NULL, &logits);
	return strstr(options, "both") ? nr_add(n, loss, nr_weighted_sum(n, logits, x[sigmoid ? 4 : 3])) : loss;
}
static const struct nr_case cases[] = {
	{ "5x7 5x7 1", "" }, { "5x7 5x7 1 1", "sigmoid" }, { "1x1 1x1 1", "" }, { "1x3 1x3 1 1", "sigmoid" }, { "33x4 33x4 1", "" },
	{ "17x9 17x9 1 1", "sigmoid" }, { "3x4 3x4 1 3x3", "both" }, { "3x4 3x4 1 1 3x3", "sigmoid both" }, { NULL, NULL },
};
const struct nr_op nr_op_contrast = {
	.name = "contrast", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_Y(1), .flags = NR_BATCHWISE, .try_case = try_case,
	.cases = cases,
};

nr_t *nr_contrast_loss(struct nr_net *n, nr_t *images, nr_t *texts, nr_t *t, nr_t *bias, nr_t **logits)
{
	nr_t *in[] = { images, texts, t, bias };
	nr_t *loss = nr_apply_list(n, &nr_op_contrast, NULL, 0, bias ? 4 : 3, in);
	if (logits) *logits = loss ? loss->src->out[1] : NULL;
	return loss;
}
