/* Random fills and dropout: the vector generator gives the scalar words, masks do not depend on how work is
 * cut. */
#include "unit/values.h"

#include <omp.h>

#include "math/random.h"

static const int64_t sizes[] = { 0, 1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 1000,
	4099 };
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 4099, PAD = 8 };
static const uint64_t starts[] = { 0, 1, 2, 3, 4, 6, 1023, (UINT64_C(1) << 34) - 5, (UINT64_C(1) << 40) + 1 };
enum { STARTS = sizeof starts / sizeof *starts };

static struct nr_rng rng(void) { return nr_rng_make(UINT64_C(0x0123456789abcdef), 7, 42); }
static uint32_t word_at(struct nr_rng r, uint64_t i)
{
	uint32_t w[4];
	nr_rng_block(r, i / 4, w);
	return w[i % 4];
}

/* Runs test on every instruction set of this CPU. */
static void on_each_isa(void (*test)(void))
{
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) test();
}

static void check_uniform(void)
{
	static real y[MOST + PAD];
	for (int s = 0; s < SIZES; s++)
		for (int k = 0; k < STARTS; k++) {
			const int64_t n = sizes[s];
			for (int64_t i = 0; i < n + PAD; i++) y[i] = -7;
			nr_random_active->uniform(n, y + 1, 0, 1, rng(), starts[k]); /* + 1: not aligned */
			assert_true(y[0] == -7);
			for (int64_t i = 0; i < n; i++)
				assert_true(y[1 + i] == (real)nr_rng_uniform(rng(), starts[k] + (uint64_t)i));
			for (int64_t i = n + 1; i < n + PAD; i++) assert_true(y[i] == -7);
		}
}
static void every_set_gives_the_scalar_words(void **state) { on_each_isa(check_uniform); }

static void check_dropout(void)
{
	static real x[MOST], res[MOST], y[MOST + PAD];
	const uint32_t drop = (uint32_t)(.3 * 0x1p32);
	const real scale = (real)(1 / .7);
	for (int64_t i = 0; i < MOST; i++) x[i] = (real)(i % 97 + 1), res[i] = (real)(i % 13) - 6;
	for (int s = 0; s < SIZES; s++)
		for (int k = 0; k < STARTS; k++)
			for (int with = 0; with < 2; with++) {
				const int64_t n = sizes[s];
				for (int64_t i = 0; i < n + PAD; i++) y[i] = -7;
				nr_random_active->dropout(
					n, x, with ? res : NULL, y, drop, scale, rng(), starts[k]);
				for (int64_t i = 0; i < n; i++) {
					const real m = word_at(rng(), starts[k] + (uint64_t)i) < drop
						? 0
						: scale * x[i];
					assert_true(y[i] == (with ? res[i] + m : m));
				}
				for (int64_t i = n; i < n + PAD; i++) assert_true(y[i] == -7);
			}
}
static void dropout_equals_its_formula_on_every_set(void **state) { on_each_isa(check_dropout); }

static void check_scale(void)
{
	static real x[MOST], res[MOST], y[MOST + PAD];
	for (int64_t i = 0; i < MOST; i++) x[i] = (real)sin((double)i), res[i] = (real)cos((double)i);
	for (int s = 0; s < SIZES; s++)
		for (int with = 0; with < 2; with++) {
			const int64_t n = sizes[s];
			for (int64_t i = 0; i < n + PAD; i++) y[i] = -7;
			nr_random_active->scale(n, x, with ? res : NULL, y, (real)1.25);
			for (int64_t i = 0; i < n; i++) /* one rounding apart at most, of numbers below 4 */
				assert_true(fabs((double)y[i] - ((with ? res[i] : 0) + 1.25 * x[i])) <= 3e-7);
			for (int64_t i = n; i < n + PAD; i++) assert_true(y[i] == -7);
		}
}
static void row_scaling_is_within_a_rounding_on_every_set(void **state) { on_each_isa(check_scale); }

