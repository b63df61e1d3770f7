/* base/log.c and base/clock.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

static char *text;
static size_t size;

static const char *logged(enum nr_level limit, enum nr_level level)
{
	static char copy[256];
	FILE *f = open_memstream(&text, &size);
	nr_log_open(f, limit);
	nr_log_line(level, "value %d", 7);
	nr_log_open(NULL, NR_LOG_ERROR);
	fclose(f);
	snprintf(copy, sizeof copy, "%s", text);
	free(text);
	return copy;
}

static void library_is_silent_without_a_sink(void **state)
{
	(void)state;
	assert_false(nr_log_wants(NR_LOG_ERROR));
	nr_log_line(NR_LOG_ERROR, "nobody hears this");
}

static void levels_filter_and_prefix(void **state)
{
	(void)state;
	assert_string_equal(logged(NR_LOG_INFO, NR_LOG_ERROR), "norma: error: value 7\n");
	assert_string_equal(logged(NR_LOG_INFO, NR_LOG_WARNING), "norma: warning: value 7\n");
	assert_string_equal(logged(NR_LOG_INFO, NR_LOG_INFO), "value 7\n");
	assert_string_equal(logged(NR_LOG_INFO, NR_LOG_DEBUG), "");
	assert_string_equal(logged(NR_LOG_ERROR, NR_LOG_WARNING), "");
	assert_non_null(strstr(logged(NR_LOG_DEBUG, NR_LOG_DEBUG), " s: value 7\n"));
}

static void note(void *arg)
{
	++*(int *)arg;
}

static void hook_runs_before_lines_that_are_written(void **state)
{
	(void)state;
	int calls = 0;
	nr_log_before(note, &calls);
	logged(NR_LOG_ERROR, NR_LOG_DEBUG);
	assert_int_equal(calls, 0);
	logged(NR_LOG_ERROR, NR_LOG_ERROR);
	assert_int_equal(calls, 1);
	nr_log_before(NULL, NULL);
}

static void durations_read_as_people_write_them(void **state)
{
	(void)state;
	static const struct { double s; const char *want;
	} cases[] = {
		{ 0, "0.0 ms" },
		{ 0.0042, "4.2 ms" },
		{ 0.85, "850 ms" },
		{ 0.9996, "1.0 s" },
		{ 12.34, "12.3 s" },
		{ 59.96, "1 min 00 s" },
		{ 125, "2 min 05 s" },
		{ 3599.7, "1 h 00 min" },
		{ 11220, "3 h 07 min" },
		{ 86400 * 2 + 3600 * 4, "2 d 04 h" },
		{ -1, "?" },
		{ NAN, "?" },
	};
	char buf[32];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(nr_duration_text(cases[i].s, buf, sizeof buf), cases[i].want);
}

static void times_are_iso_in_utc(void **state)
{
	(void)state;
	char buf[32];
	assert_string_equal(nr_time_text(1738324800, buf, sizeof buf), "2025-01-31T12:00:00Z");
}

static void clock_moves_forward(void **state)
{
	(void)state;
	double a = nr_clock(), b = nr_clock();
	assert_true(a > 0 && b >= a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_is_silent_without_a_sink),
		cmocka_unit_test(levels_filter_and_prefix),
		cmocka_unit_test(hook_runs_before_lines_that_are_written),
		cmocka_unit_test(durations_read_as_people_write_them),
		cmocka_unit_test(times_are_iso_in_utc),
		cmocka_unit_test(clock_moves_forward),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
