/* src/math/eigen.c: numpy's eigenvalues; vectors that are orthogonal and give the matrix back. */
#include <math.h>

#include "unit/values.h"

#include "math/eigen.h"

/* value_seed and n decide the matrix; both triangles. */
static double *symmetric(int64_t n)
{
	real *x = values(n * n);
	double *a = malloc((size_t)(n * n) * sizeof *a);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) a[i * n + j] = (double)(real)(((double)x[i * n + j] + (double)x[j * n + i]) / 2);
	free(x);
	return a;
}

static void check(int64_t n, const double *a, const double *v, const double *value, double bound)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			double together = 0, back = 0;
			for (int64_t k = 0; k < n; k++) {
				together += v[i * n + k] * v[j * n + k];
				back += value[k] * v[k * n + i] * v[k * n + j];
			}
			assert_true(fabs(together - (i == j)) < bound);
			assert_true(fabs(back - a[i * n + j]) < bound);
		}
	for (int64_t k = 1; k < n; k++) assert_true(value[k] <= value[k - 1]);
}

static void try_matrix(int64_t n, double *a, double bound)
{
	double *v = malloc((size_t)(n * n) * sizeof *v), *value = malloc((size_t)n * sizeof *v), *scratch = malloc((size_t)n * sizeof *v);
	memcpy(v, a, (size_t)(n * n) * sizeof *v);
	assert_true(nr_eigen_symmetric(n, v, value, scratch));
	check(n, a, v, value, bound);
	free(v);
	free(value);
	free(scratch);
	free(a);
}

static void eigenvalues_are_numpys(void **state)
{
	(void)state;
	static const double want[] = { 0.518430377191563, 0.383417622022429, 0.197607327351501, -0.271290566086092, -0.413361239696716,
		-0.859629944904542 };
	double value[6], scratch[6];
	value_seed = 41;
	double *a = symmetric(6);
	assert_true(nr_eigen_symmetric(6, a, value, scratch));
	for (int k = 0; k < 6; k++) assert_true(fabs(value[k] - want[k]) < 1e-14);
	free(a);
}

static void vectors_give_the_matrix_back(void **state)
{
	(void)state;
	for (int64_t n = 1; n < 40; n += n < 5 ? 1 : 11) try_matrix(n, symmetric(n), 1e-13);
	try_matrix(280, symmetric(280), 1e-12); /* large enough for threads */
}

/* Sums over a few different rows, whose zeros are rounding. */
static void matrices_of_low_rank_settle(void **state)
{
	(void)state;
	enum { RANK = 9, N = 128 };
	for (unsigned seed = 1; seed <= 4; seed++) {
		value_seed = seed;
		real *row = values(RANK * N);
		double *a = calloc(N * N, sizeof *a);
		for (int64_t r = 0; r < 10 * RANK; r++) {
			const real *x = row + r % RANK * N;
			for (int64_t i = 0; i < N * N; i++) a[i] += exp2(-2. * (double)(r % RANK)) * (double)x[i / N] * (double)x[i % N];
		}
		try_matrix(N, a, 1e-11);
		free(row);
	}
}

static void equal_values_zeros_and_extreme_scales_settle(void **state)
{
	(void)state;
	const int64_t n = 12;
	for (int kind = 0; kind < 4; kind++) {
		double *a = calloc((size_t)(n * n), sizeof *a);
		for (int64_t i = 0; i < n; i++)
			for (int64_t j = 0; j < n; j++)
				a[i * n + j] = kind == 0 ? 0 : kind == 1 ? i == j : kind == 2 ? 1 : (i == j) * exp2(-40. * (double)i);
		try_matrix(n, a, 1e-13);
	}
	double *tiny = symmetric(n);
	for (int64_t i = 0; i < n * n; i++) tiny[i] *= 1e-200;
	try_matrix(n, tiny, 1e-13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eigenvalues_are_numpys),
		cmocka_unit_test(vectors_give_the_matrix_back),
		cmocka_unit_test(matrices_of_low_rank_settle),
		cmocka_unit_test(equal_values_zeros_and_extreme_scales_settle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
