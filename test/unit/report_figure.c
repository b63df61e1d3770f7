/* src/report/figure.c, study_read.c and the dots of src/draw/svg.c: bands over seeds, thinning, data for the script, names of metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

#include "base/json.h"
#include "draw/svg.h"
#include "report/figure.h"
#include "report/study_read.h"

/* ---- figures --------------------------------------------------------------------------------------------------------------- */

enum { LONG = 100000, EARLY = 3 };

/* Run by its seed: seed / 2 + x, or a long noisy line with one peak; seed EARLY stops halfway. */
static struct nr_points made_up(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const int64_t n = v->kind ? LONG : r->seed == EARLY ? 5 : 10;
	struct nr_points p = nr_points_make(n, arena);
	for (; p.n < n; p.n++) {
		p.x[p.n] = (double)p.n;
		p.y[p.n] = v->kind ? (p.n == 4321 ? 1000 : sin((double)p.n)) : (double)r->seed / 2 + (double)p.n;
	}
	return p;
}

/* The figure's HTML, to be freed, and its data, to be released. */
static char *figure_of(const struct nr_runfolder *run, int count, const int *of, int kind, const char *name, json_t **data)
{
	struct nr_arena *arena = nr_arena_make();
	const char *const names[] = { name, "B" };
	const struct nr_lines v = {
		.title = "a <title>", .unit = "u</script>", .x_label = "step", .factor = 2, .of = made_up, .kind = kind
	};
	struct nr_str s = { 0 };
	struct nr_arms arms;
	assert_int_equal(nr_arms_given(&arms, run, count, of, names, 2, arena, NULL), NR_OK);
	assert_int_equal(nr_figure(&s, &arms, &v, arena), 1);
	nr_arena_free(arena);
	char *html = nr_str_take(&s);
	const char *from = strstr(html, "json\">") + 6, *to = strstr(from, "</script>");
	*data = nr_json_parse(from, (size_t)(to - from), "data", NULL);
	assert_non_null(*data);
	return html;
}

static double number(const json_t *line, const char *key, size_t i)
{
	return json_number_value(json_array_get(json_object_get(line, key), i));
}

static void seeds_become_a_mean_with_a_band(void **state)
{
	(void)state;
	const struct nr_runfolder run[] = { { .seed = 0 }, { .seed = 2 }, { .seed = EARLY }, { .seed = 4 } };
	static const int of[] = { 0, 0, 0, 1 };
	json_t *data;
	char *html = figure_of(run, 4, of, 0, "A<b>&", &data);
	const json_t *lines = json_object_get(data, "lines");
	assert_int_equal(json_array_size(lines), 3);
	const json_t *early = json_array_get(lines, 0), *mean = json_array_get(lines, 1), *other = json_array_get(lines, 2);
	assert_true(number(early, "y", 0) == EARLY && json_array_size(json_object_get(early, "x")) == 5);   /* not part of the mean */
	assert_true(number(mean, "y", 9) == 2 * 9.5 && number(mean, "lo", 9) == 2 * 9 && number(mean, "hi", 9) == 2 * 10);
	assert_null(json_object_get(other, "lo"));
	assert_string_equal(json_string_value(json_object_get(mean, "name")), "A<b>&");
	assert_non_null(strstr(html, "lowest A&lt;b&gt;&amp; (19.0), highest B (22.0)"));
	assert_non_null(strstr(html, "have not got as far"));
	assert_non_null(strstr(html, "class=\"band s0\""));
	assert_null(strstr(html, "u</script>"));
	json_decref(data);
	free(html);
}

static void long_lines_are_thinned_and_keep_their_peaks(void **state)
{
	(void)state;
	const struct nr_runfolder run[] = { { .seed = 0 } };
	static const int of[] = { 0 };
	json_t *data;
	char *html = figure_of(run, 1, of, 1, "A", &data);
	const json_t *line = json_array_get(json_object_get(data, "lines"), 0), *x = json_object_get(line, "x");
	bool peak = false;
	assert_in_range(json_array_size(x), 1000, 2102);
	for (size_t i = 0; i < json_array_size(x); i++) peak |= number(line, "y", i) == 2000 && number(line, "x", i) == 4321;
	assert_true(peak);
	assert_true(number(line, "x", 0) == 0 && number(line, "x", json_array_size(x) - 1) == LONG - 1);
	assert_true(strlen(html) < 70000);
	json_decref(data);
	free(html);
}

/* ---- dots ------------------------------------------------------------------------------------------------------------------ */

static void dots_have_bars_and_no_line(void **state)
{
	(void)state;
	static const double x[] = { 1e-3, 1 }, y[] = { 5, 6 }, lo[] = { 4, NAN }, hi[] = { 7, 8 };
	const struct nr_series v = { .x = x, .y = y, .lo = lo, .hi = hi, .n = 2, .weight = NR_DOTS };
	const struct nr_chart c = { .name = "n", .x_label = "x", .y_label = "y", .x_log = true, .series = &v, .count = 1 };
	struct nr_str s = { 0 };
	nr_svg_chart(&s, &c);
	const char *bar = strstr(nr_str_text(&s), "class=\"l bar s0\"");
	assert_non_null(bar);
	assert_null(strstr(bar + 1, "class=\"l bar s0\""));    /* an end that is not there: no bar */
	assert_null(strstr(nr_str_text(&s), "bold"));
	assert_non_null(strstr(nr_str_text(&s), ">0.01<"));
	assert_null(strstr(nr_str_text(&s), "nan"));
	nr_str_release(&s);
}

/* ---- metrics --------------------------------------------------------------------------------------------------------------- */

static void metrics_are_read_as_people_say_them(void **state)
{
	(void)state;
	struct nr_arena *arena = nr_arena_make();
	char text[64];
	assert_string_equal(nr_metric_title("probe.features.cls.top1", arena), "top‑1 on [CLS] (probe)");
	assert_string_equal(nr_metric_title("knn.odd", arena), "knn.odd");
	assert_string_equal(nr_metric_text("a.top1", 0.8071, 0.8, false, text, sizeof text), "80.71");
	assert_string_equal(nr_metric_text("a.top1", 0.004, 0.8, true, text, sizeof text), "+0.40");
	assert_string_equal(nr_metric_text("a.uniformity", -1.61907, 2.5, false, text, sizeof text), "−1.619");
	assert_string_equal(nr_metric_text("a.rank", 2.98475, 31.3, false, text, sizeof text), "2.98");
	assert_string_equal(nr_metric_text("a.rank", NAN, 31.3, true, text, sizeof text), "–");
	nr_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_become_a_mean_with_a_band),
		cmocka_unit_test(long_lines_are_thinned_and_keep_their_peaks),
		cmocka_unit_test(dots_have_bars_and_no_line),
		cmocka_unit_test(metrics_are_read_as_people_say_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
