/* Squared errors, and the weighted sum that turns any tensor into a scalar.
 *
 *   masked_mse = sum_r w_r mean_i (p_ri - t'_ri)^2 / sum_r w_r          He et al. arXiv:2111.06377
 *   t' = t, or (t - mean t) / sqrt(var t + 1e-6) per token, the variance with N-1 as in the reference code.
 * No weight at all: loss 0, gradient 0. */
#include "math/row.h"
#include "nn/op.h"

enum { LANES = 8 };
#define TARGET_EPS ((real)1e-6)

/* sum (p - (t - mean) rstd)^2; lanes so that compilers use vectors without reordering anything else. */
static real error_of(int64_t n, const real *p, const real *t, real mean, real rstd)
{
	real part[LANES] = { 0 };
	int64_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int j = 0; j < LANES; j++) {
			const real e = p[i + j] - (t[i + j] - mean) * rstd;
			part[j] += e * e;
		}
	for (; i < n; i++) {
		const real e = p[i] - (t[i] - mean) * rstd;
		part[0] += e * e;
	}
	return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

static int same_shape(struct nr_node *k)
{
	const nr_t *a = k->in[0], *b = k->in[1];
	char sa[64], sb[64];
	return nr_expect(k, a->nd == b->nd && !memcmp(a->d, b->d, (size_t)a->nd * sizeof *a->d), "%s and %s differ",
			 nr_shape_text(a, sa, sizeof sa), nr_shape_text(b, sb, sizeof sb));
}

/* ---- masked_mse ------------------------------------------------------------------------------------------------ */

struct moments { real *mean, *rstd, *weight, *loss; };  /* (rows) (rows) and two scalars, kept for backward */
static struct moments moments_of(const struct nr_call *k)
{
	real *s = k->stash;
	const int64_t rows = k->x[0].rows;
	return (struct moments){ s, s + rows, s + 2 * rows, s + 2 * rows + 1 };
}

