/* The plain reference of the column family, in real, and the merge of chunks. */
#include "math/column.h"

const struct nr_column_kernels *nr_column_active = &nr_column_plain;

void nr_column_merge(int64_t C, int64_t *count, double *mean, double *m2, int64_t n, const real *other_mean,
	const real *other_m2)
{
	if (n <= 0) return;
	const double share = (double)n / (double)(*count + n), both = (double)*count * share;
#pragma omp simd
	for (int64_t i = 0; i < C; i++) {
		const double d = (double)other_mean[i] - mean[i];
		mean[i] += d * share;
		m2[i] += (double)other_m2[i] + d * d * both;
	}
	*count += n;
}

/* About the first row, which takes the offset away; the second pass corrects what rounding left in the mean. */
static void moments(int64_t rows, int64_t C, const real *x, int64_t ldx, real *mean, real *m2)
{
	for (int64_t i = 0; i < C; i++) {
		real sum = 0, rest = 0, square = 0;
		for (int64_t r = 1; r < rows; r++) sum += x[r * ldx + i] - x[i];
		const real m = rows ? x[i] + sum / (real)rows : 0;
		for (int64_t r = 0; r < rows; r++) {
			const real d = x[r * ldx + i] - m;
			rest += d, square += d * d;
		}
		mean[i] = rows ? m + rest / (real)rows : 0;
		m2[i] = rows ? square - rest * rest / (real)rows : 0;
	}
}

static void sum_sq(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < C; i++) out[i] += x[r * ldx + i] * x[r * ldx + i];
}

static void normalize(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *mean, const real *scale,
	const real *bias, real *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < C; i++)
			y[r * ldy + i] = (x[r * ldx + i] - (mean ? mean[i] : 0)) * scale[i] + (bias ? bias[i] : 0);
}

static void grad_sums(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy,
	const real *mean, real *sum, real *dot)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < C; i++) {
			sum[i] += dy[r * lddy + i];
			dot[i] += dy[r * lddy + i] * (x[r * ldx + i] - (mean ? mean[i] : 0));
		}
}

static void grad_apply(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy,
	const real *mean, const real *a, const real *b, const real *c, real eta, real *dx, int64_t lddx,
	int add)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < C; i++) {
			const real g = a[i] * dy[r * lddy + i] + c[i];
			const real d = g + b[i] * (x[r * ldx + i] - (mean ? mean[i] : 0)) + eta * dy[r * lddy + i];
			dx[r * lddx + i] = add ? dx[r * lddx + i] + d : d;
		}
}

const struct nr_column_kernels nr_column_plain = {
	.moments = moments, .sum_sq = sum_sq, .normalize = normalize, .normalize_stream = normalize, .grad_sums = grad_sums,
	.grad_apply = grad_apply, .grad_apply_stream = grad_apply,
};
