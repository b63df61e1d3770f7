/* analysis/coco_eval.c: rules of COCO's average precision on cases that one can follow; norma-golden and test/peers/coco_scores.py compare
 * with the reference. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "analysis/coco_eval.h"

#define NEAR 1e-12

static struct nr_coco_result score(const struct nr_objects *o, int64_t images, const struct nr_detection *d, int64_t n, int32_t classes)
{
	const struct nr_objects *image[8];
	struct nr_coco_result r;
	for (int64_t i = 0; i < images; i++) image[i] = &o[i];
	assert_int_equal(nr_coco_eval(image, images, d, n, classes, false, &r, NULL), NR_OK);
	return r;
}

static struct nr_object square(double x, double side, int64_t id) { return (struct nr_object){ .xywh = { x, 0, side, side },
	.area = side * side, .id = id }; }
static struct nr_detection found(int64_t image, double x, double side, double s)
{
	return (struct nr_detection){ .image_id = image, .xywh = { x, 0, side, side }, .score = s };
}

static void what_is_found_exactly_scores_one(void **test)
{
	(void)test;
	struct nr_object o[] = { square(0, 10, 1), square(20, 50, 2), square(100, 200, 3) };
	const struct nr_objects image = { .image_id = 1, .h = 300, .w = 300, .count = 3, .object = o };
	const struct nr_detection d[] = { found(1, 0, 10, .9), found(1, 20, 50, .8), found(1, 100, 200, .7) };
	struct nr_coco_result r = score(&image, 1, d, 3, 2);
	for (int i = 0; i < NR_COCO_STATS; i++) {
		const double want = i == NR_AR1 ? 1.0 / 3 : 1;
		assert_true(fabs(r.stat[i] - want) < NEAR);
	}
	assert_true(r.class[0].truths == 3 && r.class[0].found == 3 && r.class[1].ap == -1);
	assert_true(r.precision[1] == -1 && fabs(r.precision[0] - 1) < NEAR);
	nr_coco_result_release(&r);
}

/* One of two objects is found after a false alarm: precision 1/2 up to recall 1/2, read at 51 of 101 points. */
static void precision_is_read_at_recalls(void **test)
{
	(void)test;
	struct nr_object o[] = { square(0, 100, 1), square(200, 100, 2) };
	const struct nr_objects image = { .image_id = 1, .h = 500, .w = 500, .count = 2, .object = o };
	const struct nr_detection d[] = { found(1, 0, 100, .5), found(1, 400, 100, .9) };
	struct nr_coco_result r = score(&image, 1, d, 2, 1);
	assert_true(fabs(r.stat[NR_AP] - .5 * 51 / 101) < NEAR);
	assert_true(r.stat[NR_AR1] == 0 && r.stat[NR_AR10] == .5);
	nr_coco_result_release(&r);
}

static void a_second_detection_of_an_object_is_a_false_alarm_but_not_of_a_crowd(void **test)
{
	(void)test;
	struct nr_object o[] = { square(0, 100, 1), square(200, 100, 2) };
	const struct nr_objects image = { .image_id = 1, .h = 500, .w = 500, .count = 2, .object = o };
	const struct nr_detection d[] = { found(1, 0, 100, .9), found(1, 1, 100, .8), found(1, 200, 50, .7), found(1, 250, 50, .6),
		found(1, 200, 100, .5) };
	o[1].crowd = true;                              /* its parts are neither found nor false */
	struct nr_coco_result r = score(&image, 1, d, 5, 1);
	assert_true(fabs(r.stat[NR_AP] - 1) < NEAR && r.class[0].truths == 1 && r.class[0].crowds == 1);
	nr_coco_result_release(&r);
	o[1].crowd = false;
	r = score(&image, 1, d, 5, 1);
	assert_true(fabs(r.stat[NR_AP] - (51 + 50 * .4) / 101) < NEAR);
	nr_coco_result_release(&r);
}

/* The area of the data decides, both ends of a range belong to it, and what is found outside of a range is not held against it. */
static void sizes_are_ranges_of_areas(void **test)
{
	(void)test;
	struct nr_object o[] = { square(0, 32, 1), square(100, 20, 2) };
	o[1].area = 5000;
	const struct nr_objects image = { .image_id = 1, .h = 500, .w = 500, .count = 2, .object = o };
	const struct nr_detection d[] = { found(1, 0, 32, .9), found(1, 300, 100, .99) };
	struct nr_coco_result r = score(&image, 1, d, 2, 1);
	assert_true(fabs(r.stat[NR_AP_SMALL] - 1) < NEAR && fabs(r.stat[NR_AR_MEDIUM] - .5) < NEAR && r.stat[NR_AP_LARGE] == -1);
	assert_true(fabs(r.stat[NR_AP_MEDIUM] - 51.0 / 101) < NEAR);
	nr_coco_result_release(&r);
}

