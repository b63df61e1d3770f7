/* src/draw/{paint,convert}.c: every drawing looks right where there is no style, as librsvg shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/save.h"
#include "draw/convert.h"
#include "draw/heatmap.h"
#include "draw/scatter.h"
#include "draw/sheet.h"
#include "draw/structure.h"
#include "folder.h"
#include "norma/data.h"

static bool has_rsvg(void)
{
	const char *path = getenv("PATH");
	for (const char *p = path ? path : ""; *p; p += strcspn(p, ":"), p += *p == ':') {
		char file[4096];
		snprintf(file, sizeof file, "%.*s/rsvg-convert", (int)strcspn(p, ":"), p);
		if (access(file, X_OK) == 0) return true;
	}
	return false;
}

static double share_of(const struct nr_picture *p, uint32_t rgb)
{
	int64_t n = 0;
	for (int64_t i = 0; i < p->w * p->h; i++)
		n += p->pixels[3 * i] == rgb >> 16 && p->pixels[3 * i + 1] == (rgb >> 8 & 255) && p->pixels[3 * i + 2] == (rgb & 255);
	return (double)n / (double)(p->w * p->h);
}

/* The drawing in s->panel, alone on a sheet, in pixels. */
static struct nr_picture rendered(struct nr_sheet *s, struct nr_size size)
{
	struct nr_str text = { 0 };
	struct nr_error err = { 0 };
	struct nr_picture p = { 0 };
	FILE *f;
	static char bytes[1 << 20];
	nr_sheet_put(s, NULL, size);
	nr_sheet_add(s, "title", "caption", &text);
	assert_int_equal(nr_svg_convert(text.text, text.len, "png", made_path("a.png"), &err), 0);
	assert_int_equal(access(made_path("a.png.svg"), F_OK), -1);
	assert_non_null(f = fopen(made_path("a.png"), "rbe"));
	const size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	assert_int_equal(nr_picture_decode(&p, bytes, n, 3, "a.png", &err), 0);
	nr_sheet_release(s);
	nr_str_release(&text);
	return p;
}

/* On white paper: the colours that are expected, hardly any black. */
static void looks_right(struct nr_sheet *s, struct nr_size size, const uint32_t *colour, int n)
{
	struct nr_picture p = rendered(s, size);
	assert_true(share_of(&p, 0xffffff) > .4);
	assert_true(share_of(&p, 0x000000) < .01);
	for (int i = 0; i < n; i++)
		if (share_of(&p, colour[i]) == 0) fail_msg("#%06x is not there", colour[i]);
	nr_picture_release(&p);
}

enum { BLUE = 0x0068ad, ORANGE = 0xc74e00, GREEN = 0x00805c, RED = 0x8c2d2d, INK = 0x1c1e21, SOFT = 0x5b6168, FAINT = 0xe3e5e8 };
#define LOOKS_RIGHT(sheet, size, ...)                                                                                                      \
	looks_right(sheet, size, (const uint32_t[]){ __VA_ARGS__ }, (int)(sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)))

static void lines_and_dots_have_their_colours(void **state)
{
	(void)state;
	if (!has_rsvg()) skip();
	const double x[] = { 0, 1, 2 }, y[] = { 1, 1, 1 }, low[] = { .5, .5, .5 }, high[] = { 2, 2, 2 };
	const struct nr_series v[] = { { .label = "a", .x = x, .y = y, .lo = low, .hi = high, .n = 3, .arm = 0, .weight = NR_BOLD },
		{ .label = "b", .x = x, .y = high, .n = 3, .arm = 1, .weight = NR_DOTS } };
	struct nr_sheet s = { 0 };
	LOOKS_RIGHT(&s, nr_svg_chart(&s.panel, &(struct nr_chart){ .name = "n", .series = v, .count = 2 }), BLUE, ORANGE, SOFT);
}

