/* src/draw/{heatmap,scatter,bands,png,sheet}.c: what is drawn can be read back, and odd values leave no odd numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "draw/heatmap.h"
#include "draw/html.h"
#include "draw/png.h"
#include "draw/scatter.h"
#include "draw/sheet.h"
#include "norma/data.h"

static int count_of(const char *text, const char *what)
{
	int n = 0;
	for (const char *s = text; (s = strstr(s, what)) != NULL; s += strlen(what)) n++;
	return n;
}

static void is_clean(const struct nr_str *s)
{
	assert_false(s->failed);
	assert_null(strstr(s->text, "nan"));
	assert_null(strstr(s->text, "inf\""));
	assert_int_equal(count_of(s->text, "<svg"), count_of(s->text, "</svg>"));
	assert_int_equal(count_of(s->text, "<text"), count_of(s->text, "</text>"));
}

static void heat_goes_from_dark_to_bright(void **state)
{
	(void)state;
	assert_int_equal(nr_heat(0), 0x440154);
	assert_int_equal(nr_heat(.5), 0x21918c);
	assert_int_equal(nr_heat(1), 0xfde725);
	assert_int_equal(nr_heat(7), 0xfde725);
	assert_int_equal(nr_heat(-INFINITY), 0x440154);
	double before = 0;
	for (int i = 0; i <= 100; i++) {                /* lightness rises: readable without colours */
		const uint32_t c = nr_heat(i / 100.);
		const double light = .2126 * (c >> 16) + .7152 * (c >> 8 & 255) + .0722 * (c & 255);
		assert_true(light > before);
		before = light;
	}
}

static void a_cell_for_each_value_that_there_is(void **state)
{
	(void)state;
	const double v[] = { 0, 1, 2, NAN, 4, INFINITY };
	static const char *const rows[] = { "a<b", "c" };
	struct nr_str s = { 0 };
	const struct nr_size size = nr_svg_heatmap(&s, &(struct nr_heatmap){ .name = "n", .rows = 2, .cols = 3, .value = v,
		.row_label = rows });
	is_clean(&s);
	assert_true(size.w > 0 && size.h > 0);
	assert_int_equal(count_of(s.text, "<tspan"), 4);
	assert_non_null(strstr(s.text, "a&lt;b"));
	assert_non_null(strstr(s.text, "fill=\"#440154\""));
	assert_non_null(strstr(s.text, "fill=\"#fde725\""));
	nr_str_release(&s);
	const double none[] = { NAN, NAN };
	nr_svg_heatmap(&s, &(struct nr_heatmap){ .name = "n", .rows = 1, .cols = 2, .value = none });
	is_clean(&s);
	assert_non_null(strstr(s.text, "no finite value"));
	nr_str_release(&s);
	double many[60 * 200];
	for (int i = 0; i < 60 * 200; i++) many[i] = i % 7;
	nr_svg_heatmap(&s, &(struct nr_heatmap){ .name = "n", .rows = 200, .cols = 60, .value = many });
	is_clean(&s);
	assert_int_equal(count_of(s.text, "<tspan"), 0);
	nr_str_release(&s);
}

/* Our own reader, which is libpng's, finds the pixels again. */
static void a_png_holds_its_pixels(void **state)
{
	(void)state;
	enum { W = 5, H = 3, ZOOM = 4 };
	uint8_t rgb[W * H * 3];
	struct nr_str file = { 0 };
	struct nr_picture p = { 0 };
	struct nr_error err = { 0 };
	for (int i = 0; i < W * H * 3; i++) rgb[i] = (uint8_t)(i * 37);
	nr_png_add(&file, &(struct nr_raster){ W, H, rgb }, ZOOM);
	assert_false(file.failed);
	assert_int_equal(nr_picture_decode(&p, file.text, file.len, 3, "made", &err), 0);
	assert_int_equal(p.w, W * ZOOM);
	assert_int_equal(p.h, H * ZOOM);
	for (int y = 0; y < H * ZOOM; y++)
		for (int x = 0; x < W * ZOOM; x++)
			assert_memory_equal(p.pixels + (y * W * ZOOM + x) * 3, rgb + (y / ZOOM * W + x / ZOOM) * 3, 3);
	nr_picture_release(&p);
	nr_str_release(&file);
}

static void tiles_share_a_range_or_tell_their_own(void **state)
{
	(void)state;
	const double v[8] = { 0, 1, 2, 3, 4, 5, 6, NAN };
	const uint8_t rgb[12] = { 255, 0, 0, 1, 2, 3 };
	const struct nr_tile tile[] = { { .h = 2, .w = 2, .value = v }, { .h = 2, .w = 2, .value = v + 4 }, { .h = 2, .w = 2,
		.rgb = rgb }, { 0 } };
	for (int one = 0; one < 2; one++) {
		struct nr_str s = { 0 };
		nr_svg_tiles(&s, &(struct nr_tiles){ .name = "n", .rows = 2, .cols = 2, .tile = tile, .one_range = one });
		is_clean(&s);
		assert_int_equal(count_of(s.text, "<image"), 3);
		assert_int_equal(count_of(s.text, " … "), one ? 0 : 2);
		assert_int_equal(strstr(s.text, ">6<") != NULL, one);
		nr_str_release(&s);
	}
}

