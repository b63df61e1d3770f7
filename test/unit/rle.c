/* picture/rle.c: masks come back as they were, texts are COCO's, damaged ones are refused. norma-golden compares with the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "picture/rle.h"

enum { MOST = 40 };

static uint32_t draw(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static struct nr_rle *random_mask(uint32_t *state, int32_t h, int32_t w, uint8_t *mask)
{
	const uint32_t dense = draw(state) % 5;
	for (int32_t i = 0; i < h * w; i++) mask[i] = dense == 4 ? i > h * w / 2 : draw(state) % 4 < dense;
	return nr_rle_of_mask(h, w, mask, NULL);
}

static void masks_survive_runs_and_texts(void **test)
{
	(void)test;
	uint8_t mask[MOST * MOST], back[MOST * MOST];
	uint32_t state = 1;
	for (int round = 0; round < 200; round++) {
		const int32_t h = 1 + (int32_t)(draw(&state) % MOST), w = 1 + (int32_t)(draw(&state) % MOST);
		struct nr_rle *r = random_mask(&state, h, w, mask);
		struct nr_str text = { 0 };
		struct nr_error err = { 0 };
		int64_t area = 0;
		assert_non_null(r);
		nr_rle_to_string(r, &text);
		struct nr_rle *s = nr_rle_of_string(h, w, nr_str_text(&text), text.len, &err);
		assert_non_null(s);
		assert_int_equal(s->runs, r->runs);
		assert_memory_equal(s->run, r->run, (size_t)r->runs * sizeof *r->run);
		nr_rle_to_mask(s, back);
		for (int32_t i = 0; i < h * w; i++) {
			assert_int_equal(back[i], mask[i] != 0);
			area += mask[i] != 0;
		}
		assert_int_equal(nr_rle_area(r), area);
		nr_rle_free(r);
		nr_rle_free(s);
		nr_str_release(&text);
	}
}

static void box_iou_and_merge_agree_with_pixels(void **test)
{
	(void)test;
	uint8_t a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
	uint32_t state = 2;
	for (int round = 0; round < 200; round++) {
		const int32_t h = 1 + (int32_t)(draw(&state) % MOST), w = 1 + (int32_t)(draw(&state) % MOST);
		struct nr_rle *pair[2] = { random_mask(&state, h, w, a), random_mask(&state, h, w, b) };
		int64_t both = 0, any = 0, own = 0;
		double box[4];
		int32_t left = w, top = h, right = -1, bottom = -1;
		for (int32_t i = 0; i < h * w; i++) {
			both += a[i] && b[i], any += a[i] || b[i], own += a[i] != 0;
			if (!a[i]) continue;
			left = i % w < left ? i % w : left, right = i % w > right ? i % w : right;
			top = i / w < top ? i / w : top, bottom = i / w > bottom ? i / w : bottom;
		}
		assert_true(nr_rle_iou(pair[0], pair[1], false) == (both ? (double)both / (double)any : 0));
		assert_true(nr_rle_iou(pair[0], pair[1], true) == (both ? (double)both / (double)own : 0));
		nr_rle_box(pair[0], box);
		const double want[4] = { right < 0 ? 0 : left, right < 0 ? 0 : top, right < 0 ? 0 : right - left + 1,
			right < 0 ? 0 : bottom - top + 1 };
		assert_memory_equal(box, want, sizeof box);
		for (int common = 0; common < 2; common++) {
			struct nr_rle *m = nr_rle_merge((const struct nr_rle *const *)pair, 2, common, NULL);
			nr_rle_to_mask(m, c);
			for (int32_t i = 0; i < h * w; i++) assert_int_equal(c[i], common ? a[i] && b[i] : a[i] || b[i]);
			nr_rle_free(m);
		}
		nr_rle_free(pair[0]);
		nr_rle_free(pair[1]);
	}
}

static void polygons_fill_what_they_enclose(void **test)
{
	(void)test;
	const double box[4] = { 2, 3, 4, 2 }, far[6] = { -50, -50, 200, -50, 200, 200 };
	uint8_t mask[100];
	struct nr_rle *r = nr_rle_of_box(10, 10, box, NULL);
	nr_rle_to_mask(r, mask);
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 10; x++) assert_int_equal(mask[10 * y + x], x >= 2 && x < 6 && y >= 3 && y < 5);
	nr_rle_free(r);
	r = nr_rle_of_polygon(10, 10, far, 3, NULL);            /* the half above the diagonal */
	nr_rle_to_mask(r, mask);
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 10; x++)
			if (x != y) assert_int_equal(mask[10 * y + x], x > y);
	nr_rle_free(r);
	struct nr_error err = { 0 };
	assert_null(nr_rle_of_polygon(10, 10, (const double[]){ 0, 0, 1e300, 1, 2, 2 }, 3, &err));
	assert_int_equal(err.code, NR_EVALUE);
}

static void refuses(int32_t h, int32_t w, const char *text, const char *part)
{
	struct nr_error err = { 0 };
	assert_null(nr_rle_of_string(h, w, text, strlen(text), &err));
	if (!strstr(err.detail, part)) fail_msg("'%s' should say '%s'", err.detail, part);
}

static void damaged_texts_are_refused(void **test)
{
	(void)test;
	refuses(3, 5, "0", "add up to 0 pixels instead of 3 x 5");
	refuses(3, 5, "0@", "run 2 is -16 long");
	refuses(3, 5, "0>", "add up to 14 pixels");
	refuses(3, 5, "0?1", "run 3 is 1 long");
	refuses(3, 5, "0?P", "character 4 of 3");
	refuses(3, 5, "0 ", "character 2 of 2");
	refuses(3, 5, "PPPPPPPPP0", "character 8 of 10");
	refuses(0, 5, "0", "size is 0 x 5");
	struct nr_error err = { 0 };
	assert_null(nr_rle_of_runs(2, 2, (const uint32_t[]){ 1, 4 }, 2, &err));
	assert_non_null(strstr(err.detail, "add up to 5 pixels"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_survive_runs_and_texts),
		cmocka_unit_test(box_iou_and_merge_agree_with_pixels),
		cmocka_unit_test(polygons_fill_what_they_enclose),
		cmocka_unit_test(damaged_texts_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
