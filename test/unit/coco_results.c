/* data/coco_results.c: what is written is read back; entries that cannot be used are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "data/coco_results.h"
#include "folder.h"

static struct nr_arena *arena;
static struct nr_coco truth;

static int setup(void **test)
{
	static const char text[] = "{\"images\": [{\"id\": 2, \"file_name\": \"a\", \"height\": 4, \"width\": 5}], \"annotations\": [], "
		"\"categories\": [{\"id\": 7, \"name\": \"x\"}, {\"id\": 9, \"name\": \"y\"}]}";
	if (made_setup(test) || !(arena = nr_arena_make())) return -1;
	return nr_coco_parse(&truth, text, strlen(text), "truth.json", &(struct nr_coco_how){ NR_COCO_FAIL, true }, arena, NULL);
}
static int teardown(void **test) { nr_arena_free(arena); return made_teardown(test); }

static void what_is_written_is_read_back(void **test)
{
	(void)test;
	const uint8_t pixels[20] = { 0, 1, 1, 0, 0, 0, 1 };
	struct nr_rle *mask = nr_rle_of_mask(4, 5, pixels, NULL);
	const struct nr_detection d[2] = { { .image_id = 2, .label = 1, .xywh = { 0.1, 1.0 / 3, 2.5, 3 }, .score = 0.7, .mask = mask },
		{ .image_id = 2, .label = 0, .xywh = { -0.0, 1, 1, 1e-7 }, .score = 1e-9, .mask = mask } };
	for (int masks = 0; masks < 2; masks++) {
		const char *path = made_path("found-%d.json", masks);
		struct nr_coco_results r;
		struct nr_error err = { 0 };
		assert_int_equal(nr_coco_results_write(path, d, 2, truth.category, masks, &err), NR_OK);
		assert_int_equal(nr_coco_results_read(&r, path, &truth, NR_COCO_EITHER, &err), NR_OK);
		assert_true(r.count == 2 && r.masks == (masks == 1));
		for (int i = 0; i < 2; i++) {
			assert_true(r.item[i].image_id == 2 && r.item[i].label == d[i].label && r.item[i].score == d[i].score);
			for (int k = 0; k < 4 && !masks; k++) assert_true(r.item[i].xywh[k] == d[i].xywh[k]);
			if (masks) assert_true(nr_rle_iou(r.item[i].mask, mask, false) == 1 && r.item[i].area == 3 &&
				r.item[i].xywh[0] == 1);
		}
		nr_coco_results_release(&r);
	}
	struct nr_error err = { 0 };
	nr_coco_results_write(made_path("none.json"), &(struct nr_detection){ .image_id = 2 }, 1, NULL, true, &err);
	assert_non_null(strstr(err.detail, "detection 1 has no mask"));
	nr_rle_free(mask);
}

/* pycocotools takes the boxes of masks where there are only those, and areas of boxes where there are some. */
static void areas_are_those_that_the_reference_takes(void **test)
{
	(void)test;
	static const char both[] = "[{\"image_id\": 2, \"category_id\": 7, \"score\": 1, \"bbox\": [0, 0, 5, 4], "
		"\"segmentation\": {\"size\": [4, 5], \"counts\": [0, 4, 16]}}]";
	struct nr_coco_results r;
	assert_int_equal(nr_coco_results_parse(&r, both, strlen(both), "f", &truth, NR_COCO_MASKS, NULL), NR_OK);
	assert_true(r.item[0].area == 20 && nr_rle_area(r.item[0].mask) == 4);
	nr_coco_results_release(&r);
	static const char mask[] = "[{\"image_id\": 2, \"category_id\": 7, \"score\": 1, \"segmentation\": {\"size\": [4, 5], "
		"\"counts\": [0, 4, 16]}}]";
	assert_int_equal(nr_coco_results_parse(&r, mask, strlen(mask), "f", &truth, NR_COCO_BOXES, NULL), NR_OK);
	assert_true(r.item[0].area == 4 && r.item[0].xywh[2] == 1 && r.item[0].xywh[3] == 4);
	nr_coco_results_release(&r);
}

static void refuses(const char *text, const char *message)
{
	struct nr_coco_results r;
	struct nr_error err = { 0 };
	assert_int_not_equal(nr_coco_results_parse(&r, text, strlen(text), "f.json", &truth, NR_COCO_EITHER, &err), NR_OK);
	assert_null(r.item);
	if (!strstr(err.detail, message)) fail_msg("'%s' is not in '%s'", message, err.detail);
}

static void what_cannot_be_used_is_named(void **test)
{
	(void)test;
	refuses("[", "line 1");
	refuses("{}", "not a list of detections");
	refuses("[3]", "detection 1: it is not an object");
	refuses("[{\"image_id\": 3}]", "detection 1: there is no image 3 in 'truth.json'");
	refuses("[{\"image_id\": 2, \"category_id\": 8}]", "there is no category 8");
	refuses("[{\"image_id\": 2, \"category_id\": 7, \"score\": \"high\"}]", "no 'score'");
	refuses("[{\"image_id\": 2, \"category_id\": 7, \"score\": 1}]", "no 'bbox'");
	refuses("[{\"image_id\": 2, \"category_id\": 7, \"score\": 1, \"bbox\": [1, 2, 3, 4]}, {\"image_id\": 2, \"category_id\": 7, "
		"\"score\": 1}]", "detection 2: it has no 'bbox'");
	refuses("[{\"image_id\": 2, \"category_id\": 7, \"score\": 1, \"segmentation\": {\"size\": [5, 4], \"counts\": \"d0\"}}]",
		"detection 1: its mask has 5 x 4 pixels");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(areas_are_those_that_the_reference_takes),
		cmocka_unit_test(what_cannot_be_used_is_named),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
