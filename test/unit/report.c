/* src/report: ticks, scaling, thinning, escaping, charts, intervals, folders that are odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include <cmocka.h>

#include "report/arms.h"
#include "draw/html.h"
#include "draw/scale.h"
#include "draw/svg.h"

/* ---- ticks --------------------------------------------------------------------------------------------------------------- */

static void ticks_are(double lo, double hi, bool log, const char *want)
{
	struct nr_ruler r;
	double tick[NR_MAX_TICKS], step;
	char text[64];
	struct nr_str s = { 0 };
	nr_ruler_fit(&r, lo, hi, log);
	const int n = nr_ruler_ticks(&r, 5, tick, &step);
	for (int i = 0; i < n; i++) nr_str_printf(&s, "%s%s", i ? " " : "", nr_tick_text(tick[i], step, text, sizeof text));
	assert_string_equal(nr_str_text(&s), want);
	nr_str_release(&s);
}

static void ticks_are_round(void **state)
{
	(void)state;
	ticks_are(0, 1, false, "0 0.2 0.4 0.6 0.8 1.0");
	ticks_are(-3.2, 0.1, false, "−3 −2 −1 0");
	ticks_are(0, 46800, false, "0 10\u202f000 20\u202f000 30\u202f000 40\u202f000");
	ticks_are(0.00131, 0.00149, false, "0.00135 0.00140 0.00145");
	ticks_are(0.00095, 0.00105, false, "0.00096 0.00098 0.00100 0.00102 0.00104");
	ticks_are(0, 4e-30, false, "0 10⁻³⁰ 2×10⁻³⁰ 3×10⁻³⁰ 4×10⁻³⁰");
	ticks_are(0, 3e9, false, "0 10⁹ 2×10⁹ 3×10⁹");
}

static void log_ticks_are_powers_of_ten_or_their_parts(void **state)
{
	(void)state;
	ticks_are(1e-5, 1, true, "10⁻⁵ 0.0001 0.001 0.01 0.1 1");
	ticks_are(0.5, 20, true, "0.5 1 2 5 10 20");
	ticks_are(1e-40, 1, true, "10⁻⁴⁰ 10⁻³² 10⁻²⁴ 10⁻¹⁶ 10⁻⁸ 1");
}

static void constant_ranges_are_widened(void **state)
{
	(void)state;
	static const double v[] = { 0, 3, -2, 1e-30, 1e90, 1 + 1e-12 };
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct nr_ruler r = { .from = 0, .to = 100 };
		double tick[NR_MAX_TICKS], step;
		nr_ruler_fit(&r, v[i], v[i], false);
		assert_true(r.lo < v[i] && v[i] < r.hi);
		assert_true(fabs(nr_ruler_at(&r, v[i]) - 50) < 1e-6);
		assert_true(nr_ruler_ticks(&r, 5, tick, &step) >= 2);
	}
}

static void ticks_lie_inside_whatever_the_range(void **state)
{
	(void)state;
	for (int e = -90; e <= 90; e++) {
		for (int k = 1; k < 40; k++) {
			struct nr_ruler r;
			double tick[NR_MAX_TICKS], step;
			nr_ruler_fit(&r, -0.31 * k * pow(10, e), 1.7 * k * pow(10, e), false);
			const int n = nr_ruler_ticks(&r, 5, tick, &step);
			assert_in_range(n, 2, 12);
			for (int i = 0; i < n; i++) assert_true(tick[i] >= r.lo - 1e-5 * step && tick[i] <= r.hi + 1e-5 * step);
		}
	}
}

static void a_value_becomes_its_pixel(void **state)
{
	(void)state;
	const struct nr_ruler plain = { .lo = -1, .hi = 3, .from = 200, .to = 0 };
	const struct nr_ruler log = { .lo = 0.01, .hi = 100, .log = true, .from = 0, .to = 8 };
	assert_true(fabs(nr_ruler_at(&plain, 0) - 150) < 1e-9);
	assert_true(fabs(nr_ruler_at(&log, 1) - 4) < 1e-9);
	assert_false(nr_ruler_takes(true, 0));
	assert_false(nr_ruler_takes(true, -1));
	assert_false(nr_ruler_takes(false, NAN));
	assert_false(nr_ruler_takes(false, -INFINITY));
	assert_false(nr_ruler_takes(false, 1e200));
	assert_true(nr_ruler_takes(true, 1e-30));
}

/* ---- thinning ------------------------------------------------------------------------------------------------------------ */

