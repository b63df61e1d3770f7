/* src/tasks/{segment_view,segment_sheet}.c: squares of pictures and of label maps go together; what is drawn of an evaluation. */
#include "unit/datasets.h"
#include "unit/values.h"

#include "picture/augment.h"
#include "tasks/segment_sheet.h"
#include "tasks/segment_view.h"

enum { H = 30, W = 40, SIZE = 16 };

/* A picture whose classes are told by their grey: so the square says what its map must be. */
static uint8_t class_at(int64_t y, int64_t x) { return (uint8_t)((y / 10 * 4 + x / 10) % 5); }
static int get_map(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_error *err)
{
	(void)s, (void)split, (void)i;
	if (nr_picture_resize(p, H, W, 1, err)) return err->code;
	for (int64_t y = 0; y < H; y++)
		for (int64_t x = 0; x < W; x++) p->pixels[y * W + x] = class_at(y, x);
	return 0;
}
static const struct nr_dataset set = { .name = "made", .map = get_map };
static struct nr_source source = { .of = &set, .classes = 5, .channels = 1, .count = { 3 }, .mean = { .5F }, .std = { .25F } };

static struct nr_picture picture(void)
{
	struct nr_picture p = { 0 };
	assert_int_equal(nr_picture_resize(&p, H, W, 1, NULL), 0);
	for (int64_t y = 0; y < H; y++)
		for (int64_t x = 0; x < W; x++) p.pixels[y * W + x] = (uint8_t)(50 * class_at(y, x));
	return p;
}

static struct nr_segment_maker maker_of(double flip)
{
	struct nr_augment a;
	nr_option_defaults(nr_augment_options, &a);
	a.size = SIZE;
	a.flip = flip;
	return nr_segment_maker_of(&a, &source);
}