enum { LARGE = 100003 };

/* Every driver's result after the other, at a given number of threads. */
static void all_drivers(int threads, real *out)
{
	real *x = out;
	omp_set_num_threads(threads);
	nr_fill_uniform(LARGE, x, -1, 2, rng(), 5);
	nr_fill_normal(LARGE, out + LARGE, 0, 1, rng(), 6);
	nr_fill_trunc_normal(LARGE, out + 2 * LARGE, 0, .02, -.04, .04, rng(), 7);
	nr_dropout_forward(LARGE, x, NULL, out + 3 * LARGE, .1, rng(), 8);
	nr_dropout_forward(LARGE, x, out + LARGE, out + 4 * LARGE, .1, rng(), 9);
	nr_drop_path_forward(1009, 97, x, out + LARGE, out + 5 * LARGE, .2, rng(), 3);
}

static void threads_do_not_change_a_bit(void **state)
{
	const size_t bytes = 6 * LARGE * sizeof(real);
	real *one = calloc(1, bytes), *many = calloc(1, bytes);
	all_drivers(1, one);
	for (int t = 2; t <= 3; t++) {
		all_drivers(t, many);
		assert_memory_equal(one, many, bytes);
	}
	omp_set_num_threads(1);
	free(one);
	free(many);
}

static void a_cut_into_pieces_gives_the_same_bits(void **state)
{
	static real whole[3000], parts[3000], x[3000];
	static const int64_t cuts[] = { 0, 1, 7, 64, 900, 1203, 2999, 3000 };
	nr_fill_uniform(3000, x, 1, 2, rng(), 0);
	nr_dropout_forward(3000, x, NULL, whole, .5, rng(), 11);
	for (int k = 0; k < 7; k++)
		nr_dropout_forward(cuts[k + 1] - cuts[k], x + cuts[k], NULL, parts + cuts[k], .5, rng(),
			11 + (uint64_t)cuts[k]);
	assert_memory_equal(whole, parts, sizeof whole);
	nr_fill_normal(3000, whole, 0, 1, rng(), 11);
	for (int k = 0; k < 7; k++)
		nr_fill_normal(cuts[k + 1] - cuts[k], parts + cuts[k], 0, 1, rng(), 11 + (uint64_t)cuts[k]);
	assert_memory_equal(whole, parts, sizeof whole);
	for (int i = 0; i < 3000; i++) assert_true(whole[i] == (real)nr_rng_normal(rng(), 11 + (uint64_t)i));
}

static void backward_uses_the_mask_of_forward(void **state)
{
	static real x[1000], y[1000], dy[1000], dx[1000];
	for (int i = 0; i < 1000; i++) x[i] = 1, dy[i] = 3, dx[i] = 10;
	nr_dropout_forward(1000, x, NULL, y, .25, rng(), 17);
	nr_dropout_forward(1000, dy, dx, dx, .25, rng(), 17); /* added to dx, in place */
	for (int i = 0; i < 1000; i++) assert_true(fabs((double)dx[i] - (10 + 3 * (double)y[i])) < 1e-5);
}

static void dropout_keeps_the_mean_and_the_rate(void **state)
{
	enum { N = 1000000 };
	real *x = malloc(N * sizeof *x);
	for (int p = 1; p < 10; p += 4) {
		double sum = 0;
		int64_t zeros = 0;
		for (int i = 0; i < N; i++) x[i] = 1;
		nr_dropout_forward(N, x, NULL, x, p / 10., rng(), 0);
		for (int i = 0; i < N; i++) sum += x[i], zeros += x[i] == 0;
		assert_true(fabs((double)zeros / N - p / 10.) < 2.5e-3); /* 5 standard deviations */
		assert_true(fabs(sum / N - 1) < 2.5e-2);
	}
	free(x);
}

