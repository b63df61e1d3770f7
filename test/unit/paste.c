/* src/math/paste.c: masks of boxes become masks of pictures. */
#include "math/paste.h"

#include "unit/values.h"

enum { M = 4, H = 12, W = 16 };

static void full_maps_fill_their_boxes(void **state)
{
	(void)state;
	real map[M * M];
	const real box[4] = { 3, 2, 11, 8 };
	uint8_t mask[H * W];
	for (int i = 0; i < M * M; i++) map[i] = 1;
	nr_mask_paste(NR_PASTE_CENTRES, M, map, box, H, W, mask);
	for (int i = 0; i < H * W; i++) assert_int_equal(mask[i], i % W >= 3 && i % W < 11 && i / W >= 2 && i / W < 8);
	nr_mask_paste(NR_PASTE_PADDED, M, map, box, H, W, mask);
	for (int i = 0; i < H * W; i++)
		if (i % W >= 4 && i % W < 10 && i / W >= 3 && i / W < 7) assert_int_equal(mask[i], 1);
		else if (i % W < 2 || i % W > 12 || i / W < 1 || i / W > 9) assert_int_equal(mask[i], 0);
}

static void what_lies_outside_the_picture_is_cut_off(void **state)
{
	(void)state;
	real map[M * M];
	const real over[4] = { -5, -4, 40, 30 }, away[4] = { 30, 30, 40, 40 }, empty[4] = { 5, 5, 5, 9 };
	uint8_t mask[H * W];
	for (int i = 0; i < M * M; i++) map[i] = 1;
	for (int how = NR_PASTE_PADDED; how <= NR_PASTE_CENTRES; how++) {
		nr_mask_paste((enum nr_paste)how, M, map, over, H, W, mask);
		for (int i = 0; i < H * W; i++) assert_int_equal(mask[i], 1);
		nr_mask_paste((enum nr_paste)how, M, map, away, H, W, mask);
		for (int i = 0; i < H * W; i++) assert_int_equal(mask[i], 0);
		nr_mask_paste((enum nr_paste)how, M, map, empty, H, W, mask);
		for (int i = 0; i < H * W; i++) assert_int_equal(mask[i], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(full_maps_fill_their_boxes),
		cmocka_unit_test(what_lies_outside_the_picture_is_cut_off) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
