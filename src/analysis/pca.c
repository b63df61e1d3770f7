/* Principal components. See pca.h. */
#include "analysis/pca.h"

#include <stdlib.h>
#include <string.h>

#include "math/cross.h"
#include "math/eigen.h"

static const char what[] = "cannot compute principal components";

struct work { double *x, *matrix, *value, *scratch; }; /* x: centred (N,C); matrix (M,M), M = min(N,C) */

static void release(struct work *w)
{
	free(w->x);
	free(w->matrix);
	free(w->value);
	free(w->scratch);
}

static void turn_positive(int64_t C, double *v)
{
	int64_t most = 0;
	for (int64_t c = 1; c < C; c++)
		if (fabs(v[c]) > fabs(v[most])) most = c;
	if (v[most] < 0)
		for (int64_t c = 0; c < C; c++) v[c] = -v[c];
}

/* Component of eigenvector u (N) of the products of rows: x'u divided by its length. */
static void component_of_rows(int64_t N, int64_t C, const double *x, const double *u, double *v)
{
	double length = 0;
	memset(v, 0, (size_t)C * sizeof *v);
	for (int64_t n = 0; n < N; n++)
		for (int64_t c = 0; c < C; c++) v[c] += u[n] * x[n * C + c];
	for (int64_t c = 0; c < C; c++) length += v[c] * v[c];
	for (int64_t c = 0; c < C; c++) v[c] /= sqrt(length);
}

static int solve(struct nr_pca *p, struct work *w, int64_t N, struct nr_error *err)
{
	const int64_t C = p->C, M = N < C ? N : C;
	if (N < C) nr_row_products(N, C, w->x, w->matrix);
	else nr_cross_product(N, C, w->x, C, w->x, w->matrix);
	p->total = 0;
	for (int64_t m = 0; m < M; m++) p->total += w->matrix[m * M + m] / (double)(N > 1 ? N - 1 : 1);
	if (!isfinite(p->total) || !nr_eigen_symmetric(M, w->matrix, w->value, w->scratch))
		return nr_fail(err, NR_EVALUE, what, NULL, "the values are too large to square");
	for (int64_t k = 0; k < p->K; k++) {
		double *v = p->component + k * C;
		p->variance[k] = fmax(w->value[k], 0) / (double)(N > 1 ? N - 1 : 1);
		if (N >= C) memcpy(v, w->matrix + k * C, (size_t)C * sizeof *v);
		else if (w->value[k] > 1e-13 * w->value[0]) component_of_rows(N, C, w->x, w->matrix + k * N, v);
		else memset(v, 0, (size_t)C * sizeof *v);
		turn_positive(C, v);
	}
	return 0;
}

int nr_pca_init(struct nr_pca *p, int64_t N, int64_t C, const real *x, int64_t K, struct nr_error *err)
{
	const int64_t M = N < C ? N : C;
	*p = (struct nr_pca){ .C = C, .K = K };
	if (N < 1 || C < 1 || K < 1 || K > M)
		return nr_fail(err, NR_ESHAPE, what, NULL, "%lld components of %lld rows with %lld channels", (long long)K, (long long)N,
			(long long)C);
	if (M > NR_PCA_LIMIT) {
		nr_fail(err, NR_ELIMIT, what, NULL, "%lld rows with %lld channels", (long long)N, (long long)C);
		nr_hint(err, "use at most %d rows, or features with fewer channels", NR_PCA_LIMIT);
		return NR_ELIMIT;
	}
	struct work w = { malloc((size_t)(N * C) * sizeof *w.x), malloc((size_t)(M * M) * sizeof *w.matrix),
		malloc((size_t)M * sizeof *w.value), malloc((size_t)M * sizeof *w.scratch) };
	p->mean = malloc((size_t)C * sizeof *p->mean);
	p->component = malloc((size_t)(K * C) * sizeof *p->component);
	p->variance = malloc((size_t)K * sizeof *p->variance);
	int code = 0;
	if (!w.x || !w.matrix || !w.value || !w.scratch || !p->mean || !p->component || !p->variance)
		code = nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	else if (!nr_centre_columns(N, C, x, p->mean, w.x))
		code = nr_fail(err, NR_EVALUE, what, NULL, "a value is not finite");
	else code = solve(p, &w, N, err);
	release(&w);
	return code;
}

void nr_pca_release(struct nr_pca *p)
{
	free(p->mean);
	free(p->component);
	free(p->variance);
	*p = (struct nr_pca){ 0 };
}

void nr_pca_project(const struct nr_pca *p, int64_t N, const real *x, double *out)
{
#pragma omp parallel for schedule(static) if (N * p->C * p->K > 20000)
	for (int64_t n = 0; n < N; n++)
		for (int64_t k = 0; k < p->K; k++) {
			double s = 0;
#pragma omp simd reduction(+ : s)
			for (int64_t c = 0; c < p->C; c++) s += ((double)x[n * p->C + c] - p->mean[c]) * p->component[k * p->C + c];
			out[n * p->K + k] = s;
		}
}
