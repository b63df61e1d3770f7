/* dyt: y = weight tanh(alpha x) + bias, no statistics at all. Zhu, Chen, He, LeCun & Liu 2025, Eq. 1.
 *
 * Backward: t = tanh(alpha x), s = dy weight (1 - t^2): dx = alpha s, dalpha = sum(s x), dweight = sum(dy t), dbias =
 * sum(dy). t is made again from x. */
#include <stdbool.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "math/squash.h"
#include "norms/norms.h"

struct dyt { float alpha; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct dyt, alpha, 0.5, -1e6, 1e6, "initial slope before the tanh; one learned number"),
	NR_OPT_BOOL(struct dyt, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_END
};

enum { X, ALPHA, WEIGHT, BIAS };

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[X];
	const int64_t C = nr_cols(x);
	nr_out_like(k, 0, x);
	/* per block: dweight, dbias, dalpha */
	k->scratch = (size_t)(nr_blocks_most(x) * (2 * C + 1)) * sizeof(real);
	return nr_expect(k, k->n_in == 2 || (nr_len(k->in[WEIGHT]) == C && nr_len(k->in[BIAS]) == C),
		"one weight and one bias per channel");
}

static void forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *y = &k->y[0];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	const int affine = k->node->n_in > WEIGHT;
	const real alpha = *(const real *)k->x[ALPHA].p, *weight = affine ? k->x[WEIGHT].p : NULL;
	const real *bias = affine ? k->x[BIAS].p : NULL;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows);
		nr_squash_active->forward(rows, x->c, nr_row(x, r), x->c, alpha, weight, bias, nr_row(y, r), x->c);
	}
}

static void backward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *dy = &k->dy[0], *dx = &k->dx[X];
	const int64_t C = x->c;
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const real alpha = *(const real *)k->x[ALPHA].p, *weight = k->node->n_in > WEIGHT ? k->x[WEIGHT].p : NULL;
	real *dw = k->scratch, *db = dw + b.count * C, *da = db + b.count * C;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows);
		memset(dw + q * C, 0, (size_t)C * sizeof(real));
		memset(db + q * C, 0, (size_t)C * sizeof(real));
		da[q] = nr_squash_active->backward(rows, C, nr_row(x, r), C, nr_row(dy, r), C, alpha, weight, nr_row(dx, r), C,
			k->add[X], dw + q * C, db + q * C);
	}
	if (k->want >> ALPHA & 1) nr_put(k->dx[ALPHA].p, nr_sum(b.count, da), k->add[ALPHA]);
	if (!weight) return;
	if (k->want >> WEIGHT & 1) nr_fold(b.count, C, dw, k->dx[WEIGHT].p, k->add[WEIGHT]);
	if (k->want >> BIAS & 1) nr_fold(b.count, C, db, k->dx[BIAS].p, k->add[BIAS]);
}

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 4 * (double)nr_len(k->in[X]);          /* tanh counted as one */
	*back = 11 * (double)nr_len(k->in[X]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_dyt, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "3x1x7", "alpha=2" }, { "1x70x3", "affine=0" }, { "1x1x1", "alpha=0" }, { "3x70x5", "alpha=-0.7" },
	{ "3x37x5 3:i1-37", "valid | alpha=1" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "dyt", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(X) | NR_KEEP_X(ALPHA) | NR_KEEP_X(WEIGHT), .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_NARROW,
	.tokenwise = 1,
	.try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct dyt *c = conf;
	nr_t *alpha = nr_param(n, "alpha", NR_ONES | NR_NO_DECAY, NR_SHAPE(1));
	if (alpha) alpha->entry->value = c->alpha;
	if (!c->affine) return nr_apply(n, &op, NULL, 0, x, alpha);
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	nr_t *bias = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	return nr_apply(n, &op, NULL, 0, x, alpha, weight, bias);
}

const struct nr_norm nr_norm_dyt = {
	.name = "dyt", .title = "dynamic tanh", .cite = "arXiv:2503.10622", .equation = "y = weight tanh(alpha x) + bias",
	.about = "Not a norm: each value is squashed independently, with one learned slope for the whole layer; it uses no statistics "
		 "of tokens, samples or batches. It mimics the S-shaped curve of trained layer norms and is the baseline "
		 "for whether statistics are needed at all. The paper starts alpha at 0.5 outside language models.",
	.conf_size = sizeof(struct dyt), .options = options, .build = build, .op = { &op },
};
