/* picture/resize.c and math/pixel.h: Pillow's bytes for every filter, size, box and instruction set. */
#include "picture/resize.h"
#include "unit/pictures.h"
#include "unit/values.h"

static const struct one { int32_t h, w, channels; int kind; int32_t H, W; enum nr_filter filter; double box[4]; uint64_t hash; } cases[] = {
#define RESIZE(h, w, c, kind, H, W, filter, x0, y0, x1, y1, hash) { h, w, c, kind, H, W, NR_FILTER_##filter, { x0, y0, x1, y1 }, hash },
#include "data/pictures/resize.def"
#undef RESIZE
};
enum { CASES = sizeof cases / sizeof *cases };

static struct nr_picture from, to, part;
static struct nr_resize_scratch scratch;
static struct nr_error err;

static int teardown(void **state)
{
	(void)state;
	nr_picture_release(&from);
	nr_picture_release(&to);
	nr_picture_release(&part);
	nr_resize_scratch_release(&scratch);
	err = (struct nr_error){ 0 };
	return nr_isa_select("auto", NULL);
}

static void all_bytes_are_pillows_on_each_instruction_set(void **state)
{
	(void)state;
	for (int s = isa_next(-1); s >= 0; s = isa_next(s)) {
		for (int i = 0; i < CASES; i++) {
			const struct one *c = &cases[i];
			make_picture(&from, c->h, c->w, c->channels, c->kind);
			assert_int_equal(nr_resize(&from, c->box, c->H, c->W, c->filter, &to, &scratch, &err), NR_OK);
			assert_int_equal(to.h, c->H);
			assert_int_equal(to.w, c->W);
			if (picture_hash(&to) != c->hash)
				fail_msg("%s: %d x %d to %d x %d with filter %d differs (row %d)", nr_isa_name((enum nr_isa)s), (int)c->w,
					(int)c->h, (int)c->W, (int)c->H, (int)c->filter, i + 2);
		}
	}
}

static void no_box_means_all_of_it(void **state)
{
	(void)state;
	const double all[4] = { 0, 0, 30, 40 };
	make_picture(&from, 40, 30, 3, 0);
	assert_int_equal(nr_resize(&from, all, 17, 50, NR_FILTER_BICUBIC, &to, &scratch, &err), NR_OK);
	assert_int_equal(nr_resize(&from, NULL, 17, 50, NR_FILTER_BICUBIC, &part, &scratch, &err), NR_OK);
	assert_memory_equal(to.pixels, part.pixels, 17 * 50 * 3);
}

static void a_part_is_cut_from_the_whole(void **state)
{
	(void)state;
	static const struct { int32_t H, W; struct nr_region p; } cut[] = {
		{ 20, 20, { 3, 4, 9, 10 } },
		{ 90, 20, { 30, 0, 50, 20 } },
		{ 11, 70, { 0, 69, 11, 1 } },
		{ 40, 33, { 7, 5, 20, 20 } },
		{ 40, 60, { 1, 2, 30, 40 } },
		{ 7, 33, { 1, 2, 3, 30 } },
	};
	for (int channels = 1; channels <= 3; channels += 2)
		for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
			for (int f = 0; f <= NR_FILTER_LANCZOS; f++) {
				const struct nr_region p = cut[i].p;
				make_picture(&from, 40, 33, channels, 0);
				assert_int_equal(nr_resize(&from, NULL, cut[i].H, cut[i].W, (enum nr_filter)f, &to, &scratch, &err), NR_OK);
				assert_int_equal(nr_resize_part(nr_pixels_of(&from), NULL, cut[i].H, cut[i].W, p, (enum nr_filter)f, &part,
							 &scratch, &err),
					NR_OK);
				for (int32_t y = 0; y < p.h; y++)
					assert_memory_equal(part.pixels + y * p.w * channels,
						to.pixels + ((p.y + y) * to.w + p.x) * channels, (size_t)(p.w * channels));
			}
}

/* The view of a crop gives what its copy gives: nothing outside of it is looked at. */
static void a_view_is_like_its_copy(void **state)
{
	(void)state;
	for (int channels = 1; channels <= 3; channels += 2)
		for (int f = 0; f <= NR_FILTER_LANCZOS; f++) {
			struct nr_picture copy = { 0 };
			make_picture(&from, 50, 41, channels, 0);
			const struct nr_pixels v = nr_pixels_part(nr_pixels_of(&from), 13, 8, 37, 33);
			assert_int_equal(nr_picture_resize(&copy, v.h, v.w, channels, &err), NR_OK);
			for (int32_t y = 0; y < v.h; y++)
				memcpy(copy.pixels + y * v.w * channels, v.p + y * v.stride, (size_t)(v.w * channels));
			assert_int_equal(nr_resize(&copy, NULL, 16, 16, (enum nr_filter)f, &to, &scratch, &err), NR_OK);
			assert_int_equal(nr_resize_part(v, NULL, 16, 16, (struct nr_region){ 0, 0, 16, 16 }, (enum nr_filter)f, &part,
						 &scratch, &err),
				NR_OK);
			assert_true(picture_hash(&to) == picture_hash(&part));
			nr_picture_release(&copy);
		}
}

static void impossible_requests_are_refused(void **state)
{
	(void)state;
	static const double boxes[][4] = { { 0, 0, 11, 10 }, { -1, 0, 5, 5 }, { 3, 0, 3, 5 }, { 0, 6, 5, 5 }, { 0, 0, NAN, 5 } };
	make_picture(&from, 10, 10, 3, 0);
	for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
		err = (struct nr_error){ 0 };
		assert_int_equal(nr_resize(&from, boxes[i], 5, 5, NR_FILTER_BOX, &to, &scratch, &err), NR_EVALUE);
	}
	assert_int_equal(nr_resize(&from, NULL, 0, 5, NR_FILTER_BOX, &to, &scratch, NULL), NR_EVALUE);
	assert_int_equal(nr_resize(&from, NULL, 5, 5, (enum nr_filter)9, &to, &scratch, NULL), NR_EVALUE);
	assert_int_equal(nr_resize(&from, NULL, 1 << 16, 1 << 16, NR_FILTER_BOX, &to, &scratch, NULL), NR_ELIMIT);
	assert_int_equal(nr_resize(&from, NULL, 5, 5, NR_FILTER_BOX, &from, &scratch, NULL), NR_EVALUE);
	assert_int_equal(nr_resize(&to, NULL, 5, 5, NR_FILTER_BOX, &part, &scratch, NULL), NR_EVALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_bytes_are_pillows_on_each_instruction_set, teardown),
		cmocka_unit_test_teardown(no_box_means_all_of_it, teardown),
		cmocka_unit_test_teardown(a_part_is_cut_from_the_whole, teardown),
		cmocka_unit_test_teardown(a_view_is_like_its_copy, teardown),
		cmocka_unit_test_teardown(impossible_requests_are_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
