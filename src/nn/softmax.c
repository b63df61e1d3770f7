/* softmax: y = softmax(scale x + mask) over the last axis, and its logarithm. The mask has one row for all, or m rows,
 * row r of x taking row r % m (one per query, say). Backward reads y: dx = scale y (dy - sum y dy); the mask's is the
 * same without scale, summed over the rows that share it. */
#include "math/softmax.h"
#include "nn/op.h"

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *mask = k->n_in > 1 ? k->in[1] : NULL;
	char sx[64], sm[64];
	if (mask && nr_expect(k, mask->dtype == NR_REAL && nr_cols(mask) == nr_cols(x) &&
		nr_rows(x) % nr_rows(mask) == 0,
			      "the mask %s does not fit %s", nr_shape_text(mask, sm, sizeof sm),
			nr_shape_text(x, sx, sizeof sx)))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	if (mask && nr_rows(mask) == 1) k->scratch = (size_t)(nr_chunks(nr_rows(x)) * nr_cols(x)) * sizeof(real);
	return 0;
}

static real scale_of(const struct nr_call *k)
{
	const double *scale = k->node->attr;
	return (real)*scale;
}

static void forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0];
	const int64_t C = x->c, shared = k->node->n_in > 1 ? k->x[1].rows : x->rows;
	const real scale = scale_of(k), *mask = k->node->n_in > 1 ? k->x[1].p : NULL, *v = x->p;
	real *y = k->y[0].p;
	if (shared == 1) {
		nr_softmax_forward(x->rows, C, v, C, scale, mask, 0, y, C);
		return;
	}
	for (int64_t r = 0; r < x->rows; r += shared)
		nr_softmax_forward(shared, C, v + r * C, C, scale, mask, C, y + r * C, C);
}

/* One row: chunks of rows folded in order. Several: each is summed by one thread. */
static void mask_backward(const struct nr_call *k)
{
	const int64_t rows = k->y[0].rows, C = k->y[0].c, m = k->x[1].rows;
	const real *y = k->y[0].p, *dy = k->dy[0].p;
	real *part = m == 1 ? k->scratch : k->dx[1].p;
	const int64_t pieces = m == 1 ? nr_chunks(rows) : m;
#pragma omp parallel for schedule(static) if (rows * C > 4096)
	for (int64_t q = 0; q < pieces; q++) {
		const int64_t from = m == 1 ? q * NR_CHUNK : q, end = m == 1 ? nr_min64(rows, from + NR_CHUNK) : rows;
		for (int64_t r = from; r < end; r += m) {
			const int add = r > from || (m > 1 && k->add[1]);
			nr_row_active->softmax_backward(1, C, y + r * C, C, dy + r * C, C, 1, part + q * C, C, add);
		}
	}
	if (m == 1) nr_fold(pieces, C, part, k->dx[1].p, k->add[1]);
}

static void backward(const struct nr_call *k)
{
	const int64_t rows = k->y[0].rows, C = k->y[0].c;
	if (k->node->n_in > 1 && k->want & 2) mask_backward(k);
	if (k->want & 1)
		nr_softmax_backward(rows, C, k->y[0].p, C, k->dy[0].p, C, scale_of(k), k->dx[0].p, C, k->add[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_softmax(n, x[0], strstr(options, "scale") ? 0.3 : 1, strstr(options, "mask") ? x[1] : NULL);
}
static const struct nr_case cases[] = {
	{ "2x5x7", "" }, { "1x1", "" }, { "70x3", "scale" }, { "2x3x5x5 5x5", "scale,mask" },
	{ "70x4 4", "mask" }, { "3x7 3x7", "scale,mask" },
	{ NULL, NULL },
};
const struct nr_op nr_op_softmax = {
	.name = "softmax", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_Y(0),
	.flags = NR_INPLACE | NR_INPLACE_GRAD, .try_case = try_case, .cases = cases,
};

nr_t *nr_softmax(struct nr_net *n, nr_t *x, double scale, nr_t *mask)
{
	return mask ? nr_apply(n, &nr_op_softmax, &scale, sizeof scale, x, mask) : nr_apply(n, &nr_op_softmax,
		&scale, sizeof scale, x);
}

/* ---- log_softmax ----------------------------------------------------------------------------------------------- */

static void log_forward(const struct nr_call *k)
{
	nr_log_softmax_forward(k->x[0].rows, k->x[0].c, k->x[0].p, k->x[0].c, 1, NULL, 0, k->y[0].p, k->x[0].c);
}
static void log_backward(const struct nr_call *k)
{
	const int64_t C = k->y[0].c;
	nr_log_softmax_backward(k->y[0].rows, C, k->y[0].p, C, k->dy[0].p, C, 1, k->dx[0].p, C, k->add[0]);
}
static nr_t *log_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_log_softmax(n, x[0]);
}
static const struct nr_case log_cases[] = { { "2x5x7", "" }, { "1x1", "" }, { "70x3", "" }, { NULL, NULL } };
const struct nr_op nr_op_log_softmax = {
	.name = "log_softmax", .shape = shape, .forward = log_forward, .backward = log_backward,
	.keeps = NR_KEEP_Y(0),
	.flags = NR_INPLACE | NR_INPLACE_GRAD, .try_case = log_try, .cases = log_cases,
};

nr_t *nr_log_softmax(struct nr_net *n, nr_t *x) { return nr_apply(n, &nr_op_log_softmax, NULL, 0, x); }
