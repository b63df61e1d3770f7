/* seednorm: y = (p alpha + weight) x r, r = 1 / sqrt(mean(x^2) + eps), p = tanh(x . beta), one token at a time: an rms whose gain depends
 * on the token's length and direction, which rms forgets. SeeDNorm, Cai et al. 2025, Eq. 5; heads > 1: its multi-head form, where
 * each head of channels makes its own p from the raw values and r is still that of all channels.
 *
 * Backward: math/seed.c. beta starts at 0, so that a fresh norm is rms. No code is published: the formula is what several transcriptions
 * agree on; dropout on p alpha and a division by the width, which some of them mention for ViTs, are left out. */
#include "graph/blocks.h"
#include "math/row.h"
#include "math/seed.h"
#include "math/stream.h"
#include "norms/norms.h"

struct seednorm { float eps; int64_t heads; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct seednorm, eps, 1e-6, 0, 1, "added to the mean square"),
	NR_OPT_INT(struct seednorm, heads, 1, 1, NR_SEED_HEADS, "parts of the channels with a gate each"),
	NR_OPT_END
};

enum { X, WEIGHT, ALPHA, BETA };

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[X];
	const struct seednorm *c = k->attr;
	const int64_t C = nr_cols(x);
	nr_out_like(k, 0, x);
	k->stash = (size_t)(nr_rows(x) * (1 + c->heads)) * sizeof(real);        /* r, p */
	k->scratch = (size_t)(3 * nr_blocks_most(x) * C) * sizeof(real);
	return nr_expect(k, C % c->heads == 0, "%lld channels cannot be divided into %lld heads", (long long)C, (long long)c->heads);
}

static struct nr_seed seed_of(const struct nr_call *k)
{
	const struct seednorm *c = k->node->attr;
	return (struct nr_seed){ k->x[X].c, c->heads, k->x[WEIGHT].p, k->x[ALPHA].p, k->x[BETA].p, c->eps,
		nr_streams(nr_rows(k->node->in[X]) * k->x[X].c) };
}

static void forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *y = &k->y[0];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	const struct nr_seed f = seed_of(k);
	real *rstd = k->stash, *gate = rstd + x->rows;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows);
		nr_seed_active->forward(&f, rows, nr_row(x, r), f.C, nr_row(y, r), f.C, rstd + r, gate + r * f.heads);
	}
}

static void backward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *dy = &k->dy[0], *dx = &k->dx[X];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const struct nr_seed f = seed_of(k);
	const real *rstd = k->stash, *gate = rstd + x->rows;
	real *part[] = { k->scratch, (real *)k->scratch + b.count * f.C, (real *)k->scratch + 2 * b.count * f.C };
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows), at = q * f.C;
		for (int i = 0; i < 3; i++) memset(part[i] + at, 0, (size_t)f.C * sizeof(real));
		nr_seed_active->backward(&f, rows, nr_row(x, r), f.C, nr_row(dy, r), f.C, rstd + r, gate + r * f.heads, nr_row(dx, r), f.C,
			k->add[X], part[0] + at, part[1] + at, part[2] + at);
	}
	for (int i = WEIGHT; i <= BETA; i++)
		if (k->want >> i & 1) nr_fold(b.count, f.C, part[i - 1], k->dx[i].p, k->add[i]);
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 8 * (double)nr_len(k->in[X]);
	*back = 17 * (double)nr_len(k->in[X]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_seednorm, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "3x1x7", "eps=0.1" }, { "1x70x4", "heads=2" }, { "1x1x1", "eps=0.5" }, { "2x5x12", "heads=12" },
	{ "2x3x34", "heads=2" }, { "3x37x5 3:i1-37", "valid | eps=1e-3" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "seednorm", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(X) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(ALPHA) | NR_KEEP_X(BETA),
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const int64_t C = nr_cols(x);
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C)), *alpha = nr_param(n, "alpha", NR_ONES, NR_SHAPE(C));
	return nr_apply(n, &op, conf, sizeof(struct seednorm), x, weight, alpha, nr_param(n, "beta", NR_ZEROS, NR_SHAPE(C)));
}

static const char *const laws[] = { "seednorm = rms", NULL };

const struct nr_norm nr_norm_seednorm = {
	.name = "seednorm", .title = "self-rescaled dynamic normalization", .cite = "arXiv:2510.22777",
	.equation = "y = (tanh(x . beta) alpha + weight) x / sqrt(mean_C x^2 + eps)",
	.about = "An rms whose gain depends on the token: how long it is and where it points sets, through one gate per head, how much of "
		 "alpha is added to the weight. Statistics see one token. beta starts at zero, and then it is rms. Weight decay acts on "
		 "alpha and beta. The paper's ViTs have 16 heads.",
	.laws = laws, .conf_size = sizeof(struct seednorm), .options = options, .build = build, .op = { &op },
};