static void thinning_keeps_ends_peaks_and_breaks(void **state)
{
	(void)state;
	enum { N = 100000, BUCKETS = 100 };
	double *y = malloc(N * sizeof *y);
	int64_t keep[3 * BUCKETS + 2];
	for (int i = 0; i < N; i++) y[i] = sin(i * 1e-3);
	y[12345] = 50, y[777] = -50, y[54321] = NAN;
	const int64_t n = nr_thin(y, N, BUCKETS, false, keep);
	bool high = false, low = false, gap = false;
	assert_in_range(n, 2 * BUCKETS - 2, 3 * BUCKETS + 2);
	assert_int_equal(keep[0], 0);
	assert_int_equal(keep[n - 1], N - 1);
	for (int64_t i = 0; i < n; i++) {
		assert_true(i == 0 || keep[i] > keep[i - 1]);
		high |= keep[i] == 12345, low |= keep[i] == 777, gap |= keep[i] == 54321;
	}
	assert_true(high && low && gap);
	assert_int_equal(nr_thin(y, 5, BUCKETS, false, keep), 5);
	assert_int_equal(nr_thin(y, 1, BUCKETS, false, keep), 1);
	assert_int_equal(nr_thin(y, 0, BUCKETS, false, keep), 0);
	free(y);
}

/* ---- HTML ---------------------------------------------------------------------------------------------------------------- */

static void text_is_escaped(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_html_text(&s, "a<b & \"c\" 'd'>\x01\x7F\xFFµ\n");
	assert_string_equal(nr_str_text(&s), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;\xEF\xBF\xBDµ\n");
	nr_html_text(&s, NULL);
	nr_str_release(&s);
	nr_html_printf(&s, "%s=%d", "<x>", 3);
	assert_string_equal(nr_str_text(&s), "&lt;x&gt;=3");
	nr_str_release(&s);
}

static void base64_is_as_the_standard_has_it(void **state)
{
	(void)state;
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
		{ "foobar", "Zm9vYmFy" } };
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct nr_str s = { 0 };
		nr_base64(&s, pairs[i][0], strlen(pairs[i][0]));
		assert_string_equal(nr_str_text(&s), pairs[i][1]);
		nr_str_release(&s);
	}
}

static void tables_close_what_they_open(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_html_table t = { .s = &s };
	nr_html_table_open(&t, NULL);
	nr_html_head(&t, NULL, "<h>");
	nr_html_row(&t);
	nr_html_cell(&t, "number", "1");
	nr_html_row(&t);
	nr_html_cell_open(&t, NULL);
	nr_html_table_close(&t);
	assert_string_equal(nr_str_text(&s), "<div class=\"wide\"><table><thead><tr><th>&lt;h&gt;</th></tr></thead><tbody>\n"
					     "<tr><td class=\"number\">1</td></tr>\n<tr><td></td></tr></tbody></table></div>\n");
	nr_str_release(&s);
}

/* ---- charts -------------------------------------------------------------------------------------------------------------- */

static char *draw(const double *y, int64_t n, enum nr_y_scale scale)
{
	double *x = malloc((size_t)(n + 1) * sizeof *x);
	struct nr_str s = { 0 };
	for (int64_t i = 0; i < n; i++) x[i] = (double)i;
	const struct nr_series series = { .label = "a<b", .x = x, .y = y, .n = n, .arm = 9, .weight = NR_BOLD };
	nr_svg_chart(&s, &(struct nr_chart){ .name = "n", .x_label = "step", .y_label = "y", .scale = scale, .series = &series,
		.count = 1 });
	free(x);
	return nr_str_take(&s);
}

static void odd_series_are_drawn_without_odd_numbers(void **state)
{
	(void)state;
	static const double one[] = { 3 }, flat[] = { 2, 2, 2 }, tiny[] = { 1e-30, 3e-30, 2e-30 }, huge[] = { -1.7e308, 1.7e308, 1e99, 0 },
			    gaps[] = { NAN, 1, INFINITY, 2, 3, -INFINITY }, zeros[] = { 0, 0 }, mixed[] = { -1, 0, 1e-9, 5 };
	static const struct { const double *y; int64_t n; } odd[] = { { one, 1 }, { flat, 3 }, { tiny, 3 }, { huge, 4 }, { gaps, 6 },
		{ zeros, 2 }, { mixed, 4 } };
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		for (int scale = NR_LINEAR; scale <= NR_LOG_IF_WIDE; scale++) {
			char *svg = draw(odd[i].y, odd[i].n, (enum nr_y_scale)scale);
			assert_non_null(strstr(svg, "</svg>"));
			assert_null(strstr(svg, "nan"));
			assert_null(strstr(svg, "inf"));
			if (strstr(svg, "class=\"end")) assert_non_null(strstr(svg, "a&lt;b"));
			free(svg);
		}
	}
}

static void nothing_to_draw_is_said(void **state)
{
	(void)state;
	static const double bad[] = { NAN, INFINITY };
	for (int64_t n = 0; n <= 2; n += 2) {
		char *svg = draw(bad, n, NR_LINEAR);
		assert_non_null(strstr(svg, "no finite value"));
		free(svg);
	}
}

