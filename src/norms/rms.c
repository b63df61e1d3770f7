/* rms: y = weight x / sqrt(mean(x^2) + eps), one token at a time. Zhang & Sennrich 2019.
 *
 * Backward: g = dy weight; dx = r (g - x r^2 mean(g x)), r = 1 / sqrt(mean(x^2) + eps). r is kept, x is read again.
 * After a residual sum the pair becomes add_rms, which writes the sum and the norm in one pass. */
#include <stdbool.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "norms/norms.h"

struct rms { float eps; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct rms, eps, 1e-6, 0, 1, "added to the mean square"),
	NR_OPT_BOOL(struct rms, affine, "1", "learn a weight per channel"),
	NR_OPT_END
};

static int sizes(struct nr_node *k, int first)   /* first: index of the weight */
{
	const nr_t *x = k->in[0];
	k->stash = (size_t)nr_rows(x) * sizeof(real);                             /* 1 / rms per token */
	k->scratch = (size_t)(nr_blocks_most(x) * nr_cols(x)) * sizeof(real);     /* partial dweight */
	return nr_expect(k, k->n_in == first || (k->n_in == first + 1 && nr_len(k->in[first]) == nr_cols(x)),
		"one weight per channel");
}

/* dx (+)= the gradient through the norm, dweight folded in block order. */
static void norm_backward(const struct nr_call *k, const struct nr_view *x, const struct nr_view *dy,
	const struct nr_view *dx,
	int add, int first)
{
	const int64_t C = x->c;
	const int affine = k->node->n_in > first;
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const real *inverse = k->stash;
	real *dw = k->scratch;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		if (affine) memset(dw + q * C, 0, (size_t)C * sizeof(real));
		nr_row_active->rms_backward(rows, C, nr_row(x, r), C, nr_row(dy, r), C,
			affine ? k->x[first].p : NULL, inverse + r,
			nr_row(dx, r), C, add, affine ? dw + q * C : NULL);
	}
	if (affine && k->want >> first & 1) nr_fold(b.count, C, dw, k->dx[first].p, k->add[first]);
}

/* ---- rms ------------------------------------------------------------------------------------------------------- */

static int shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return sizes(k, 1);
}

static void norm_forward(const struct nr_call *k, const struct nr_view *x, const struct nr_view *y, real eps,
	int first)
{
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	real *inverse = k->stash;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		nr_row_active->rms_forward(rows, x->c, nr_row(x, r), x->c,
			k->node->n_in > first ? k->x[first].p : NULL, eps, nr_row(y, r),
			x->c, inverse + r);
	}
}

static void forward(const struct nr_call *k)
{
	norm_forward(k, &k->x[0], &k->y[0], ((const struct rms *)k->node->attr)->eps, 1);
}
static void backward(const struct nr_call *k) { norm_backward(k, &k->x[0], &k->dy[0], &k->dx[0], k->add[0], 1); }

/* ---- add_rms: sum = a + b, y = rms(sum) ------------------------------------------------------------------------ */

static real fused_eps(const struct nr_call *k)
{
	return ((const struct rms *)((const struct nr_fused_attr *)k->node->attr)->consumer)->eps;
}

static int add_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	nr_out_like(k, 1, k->in[0]);
	return sizes(k, 2);
}

static void add_forward(const struct nr_call *k)
{
	const struct nr_view *a = &k->x[0], *b = &k->x[1], *sum = &k->y[0], *y = &k->y[1];
	const struct nr_blocks n = nr_blocks_of(a, nr_packed(a) && nr_packed(b) && nr_packed(sum) && nr_packed(y));
	real *inverse = k->stash;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows), C = a->c;
		nr_row_active->add_rms_forward(rows, C, nr_row(a, r), C, nr_row(b, r), C,
			k->node->n_in > 2 ? k->x[2].p : NULL, fused_eps(k),
			nr_row(sum, r), C, nr_row(y, r), C, inverse + r);
	}
}

/* y again, from the sum. */
static void add_rebuild(const struct nr_call *k) { norm_forward(k, &k->y[0], &k->y[1], fused_eps(k), 2); }

/* dsum = dy[0] + what comes through the norm, left in dy[0]; both inputs of the sum get it. */
static void add_backward(const struct nr_call *k)
{
	const struct nr_view *dsum = &k->dy[0];
	if (k->dy[1].p) norm_backward(k, &k->y[0], &k->dy[1], dsum, !k->dy_empty, 2);
	for (int i = 0; i < 2; i++)
		if (k->want >> i & 1 && k->dx[i].p != dsum->p) nr_rows_put(&k->dx[i], dsum, k->add[i]);
}

static const struct nr_op op_add_rms = {
	.name = "add_rms", .shape = add_shape, .forward = add_forward, .backward = add_backward,
	.rebuild = add_rebuild,
	.keeps = NR_KEEP_Y(0) | NR_KEEP_X(2), .cheap = 1 << 1, .rebuild_keeps = NR_KEEP_Y(0) | NR_KEEP_X(2),
	.flags = NR_SUM | NR_STRIDED,
};

static const struct nr_fuse fuse[] = { { "add", &op_add_rms }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_rms, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-6" }, { "3x1x7", "eps=0.1" }, { "1x70x3", "affine=0" }, { "1x1x1", "eps=0.5" },
	{ "2x5x12 2x5x12", "sum | eps=1e-3" }, { "1x70x3 1x70x3", "sum | affine=0" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "rms", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD, .fuse = fuse, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct rms *c = conf;
	if (!c->affine) return nr_apply(n, &op, conf, sizeof *c, x);
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, 1, nr_cols(x));
	return nr_apply(n, &op, conf, sizeof *c, x, weight);
}

const struct nr_norm nr_norm_rms = {
	.name = "rms", .title = "RMS normalization", .cite = "arXiv:1910.07467",
	.equation = "y = weight x / sqrt(mean_C x^2 + eps)",
	.conf_size = sizeof(struct rms), .options = options, .build = build, .op = { &op, &op_add_rms },
};
