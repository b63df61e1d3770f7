/* Products value by value: y = a b, y = factor x, y = gain x per channel (LayerScale, arXiv:2103.17239),
 * y = x + shift per channel. */
#include "graph/blocks.h"
#include "math/row.h"
#include "nn/op.h"

static int64_t count(const struct nr_view *v) { return v->rows * v->c; }

/* ---- mul ------------------------------------------------------------------------------------------------------- */

static int mul_shape(struct nr_node *k)
{
	const nr_t *a = k->in[0], *b = k->in[1];
	char sa[64], sb[64];
	if (nr_expect(k, a->nd == b->nd && !memcmp(a->d, b->d, (size_t)a->nd * sizeof *a->d), "%s and %s differ",
		      nr_shape_text(a, sa, sizeof sa), nr_shape_text(b, sb, sizeof sb)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, a->nd, a->d, a->tok ? a->tok : b->tok);
	return 0;
}
static void mul_forward(const struct nr_call *k)
{
	nr_array_mul(count(&k->y[0]), k->x[0].p, k->x[1].p, k->y[0].p, 0);
}
static void mul_backward(const struct nr_call *k)
{
	for (int i = 1; i >= 0; i--) /* dx[0] may take the place of dy: last */
		if (k->want >> i & 1)
			nr_array_mul(count(&k->dy[0]), k->dy[0].p, k->x[1 - i].p, k->dx[i].p, k->add[i]);
}
static nr_t *mul_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_mul(n, x[0], x[1]);
}
static const struct nr_case mul_cases[] = { { "2x5x7 2x5x7", "" }, { "1 1", "" }, { "3x70x2 3x70x2", "" },
	{ NULL, NULL } };
const struct nr_op nr_op_mul = {
	.name = "mul", .shape = mul_shape, .forward = mul_forward, .backward = mul_backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_CHEAP | NR_INPLACE | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 3, .try_case = mul_try, .cases = mul_cases,
};

nr_t *nr_mul(struct nr_net *n, nr_t *a, nr_t *b) { return nr_apply(n, &nr_op_mul, NULL, 0, a, b); }

/* ---- scale ----------------------------------------------------------------------------------------------------- */

static int scale_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return 0;
}
static real factor_of(const struct nr_call *k)
{
	const double *factor = k->node->attr;
	return (real)*factor;
}
static void scale_forward(const struct nr_call *k)
{
	nr_array_scale(count(&k->x[0]), factor_of(k), k->x[0].p, k->y[0].p);
}
static void scale_backward(const struct nr_call *k)
{
	const real factor = factor_of(k);
	if (k->add[0]) nr_array_axpy(count(&k->dy[0]), factor, k->dy[0].p, k->dx[0].p);
	else nr_array_scale(count(&k->dy[0]), factor, k->dy[0].p, k->dx[0].p);
}
static nr_t *scale_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_scale(n, x[0], -1.75);
}
static const struct nr_case scale_cases[] = { { "2x5x7", "" }, { "1", "" }, { NULL, NULL } };
const struct nr_op nr_op_scale = {
	.name = "scale", .shape = scale_shape, .forward = scale_forward, .backward = scale_backward,
	.flags = NR_CHEAP | NR_INPLACE | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1, .try_case = scale_try, .cases = scale_cases,
};

nr_t *nr_scale(struct nr_net *n, nr_t *x, double factor)
{
	return nr_apply(n, &nr_op_scale, &factor, sizeof factor, x);
}

/* ---- scale_channels -------------------------------------------------------------------------------------------- */

/* Gains may be fewer than channels: each then serves as many channels that lie next to each other (heads), one serves all. */
static int channels_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *gain = k->in[1];
	char s[64];
	if (nr_expect(k, nr_cols(x) % nr_len(gain) == 0, "%lld gains do not divide the channels of %s", (long long)nr_len(gain),
		nr_shape_text(x, s, sizeof s)))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	k->scratch = (size_t)((nr_blocks_most(x) + 1) * nr_cols(x)) * sizeof(real);   /* gains per channel, partial dgain */
	return 0;
}
static const real *channel_gains(const struct nr_call *k, real *wide)
{
	const int64_t C = k->x[0].c, each = C / nr_len(k->node->in[1]);
	const real *gain = k->x[1].p;
	if (each == 1) return gain;
	for (int64_t c = 0; c < C; c++) wide[c] = gain[c / each];
	return wide;
}
static void channels_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const real *gain = channel_gains(k, k->scratch);
#pragma omp parallel for schedule(static) if (count(x) > 16384)
	for (int64_t r = 0; r < x->rows; r++) nr_row_mul(x->c, nr_row(x, r), gain, nr_row(y, r), 0);
}
static void put_gain_gradient(const struct nr_call *k, const real *wide)
{
	const int64_t G = nr_len(k->node->in[1]), each = k->x[0].c / G;
	for (int64_t g = 0; g < G; g++) nr_put((real *)k->dx[1].p + g, nr_sum(each, wide + g * each), k->add[1]);
}
static void channels_backward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *dy = &k->dy[0], *dx = &k->dx[0];
	const int64_t C = x->c;
	const struct nr_blocks n = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	real *wide = k->scratch, *part = wide + C;      /* (C), (blocks,C) */
	const real *gain = channel_gains(k, wide);
