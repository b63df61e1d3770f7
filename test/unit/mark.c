/* picture/mark.c: boxes, masks and names end up where they belong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "picture/mark.h"

static bool changed(const struct nr_picture *p, int32_t x, int32_t y) { return p->pixels[(y * p->w + x) * 3] != 100; }

static struct nr_picture marked(const struct nr_mark_of *m, int64_t n, int32_t zoom)
{
	struct nr_picture from = { 0 }, to = { 0 };
	assert_int_equal(nr_picture_resize(&from, 40, 60, 1, NULL), NR_OK);
	memset(from.pixels, 100, 40 * 60);
	assert_int_equal(nr_picture_mark(&from, m, n, zoom, &to, NULL), NR_OK);
	nr_picture_release(&from);
	return to;
}

static void a_box_is_a_line_along_its_edge(void **test)
{
	(void)test;
	const struct nr_mark_of m = { .xywh = { 10, 20, 30, 10 }, .label = 0 };
	struct nr_picture p = marked(&m, 1, 1);
	assert_true(p.h == 40 && p.w == 60 && p.channels == 3);
	for (int32_t y = 0; y < 40; y++)
		for (int32_t x = 0; x < 60; x++) {
			const bool in = x >= 10 && x < 40 && y >= 20 && y < 30;
			const bool edge = x == 10 || x == 39 || y == 20 || y == 29;
			assert_int_equal(changed(&p, x, y), in && edge);
		}
	nr_picture_release(&p);
	p = marked(&m, 1, 0);
	assert_int_equal(p.w, 420);                             /* 7 times */
	assert_true(changed(&p, 70, 140) && changed(&p, 279, 209) && !changed(&p, 69, 140) && !changed(&p, 175, 175));
	nr_picture_release(&p);
}

static void a_mask_tints_its_pixels(void **test)
{
	(void)test;
	uint8_t mask[40 * 60] = { 0 };
	for (int y = 5; y < 9; y++) memset(mask + y * 60 + 5, 1, 6);
	struct nr_rle *r = nr_rle_of_mask(40, 60, mask, NULL);
	const struct nr_mark_of m = { .mask = r, .label = 1, .faint = true };
	struct nr_picture p = marked(&m, 1, 3);
	for (int32_t y = 1; y < 40 * 3; y++)
		for (int32_t x = 3; x < 60 * 3; x++) assert_int_equal(changed(&p, x, y), mask[(y / 3) * 60 + x / 3]);
	nr_picture_release(&p);
	nr_rle_free(r);
}

static void names_and_boxes_stay_inside_the_picture(void **test)
{
	(void)test;
	const struct nr_mark_of m[] = { { .xywh = { -5, -5, 1e9, 1e9 }, .text = "a very long name that does not fit", .label = 3 },
		{ .xywh = { 55, 38, 20, 20 }, .text = "caf\xC3\xA9 \x01", .label = 40000 }, { .xywh = { 3e9, 1, 1, 1 }, .label = -7,
			.text = "" } };
	struct nr_picture p = marked(m, 3, 1);
	assert_true(changed(&p, 0, 0) && changed(&p, 59, 39));
	nr_picture_release(&p);
}

static void letters_are_seven_high_on_their_own_ground(void **test)
{
	(void)test;
	const struct nr_mark_of m = { .xywh = { 10, 20, 20, 10 }, .text = "I", .label = 4 };
	struct nr_picture p = marked(&m, 1, 1);
	int white = 0;
	for (int32_t y = 11; y < 20; y++)
		for (int32_t x = 10; x < 17; x++) {
			assert_true(changed(&p, x, y));
			white += p.pixels[(y * p.w + x) * 3] == 255;
		}
	assert_int_equal(white, 3 + 5 + 3);                     /* of the letter I */
	assert_false(changed(&p, 17, 15));
	nr_picture_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_is_a_line_along_its_edge),
		cmocka_unit_test(a_mask_tints_its_pixels),
		cmocka_unit_test(names_and_boxes_stay_inside_the_picture),
		cmocka_unit_test(letters_are_seven_high_on_their_own_ground),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
