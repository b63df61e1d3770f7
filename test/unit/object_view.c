/* src/data/object_view.c: pictures with objects in the corner of a square; boxes and masks go along. */
#include "data/object_view.h"

#include <stdlib.h>

#include "picture/rle.h"
#include "unit/values.h"

/* A source of one grey picture of 4 x 8 with a rectangle of 2 x 4 at (2,1), a crowd and an empty box. */
static uint8_t mask[4 * 8];
static struct nr_object object[3] = { { .xywh = { 2, 1, 4, 2 }, .label = 3, .id = 1 }, { .xywh = { 0, 0, 8, 4 }, .crowd = true },
	{ .xywh = { 9, 0, 3, 3 } } };
static struct nr_objects objects = { .h = 4, .w = 8, .count = 3, .object = object };
static const struct nr_objects *objects_of(const struct nr_source *s, enum nr_split split, int64_t i)
{
	(void)s, (void)split, (void)i;
	return &objects;
}
static const struct nr_dataset set = { .name = "one", .objects = objects_of };

struct made { float image[16 * 16]; void *extra; struct nr_object_sample *s; };
static struct made make(struct nr_object_view *v, const char *sides, double flip)
{
	struct made m = { .extra = NULL };
	struct nr_error err = { 0 };
	struct nr_augment a;
	struct nr_picture p = { 0 };
	struct nr_source source = { .of = &set, .count = { 1 } };
	struct nr_augment_scratch *scratch;
	nr_option_defaults(nr_augment_options, &a);
	a.size = 16, a.channels = 1, a.normalize = false, a.flip = flip, a.filter = NR_FILTER_NEAREST;
	assert_int_equal(nr_object_view_init(v, &a, NULL, sides, &err), 0);
	v->chance = true, v->masks = true, v->objects = 2;
	assert_int_equal(nr_picture_resize(&p, 4, 8, 1, &err), 0);
	for (int i = 0; i < 32; i++) {
		mask[i] = i / 8 >= 1 && i / 8 < 3 && i % 8 >= 2 && i % 8 < 6;
		p.pixels[i] = mask[i] ? 255 : 0;
	}
	object[0].mask = nr_rle_of_mask(4, 8, mask, &err);
	assert_non_null(object[0].mask);
	assert_int_equal(nr_augment_scratch_make(&scratch, &err), 0);
	m.extra = calloc(1, nr_object_bytes(v));
	m.s = m.extra;
	const struct nr_draw_of of = { .source = &source, .seed = 1, .scratch = scratch };
	assert_int_equal(nr_object_view_make(v, &p, &of, m.image, m.extra, &err), 0);
	nr_augment_scratch_free(scratch);
	nr_picture_release(&p);
	nr_rle_free((struct nr_rle *)(void *)(uintptr_t)object[0].mask);
	return m;
}

/* The pixels of the mask are those of the white rectangle. */
static void check_mask(const struct nr_object_view *v, const struct made *m)
{
	const uint8_t *bits = nr_object_masks(v, m->extra);
	for (int i = 0; i < 256; i++) assert_int_equal(bits[i / 8] >> i % 8 & 1, m->image[i] > .5f);
}

static void the_longer_side_fills_the_square(void **state)
{
	(void)state;
	struct nr_object_view v;
	struct made m = make(&v, "", 0);
	const float *box = nr_object_boxes(&v, m.extra);
	const int32_t *label = nr_object_labels(&v, m.extra);
	assert_true(m.s->h == 8 && m.s->w == 16 && m.s->y == .5f && m.s->x == .5f);
	assert_int_equal(m.s->count, 1);                        /* neither the crowd nor what lies outside */
	assert_true(box[0] == 4 && box[1] == 2 && box[2] == 12 && box[3] == 6);
	assert_true(label[0] == 3 && label[1] == -1);
	assert_true(m.image[8 * 16] == 0 && m.image[0] == -1);  /* padding is 0, black is -1 */
	check_mask(&v, &m);
	free(m.extra);
}

static void the_shorter_side_is_as_wanted_if_the_longer_one_fits(void **state)
{
	(void)state;
	struct nr_object_view v;
	struct made m = make(&v, "6", 0);
	assert_true(m.s->h == 6 && m.s->w == 12);
	free(m.extra);
	m = make(&v, "12", 0);
	assert_true(m.s->h == 8 && m.s->w == 16);
	free(m.extra);
}

static void mirrored_boxes_and_masks_stay_with_the_picture(void **state)
{
	(void)state;
	struct nr_object_view v;
	object[0].xywh[0] = 1, object[0].xywh[2] = 5;           /* no longer in the middle */
	struct made m = make(&v, "", 1);
	const float *box = nr_object_boxes(&v, m.extra);
	assert_true(box[0] == 4 && box[2] == 14);
	check_mask(&v, &m);
	object[0].xywh[0] = 2, object[0].xywh[2] = 4;
	free(m.extra);
}

static void sides_that_do_not_fit_are_an_error(void **state)
{
	static const char *const bad[] = { "17", "8,9", "x", "0" };
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct nr_object_view v;
		struct nr_error err = { 0 };
		struct nr_augment a;
		nr_option_defaults(nr_augment_options, &a);
		a.size = 16, a.channels = 1, a.normalize = false;
		assert_int_equal(nr_object_view_init(&v, &a, NULL, bad[i], &err), NR_EVALUE);
		assert_non_null(strstr(err.hint, "--short-sides"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longer_side_fills_the_square), cmocka_unit_test(the_shorter_side_is_as_wanted_if_the_longer_one_fits),
		cmocka_unit_test(mirrored_boxes_and_masks_stay_with_the_picture), cmocka_unit_test(sides_that_do_not_fit_are_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
