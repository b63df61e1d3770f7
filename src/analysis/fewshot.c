/* Few-shot ridge regression. See fewshot.h. */
#include "analysis/fewshot.h"

#include <stdlib.h>

#include "math/cholesky.h"
#include "math/moments.h"

static double dot(int64_t n, const double *a, int64_t da, const double *b, int64_t db)
{
	double s = 0;
	for (int64_t i = 0; i < n; i++) s += a[i * da] * b[i * db];
	return s;
}

/* Row r of x, standardised, with the constant at the end. */
static void standardise(
	const struct nr_fewshot *f, const double *mean, const double *std, const real *x, double *out)
{
	for (int64_t k = 0; k < f->dim; k++) out[k] = (x[k] - mean[k]) / (std[k] + f->std_eps);
	out[f->dim] = f->bias_feature;
}

/* Gram matrix of the rows (by_rows) or columns of X (N,D), plus l2 on the diagonal; lower triangle. */
static void gram(int64_t N, int64_t D, const double *X, int by_rows, double l2, double *G)
{
	const int64_t n = by_rows ? N : D;
#pragma omp parallel for schedule(dynamic, 8) if (n > 32)
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j <= i; j++)
			G[i * n + j] =
				(by_rows ? dot(D, X + i * D, 1, X + j * D, 1) : dot(N, X + i, D, X + j, D)) +
				(i == j ? l2 : 0);
}

/* W (D,K) from X (N,D), targets Y (N,K, overwritten in the dual form). */
static int solve(int64_t N, int64_t D, int64_t K, const double *X, double *Y, double l2, double *G, double *W)
{
	const int dual = N < D;
	gram(N, D, X, dual, l2, G);
	if (dual && nr_cholesky_solve(N, G, K, Y)) return -1;
	for (int64_t k = 0; k < D; k++)
		for (int64_t c = 0; c < K; c++) W[k * K + c] = dot(N, X + k, D, Y + c, K);
	return dual ? 0 : nr_cholesky_solve(D, G, K, W);
}

int nr_fewshot_fit(const struct nr_fewshot *f, int64_t N, const real *x, const int32_t *label, int64_t M,
	const real *z, real *weights, real *scores, struct nr_error *err)
{
	const int64_t D = f->dim + 1, K = f->classes, n = N < D ? N : D;
	double *mem = malloc((size_t)(2 * f->dim + N * D + N * K + n * n + D * K + D) * sizeof *mem);
	if (!mem) return nr_fail(err, NR_EMEMORY, "cannot fit few-shot weights", NULL, "out of memory");
	double *mean = mem, *std = mean + f->dim, *X = std + f->dim, *Y = X + N * D, *G = Y + N * K,
	       *W = G + n * n, *row = W + D * K;
	nr_column_moments(N, f->dim, x, mean, std);
	for (int64_t k = 0; k < f->dim; k++) std[k] = sqrt(std[k]);
	for (int64_t i = 0; i < N; i++) {
		standardise(f, mean, std, x + i * f->dim, X + i * D);
		for (int64_t c = 0; c < K; c++) Y[i * K + c] = label[i] == c ? 1 : -1;
	}
	if (solve(N, D, K, X, Y, f->l2, G, W)) {
		free(mem);
		nr_fail(err, NR_EVALUE, "cannot fit few-shot weights", NULL,
			"the system is singular with l2 = %g", f->l2);
		return nr_hint(err, "use a larger l2");
	}
	for (int64_t i = 0; weights && i < D * K; i++) weights[i] = (real)W[i];
	for (int64_t i = 0; i < M; i++) {
		standardise(f, mean, std, z + i * f->dim, row);
		for (int64_t c = 0; c < K; c++) scores[i * K + c] = (real)dot(D, row, 1, W + c, K);
	}
	free(mem);
	return 0;
}
