/* src/analysis/text_score.c: measures of classes and values, against numbers worked out by hand. */
#include "unit/values.h"

#include "analysis/text_score.h"

static void close_to(double a, double b, double most) { assert_true(fabs(a - b) <= most); }

static struct nr_text_score classes(int64_t n, int64_t K, const int32_t *told, const int32_t *label)
{
	struct nr_text_score s;
	struct nr_error err = { 0 };
	real out[64] = { 0 };
	int64_t confusion[64] = { 0 };
	for (int64_t i = 0; i < n; i++) out[i * K + told[i]] = 1;
	assert_int_equal(nr_score_classes(n, K, out, label, confusion, &s, &err), 0);
	for (int64_t i = 0; i < n; i++)
		if (label[i] >= 0) confusion[label[i] * K + told[i]]--;
	for (int64_t i = 0; i < K * K; i++) assert_int_equal(confusion[i], 0);  /* each sample was counted in its place */
	assert_int_equal(nr_score_classes(n, K, out, label, NULL, &s, &err), 0);
	return s;
}

static void two_classes(void **state)
{
	(void)state;
	static const int32_t told[] = { 1, 1, 0, 0, 1, 0 }, label[] = { 1, 0, 0, 1, 1, 0 };    /* 2 right of class 1, 2 of class 0 */
	const struct nr_text_score s = classes(6, 2, told, label);
	close_to(s.accuracy, 4. / 6, 1e-12);
	close_to(s.f1, 2. * 2 / (3 + 3), 1e-12);
	close_to(s.matthews, (2. * 2 - 1. * 1) / sqrt(3. * 3 * 3 * 3), 1e-12);
	assert_true(isnan(s.spearman) && s.samples == 6);
}

static void several_classes_and_missing_labels(void **state)
{
	(void)state;
	static const int32_t told[] = { 0, 1, 2, 2, 0 }, label[] = { 0, 1, 2, 1, -1 };
	const struct nr_text_score s = classes(5, 3, told, label);
	assert_int_equal(s.samples, 4);
	close_to(s.accuracy, .75, 1e-12);
	close_to(s.f1, (1 + 2. / 3 + 2. / 3) / 3, 1e-12);
	close_to(s.matthews, (3. * 4 - 5) / sqrt((16. - 6) * (16 - 6)), 1e-12);
	close_to(s.loss, (3 * (log(exp(1.) + 2) - 1) + log(exp(1.) + 2)) / 4, 1e-6);
}

static void always_the_same_answer_correlates_with_nothing(void **state)
{
	(void)state;
	static const int32_t told[] = { 1, 1, 1 }, label[] = { 1, 0, 1 };
	close_to(classes(3, 2, told, label).matthews, 0, 0);
}

static void numbers(void **state)
{
	(void)state;
	static const real out[] = { 1, 2, 3, 9, 5 };
	static const double value[] = { 2, 4, 6, NAN, 10 };
	struct nr_text_score s;
	struct nr_error err = { 0 };
	assert_int_equal(nr_score_values(5, out, value, &s, &err), 0);
	assert_int_equal(s.samples, 4);
	close_to(s.pearson, 1, 1e-12);
	close_to(s.spearman, 1, 1e-12);
	close_to(s.loss, (1 + 4 + 9 + 25) / 4., 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_classes),
		cmocka_unit_test(several_classes_and_missing_labels),
		cmocka_unit_test(always_the_same_answer_correlates_with_nothing),
		cmocka_unit_test(numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
