/* Chains of multiply-adds and copies: every instruction set gives the values. */
#include "unit/values.h"

#include <math.h>

#include "math/peak.h"

/* The mean of all chains after n rounds, in double. */
static double mean_after(int64_t n, double x, double y)
{
	double sum = 0;
	for (int i = 0; i < NR_PEAK_CHAINS; i++) {
		double a = i + 1;
		for (int64_t k = 0; k < n; k++) a = a * x + y;
		sum += a;
	}
	return sum / NR_PEAK_CHAINS;
}

static void every_set_follows_the_recurrence(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int64_t n = 0; n < 9; n++) {
			const double want = mean_after(n, 1.5, -.25), got = nr_peak_active->chains(n, (real)1.5, (real)-.25);
			assert_true(fabs(got - want) <= 1e-5 * fabs(want));
		}
}

static void every_set_copies_all_and_no_more(void **state)
{
	(void)state;
	enum { MOST = 320, AFTER = 16 };
	_Alignas(64) static real y[MOST + AFTER];
	real *x = values(MOST + 1);
	for (int s = isa_next(-1); s >= 0; s = isa_next(s))
		for (int64_t n = 0; n <= MOST; n += 64) {
			for (int64_t i = 0; i < MOST + AFTER; i++) y[i] = 7;
			nr_peak_active->copy(n, x + 1, y);
			assert_same_bits(y, x + 1, n);
			for (int64_t i = n; i < MOST + AFTER; i++) assert_true(y[i] == 7);
		}
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_set_follows_the_recurrence),
		cmocka_unit_test(every_set_copies_all_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