static void many_points_make_a_small_drawing(void **state)
{
	(void)state;
	enum { N = 100000 };
	double *y = malloc(N * sizeof *y);
	for (int i = 0; i < N; i++) y[i] = 1 + (i * 7919 % 1000) * 1e-3;
	char *svg = draw(y, N, NR_LINEAR);
	assert_true(strlen(svg) < 20000);
	free(svg);
	free(y);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

static void near(double a, double b) { assert_true(fabs(a - b) < 5e-5 * fmax(1, fabs(b))); }

static void intervals_are_those_of_the_books(void **state)
{
	(void)state;
	static const double v[] = { 1, 2, 3, 4 };
	const struct nr_estimate t = nr_estimate_runs(v, 4), one = nr_estimate_runs(v, 1), none = nr_estimate_runs(v, 0);
	near(t.lo, 2.5 - 2.0542600);                   /* 3.18245 * 1.290994 / 2 */
	near(t.hi, 2.5 + 2.0542600);
	assert_int_equal(t.over, NR_OVER_RUNS);
	assert_int_equal(one.over, NR_NO_INTERVAL);
	assert_true(isnan(none.mean));
	const struct nr_estimate w = nr_estimate_share(0.8, 100), all = nr_estimate_share(1, 10);
	near(w.lo, 0.711170);
	near(w.hi, 0.866633);
	near(all.lo, 0.722467);
	near(all.hi, 1);
	assert_int_equal(nr_estimate_share(0.5, 0).over, NR_NO_INTERVAL);
}

static void csv_takes_quotes_gaps_and_a_torn_end(void **state)
{
	(void)state;
	char text[] = "step,\"a \"\"b\"\",c\",loss\r\n1,2,\n2,,nan\n3,x,4e-3\n4,5";
	struct nr_arena *a = nr_arena_make();
	struct nr_columns c;
	assert_int_equal(nr_columns_parse(text, sizeof text - 1, "t", a, &c, NULL), NR_OK);
	assert_int_equal(c.count, 3);
	assert_int_equal(c.rows, 3);
	assert_string_equal(c.column[1].name, "a \"b\",c");
	const struct nr_column *loss = nr_column_find(&c, "loss");
	assert_false(loss->given[0]);
	assert_true(loss->given[1] && isnan(loss->value[1]));
	assert_true(loss->value[2] == 4e-3);
	assert_true(c.column[1].value[0] == 2 && !c.column[1].given[1] && isnan(c.column[1].value[2]));
	char zero[] = "a\n\0\n";
	assert_int_equal(nr_columns_parse(zero, 4, "t", a, &c, NULL), NR_EFORMAT);
	nr_arena_free(a);
}

static struct nr_runfolder run_of(char *config, struct nr_arena *a, int64_t seed)
{
	struct nr_runfolder r = { .dir = "d", .name = "d", .seed = seed, .status = "done", .seconds = NAN };
	assert_int_equal(nr_config_parse(config, a, &r.settings), NR_OK);
	return r;
}

static void runs_that_differ_in_their_seed_are_one_arm(void **state)
{
	(void)state;
	struct nr_arena *a = nr_arena_make();
	char c[][96] = { "# help\nnorm: 'sep(bn,ln)'\nlr: 1e-3 # x\nseed: 0\nout: a\n", "norm: \"sep(bn,ln)\"\nlr: 1e-3\nseed: 1\nout: b\n",
		"norm: ln\nlr: 1e-3\nseed: 0\nout: c\n", "norm: ln\nlr: 2e-3\nseed: 0\nout: d\n", "norm: ln\nlr: 2e-3\nseed: 0\nout: e\n" };
	const struct nr_runfolder run[] = { run_of(c[0], a, 0), run_of(c[1], a, 1), run_of(c[2], a, 0), run_of(c[3], a, 0),
		run_of(c[4], a, 0) };
	struct nr_arms arms;
	assert_int_equal(nr_arms_group(&arms, run, 5, a, NULL), NR_OK);
	assert_int_equal(arms.count, 3);
	assert_int_equal(arms.arm[0].runs, 2);
	assert_int_equal(arms.arm[2].runs, 2);
	assert_int_equal(arms.arm[2].distinct, 1);     /* the same seed twice is no second sample */
	assert_string_equal(arms.arm[0].name, "sep(bn,ln)");
	assert_string_equal(arms.arm[1].name, "ln, lr 1e-3");
	assert_string_equal(arms.arm[2].name, "ln, lr 2e-3");
	assert_string_equal(arms.differ, "lr");
	nr_arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_are_round),
		cmocka_unit_test(log_ticks_are_powers_of_ten_or_their_parts),
		cmocka_unit_test(constant_ranges_are_widened),
		cmocka_unit_test(ticks_lie_inside_whatever_the_range),
		cmocka_unit_test(a_value_becomes_its_pixel),
		cmocka_unit_test(thinning_keeps_ends_peaks_and_breaks),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(base64_is_as_the_standard_has_it),
		cmocka_unit_test(tables_close_what_they_open),
		cmocka_unit_test(odd_series_are_drawn_without_odd_numbers),
		cmocka_unit_test(nothing_to_draw_is_said),
		cmocka_unit_test(many_points_make_a_small_drawing),
		cmocka_unit_test(intervals_are_those_of_the_books),
		cmocka_unit_test(csv_takes_quotes_gaps_and_a_torn_end),
		cmocka_unit_test(runs_that_differ_in_their_seed_are_one_arm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
