/* infer/metrics.c: what a confusion matrix says of each class. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "infer/metrics.h"

static void classes_are_scored_by_what_is_found_and_what_is_called_so(void **state)
{
	(void)state;
	static const int64_t m[] = { 8, 2, 0, 1, 3, 0, 0, 0, 0 };      /* rows are the truth; the last class never occurs */
	const struct nr_class_score a = nr_metric_class(3, m, 0), b = nr_metric_class(3, m, 1), c = nr_metric_class(3, m, 2);
	assert_int_equal(a.samples, 10);
	assert_true(fabs(a.recall - 0.8) < 1e-12 && fabs(a.precision - 8.0 / 9) < 1e-12 && fabs(a.f1 - 16.0 / 19) < 1e-12);
	assert_true(fabs(b.recall - 0.75) < 1e-12 && fabs(b.precision - 0.6) < 1e-12 && fabs(b.f1 - 6.0 / 9) < 1e-12);
	assert_true(!c.samples && c.recall == 0 && c.f1 == 0);
	assert_true(fabs(nr_metric_macro_f1(3, m) - (16.0 / 19 + 6.0 / 9) / 2) < 1e-12);
}

static void a_class_that_is_only_called_so_counts_as_missed(void **state)
{
	(void)state;
	static const int64_t m[] = { 1, 1, 0, 0 };
	assert_true(fabs(nr_metric_macro_f1(2, m) - (2.0 / 3 + 0) / 2) < 1e-12);
	assert_true(nr_metric_macro_f1(2, (const int64_t[]){ 0, 0, 0, 0 }) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(classes_are_scored_by_what_is_found_and_what_is_called_so),
		cmocka_unit_test(a_class_that_is_only_called_so_counts_as_missed) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
