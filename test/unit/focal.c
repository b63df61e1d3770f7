/* src/math/focal.c: the definition, every set against the reference, large and missing values. */
#include "unit/values.h"

#include <math.h>

#include "math/focal.h"

static void values_are_the_definition(void **state)
{
	(void)state;
	for (double gamma = 0; gamma < 3; gamma += .5)
		for (double x = -9; x < 9; x += .7) {
			const double p = 1 / (1 + exp(-x)), step = 1e-5, near = 1 / (1 + exp(-x - step));
			const struct nr_focal_value v = nr_focal_high(x, gamma);
			const double loss = -pow(1 - p, gamma) * log(p), after = -pow(1 - near, gamma) * log(near);
			assert_true(fabs(v.loss - loss) < 1e-12 * (1 + loss));
			assert_true(fabs(v.slope - (after - loss) / step) < 1e-4);
		}
}

static void every_set_agrees_with_the_reference(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set))
		for (int64_t n = 0; n < 70; n++)
			for (double gamma = 0; gamma < 3; gamma += 1) {
				real *x = values(n), *want = blank(n), *got = values(n + 1);
				const real behind = got[n];
				for (int64_t i = 0; i < n; i++) x[i] *= (real)(i % 7 == 0 ? 150 : 20);
				const double sum = nr_focal_plain.low(n, x, .75, gamma, want);
				assert_true(fabs(nr_focal_active->low(n, x, .75, gamma, got) - sum) <= 1e-6 * sum);
				assert_true(fabs(nr_focal_active->low(n, x, .75, gamma, NULL) - sum) <= 1e-6 * sum);
				assert_near(got, want, n, 1e-6);
				assert_true(got[n] == behind);
				free(x), free(want), free(got);
			}
}

static void a_missing_value_is_not_lost(void **state)
{
	(void)state;
	for (int set = isa_next(-1); set >= 0; set = isa_next(set)) {
		real x[20] = { 0 };
		x[3] = (real)NAN;
		assert_true(isnan(nr_focal_active->low(20, x, 1, 2, NULL)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_the_definition),
		cmocka_unit_test(every_set_agrees_with_the_reference),
		cmocka_unit_test(a_missing_value_is_not_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
