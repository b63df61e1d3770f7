/* base/str.c: nearest matches, numbers, UTF-8, the growing string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "norma/option.h"

static const char *const norms[] = { "layer", "batch", "group", "instance", "rms", "learning_rate", NULL };

static void nearest_forgives_typing(void **state)
{
	(void)state;
	assert_string_equal(nr_nearest("lyaer", norms), "layer");
	assert_string_equal(nr_nearest("bacth", norms), "batch");
	assert_string_equal(nr_nearest("rsm", norms), "rms");
	assert_string_equal(nr_nearest("Instanc", norms), "instance");
	assert_string_equal(nr_nearest("learning-rate", norms), "learning_rate");
	assert_string_equal(nr_nearest("lear", norms), "learning_rate");
}

static void nearest_is_silent_about_other_words(void **state)
{
	(void)state;
	assert_null(nr_nearest("optimizer", norms));
	assert_null(nr_nearest("x", norms));
	assert_null(nr_nearest("", norms));
	assert_null(nr_nearest("layer", (const char *const[]){ NULL }));
}

static void swap_costs_one(void **state)
{
	(void)state;
	assert_int_equal(nr_distance("abcd", "abdc"), 1);
	assert_int_equal(nr_distance("kitten", "sitting"), 3);
	assert_int_equal(nr_distance("", "abc"), 3);
	assert_int_equal(nr_distance("A-b", "a_B"), 0);
	char big[300];
	memset(big, 'a', 299);
	big[299] = 0;
	assert_true(nr_distance(big, "a") == SIZE_MAX);
}

static void whole_string_must_be_the_integer(void **state)
{
	(void)state;
	int64_t v;
	assert_true(nr_parse_int("-9223372036854775808", &v) && v == INT64_MIN);
	assert_true(nr_parse_int("9223372036854775807", &v) && v == INT64_MAX);
	assert_true(nr_parse_int("+12", &v) && v == 12);
	const char *const bad[] = {
		"", "-", "+", "9223372036854775808", "-9223372036854775809", "1 ", " 1", "1.0", "0x1", "1e3"
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(nr_parse_int(bad[i], &v));
}

static void whole_string_must_be_the_number(void **state)
{
	(void)state;
	double v;
	assert_true(nr_parse_double("1e-6", &v) && v == 1e-6);
	assert_true(nr_parse_double("-.5", &v) && v == -.5);
	assert_true(nr_parse_double("inf", &v) && v > 1e308);
	const char *const bad[] = { "", " 1", "1 ", "1,5", "0x10", "1e", "abc", "1.2.3", "infi" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(nr_parse_double(bad[i], &v));
}

static void shortest_digits_read_back(void **state)
{
	(void)state;
	char buf[32];
	assert_string_equal(nr_double_text(0.1, false, buf, sizeof buf), "0.1");
	assert_string_equal(nr_double_text((double)0.1f, true, buf, sizeof buf), "0.1");
	assert_string_equal(nr_double_text(1e-6, false, buf, sizeof buf), "1e-6");
	assert_string_equal(nr_double_text(1000, false, buf, sizeof buf), "1000");
	assert_string_equal(nr_double_text(-0.0, true, buf, sizeof buf), "-0");
	double v;
	assert_true(nr_parse_double(nr_double_text(1.0 / 3, false, buf, sizeof buf), &v) && v == 1.0 / 3);
}

static void utf8_is_checked_by_the_book(void **state)
{
	(void)state;
	const char *const good[] = { "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
				     "\xF4\x8F\xBF\xBF" };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(nr_utf8_valid(good[i], strlen(good[i])));
	const char *const bad[] = {
		"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
		"\xF8", "\xE2\x82", "\xC3(",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(nr_utf8_valid(bad[i], strlen(bad[i])));
	assert_int_equal(nr_utf8_span("ab\xFFz", 4), 2);
}

static void width_counts_columns(void **state)
{
	(void)state;
	assert_int_equal(nr_utf8_width("abc"), 3);
	assert_int_equal(nr_utf8_width("\xC3\xA9"), 1);
	assert_int_equal(nr_utf8_width("e\xCC\x81"), 1);
	assert_int_equal(nr_utf8_width("\xE4\xB8\xAD\xE6\x96\x87"), 4);
}

static void string_grows_and_is_taken(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	assert_string_equal(nr_str_text(&s), "");
	for (int i = 0; i < 1000; i++)
		nr_str_printf(&s, "%03d", i);
	nr_str_add(&s, "end");
	nr_str_fill(&s, '.', 2);
	assert_int_equal(s.len, 3005);
	char *t = nr_str_take(&s);
	assert_string_equal(t + 2997, "999end..");
	assert_null(s.text);
	free(t);
	t = nr_str_take(&s);
	assert_string_equal(t, "");
	free(t);
}

static void string_out_of_memory_sticks(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_str_add(&s, "abc");
	nr_str_fill(&s, 'x', SIZE_MAX / 2);
	assert_true(s.failed);
	assert_string_equal(nr_str_text(&s), "abc");
	assert_null(nr_str_take(&s));
}

static void nearest_option_is_a_row(void **state)
{
	(void)state;
	const struct nr_option table[] = { { .name = "eps" }, { .name = "momentum" }, NR_OPT_END };
	assert_ptr_equal(nr_nearest_option("momntum", table), table[1].name);
	assert_null(nr_nearest_option("dim", table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_forgives_typing),
		cmocka_unit_test(nearest_is_silent_about_other_words),
		cmocka_unit_test(swap_costs_one),
		cmocka_unit_test(whole_string_must_be_the_integer),
		cmocka_unit_test(whole_string_must_be_the_number),
		cmocka_unit_test(shortest_digits_read_back),
		cmocka_unit_test(utf8_is_checked_by_the_book),
		cmocka_unit_test(width_counts_columns),
		cmocka_unit_test(string_grows_and_is_taken),
		cmocka_unit_test(string_out_of_memory_sticks),
		cmocka_unit_test(nearest_option_is_a_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