static void points_lie_where_they_are(void **state)
{
	(void)state;
	const double at[] = { -1, -1, 1, 1, 0, 0, NAN, 1, .5, INFINITY };
	const int32_t group[] = { 0, 1, -1, 0, 1 };
	struct nr_str s = { 0 };
	nr_svg_scatter(&s, &(struct nr_scatter){ .name = "n", .n = 5, .at = at, .group = group, .groups = 3, .side = 200,
		.reach = 1, .circle = .5, .legend = true });
	is_clean(&s);
	assert_int_equal(count_of(s.text, "fill-opacity"), 3);  /* two groups, and those of none; the third has no point */
	assert_non_null(strstr(s.text, "M0.0,204.0m"));         /* (-1,-1): lower left */
	assert_non_null(strstr(s.text, "M200.0,4.0m"));
	assert_non_null(strstr(s.text, "M100.0,104.0m"));
	assert_non_null(strstr(s.text, "r=\"50.0\""));
	nr_str_release(&s);
	nr_svg_scatter(&s, &(struct nr_scatter){ .name = "n", .n = 1, .at = at });      /* one point: no extent */
	is_clean(&s);
	nr_str_release(&s);
	static const double alike[][4] = { { 2, 2, 2, 2 }, { 0, 5, 0, 5 }, { 0, 0, 0, 0 }, { 1e17, 0, 1e17, 1 },
		{ 1e90, -1e90, 1e90, -1e90 } };
	for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {                     /* with ticks, too */
		nr_svg_scatter(&s, &(struct nr_scatter){ .name = "n", .n = 2, .at = alike[i], .diagonal = true });
		is_clean(&s);
		assert_true(count_of(s.text, "class=\"tick\"") > 0);
		nr_str_release(&s);
	}
	nr_svg_scatter(&s, &(struct nr_scatter){ .name = "n", .n = 1, .at = at + 6 });
	assert_non_null(strstr(s.text, "no finite value"));
	nr_str_release(&s);
}

static void bands_leave_out_what_is_not_there(void **state)
{
	(void)state;
	const double q[] = { -2, -1, 0, 1, 2, -1, -1, -1, -1, -1, NAN, 0, 0, 0, 0 };
	struct nr_str s = { 0 };
	nr_svg_bands(&s, &(struct nr_bands){ .name = "n", .n = 3, .of = (const struct nr_bands_of[]){ { "a&b", q }, { "none",
		NULL } }, .count = 2 });
	is_clean(&s);
	assert_non_null(strstr(s.text, "a&amp;b"));
	assert_null(strstr(s.text, ">none<"));
	assert_int_equal(count_of(s.text, "z\"/>"), 2);
	nr_str_release(&s);
}

static void a_sheet_has_title_panels_and_caption(void **state)
{
	(void)state;
	const double v[] = { 1, 2 };
	const struct nr_heatmap m = { .name = "n", .rows = 1, .cols = 2, .value = v };
	struct nr_sheet sheet = { 0 };
	struct nr_str s = { 0 };
	nr_sheet_put(&sheet, "one", nr_svg_heatmap(&sheet.panel, &m));
	const double wide = sheet.wide;
	nr_sheet_put(&sheet, "two", nr_svg_heatmap(&sheet.panel, &m));
	assert_true(sheet.wide > 1.9 * wide);
	const double tall = sheet.tall;
	nr_sheet_row(&sheet);
	nr_sheet_put(&sheet, NULL, nr_svg_heatmap(&sheet.panel, &m));
	assert_true(sheet.tall > 1.5 * tall);
	nr_sheet_add(&sheet, "T & t", "word word < word", &s);
	is_clean(&s);
	assert_int_equal(count_of(s.text, "<svg"), 4);
	assert_non_null(strstr(s.text, "xmlns=\"http://www.w3.org/2000/svg\""));
	assert_non_null(strstr(s.text, "prefers-color-scheme:dark"));
	assert_non_null(strstr(s.text, "T &amp; t"));
	assert_non_null(strstr(s.text, "word word &lt; word"));
	nr_sheet_release(&sheet);
	nr_str_release(&s);
	struct nr_error err = { 0 };
	nr_sheet_put(&sheet, "one", nr_svg_heatmap(&sheet.panel, &m));
	assert_true(nr_sheet_save(&sheet, "/nowhere/at/all", "a.svg", "t", "c", &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heat_goes_from_dark_to_bright),
		cmocka_unit_test(a_cell_for_each_value_that_there_is),
		cmocka_unit_test(a_png_holds_its_pixels),
		cmocka_unit_test(tiles_share_a_range_or_tell_their_own),
		cmocka_unit_test(points_lie_where_they_are),
		cmocka_unit_test(bands_leave_out_what_is_not_there),
		cmocka_unit_test(a_sheet_has_title_panels_and_caption),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
