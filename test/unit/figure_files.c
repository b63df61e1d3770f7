/* src/report/figure_files.c, draw/dotplot.c: figures of a page as files, and dots in rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/dotplot.h"
#include "draw/html.h"
#include "folder.h"
#include "report/figure_files.h"

static char text[1 << 16];

static const char *file(const char *name)
{
	FILE *f = fopen(made_path("%s", name), "rbe");
	if (!f) fail_msg("no file '%s'", name);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static const double x[] = { 0, 1, 2 }, y[] = { 1, 2, 3 };

static void add_figure(struct nr_str *s, const char *title, const char *label)
{
	const struct nr_series v = { .label = label, .x = x, .y = y, .n = 3, .weight = NR_BOLD };
	nr_html_figure_open(s, "curve", title, "Low & high.");
	nr_str_add(s, "<script type=\"application/json\">{}</script>");
	nr_svg_chart(s, &(struct nr_chart){ .name = title, .series = &v, .count = 1 });
	nr_html_figure_close(s);
}

static void every_figure_becomes_a_file(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_error err = { 0 };
	int count = 0;
	nr_str_add(&s, "<html><section id=\"curves\"><ul class=\"legend\"><li data-arm=\"0\">");
	nr_svg_sample(&s, 0);
	nr_str_add(&s, " A <span class=\"plan\">a&lt;very long plan</span></li></ul>");
	add_figure(&s, "Top-1 of [CLS], \xc3\xbc", "A");
	add_figure(&s, "Top-1 of [CLS]", "A");
	nr_str_add(&s, "</section><section id=\"pictures\">");
	nr_html_figure_open(&s, "picture", "ln", "seed 0");
	nr_html_png(&s, "PNG", 3, 40, 30, "alt");
	nr_html_figure_close(&s);
	nr_str_add(&s, "</section><section id=\"none\"></section></html>");
	assert_int_equal(nr_figure_files(s.text, made_path("figures"), "svg", &count, &err), 0);
	assert_int_equal(count, 3);
	const char *first = file("figures/curves-top-1-of-cls.svg");
	assert_non_null(strstr(first, "<title>Top-1 of [CLS], \xc3\xbc</title>"));
	assert_non_null(strstr(first, "<desc>Low &amp; high.</desc>"));
	assert_null(strstr(first, "class=\"caption\""));
	assert_null(strstr(first, "script"));
	assert_non_null(strstr(first, "A a&lt;very long plan</text>"));         /* the key of the letters */
	assert_non_null(strstr(file("figures/curves-top-1-of-cls-2.svg"), "</svg>"));
	assert_non_null(strstr(file("figures/pictures-ln.svg"), "<image width=\"40\" height=\"30\" href=\"data:image/png;base64,"));
	assert_non_null(strstr(file("figures/captions.txt"), "curves-top-1-of-cls-2.svg\nTop-1 of [CLS]. Low & high.\n"));
	nr_str_release(&s);
	assert_true(nr_figure_files("<html/>", "/proc/nowhere", "svg", &count, &err) < 0);
}

static void every_value_is_a_dot(void **state)
{
	(void)state;
	const double v[] = { 1, 1, NAN, 3 };
	const struct nr_dot_row row[] = { { .label = "a<b", .value = v, .n = 4, .mean = 2, .lo = 1, .hi = 3 },
		{ .label = "none", .mean = NAN, .lo = NAN, .hi = NAN, .arm = 1 } };
	struct nr_str s = { 0 };
	nr_svg_dotplot(&s, &(struct nr_dotplot){ .name = "n", .x_label = "x", .row = row, .count = 2 });
	assert_null(strstr(s.text, "nan"));
	assert_non_null(strstr(s.text, ">a&lt;b<"));
	int dots = 0;
	for (const char *p = s.text; (p = strstr(p, "class=\"m s")) != NULL; p++) dots++;
	assert_int_equal(dots, 3);
	nr_str_release(&s);
	nr_svg_dotplot(&s, &(struct nr_dotplot){ .name = "n", .x_label = "x", .row = row + 1, .count = 1 });
	assert_non_null(strstr(s.text, "no finite value"));
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_figure_becomes_a_file),
		cmocka_unit_test(every_value_is_a_dot),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