#pragma omp parallel for schedule(static) if (count(x) > 16384)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, from = nr_block(&n, q, &rows);
		real *dgain = memset(part + q * C, 0, (size_t)C * sizeof(real));
		for (int64_t r = from; r < from + rows; r++) { /* the gain's first: dx may take the place of dy */
			if (k->want & 2) nr_row_mul(C, nr_row(dy, r), nr_row(x, r), dgain, 1);
			if (k->want & 1) nr_row_mul(C, nr_row(dy, r), gain, nr_row(dx, r), k->add[0]);
		}
	}
	if (!(k->want & 2)) return;
	nr_fold(n.count, C, part, wide, 0);
	put_gain_gradient(k, wide);
}
static nr_t *channels_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_scale_channels(n, x[0], x[1]);
}
static const struct nr_case channels_cases[] = { { "2x5x7 7", "" }, { "1x1 1", "" }, { "2x70x3 3", "" },
	{ "2x5x6 3", "" }, { "2x5x6 1", "" },
	{ NULL, NULL } };
const struct nr_op nr_op_scale_channels = {
	.name = "scale_channels", .shape = channels_shape, .forward = channels_forward, .backward = channels_backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE | NR_INPLACE_GRAD | NR_NARROW,
	.tokenwise = 1, .try_case = channels_try,
	.cases = channels_cases,
};

nr_t *nr_scale_channels(struct nr_net *n, nr_t *x, nr_t *gain)
{
	return nr_apply(n, &nr_op_scale_channels, NULL, 0, x, gain);
}

/* ---- shift_channels -------------------------------------------------------------------------------------------- */

static int shift_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	k->scratch = (size_t)((nr_blocks_most(k->in[0]) + 1) * nr_cols(k->in[0])) * sizeof(real); /* shift per channel, partial sums */
	return nr_expect(k, nr_len(k->in[1]) && nr_cols(k->in[0]) % nr_len(k->in[1]) == 0, "one value per channel, or for several");
}
static void shift_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0];
	const real *shift = channel_gains(k, k->scratch);
#pragma omp parallel for schedule(static) if (count(x) > 16384)
	for (int64_t r = 0; r < x->rows; r++) nr_row_add(x->c, nr_row(x, r), shift, nr_row(&k->y[0], r));
}
static void shift_backward(const struct nr_call *k)
{
	const struct nr_view *dy = &k->dy[0];
	const struct nr_blocks n = nr_blocks_of(dy, nr_packed(dy));
	const int one_each = nr_len(k->node->in[1]) == dy->c;
	real *wide = k->scratch, *part = memset(wide + dy->c, 0, (size_t)(n.count * dy->c) * sizeof(real));
#pragma omp parallel for schedule(static) if (count(dy) > 16384)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, from = nr_block(&n, q, &rows);
		nr_row_active->col_sum(rows, dy->c, nr_row(dy, from), dy->c, part + q * dy->c);
	}
	if (k->want & 2 && one_each) nr_fold(n.count, dy->c, part, k->dx[1].p, k->add[1]);
	if (k->want & 2 && !one_each) {
		nr_fold(n.count, dy->c, part, wide, 0);
		put_gain_gradient(k, wide);
	}
	if (k->want & 1 && k->dx[0].p != dy->p) nr_rows_put(&k->dx[0], dy, k->add[0]);
}
static nr_t *shift_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_shift_channels(n, x[0], x[1]);
}
static const struct nr_case shift_cases[] = { { "2x5x7 7", "" }, { "1x1 1", "" }, { "2x70x3 3", "" }, { "4x6 1", "" }, { NULL, NULL } };
const struct nr_op nr_op_shift_channels = {
	.name = "shift_channels", .shape = shift_shape, .forward = shift_forward, .backward = shift_backward,
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1, .try_case = shift_try,
	.cases = shift_cases,
};

nr_t *nr_shift_channels(struct nr_net *n, nr_t *x, nr_t *shift)
{
	return nr_apply(n, &nr_op_shift_channels, NULL, 0, x, shift);
}