static void points_and_bars_have_their_colours(void **state)
{
	(void)state;
	if (!has_rsvg()) skip();
	double at[200], q[10] = { 0, 1, 2, 3, 4, 0, 1, 2, 3, 4 };
	int32_t group[100];
	for (int i = 0; i < 100; i++) at[2 * i] = i % 10, at[2 * i + 1] = i / 10, group[i] = i % 3;
	struct nr_sheet s = { 0 };
	LOOKS_RIGHT(&s, nr_svg_scatter(&s.panel, &(struct nr_scatter){ .name = "n", .n = 100, .at = at, .group = group, .groups = 3,
		.legend = true }), BLUE, GREEN, FAINT);
	const struct nr_bands_of one = { "a", q };
	LOOKS_RIGHT(&s, nr_svg_bands(&s.panel, &(struct nr_bands){ .name = "n", .n = 2, .of = &one, .count = 1 }), BLUE);
}

static void heat_has_its_colours(void **state)
{
	(void)state;
	if (!has_rsvg()) skip();
	const double v[] = { 0, 1, 2, 3 };
	struct nr_sheet s = { 0 };
	const struct nr_heatmap m = { .name = "n", .rows = 2, .cols = 2, .value = v };
	LOOKS_RIGHT(&s, nr_svg_heatmap(&s.panel, &m), 0x440154, 0xfde725);
	const struct nr_tile tile = { .h = 2, .w = 2, .value = v };
	const struct nr_tiles t = { .name = "n", .rows = 1, .cols = 1, .tile = &tile };
	LOOKS_RIGHT(&s, nr_svg_tiles(&s.panel, &t), 0x440154, 0xfde725);
}

static void a_formula_has_its_colours(void **state)
{
	(void)state;
	if (!has_rsvg()) skip();
	const struct nr_structure_atom atom[] = { { 0 }, { .x = 1, .symbol = "O", .hydrogens = 1 }, { .y = 1 } };
	const struct nr_structure_bond bond[] = { { 0, 1, NR_DRAW_SINGLE, 0 }, { 0, 2, NR_DRAW_UP, 0 } };
	struct nr_sheet s = { 0 };
	const struct nr_structure m = { .name = "n", .atom = atom, .bond = bond, .atoms = 3, .bonds = 2 };
	LOOKS_RIGHT(&s, nr_svg_structure(&s.panel, &m), RED, INK);
}

static void a_class_says_what_it_looks_like(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_paint(&s, "l bold", 9);                      /* colours repeat */
	assert_non_null(strstr(s.text, "class=\"l bold s1\""));
	assert_non_null(strstr(s.text, "stroke=\"#c74e00\""));
	assert_non_null(strstr(s.text, "fill=\"none\""));
	assert_non_null(strstr(s.text, "stroke-width=\"2\""));
	nr_str_release(&s);
	nr_paint(&s, "atom", NR_NO_COLOUR);
	assert_string_equal(s.text, " class=\"atom\" fill=\"#1c1e21\"");
	nr_str_release(&s);
}

static void what_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	assert_true(nr_svg_convert("<svg", 4, "pdf", "/nowhere/at/all.pdf", &err) < 0);
	assert_string_equal(err.subject, "/nowhere/at/all.pdf.svg");
	char *const path = strdup(getenv("PATH"));
	setenv("PATH", "/nowhere", 1);
	err = (struct nr_error){ 0 };
	assert_true(nr_svg_convert("<svg", 4, "pdf", made_path("a.pdf"), &err) < 0);
	assert_non_null(strstr(err.detail, "rsvg-convert"));
	assert_non_null(strstr(err.hint, "librsvg2-bin"));
	setenv("PATH", path, 1);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_dots_have_their_colours),
		cmocka_unit_test(points_and_bars_have_their_colours),
		cmocka_unit_test(heat_has_its_colours),
		cmocka_unit_test(a_formula_has_its_colours),
		cmocka_unit_test(a_class_says_what_it_looks_like),
		cmocka_unit_test(what_cannot_be_written_is_an_error),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
