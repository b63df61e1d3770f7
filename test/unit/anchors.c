/* src/math/anchors.c: anchors of a pyramid, matches by the rules of two libraries, costs of boxes. */
#include "math/anchors.h"

#include "unit/values.h"

static void anchors_are_ordered_by_level_place_and_shape(void **state)
{
	(void)state;
	struct nr_anchor_grid g = {
		.levels = 2, .shapes = 2, .level = { { .h = 2, .w = 3, .dx = 8, .dy = 10 }, { .h = 1, .w = 1, .dx = 16, .dy = 16 } }
	};
	double box[4], all[14 * 4];
	for (int l = 0; l < 2; l++) nr_anchor_shapes(&g.level[l], 2, (double[]){ 1, 4 }, 1, (double[]){ 8 + 8 * l }, 0);
	assert_int_equal(nr_anchor_count(&g), 14);
	assert_int_equal(nr_anchor_count_at(&g, 0), 12);
	nr_anchor_box(&g, 2 * (3 + 2) + 1, box);                /* row 1, column 2, twice as high as wide each way */
	assert_true(box[0] == 16 - 2 && box[1] == 10 - 8 && box[2] == 16 + 2 && box[3] == 10 + 8);
	nr_anchor_box(&g, 12, box);
	assert_true(box[0] == -8 && box[1] == -8 && box[2] == 8 && box[3] == 8);
	nr_anchor_boxes(&g, all);
	for (int64_t i = 0; i < 14; i++) {
		nr_anchor_box(&g, i, box);
		assert_memory_equal(box, all + 4 * i, sizeof box);
	}
}

static void rounded_anchors_have_whole_half_sides(void **state)
{
	(void)state;
	struct nr_anchor_level l = { .h = 1 };
	nr_anchor_shapes(&l, 1, (double[]){ .5 }, 2, (double[]){ 32, 5 }, 1);
	assert_true(l.half[0][0] == 23 && l.half[0][1] == 11);  /* 22.6, 11.3 */
	assert_true(l.half[1][0] == 4 && l.half[1][1] == 2);    /* 3.5, 1.8 */
}

/* The root of 1.69 is 1.3, in single precision a bit more: 90 pixels become 117 in height, of which half is just above 58.5. */
static void rounded_anchors_are_those_of_single_precision(void **state)
{
	(void)state;
	struct nr_anchor_level l = { .h = 1 };
	nr_anchor_shapes(&l, 1, (double[]){ 1.69 }, 1, (double[]){ 90 }, 1);
	assert_true(l.half[0][0] == 35 && l.half[0][1] == 59);
	nr_anchor_shapes(&l, 1, (double[]){ 1 }, 2, (double[]){ 45, 47 }, 1);   /* 22.5 and 23.5: to the even one */
	assert_true(l.half[0][0] == 22 && l.half[0][1] == 22 && l.half[1][0] == 24 && l.half[1][1] == 24);
}

/* 12 / sqrt(.7) and 12 times the inverse of that root differ in the last bit. mmdetection has the latter: of places whose overlaps with a
 * box are equal but for rounding, that bit chooses which tie. */
static void other_anchors_have_the_last_bits_of_mmdetection(void **state)
{
	(void)state;
	struct nr_anchor_level l = { .h = 1 };
	nr_anchor_shapes(&l, 1, (double[]){ .7 }, 1, (double[]){ 12 }, 0);
	assert_true(l.half[0][0] == 0x1.caf7c0d2808e4p+2);
}

/* Four priors; the first box is equal to the first one and overlaps the second by half, the other has but weak ones, two of them tied. */
static const double priors[4][4] = { { 0, 0, 10, 10 }, { 0, 0, 10, 20 }, { 100, 0, 110, 10 }, { 110, 0, 120, 10 } };
static const double boxes[2][4] = { { 0, 0, 10, 10 }, { 105, 0, 115, 30 } };
static void match(struct nr_match_rule rule, int64_t m, int32_t *out)
{
	double top[2];
	nr_match(&rule, 4, priors[0], m, boxes[0], top, out);
}

