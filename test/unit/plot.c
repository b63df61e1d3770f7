/* base/plot.c: curves as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

#include "base/plot.h"
#include "base/str.h"

static void looks(const struct nr_plot *p, const char *want)
{
	struct nr_str s = { 0 };
	nr_plot_text(p, &s);
	assert_string_equal(nr_str_text(&s), want);
	nr_str_release(&s);
}

static void a_falling_line_goes_from_corner_to_corner(void **state)
{
	(void)state;
	const int64_t x[] = { 0, 7 };
	const double y[] = { 7, 0 };
	looks(&(struct nr_plot){ .x = x, .y = y, .n = 2, .columns = 4, .rows = 2 },
		"7 ┤⠑⢄\n"
		"0 ┤  ⠑⢄\n"
		"   0  7\n");
}

static void values_that_are_not_finite_break_the_line(void **state)
{
	(void)state;
	const int64_t x[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	const double y[] = { 1, 1, NAN, INFINITY, -INFINITY, NAN, 0, 0 };
	looks(&(struct nr_plot){ .x = x, .y = y, .n = 8, .columns = 4, .rows = 2 },
		"1 ┤⠉\n"
		"0 ┤   ⣀\n"
		"   0  7\n");
	looks(&(struct nr_plot){ .x = x, .y = y + 2, .n = 4, .columns = 4, .rows = 2 }, "");
	looks(&(struct nr_plot){ .x = x, .y = y, .n = 0, .columns = 4, .rows = 2 }, "");
}

static void constant_curves_and_single_points_lie_in_the_middle(void **state)
{
	(void)state;
	const int64_t x[] = { 3, 9 };
	const double y[] = { 2, 2 };
	looks(&(struct nr_plot){ .x = x, .y = y, .n = 2, .columns = 3, .rows = 3 },
		"2 ┤\n"
		"  │⠒⠒⠒\n"
		"2 ┤\n"
		"   3 9\n");
	struct nr_str s = { 0 };
	nr_plot_text(&(struct nr_plot){ .x = x, .y = y, .n = 1, .columns = 3, .rows = 2 }, &s);
	assert_non_null(strstr(s.text, "3"));
	nr_str_release(&s);
}

static void huge_values_and_sizes_stay_inside(void **state)
{
	(void)state;
	const int64_t x[] = { INT64_MIN, 0, INT64_MAX };
	const double y[] = { -1.7e308, 1.7e308, 5e-324 };
	struct nr_str s = { 0 };
	nr_plot_text(&(struct nr_plot){ .x = x, .y = y, .n = 3, .columns = 100000, .rows = -3 }, &s);
	nr_plot_text(&(struct nr_plot){ .x = x, .y = y, .n = 3, .columns = 0, .rows = 100000 }, &s);
	assert_false(s.failed);
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_falling_line_goes_from_corner_to_corner),
		cmocka_unit_test(values_that_are_not_finite_break_the_line),
		cmocka_unit_test(constant_curves_and_single_points_lie_in_the_middle),
		cmocka_unit_test(huge_values_and_sizes_stay_inside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
