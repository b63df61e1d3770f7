/* src/analysis/trustworthiness.c: numpy's ranks, and what must hold. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/trustworthiness.h"

static double of(int64_t N, int64_t C, const real *x, int64_t D, const double *y, int64_t k)
{
	struct nr_trustworthiness t;
	assert_int_equal(nr_trustworthiness(N, C, x, D, y, k, &t, NULL), 0);
	return t.value;
}

static void values_are_numpys(void **state)
{
	(void)state;
	value_seed = 13;
	real *x = values(20 * 3);
	value_seed = 17;
	double y[40];
	for (int i = 0; i < 40; i++) y[i] = (double)value();
	for (int i = 0; i < 20; i++) y[2 * i] += 2 * (double)x[3 * i];
	assert_true(fabs(of(20, 3, x, 2, y, 3) - 0.626666666666667) < 1e-14);
	assert_true(fabs(of(20, 3, x, 2, y, 5) - 0.676666666666667) < 1e-14);
	free(x);
}

static void a_copy_is_trusted_and_noise_is_not(void **state)
{
	(void)state;
	enum { N = 200 };
	real *x = values(N * 2);
	double copy[N * 2], noise[N * 2], seen[2];
	for (int i = 0; i < N * 2; i++) copy[i] = (double)x[i], noise[i] = (double)value();
	assert_true(of(N, 2, x, 2, copy, 5) > 1 - 1e-6);
	for (int threads = 1; threads <= 2; threads++) {
		omp_set_num_threads(threads);
		seen[threads - 1] = of(N, 2, x, 2, noise, 5);
	}
	assert_true(seen[0] == seen[1] && fabs(seen[0] - .5) < .1);
	free(x);
}

static void equal_rows_and_few_rows_cost_nothing(void **state)
{
	(void)state;
	real same[30] = { 0 };
	double y[30];
	struct nr_trustworthiness t;
	struct nr_error err = { 0 };
	for (int i = 0; i < 30; i++) y[i] = (double)value();
	assert_true(of(15, 2, same, 2, y, 4) == 1);
	for (int64_t N = 1; N < 6; N++) {
		assert_int_equal(nr_trustworthiness(N, 2, same, 2, y, 12, &t, &err), 0);
		assert_true(t.value == 1);
		assert_int_equal(t.k, (N - 1) / 2);
	}
	assert_int_equal(nr_trustworthiness(9, 2, same, 2, y, 0, &t, &err), NR_EVALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_numpys),
		cmocka_unit_test(a_copy_is_trusted_and_noise_is_not),
		cmocka_unit_test(equal_rows_and_few_rows_cost_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
