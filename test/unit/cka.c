/* src/analysis/cka.c: numpy's value by the other formula (products of rows), and what must hold. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/cka.h"

static double of(int64_t N, int64_t C1, const real *x, int64_t C2, const real *y)
{
	double cka = NAN;
	assert_int_equal(nr_cka(N, C1, x, C2, y, &cka, NULL), 0);
	return cka;
}

static void the_value_is_that_of_the_products_of_rows(void **state)
{
	(void)state;
	value_seed = 1;
	real *x = values(9 * 4);
	value_seed = 77;
	real *y = values(9 * 3);
	for (int i = 0; i < 9; i++) y[3 * i] += x[4 * i];
	assert_true(fabs(of(9, 4, x, 3, y) - 0.355368094715982) < 1e-13);
	assert_true(fabs(of(9, 3, y, 4, x) - 0.355368094715982) < 1e-13);
	free(x);
	free(y);
}

static void a_rotation_with_scale_and_shift_changes_nothing(void **state)
{
	(void)state;
	enum { N = 50, C = 6 };
	real *x = values(N * C), *y = blank(N * C);
	for (int n = 0; n < N; n++)
		for (int c = 0; c < C; c += 2) { /* pairs of channels turned, the order reversed */
			const double a = .3 + c, u = (double)x[n * C + c], v = (double)x[n * C + c + 1];
			y[n * C + C - 1 - c] = (real)(5 * (cos(a) * u - sin(a) * v) + 100);
			y[n * C + C - 2 - c] = (real)(5 * (sin(a) * u + cos(a) * v) - 7);
		}
	assert_true(fabs(of(N, C, x, C, y) - 1) < 1e-6); /* y is rounded at 100 */
	assert_true(fabs(of(N, C, x, C, x) - 1) < 1e-14);
	free(x);
	free(y);
}

static void independent_features_are_not_alike_at_any_number_of_threads(void **state)
{
	(void)state;
	enum { N = 2000, C = 20 };
	real *x = values(N * C), *y = values(N * C);
	double seen[2];
	for (int threads = 1; threads <= 2; threads++) {
		omp_set_num_threads(threads);
		seen[threads - 1] = of(N, C, x, C, y);
	}
	assert_true(seen[0] == seen[1] && seen[0] < 2. * C / N);
	free(x);
	free(y);
}

static void what_has_no_answer_is_refused(void **state)
{
	(void)state;
	real x[6] = { 1, 2, 3, 4, 5, 6 }, same[6] = { 3, 3, 3, 3, 3, 3 };
	double cka;
	struct nr_error err = { 0 };
	assert_int_equal(nr_cka(3, 2, x, 2, same, &cka, &err), NR_EVALUE);
	assert_non_null(strstr(err.detail, "second"));
	assert_int_equal(nr_cka(1, 2, x, 2, x, &cka, NULL), NR_ESHAPE);
	x[3] = (real)NAN;
	assert_int_equal(nr_cka(3, 2, x, 2, x, &cka, NULL), NR_EVALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_is_that_of_the_products_of_rows),
		cmocka_unit_test(a_rotation_with_scale_and_shift_changes_nothing),
		cmocka_unit_test(independent_features_are_not_alike_at_any_number_of_threads),
		cmocka_unit_test(what_has_no_answer_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