static void a_picture_counts_its_hundred_best_detections_of_a_class(void **test)
{
	(void)test;
	struct nr_object o = square(0, 50, 1);
	const struct nr_objects image = { .image_id = 1, .h = 500, .w = 500, .count = 1, .object = &o };
	struct nr_detection d[101];
	for (int i = 0; i < 100; i++) d[i] = found(1, 200, 50, .5 + i * .001);
	d[100] = found(1, 0, 50, .4);
	struct nr_coco_result r = score(&image, 1, d, 101, 1);
	assert_true(r.stat[NR_AR100] == 0 && r.class[0].found == 101);
	nr_coco_result_release(&r);
	r = score(&image, 1, d + 1, 100, 1);
	assert_true(r.stat[NR_AR100] == 1 && fabs(r.stat[NR_AP] - .01) < NEAR);
	nr_coco_result_release(&r);
}

static void pictures_come_in_the_order_of_their_ids_and_threads_do_not_matter(void **test)
{
	(void)test;
	struct nr_object o[6];
	struct nr_objects image[3];
	struct nr_detection d[60];
	for (int i = 0; i < 6; i++) o[i] = square(50 * (i % 2), 10 + i, i + 1), o[i].label = i % 2;
	for (int i = 0; i < 3; i++) image[i] = (struct nr_objects){ .image_id = 3 - i, .h = 500, .w = 500, .count = 2,
		.object = o + 2 * i };
	for (int i = 0; i < 60; i++) d[i] = found(1 + i % 3, 50 * (i % 2) + i % 7, 10 + i % 5, (i * 7 % 4) / 4.0), d[i].label = i % 2;
	const int before = omp_get_max_threads();
	omp_set_num_threads(1);
	struct nr_coco_result one = score(image, 3, d, 60, 2);
	omp_set_num_threads(3);
	const struct nr_objects other[3] = { image[2], image[0], image[1] };
	struct nr_coco_result two = score(other, 3, d, 60, 2);
	omp_set_num_threads(before);
	assert_memory_equal(one.stat, two.stat, sizeof one.stat);
	assert_memory_equal(one.precision, two.precision, 2 * NR_COCO_IOUS * NR_COCO_RECALLS * sizeof(double));
	assert_true(one.stat[NR_AP] > 0 && one.stat[NR_AP] < 1);
	nr_coco_result_release(&one);
	nr_coco_result_release(&two);
}

static void refuses(struct nr_objects *o, int64_t images, struct nr_detection d, bool masks, const char *message)
{
	const struct nr_objects *image[2] = { o, o + 1 };
	struct nr_coco_result r;
	struct nr_error err = { 0 };
	assert_int_not_equal(nr_coco_eval(image, images, &d, 1, 1, masks, &r, &err), NR_OK);
	if (!strstr(err.detail, message)) fail_msg("'%s' is not in '%s'", message, err.detail);
}

static void what_does_not_fit_is_refused(void **test)
{
	(void)test;
	struct nr_object o = square(0, 10, 1);
	struct nr_objects image[2] = { { .image_id = 1, .h = 9, .w = 9, .count = 1, .object = &o }, { .image_id = 1, .h = 9, .w = 9 } };
	refuses(image, 2, found(1, 0, 1, 1), false, "two pictures 1");
	refuses(image, 1, found(2, 0, 1, 1), false, "no such picture");
	refuses(image, 1, found(1, 0, 1, (double)NAN), false, "score is not finite");
	refuses(image, 1, found(1, 0, 1, 1), true, "object 1 of picture 1 has no mask");
	o.label = 1;
	refuses(image, 1, found(1, 0, 1, 1), false, "has no class");
}

/* Run with sanitizers, this also finds pointers into no memory. */
static void pictures_without_objects_and_without_detections_count(void **test)
{
	(void)test;
	struct nr_object o[] = { square(0, 100, 1) };
	const struct nr_objects image[] = { { .image_id = 1, .h = 500, .w = 500, .count = 1, .object = o },
		{ .image_id = 2, .h = 500, .w = 500 } };
	const struct nr_detection d[] = { found(2, 0, 100, .9) };
	struct nr_coco_result none = score(image, 2, NULL, 0, 1), false_alarm = score(image, 2, d, 1, 1);
	struct nr_coco_result empty = score(image + 1, 1, d, 1, 1);
	assert_true(none.stat[NR_AP] == 0 && none.class[0].truths == 1 && none.class[0].found == 0);
	assert_true(false_alarm.stat[NR_AP] == 0 && false_alarm.class[0].found == 1);
	assert_true(empty.stat[NR_AP] == -1 && empty.class[0].truths == 0);
	nr_coco_result_release(&none);
	nr_coco_result_release(&false_alarm);
	nr_coco_result_release(&empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_found_exactly_scores_one),
		cmocka_unit_test(precision_is_read_at_recalls),
		cmocka_unit_test(a_second_detection_of_an_object_is_a_false_alarm_but_not_of_a_crowd),
		cmocka_unit_test(sizes_are_ranges_of_areas),
		cmocka_unit_test(a_picture_counts_its_hundred_best_detections_of_a_class),
		cmocka_unit_test(pictures_come_in_the_order_of_their_ids_and_threads_do_not_matter),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(pictures_without_objects_and_without_detections_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
