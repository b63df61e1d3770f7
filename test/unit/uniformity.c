/* src/analysis/uniformity.c: tiles against plain loops in double, at sizes around a tile; threads; too few rows. */
#include <math.h>
#include <omp.h>

#include "unit/values.h"

#include "analysis/uniformity.h"

static struct nr_pairs by_hand(int64_t N, int64_t C, const real *x, double t)
{
	double sum = 0, cos = 0, sq = 0;
	for (int64_t i = 0; i < N; i++)
		for (int64_t j = i + 1; j < N; j++) {
			double xx = 0, yy = 0, xy = 0;
			for (int64_t k = 0; k < C; k++) {
				const double a = (double)x[i * C + k], b = (double)x[j * C + k];
				xx += a * a, yy += b * b, xy += a * b;
			}
			const double c = xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
			sum += exp(t * (2 * c - 2)), cos += c, sq += c * c;
		}
	const double n = (double)N, pairs = n * (n - 1) / 2;
	return (struct nr_pairs){ log(sum / pairs), cos / pairs, sq / pairs, (2 * sq + n) / (n * n) };
}

static void tiles_agree_with_plain_loops(void **state)
{
	(void)state;
	static const int64_t rows[] = { 2, 3, 33, 511, 512, 513, 530, 1025 }, width[] = { 1, 7, 40 };
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (size_t w = 0; w < sizeof width / sizeof *width; w++) {
			const int64_t N = rows[r], C = width[w];
			real *x = values(N * C);
			struct nr_pairs got;
			for (int64_t k = 0; N > 2 && k < C; k++) x[C + k] = 0;          /* a row without direction */
			assert_int_equal(nr_uniformity(N, C, x, 2, &got, NULL), 0);
			const struct nr_pairs want = by_hand(N, C, x, 2);
			assert_true(fabs(got.uniformity - want.uniformity) < 2e-6 && fabs(got.mean_cos - want.mean_cos) < 2e-6);
			assert_true(fabs(got.mean_sq - want.mean_sq) < 2e-6 && fabs(got.mean_sq_diagonal - want.mean_sq_diagonal) < 2e-6);
			free(x);
		}
}

static void threads_change_no_bit(void **state)
{
	(void)state;
	enum { N = 700, C = 24 };
	const int threads = omp_get_max_threads();
	real *x = values(N * C);
	struct nr_pairs one, more;
	omp_set_num_threads(1);
	assert_int_equal(nr_uniformity(N, C, x, 2, &one, NULL), 0);
	for (int t = 2; t <= 3; t++) {
		omp_set_num_threads(t);
		assert_int_equal(nr_uniformity(N, C, x, 2, &more, NULL), 0);
		assert_memory_equal(&one, &more, sizeof one);
	}
	omp_set_num_threads(threads);
	assert_int_equal(nr_uniformity(1, C, x, 2, &one, NULL), NR_ESHAPE);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(tiles_agree_with_plain_loops), cmocka_unit_test(threads_change_no_bit) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