static void make(const struct nr_segment_maker *m, int64_t number, float *image, uint8_t *map)
{
	struct nr_augment_scratch *scratch;
	struct nr_picture p = picture();
	struct nr_error err = { 0 };
	char line[1200];
	assert_int_equal(nr_augment_scratch_make(&scratch, NULL), 0);
	const struct nr_draw_of of = { .source = &source, .sample = number % 3, .number = number, .epoch = number / 3, .seed = 7,
		.scratch = scratch };
	if (nr_segment_make(m, &p, &of, image, map, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	nr_augment_scratch_free(scratch);
	nr_picture_release(&p);
}

static uint8_t class_of(float v) { return (uint8_t)((v * .25F + .5F) * 255 / 50 + .5F); }

static void a_square_and_its_map_are_cut_and_mirrored_together(void **state)
{
	(void)state;
	float image[SIZE * SIZE];
	uint8_t map[SIZE * SIZE], first[SIZE * SIZE];
	bool moved = false;
	for (int mirrored = 0; mirrored < 2; mirrored++) {
		const struct nr_segment_maker m = maker_of(mirrored);
		for (int n = 0; n < 30; n++) {
			make(&m, n, image, map);
			for (int i = 0; i < SIZE * SIZE; i++) assert_int_equal(map[i], class_of(image[i]));
			if (n) moved |= memcmp(first, map, sizeof map) != 0;
			else memcpy(first, map, sizeof map);
		}
	}
	assert_true(moved);
}

static void the_same_draw_is_the_same_square(void **state)
{
	(void)state;
	float image[2][SIZE * SIZE];
	uint8_t map[2][SIZE * SIZE];
	struct nr_segment_maker m = maker_of(.5);
	m.zoom_min = .5, m.zoom_max = 2, m.most = .5;
	for (int n = 0; n < 10; n++) {
		make(&m, n, image[0], map[0]), make(&m, n, image[1], map[1]);
		assert_memory_equal(image[0], image[1], sizeof image[0]);
		assert_memory_equal(map[0], map[1], sizeof map[0]);
	}
}

static void what_a_square_lacks_is_the_mean_and_does_not_count(void **state)
{
	(void)state;
	float image[SIZE * SIZE];
	uint8_t map[SIZE * SIZE];
	for (int mirrored = 0; mirrored < 2; mirrored++) {
		struct nr_segment_maker m = maker_of(mirrored);
		m.side = 9;                                     /* 9 x 12 pixels */
		make(&m, 1, image, map);
		for (int y = 0; y < SIZE; y++)
			for (int x = 0; x < SIZE; x++) {
				const bool there = y < 9 && (mirrored ? SIZE - 1 - x : x) < 12;
				assert_int_equal(map[y * SIZE + x] != NR_NO_CLASS, there);
				if (!there) assert_true(image[y * SIZE + x] == 0);
			}
	}
}

static void a_square_with_too_much_of_one_class_is_cut_anew(void **state)
{
	(void)state;
	float image[SIZE * SIZE];
	uint8_t map[SIZE * SIZE];
	int dull[2] = { 0, 0 };
	struct nr_segment_maker m = maker_of(0);
	m.zoom_min = m.zoom_max = 1.5;                          /* a class has 15 x 15 pixels, a square 16 x 16 */
	for (int strict = 0; strict < 2; strict++) {
		m.most = strict ? .5 : 1;
		for (int n = 0; n < 60; n++) {
			int64_t count[5] = { 0 }, most = 0;
			make(&m, n, image, map);
			for (int i = 0; i < SIZE * SIZE; i++) count[map[i]]++;
			for (int k = 0; k < 5; k++) most = count[k] > most ? count[k] : most;
			dull[strict] += most > SIZE * SIZE / 2;
		}
	}
	assert_true(dull[0] > 10);
	assert_true(dull[1] < dull[0] / 4);
}

/* ---- what is drawn --------------------------------------------------------------------------------------------------------------- */

static void a_row_has_the_picture_its_truth_and_the_prediction(void **state)
{
	(void)state;
	static const uint8_t colour[5][3] = { { 255, 0, 0 }, { 0, 255, 0 }, { 0, 0, 255 }, { 9, 9, 9 }, { 0, 0, 0 } };
	struct nr_segment_sheet s = { 0 };
	struct nr_picture p = picture(), truth = { 0 }, map = { 0 }, drawn = { 0 };
	assert_int_equal(get_map(&source, NR_TRAIN, 0, &truth, NULL), 0);
	assert_int_equal(nr_picture_resize(&map, H, W, 1, NULL), 0);
	memset(map.pixels, NR_NO_CLASS, H * W);
	nr_segment_sheet_begin(&s, 5, colour);
	for (int64_t i = 0; i < 2; i++) assert_int_equal(nr_segment_sheet_see(&s, i, &p, &truth, &map, NULL), 0);
	assert_int_equal(nr_segment_sheet_draw(&s, made_path("sheet.png"), NULL), 0);
	assert_int_equal(nr_picture_read(&drawn, made_path("sheet.png"), 3, NULL), 0);
	assert_int_equal(drawn.h, 2 * (H + 2) + 2);
	assert_int_equal(drawn.w, 3 * (W + 2) + 2);
	const uint8_t *row = drawn.pixels + (size_t)(2 * drawn.w) * 3;
	for (int k = 0; k < 3; k++) assert_int_equal(row[2 * 3 + k], p.pixels[0]);
	assert_true(row[(2 + W + 2) * 3] > 150);                /* class 0 is red */
	for (int k = 0; k < 3; k++) assert_int_equal(row[(2 + 2 * (W + 2)) * 3 + k], p.pixels[0]);
	nr_segment_sheet_begin(&s, 5, colour);
	remove(made_path("sheet.png"));
	assert_int_equal(nr_segment_sheet_draw(&s, made_path("sheet.png"), NULL), 0);
	assert_int_not_equal(access(made_path("sheet.png"), F_OK), 0);  /* of nothing there is no picture */
	nr_segment_sheet_release(&s);
	nr_picture_release(&p);
	nr_picture_release(&truth);
	nr_picture_release(&map);
	nr_picture_release(&drawn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_square_and_its_map_are_cut_and_mirrored_together), cmocka_unit_test(the_same_draw_is_the_same_square),
		cmocka_unit_test(what_a_square_lacks_is_the_mean_and_does_not_count),
			cmocka_unit_test(a_square_with_too_much_of_one_class_is_cut_anew),
		cmocka_unit_test(a_row_has_the_picture_its_truth_and_the_prediction),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