static void rates_of_zero_and_one_are_exact(void **state)
{
	real x[5] = { 1, 2, 3, NAN, 5 }, y[5], res[5] = { 9, 8, 7, 6, 5 };
	nr_dropout_forward(3, x, NULL, y, 0, rng(), 0);
	assert_memory_equal(x, y, 3 * sizeof *x);
	nr_dropout_forward(5, x, NULL, y, 1, rng(), 0);
	for (int i = 0; i < 5; i++) assert_true(y[i] == 0);
	nr_dropout_forward(5, x, res, y, 1, rng(), 0);
	assert_memory_equal(res, y, sizeof y);
	nr_drop_path_forward(1, 5, x, res, y, 1, rng(), 0);
	assert_memory_equal(res, y, sizeof y);
}

static void drop_path_takes_whole_rows(void **state)
{
	enum { R = 2000, C = 5 };
	static real x[R * C], y[R * C];
	int64_t kept = 0;
	for (int i = 0; i < R * C; i++) x[i] = 2;
	nr_drop_path_forward(R, C, x, NULL, y, .2, rng(), 9);
	for (int r = 0; r < R; r++) {
		const double f = nr_drop_path_factor(.2, rng(), 9 + (uint64_t)r);
		kept += f != 0;
		for (int k = 0; k < C; k++) assert_true(fabs((double)y[r * C + k] - 2 * f) < 1e-6);
	}
	assert_true(fabs((double)kept / R - .8) < .045);
}

static void normal_numbers_have_their_moments(void **state)
{
	enum { N = 1000000 };
	real *y = malloc(N * sizeof *y);
	double mean = 0, square = 0, fourth = 0;
	nr_fill_normal(N, y, 3, 2, rng(), 0);
	for (int i = 0; i < N; i++) {
		const double z = ((double)y[i] - 3) / 2;
		mean += z / N, square += z * z / N, fourth += z * z * z * z / N;
	}
	assert_true(fabs(mean) < 5e-3 && fabs(square - 1) < 7e-3 && fabs(fourth - 3) < 5e-2);
	mean = square = 0;
	nr_fill_trunc_normal(N, y, 0, .02, -.04, .04, rng(), 0);
	for (int i = 0; i < N; i++) {
		assert_true(fabs((double)y[i]) <= .04 + 1e-9);
		mean += y[i] / .02 / N, square += y[i] / .02 * y[i] / .02 / N;
	}
	assert_true(fabs(mean) < 5e-3 &&
		fabs(square - .77374) < 7e-3); /* variance of a normal cut at two deviations */
	nr_fill_trunc_normal(N, y, 0, .02, -2, 2, rng(), 0);              /* timm's bounds: no cut at all */
	square = 0;
	for (int i = 0; i < N; i++) square += y[i] / .02 * y[i] / .02 / N;
	assert_true(fabs(square - 1) < 7e-3);
	free(y);
}

static void the_inverse_error_function_inverts(void **state)
{
	for (double x = -.999999; x < 1; x += 1.7e-4) {
		const double y = nr_erfinv(x), slope = 1.1283791670955126 * exp(-y * y);
		assert_true(fabs((erf(y) - x) / slope) <= 5e-7 * fabs(y) + 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_set_gives_the_scalar_words),
		cmocka_unit_test(dropout_equals_its_formula_on_every_set),
		cmocka_unit_test(row_scaling_is_within_a_rounding_on_every_set),
		cmocka_unit_test(threads_do_not_change_a_bit),
		cmocka_unit_test(a_cut_into_pieces_gives_the_same_bits),
		cmocka_unit_test(backward_uses_the_mask_of_forward),
		cmocka_unit_test(dropout_keeps_the_mean_and_the_rate),
		cmocka_unit_test(rates_of_zero_and_one_are_exact),
		cmocka_unit_test(drop_path_takes_whole_rows),
		cmocka_unit_test(normal_numbers_have_their_moments),
		cmocka_unit_test(the_inverse_error_function_inverts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
