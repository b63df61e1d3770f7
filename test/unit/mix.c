/* src/math/mix.c: boxes of CutMix, as timm 1.0 has them: odd sizes have one row and column more after the centre. */
#include "math/mix.h"
#include "unit/rig.h"

static void box_is(int64_t h, int64_t w, double lam, int64_t cy, int64_t cx, struct nr_box want)
{
	const struct nr_box got = nr_cutmix_box(h, w, lam, cy, cx);
	if (got.y0 != want.y0 || got.y1 != want.y1 || got.x0 != want.x0 || got.x1 != want.x1)
		fail_msg("%lldx%lld: rows %d to %d, columns %d to %d", (long long)h, (long long)w, got.y0, got.y1, got.x0, got.x1);
}

static void boxes_are_rounded_as_in_timm(void **state)
{
	(void)state;
	box_is(224, 224, 0.75, 112, 112, (struct nr_box){ 56, 168, 56, 168 });          /* a side of 112 */
	box_is(10, 10, 0.75, 5, 5, (struct nr_box){ 3, 8, 3, 8 });                      /* 5: two before, three after */
	box_is(7, 9, 0.75, 3, 4, (struct nr_box){ 2, 5, 2, 6 });                        /* 3 and 4 */
	box_is(32, 32, 0.96, 0, 31, (struct nr_box){ 0, 3, 28, 32 });                   /* 6, cut at the border */
	box_is(8, 8, 1, 4, 4, (struct nr_box){ 4, 4, 4, 4 });                           /* nothing */
	box_is(8, 8, 0, 4, 4, (struct nr_box){ 0, 8, 0, 8 });                           /* everything */
}

static void lambda_is_the_share_that_stays(void **state)
{
	(void)state;
	assert_true(nr_cutmix_lam(10, 10, nr_cutmix_box(10, 10, 0.75, 5, 5)) == 0.75);
	assert_true(nr_cutmix_lam(32, 32, nr_cutmix_box(32, 32, 0.96, 0, 31)) == 1 - 12. / 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_are_rounded_as_in_timm), cmocka_unit_test(lambda_is_the_share_that_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
