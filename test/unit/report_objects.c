/* src/analysis/coco_record.c and src/report/object_figures.c: scores of detections, recorded and shown. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/coco_record.h"
#include "report/object_figures.h"
#include "unit/arena.h"

static char ring[] = "ring", wolf[] = "dog & <wolf>", absent[] = "absent", *const names[] = { ring, wolf, absent };

/* Two classes with an object each; `found` of them are found, a third class has none. */
static json_t *record_of(int found, bool masks)
{
	struct nr_rle *m = nr_rle_of_mask(2, 2, (const uint8_t[]){ 1, 1, 0, 0 }, NULL);
	struct nr_object o[2] = { { .xywh = { 0, 0, 2, 1 }, .area = 2, .id = 1, .mask = m }, { .xywh = { 0, 0, 2, 1 }, .area = 2, .id = 2,
		.label = 1, .mask = m } };
	const struct nr_objects image = { .image_id = 1, .h = 2, .w = 2, .count = 2, .object = o }, *const truth = &image;
	const struct nr_detection d[2] = { { .image_id = 1, .xywh = { 0, 0, 2, 1 }, .score = 1, .mask = m },
		{ .image_id = 1, .label = 1, .xywh = { 0, 0, 2, 1 }, .score = 1, .mask = m } };
	struct nr_coco_result boxes, outlines;
	struct nr_str text = { 0 };
	assert_int_equal(nr_coco_eval(&truth, 1, d, found, 3, false, &boxes, NULL), NR_OK);
	assert_int_equal(nr_coco_eval(&truth, 1, d, found, 3, true, &outlines, NULL), NR_OK);
	assert_int_equal(nr_coco_record(&text, &boxes, masks ? &outlines : NULL, names, "val", 1, NULL), NR_OK);
	json_t *j = json_loads(nr_str_text(&text), 0, NULL);
	nr_coco_result_release(&boxes);
	nr_coco_result_release(&outlines);
	nr_str_release(&text);
	nr_rle_free(m);
	return j;
}

static void records_have_scores_and_curves(void **state)
{
	(void)state;
	json_t *j = record_of(1, true);
	const json_t *masks = json_object_get(j, "masks"), *classes = json_object_get(masks, "classes");
	assert_true(fabs(json_number_value(json_object_get(masks, "AP")) - 0.5) < 1e-12);
	assert_true(json_is_null(json_object_get(masks, "APl")) && json_is_null(json_object_get(json_array_get(classes, 2), "AP")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(classes, 1), "name")), wolf);
	assert_int_equal(json_array_size(json_object_get(json_array_get(classes, 0), "precision")), NR_COCO_RECALLS);
	const json_t *curve = json_array_get(json_object_get(masks, "precision"), 9);
	assert_true(json_array_size(curve) == NR_COCO_RECALLS && json_number_value(json_array_get(curve, 100)) == 0.5);
	json_decref(j);
}

static char *section_of(json_t *const *record, const int *of, int runs)
{
	static const char *const name[] = { "ln", "bn" };
	struct nr_runfolder run[4];
	struct nr_arms a;
	struct nr_str s = { 0 };
	for (int i = 0; i < runs; i++) run[i] = (struct nr_runfolder){ .dir = "d", .name = "d", .status = "done", .seed = i,
		.objects = record[i] };
	assert_int_equal(nr_arms_given(&a, run, runs, of, name, 2, arena, NULL), NR_OK);
	nr_section_objects(&s, &a, arena);
	char *html = nr_arena_printf(arena, "%s", nr_str_text(&s));
	for (int i = 0; i < runs; i++) nr_runfolder_release(&run[i]);
	nr_str_release(&s);
	return html;
}

static void seeds_of_an_arm_are_averaged(void **state)
{
	(void)state;
	const char *html = section_of((json_t *[]){ record_of(2, true), record_of(1, true), record_of(1, false) },
		(const int[]){ 0, 0, 1 }, 3);
	assert_non_null(strstr(html, "1 pictures of the val split"));
	assert_non_null(strstr(html, "75.0 %"));                /* (1 + .5) / 2 */
	assert_non_null(strstr(html, "<h3>Masks</h3>"));
	assert_non_null(strstr(html, "Precision of masks at IoU .75"));
	assert_non_null(strstr(html, "dog &amp; &lt;wolf&gt;"));
	assert_null(strstr(html, "absent"));
}

static void without_records_there_is_no_section(void **state)
{
	(void)state;
	assert_string_equal(section_of((json_t *[]){ NULL, json_object() }, (const int[]){ 0, 1 }, 2), "");
	const char *html = section_of((json_t *[]){ json_loads("{\"boxes\": {\"classes\": 7, \"precision\": [[1]], \"AP\": \"x\"}}", 0,
		NULL) }, (const int[]){ 0 }, 1);
	assert_non_null(strstr(html, "<h3>Boxes</h3>"));        /* changed by hand: nothing to show, and no harm */
	assert_null(strstr(html, "<h3>Masks</h3>"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_have_scores_and_curves),
		cmocka_unit_test(seeds_of_an_arm_are_averaged),
		cmocka_unit_test(without_records_there_is_no_section),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