static void between_the_thresholds_is_neither(void **state)
{
	(void)state;
	int32_t got[4];
	match((struct nr_match_rule){ .high = .6, .low = .5 }, 2, got);
	assert_true(got[0] == 0 && got[1] == NR_MATCH_BETWEEN && got[2] == NR_MATCH_BACKGROUND && got[3] == NR_MATCH_BACKGROUND);
	match((struct nr_match_rule){ .high = .5, .low = .4 }, 2, got);
	assert_true(got[1] == 0);
	match((struct nr_match_rule){ .high = .5, .low = .4, .low_quality = NR_MATCH_OWN }, 0, got);
	for (int i = 0; i < 4; i++) assert_int_equal(got[i], NR_MATCH_BACKGROUND);
}

static void all_that_tie_for_a_box_get_one(void **state)
{
	(void)state;
	int32_t got[4];
	match((struct nr_match_rule){ .high = .6, .low = .5, .low_quality = NR_MATCH_OWN }, 2, got);
	assert_true(got[0] == 0 && got[1] == NR_MATCH_BETWEEN && got[2] == 1 && got[3] == 1);
	match((struct nr_match_rule){ .high = .6, .low = .5, .low_quality = NR_MATCH_THAT, .low_iou = .3 }, 2, got);
	assert_true(got[2] == NR_MATCH_BACKGROUND && got[3] == NR_MATCH_BACKGROUND);
}

/* A prior that is the best one of a box but overlaps another more. */
static void the_libraries_differ_where_a_prior_has_two_boxes(void **state)
{
	(void)state;
	const double prior[4] = { 0, 0, 10, 10 }, two[2][4] = { { 0, 0, 10, 9 }, { 0, 0, 10, 5 } };
	double top[2];
	int32_t own, that;
	nr_match(&(struct nr_match_rule){ .high = .95, .low = .3, .low_quality = NR_MATCH_OWN }, 1, prior, 2, two[0], top, &own);
	nr_match(&(struct nr_match_rule){ .high = .95, .low = .3, .low_quality = NR_MATCH_THAT }, 1, prior, 2, two[0], top, &that);
	assert_int_equal(own, 0);
	assert_int_equal(that, 1);
}

static void a_box_that_is_met_costs_nothing(void **state)
{
	(void)state;
	const double prior[4] = { 2, 3, 12, 23 };
	const real truth[4] = { 4, 5, 24, 25 };
	for (int kind = NR_BOX_L1; kind <= NR_BOX_GIOU; kind++) {
		const struct nr_box_cost cost = { .kind = kind, .std = { .1, .1, .2, .2 }, .limit = 4 };
		real x[4] = { (real)(.7 / .1), (real)(.1 / .1), (real)(log(2.) / .2), 0 };
		assert_true(nr_box_cost(&cost, prior, truth, x, NULL) < 1e-5);
		x[2] = 0;
		assert_true(nr_box_cost(&cost, prior, truth, x, NULL) > .1);
	}
}

static void boxes_apart_still_have_a_slope_towards_each_other(void **state)
{
	(void)state;
	const struct nr_box_cost cost = { .kind = NR_BOX_GIOU, .std = { 1, 1, 1, 1 }, .limit = 4 };
	const double prior[4] = { 0, 0, 10, 10 };
	const real truth[4] = { 30, 0, 40, 10 }, x[4] = { 0 };
	double d[4];
	assert_true(nr_box_cost(&cost, prior, truth, x, d) > 1);
	assert_true(d[0] < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anchors_are_ordered_by_level_place_and_shape), cmocka_unit_test(rounded_anchors_have_whole_half_sides),
		cmocka_unit_test(rounded_anchors_are_those_of_single_precision),
		cmocka_unit_test(other_anchors_have_the_last_bits_of_mmdetection),
		cmocka_unit_test(between_the_thresholds_is_neither), cmocka_unit_test(all_that_tie_for_a_box_get_one),
		cmocka_unit_test(the_libraries_differ_where_a_prior_has_two_boxes), cmocka_unit_test(a_box_that_is_met_costs_nothing),
		cmocka_unit_test(boxes_apart_still_have_a_slope_towards_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
