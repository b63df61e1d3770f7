/* analysis/auc.c against counting all pairs; missing labels and tasks with one class. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/auc.h"
#include "base/rng.h"

static double by_pairs(int64_t n, const double *score, const double *target)
{
	double won = 0, pairs = 0;
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			if (!(target[i] == 1 && target[j] == 0)) continue;
			won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
			pairs++;
		}
	return won / pairs;
}

static void area_equals_the_share_of_pairs(void **state)
{
	(void)state;
	enum { N = 61 };
	const struct nr_rng rng = nr_rng_make(3, 1, 0);
	for (int coarse = 0; coarse < 2; coarse++) {            /* coarse scores have ties */
		double score[N], target[N], auc;
		struct nr_error err = { 0 };
		for (int i = 0; i < N; i++) {
			const double u = (double)nr_rng_uniform(rng, (uint64_t)(2 * i + coarse * 1000));
			const double v = (double)nr_rng_uniform(rng, (uint64_t)(2 * i + 1 + coarse * 1000));
			score[i] = coarse ? floor(4 * u) : u - 0.5;
			target[i] = v < 0.2 ? NAN : v < 0.6;
		}
		assert_int_equal(nr_roc_auc(N, score, target, &auc, &err), NR_OK);
		assert_float_equal(auc, by_pairs(N, score, target), 1e-12);
	}
}

static void plain_cases(void **state)
{
	(void)state;
	const double score[] = { 0.1, 0.4, 0.35, 0.8 }, right[] = { 0, 0, 1, 1 }, none[] = { 1, 1, NAN, 1 }, nan[] = { 0.1, NAN, 0.2, 0.3 };
	double auc;
	struct nr_error err = { 0 };
	assert_int_equal(nr_roc_auc(4, score, right, &auc, &err), NR_OK);
	assert_float_equal(auc, 0.75, 1e-12);
	assert_int_equal(nr_roc_auc(4, score, none, &auc, &err), NR_OK);
	assert_true(isnan(auc));
	assert_int_equal(nr_roc_auc(4, nan, right, &auc, &err), NR_OK);
	assert_true(isnan(auc));
	assert_int_equal(nr_roc_auc(0, score, right, &auc, &err), NR_OK);
	assert_true(isnan(auc));
}

static void tasks_with_one_class_do_not_count(void **state)
{
	(void)state;
	const double score[] = { 1, 1, 1, 2, 0, 2, 3, 5, 3, 4, 6, 4 };                          /* (4,3) */
	const double target[] = { 0, 1, NAN, 0, 1, NAN, 1, 1, NAN, 1, 1, NAN };
	double auc;
	struct nr_error err = { 0 };
	assert_int_equal(nr_roc_auc_mean(4, 3, score, target, &auc, &err), NR_OK);
	assert_float_equal(auc, 1, 1e-12);
	assert_int_equal(nr_roc_auc_mean(4, 1, score, (const double[]){ 1, 1, 1, 1 }, &auc, &err), NR_OK);
	assert_true(isnan(auc));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(area_equals_the_share_of_pairs), cmocka_unit_test(plain_cases),
		cmocka_unit_test(tasks_with_one_class_do_not_count) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