static int masked_shape(struct nr_node *k)
{
	const nr_t *p = k->in[0], *w = k->in[2];
	const int64_t rows = nr_rows(p);
	char sp[64], sw[64];
	if (same_shape(k) ||
	    nr_expect(k, nr_len(w) == rows, "the weights %s are not one for each row of %s",
		nr_shape_text(w, sw, sizeof sw), nr_shape_text(p, sp, sizeof sp)) ||
	    nr_expect(k, !*(const int *)k->attr || nr_cols(p) > 1, "targets of one value cannot be standardised"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->stash = (size_t)(2 * rows + 2) * sizeof(real);
	k->scratch = (size_t)(rows + nr_array_chunks(rows)) * sizeof(real);
	return 0;
}

static void masked_forward(const struct nr_call *k)
{
	const struct nr_view *p = &k->x[0], *t = &k->x[1];
	const int64_t rows = p->rows, C = p->c;
	const int normalize = *(const int *)k->node->attr;
	const struct moments s = moments_of(k);
	real *error = k->scratch, *sums = error + rows, *y = k->y[0].p;
#pragma omp parallel for schedule(static) if (rows * C > 16384)
	for (int64_t r = 0; r < rows; r++) {
		const real *v = nr_row(t, r);
		s.mean[r] = normalize ? nr_sum(C, v) / (real)C : 0;
		s.rstd[r] = normalize ? 1 / nr_sqrt(nr_sum_sq_about(C, v, s.mean[r]) / (real)(C - 1) + TARGET_EPS)
			: 1;
		error[r] = error_of(C, nr_row(p, r), v, s.mean[r], s.rstd[r]) / (real)C;
	}
	*s.weight = nr_array_sum(rows, k->x[2].p, sums);
	*s.loss = *s.weight != 0 ? nr_array_dot(rows, k->x[2].p, error, sums) / *s.weight : 0;
	*y = *s.loss;
}

/* g = dL/dp = 2 w (p - t') / (C sum w); dt = -g, or -rstd (g - mean g - t' sum(g t') / (C-1));
 * dw = (error - L) / sum w */
static void masked_backward(const struct nr_call *k)
{
	const struct nr_view *p = &k->x[0], *t = &k->x[1];
	const int64_t rows = p->rows, C = p->c;
	const int normalize = *(const int *)k->node->attr;
	const struct moments s = moments_of(k);
	const real *w = k->x[2].p, scale = *s.weight != 0 ? *(const real *)k->dy[0].p / *s.weight : 0;
#pragma omp parallel for schedule(static) if (rows * C > 16384)
	for (int64_t r = 0; r < rows; r++) {
		const real *a = nr_row(p, r), *b = nr_row(t, r), m = s.mean[r], q = s.rstd[r],
			g = 2 * scale * w[r] / (real)C;
		real *dp = nr_row(&k->dx[0], r), *dt = nr_row(&k->dx[1], r);
		if (k->want & 1 && k->add[0])
			for (int64_t i = 0; i < C; i++) dp[i] += g * (a[i] - (b[i] - m) * q);
		else if (k->want & 1)
			for (int64_t i = 0; i < C; i++) dp[i] = g * (a[i] - (b[i] - m) * q);
		if (k->want & 2) {
			real sum = 0, dot = 0;
			for (int64_t i = 0; normalize && i < C; i++) {
				const real u = (b[i] - m) * q, e = g * (a[i] - u);
				sum += e / (real)C, dot += e * u / (real)(C - 1);
			}
			for (int64_t i = 0; i < C; i++) {
				const real u = (b[i] - m) * q;
				nr_put(&dt[i], -q * (g * (a[i] - u) - sum - u * dot), k->add[1]);
			}
		}
		if (k->want & 4)
			nr_put((real *)k->dx[2].p + r, scale * (error_of(C, a, b, m, q) / (real)C - *s.loss),
				k->add[2]);
	}
}

static nr_t *masked_try(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_masked_mse(n, x[0], x[1], x[2], !strcmp(options, "normalize"));
}
static const struct nr_case masked_cases[] = {
	{ "2x5x7 2x5x7 2x5", "" }, { "2x3x19 2x3x19 2x3", "normalize" }, { "1x1x1 1x1x1 1x1", "" },
	{ "1x70x2 1x70x2 1x70", "normalize" },
	{ NULL, NULL },
};
const struct nr_op nr_op_masked_mse = {
	.name = "masked_mse", .shape = masked_shape, .forward = masked_forward, .backward = masked_backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2), .flags = NR_STRIDED, .try_case = masked_try,
	.cases = masked_cases,
};

nr_t *nr_masked_mse(struct nr_net *n, nr_t *pred, nr_t *target, nr_t *weight, int normalize)
{
	return nr_apply(n, &nr_op_masked_mse, &normalize, sizeof normalize, pred, target, weight);
}

/* ---- mse ------------------------------------------------------------------------------------------------------- */

static int pair_shape(struct nr_node *k)
{
	if (same_shape(k)) return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->scratch = (size_t)nr_array_chunks(nr_len(k->in[0])) * sizeof(real);
	return 0;
}
static void mse_forward(const struct nr_call *k)
{
	const int64_t n = k->x[0].rows * k->x[0].c, chunks = nr_array_chunks(n);
	const real *p = k->x[0].p, *t = k->x[1].p;
	real *part = k->scratch, *y = k->y[0].p;
#pragma omp parallel for schedule(static) if (chunks > 1)
	for (int64_t q = 0; q < chunks; q++) {
		const int64_t from = q * NR_ARRAY_CHUNK;
		part[q] = error_of(nr_min64(NR_ARRAY_CHUNK, n - from), p + from, t + from, 0, 1);
	}
	*y = nr_sum(chunks, part) / (real)n;
}
static void mse_backward(const struct nr_call *k)
{
	const int64_t n = k->x[0].rows * k->x[0].c;
	const real *p = k->x[0].p, *t = k->x[1].p, g = 2 * *(const real *)k->dy[0].p / (real)n;
	for (int j = 0; j < 2; j++) {
		real *d = k->dx[j].p;
		const real s = j ? -g : g;
		const int add = k->add[j];
		if (!(k->want >> j & 1)) continue;
#pragma omp parallel for schedule(static) if (n > 16384)
		for (int64_t i = 0; i < n; i++) d[i] = (add ? d[i] : 0) + s * (p[i] - t[i]);
	}
}
static nr_t *mse_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_mse(n, x[0], x[1]);
}
static const struct nr_case mse_cases[] = { { "2x5x7 2x5x7", "" }, { "1 1", "" }, { NULL, NULL } };
const struct nr_op nr_op_mse = {
	.name = "mse", .shape = pair_shape, .forward = mse_forward, .backward = mse_backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.try_case = mse_try, .cases = mse_cases,
};

nr_t *nr_mse(struct nr_net *n, nr_t *pred, nr_t *target) { return nr_apply(n, &nr_op_mse, NULL, 0, pred, target); }

/* ---- weighted_sum ---------------------------------------------------------------------------------------------- */

static void sum_forward(const struct nr_call *k)
{
	*(real *)k->y[0].p = nr_array_dot(k->x[0].rows * k->x[0].c, k->x[0].p, k->x[1].p, k->scratch);
}
static void sum_backward(const struct nr_call *k)
{
	const int64_t n = k->x[0].rows * k->x[0].c;
	const real g = *(const real *)k->dy[0].p;
	for (int j = 0; j < 2; j++) {
		if (!(k->want >> j & 1)) continue;
		if (k->add[j]) nr_array_axpy(n, g, k->x[1 - j].p, k->dx[j].p);
		else nr_array_scale(n, g, k->x[1 - j].p, k->dx[j].p);
	}
}
static nr_t *sum_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_weighted_sum(n, x[0], x[1]);
}
static const struct nr_case sum_cases[] = { { "2x5x7 2x5x7", "" }, { "1 1", "" }, { "3x2x2x2 3x2x2x2", "" },
	{ NULL, NULL } };
const struct nr_op nr_op_weighted_sum = {
	.name = "weighted_sum", .shape = pair_shape, .forward = sum_forward, .backward = sum_backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .try_case = sum_try, .cases = sum_cases,
};

nr_t *nr_weighted_sum(struct nr_net *n, nr_t *x, nr_t *weight)
{
	return nr_apply(n, &nr_op_weighted_sum, NULL, 0, x, weight);
}
