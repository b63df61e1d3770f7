/* src/math/{cross,distance}.c against plain loops, on odd sizes, at any number of threads. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "math/cross.h"
#include "math/distance.h"

static void products_are_those_of_a_plain_loop(void **state)
{
	(void)state;
	enum { N = 37, A = 33, B = 19 };
	static double x[N * A], y[N * B], out[2][A * B], rows[N * N];
	for (int i = 0; i < N * A; i++) x[i] = (double)value();
	for (int i = 0; i < N * B; i++) y[i] = (double)value();
	for (int threads = 1; threads <= 2; threads++) {
		omp_set_num_threads(threads);
		nr_cross_product(N, A, x, B, y, out[threads - 1]);
	}
	assert_memory_equal(out[0], out[1], sizeof out[0]);
	for (int a = 0; a < A; a++)
		for (int b = 0; b < B; b++) {
			double s = 0;
			for (int n = 0; n < N; n++) s += x[n * A + a] * y[n * B + b];
			assert_true(fabs(s - out[0][a * B + b]) < 1e-14);
		}
	nr_row_products(N, A, x, rows);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double s = 0;
			for (int a = 0; a < A; a++) s += x[i * A + a] * x[j * A + a];
			assert_true(fabs(s - rows[i * N + j]) < 1e-14);
		}
}

static void a_constant_column_becomes_exactly_zero(void **state)
{
	(void)state;
	real x[7 * 2];
	double mean[2], out[7 * 2];
	for (int i = 0; i < 7; i++) x[2 * i] = (real).1, x[2 * i + 1] = (real)i;
	assert_true(nr_centre_columns(7, 2, x, mean, out));
	assert_true(mean[0] == (double)(real).1 && mean[1] == 3);
	for (int i = 0; i < 7; i++) assert_true(out[2 * i] == 0 && out[2 * i + 1] == i - 3);
	x[5] = (real)NAN;
	assert_false(nr_centre_columns(7, 2, x, mean, out));
	x[5] = (real)INFINITY;
	assert_false(nr_centre_columns(7, 2, x, mean, out));
}

static void near_rows_far_from_zero_keep_their_distance(void **state)
{
	(void)state;
	for (int64_t C = 1; C < 20; C += 3)
		for (int64_t n = 1; n < 11; n += 3) {
			real x[20], rows[11 * 20], out[11];
			for (int64_t c = 0; c < C; c++) x[c] = 4096;
			for (int64_t i = 0; i < n * C; i++) rows[i] = 4096 + (real)(i % 5) / 1024;
			nr_distance_rows(n, C, x, rows, out);
			for (int64_t r = 0; r < n; r++) {
				double s = 0;
				for (int64_t c = 0; c < C; c++) s += pow((double)((r * C + c) % 5) / 1024, 2);
				assert_true(fabs((double)out[r] - s) <= 1e-6 * s);
				assert_true(fabs(nr_distance_double(C, x, rows + r * C) - s) <= 1e-15 * s);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_are_those_of_a_plain_loop),
		cmocka_unit_test(a_constant_column_becomes_exactly_zero),
		cmocka_unit_test(near_rows_far_from_zero_keep_their_distance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
