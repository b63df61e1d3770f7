/* layer: y = weight (x - mean) / sqrt(var + eps) + bias over the channels of one token. Ba, Kiros & Hinton 2016.
 *
 * Backward: g = dy weight; dx = (g - mean(g) - xhat mean(g xhat)) / sqrt(var + eps). The statistics are kept, x is read
 * again. After a residual sum the pair becomes add_layer, which writes the sum and the norm in one pass. */
#include <stdbool.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "norms/norms.h"

struct layer { float eps; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct layer, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_BOOL(struct layer, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_END
};

struct stats { real *mean, *rstd; };            /* (rows) each */
static struct stats stats_of(const struct nr_call *k, int64_t rows)
{
	real *s = k->stash;
	return (struct stats){ s, s + rows };
}

static int sizes(struct nr_node *k, int first)   /* first: index of the weight */
{
	const nr_t *x = k->in[0];
	k->stash = 2 * (size_t)nr_rows(x) * sizeof(real);
	k->scratch = 2 * (size_t)(nr_blocks_most(x) * nr_cols(x)) * sizeof(real);     /* partial dweight, dbias */
	if (k->n_in == first) return 0;
	return nr_expect(k, k->n_in == first + 2 && nr_len(k->in[first]) == nr_cols(x) && nr_len(k->in[first + 1]) == nr_cols(x),
			 "one weight and one bias per channel");
}

static void norm_forward(const struct nr_call *k, const struct nr_view *x, const struct nr_view *y, real eps, int first)
{
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	const struct stats s = stats_of(k, x->rows);
	const int affine = k->node->n_in > first;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		nr_row_active->layer_forward(rows, x->c, nr_row(x, r), x->c, affine ? k->x[first].p : NULL,
			affine ? k->x[first + 1].p : NULL, eps, nr_row(y, r), x->c, s.mean + r, s.rstd + r);
	}
}

/* dx (+)= the gradient through the norm, dweight and dbias folded in block order. */
static void norm_backward(const struct nr_call *k, const struct nr_view *x, const struct nr_view *dy, const struct nr_view *dx,
	int add, int first)
{
	const int64_t C = x->c;
	const int affine = k->node->n_in > first;
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const struct stats s = stats_of(k, x->rows);
	real *dw = k->scratch, *db = dw + b.count * C;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		if (affine) {
			memset(dw + q * C, 0, (size_t)C * sizeof(real));
			memset(db + q * C, 0, (size_t)C * sizeof(real));
		}
		nr_row_active->layer_backward(rows, C, nr_row(x, r), C, nr_row(dy, r), C, affine ? k->x[first].p : NULL, s.mean + r,
			s.rstd + r, nr_row(dx, r), C, add, affine ? dw + q * C : NULL, affine ? db + q * C : NULL);
	}
	if (!affine) return;
	if (k->want >> first & 1) nr_fold(b.count, C, dw, k->dx[first].p, k->add[first]);
	if (k->want >> (first + 1) & 1) nr_fold(b.count, C, db, k->dx[first + 1].p, k->add[first + 1]);
}

/* ---- layer ------------------------------------------------------------------------------------------------------ */

static int shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return sizes(k, 1);
}

static void forward(const struct nr_call *k)
{
	norm_forward(k, &k->x[0], &k->y[0], ((const struct layer *)k->node->attr)->eps, 1);
}

static void backward(const struct nr_call *k) { norm_backward(k, &k->x[0], &k->dy[0], &k->dx[0], k->add[0], 1); }

/* ---- add_layer: sum = a + b, y = layer(sum) --------------------------------------------------------------------- */

static const struct layer *fused_conf(const struct nr_node *k) { return ((const struct nr_fused_attr *)k->attr)->consumer; }

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
	const struct stats s = stats_of(k, a->rows);
	const int affine = k->node->n_in > 2;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows), C = a->c;
		nr_row_active->add_layer_forward(rows, C, nr_row(a, r), C, nr_row(b, r), C, affine ? k->x[2].p : NULL,
			affine ? k->x[3].p : NULL, fused_conf(k->node)->eps, nr_row(sum, r), C, nr_row(y, r), C, s.mean + r, s.rstd + r);
	}
}

/* y again, from the sum. */
static void add_rebuild(const struct nr_call *k) { norm_forward(k, &k->y[0], &k->y[1], fused_conf(k->node)->eps, 2); }

/* dsum = dy[0] + what comes through the norm, left in dy[0]; both inputs of the sum get it. */
static void add_backward(const struct nr_call *k)
{
	const struct nr_view *dsum = &k->dy[0];
	if (k->dy[1].p) norm_backward(k, &k->y[0], &k->dy[1], dsum, !k->dy_empty, 2);
	for (int i = 0; i < 2; i++)
		if (k->want >> i & 1 && k->dx[i].p != dsum->p) nr_rows_put(&k->dx[i], dsum, k->add[i]);
}

static const struct nr_op op_add_layer = {
	.name = "add_layer", .shape = add_shape, .forward = add_forward, .backward = add_backward, .rebuild = add_rebuild,
	.keeps = NR_KEEP_Y(0) | NR_KEEP_X(2), .cheap = 1 << 1, .rebuild_keeps = NR_KEEP_Y(0) | NR_KEEP_X(2) | NR_KEEP_X(3),
	.flags = NR_SUM | NR_STRIDED,
};

static const struct nr_fuse fuse[] = { { "add", &op_add_layer }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_layer, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-6" }, { "3x1x7", "eps=0.1" }, { "1x70x3", "affine=0" }, { "1x1x2", "eps=0.5" },
	{ "2x5x12 2x5x12", "sum | eps=1e-3" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "layer", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD, .fuse = fuse, .try_case = try_case, .cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct layer *c = conf;
	if (!c->affine) return nr_apply(n, &op, conf, sizeof *c, x);
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, 1, nr_cols(x));
	nr_t *bias = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, 1, nr_cols(x));
	return nr_apply(n, &op, conf, sizeof *c, x, weight, bias);
}

const struct nr_norm nr_norm_layer = {
	.name = "layer", .alias = "ln", .title = "layer normalization", .cite = "arXiv:1607.06450",
	.equation = "y = weight (x - mean_C x) / sqrt(var_C x + eps) + bias", .conf_size = sizeof(struct layer), .options = options,
	.build = build, .op = { &op, &op_add_layer },
};
