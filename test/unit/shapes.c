/* data/shapes.c and shapes_set.c: made-up shapes are pure functions of seed and number, and what is written can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/shapes.h"
#include "folder.h"
#include "norma/data.h"

static const struct nr_shapes_how how = { .size = 64, .fewest = 2, .most = 7, .seed = 5 };

static void a_picture_is_a_function_of_seed_and_number(void **test)
{
	(void)test;
	struct nr_picture a = { 0 }, b = { 0 };
	struct nr_shapes x = { 0 }, y = { 0 };
	for (int64_t i = 0; i < 4; i++) {
		assert_int_equal(nr_shapes_draw(&how, 3, &a, &x, NULL), NR_OK);
		const struct nr_shapes_how other = { how.size, how.fewest, how.most, how.seed + (i == 1) };
		assert_int_equal(nr_shapes_draw(&other, i == 2 ? 4 : 3, &b, &y, NULL), NR_OK);
		assert_int_equal(memcmp(a.pixels, b.pixels, 64 * 64 * 3) == 0, i == 0 || i == 3);
		nr_shapes_release(&x);
		nr_shapes_release(&y);
	}
	nr_picture_release(&a);
	nr_picture_release(&b);
}

static void masks_do_not_overlap_and_all_kinds_and_counts_occur(void **test)
{
	(void)test;
	struct nr_picture p = { 0 };
	int64_t kinds[NR_SHAPE_KINDS] = { 0 }, counts[8] = { 0 };
	for (int64_t i = 0; i < 60; i++) {
		struct nr_shapes s;
		uint8_t sum[64 * 64] = { 0 }, mask[64 * 64];
		assert_int_equal(nr_shapes_draw(&how, i, &p, &s, NULL), NR_OK);
		assert_in_range(s.count, 1, 7);
		counts[s.count]++;
		for (int32_t k = 0; k < s.count; k++) {
			assert_true(nr_rle_area(s.shape[k].mask) >= 8);
			kinds[s.shape[k].kind]++;
			nr_rle_to_mask(s.shape[k].mask, mask);
			for (int n = 0; n < 64 * 64; n++) assert_true((sum[n] = (uint8_t)(sum[n] + mask[n])) <= 1);
		}
		nr_shapes_release(&s);
	}
	for (int k = 0; k < NR_SHAPE_KINDS; k++) assert_true(kinds[k] > 10);
	for (int k = 2; k <= 7; k++) assert_true(counts[k] > 0);
	nr_picture_release(&p);
}

static void what_is_written_is_a_data_set(void **test)
{
	(void)test;
	struct nr_shapes_files f = { .how = how, .count = { 70, 5 } };
	struct nr_source *s;
	struct nr_error err = { 0 };
	struct nr_picture p = { 0 }, want = { 0 };
	struct nr_shapes drawn;
	assert_int_equal(nr_shapes_write(&f, made_path("set"), &err), NR_OK);
	setenv("NORMA_DATA", made_dir, 1);
	assert_int_equal(nr_source_open(&s, "coco:path=set", NULL, &err), NR_OK);
	assert_true(s->count[NR_TRAIN] == 70 && s->count[NR_VAL] == 5 && s->classes == NR_SHAPE_KINDS && s->h == 64);
	assert_string_equal(s->class_name[5], "triangle");
	int64_t shapes = 0, last = 0;
	for (int split = NR_TRAIN; split <= NR_VAL; split++)
		for (int64_t i = 0; i < s->count[split]; i++) {
			const struct nr_objects *o = nr_source_objects(s, (enum nr_split)split, i);
			assert_int_equal(nr_source_get(s, (enum nr_split)split, i, &p, NULL, &err), NR_OK);
			assert_int_equal(nr_shapes_draw(&how, o->image_id - 1, &want, &drawn, &err), NR_OK);
			assert_memory_equal(p.pixels, want.pixels, 64 * 64 * 3);
			assert_int_equal(o->count, drawn.count);
			for (int32_t k = 0; k < o->count; k++) {
				assert_int_equal(o->object[k].label, drawn.shape[k].kind);
				assert_true(nr_rle_iou(o->object[k].mask, drawn.shape[k].mask, false) == 1);
				assert_int_equal(o->object[k].id, ++last);
			}
			shapes += o->count;
			nr_shapes_release(&drawn);
		}
	assert_int_equal(shapes, f.shapes);
	nr_source_close(s);
	nr_picture_release(&p);
	nr_picture_release(&want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_picture_is_a_function_of_seed_and_number),
		cmocka_unit_test(masks_do_not_overlap_and_all_kinds_and_counts_occur),
		cmocka_unit_test_setup_teardown(what_is_written_is_a_data_set, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
