/* Update kernels: every instruction set against double on odd sizes; equal bits at any thread count. */
#include "unit/values.h"

#include <omp.h>

#include "math/update.h"

static const int64_t sizes[] = { 0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1027 };
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 1027, PAD = 8 };

static real noise(int64_t i, double salt) { return (real)sin((double)i * 12.9898 + salt * 78.233); }

static void on_each_isa(void (*test)(void))
{
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) test();
}

/* Arrays of numbers near 1: errors are absolute, 1e-6 is eight roundings. */
static void near(double got, double want) { assert_true(fabs(got - want) <= 1e-6); }

static void check_adam(void)
{
	const struct nr_adam_coef c = { .scale = (real).7,
		.l2 = (real).01,
		.beta1 = (real).9,
		.rest1 = (real).1,
		.beta2 = (real).99,
		.rest2 = (real).01,
		.step = (real).05,
		.root = 3,
		.eps = (real)1e-8,
		.keep = (real).999 };
	static real p[MOST + PAD], g[MOST], m[MOST + PAD], v[MOST + PAD];
	for (int s = 0; s < SIZES; s++) {
		const int64_t n = sizes[s];
		for (int64_t i = 0; i < n + PAD; i++)
			p[i] = noise(i, 1), m[i] = noise(i, 2), v[i] = (real)fabs(noise(i, 3));
		for (int64_t i = 0; i < n; i++) g[i] = noise(i, 4);
		nr_update_active->adam(n, p, g, m, v, &c);
		for (int64_t i = 0; i < n; i++) {
			const double d = (double)c.scale * g[i] + (double)c.l2 * noise(i, 1);
			const double mi = (double)c.beta1 * noise(i, 2) + (double)c.rest1 * d;
			const double vi = (double)c.beta2 * fabs(noise(i, 3)) + (double)c.rest2 * d * d;
			near(m[i], mi);
			near(v[i], vi);
			near(p[i],
				(double)c.keep * noise(i, 1) -
					(double)c.step * mi / (3 * sqrt(vi) + (double)c.eps));
		}
		for (int64_t i = n; i < n + PAD; i++)
			assert_true(p[i] == noise(i, 1) && m[i] == noise(i, 2) &&
				v[i] == (real)fabs(noise(i, 3)));
	}
}
static void adam_follows_its_formula_on_every_set(void **state) { on_each_isa(check_adam); }

static void check_sgd(void)
{
	const struct nr_sgd_coef c = { .scale = (real).7,
		.l2 = (real).01,
		.keep_m = (real).9,
		.add_m = (real).8,
		.rate_g = (real).1,
		.rate_m = (real).2 };
	static real p[MOST + PAD], g[MOST], m[MOST + PAD];
	for (int s = 0; s < SIZES; s++)
		for (int with = 0; with < 2; with++) {
			const int64_t n = sizes[s];
			for (int64_t i = 0; i < n + PAD; i++) p[i] = noise(i, 1), m[i] = noise(i, 2);
			for (int64_t i = 0; i < n; i++) g[i] = noise(i, 4);
			nr_update_active->sgd(n, p, g, with ? m : NULL, &c);
			for (int64_t i = 0; i < n; i++) {
				const double d = (double)c.scale * g[i] + (double)c.l2 * noise(i, 1);
				const double mi = (double)c.keep_m * noise(i, 2) + (double)c.add_m * d;
				near(m[i], with ? mi : (double)noise(i, 2));
				near(p[i],
					noise(i, 1) - (double)c.rate_g * d -
						(with ? (double)c.rate_m * mi : 0));
			}
			for (int64_t i = n; i < n + PAD; i++)
				assert_true(p[i] == noise(i, 1) && m[i] == noise(i, 2));
		}
}
static void sgd_follows_its_formula_on_every_set(void **state) { on_each_isa(check_sgd); }

static void check_rest(void)
{
	static real x[MOST + PAD], y[MOST + PAD];
	for (int s = 0; s < SIZES; s++) {
		const int64_t n = sizes[s];
		double sum = 0, mix = 0;
		for (int64_t i = 0; i < n + PAD; i++) x[i] = noise(i, 1), y[i] = noise(i, 2);
		for (int64_t i = 0; i < n; i++) {
			sum += (double)x[i] * x[i];
			mix += (.5 * x[i] - 2. * y[i]) * (.5 * x[i] - 2. * y[i]);
		}
		assert_true(fabs(nr_update_active->sum_sq(n, x) - sum) <= 1e-12 * sum);
		assert_true(fabs(nr_update_active->sum_sq_mix(n, .5, x, -2, y) - mix) <= 1e-12 * mix);
		nr_update_active->ema(n, x, y, (real).75);
		for (int64_t i = 0; i < n; i++) near(x[i], .75 * noise(i, 1) + .25 * y[i]);
		for (int64_t i = n; i < n + PAD; i++) assert_true(x[i] == noise(i, 1) && y[i] == noise(i, 2));
	}
}
static void averages_and_sums_agree_with_double_on_every_set(void **state) { on_each_isa(check_rest); }

static void sums_of_huge_values_do_not_overflow(void **state)
{
	const real x[3] = { (real)1e30, (real)1e30, 0 };
	assert_true(fabs(nr_update_active->sum_sq(3, x) / 2e60 - 1) < 1e-6);
}

enum { LARGE = 3 * 8192 * 4 + 77 };

static void threads_do_not_change_a_bit(void **state)
{
	static real one[LARGE], many[LARGE], p[LARGE];
	for (int64_t i = 0; i < LARGE; i++) p[i] = (real)(i % 101), one[i] = (real)(i % 37) - 18;
	nr_update_ema(LARGE, one, p, .9);
	for (int threads = 2; threads <= 3; threads++) {
		for (int64_t i = 0; i < LARGE; i++) many[i] = (real)(i % 37) - 18;
		omp_set_num_threads(threads);
		nr_update_ema(LARGE, many, p, .9);
		omp_set_num_threads(1);
		assert_memory_equal(one, many, sizeof one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adam_follows_its_formula_on_every_set),
		cmocka_unit_test(sgd_follows_its_formula_on_every_set),
		cmocka_unit_test(averages_and_sums_agree_with_double_on_every_set),
		cmocka_unit_test(sums_of_huge_values_do_not_overflow),
		cmocka_unit_test(threads_do_not_change_a_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
