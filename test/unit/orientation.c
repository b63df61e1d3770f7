/* src/picture/orientation.c, and what data sets make of pictures that were taken with the camera turned: boxes and label maps are of the
 * upright picture, unless their size tells that they are of the pixels as the file stores them. */
#include "unit/datasets.h"

#include <zlib.h>

#include "picture/picture.h"

enum { H = 2, W = 4 };                      /* as stored */

/* The formula's picture, with a chunk that says how the camera was held; 0: without. */
static void held_picture(const char *path, int h, int w, int orientation)
{
	uint8_t chunk[38] = { 0, 0, 0, 26, 'e', 'X', 'I', 'f', 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0 };
	chunk[26] = (uint8_t)orientation;
	size_t size;
	made_picture(path, 1, h, w, 3);
	uint8_t *all = made_read(path, &size), *longer = malloc(size + sizeof chunk);
	const uint32_t crc = (uint32_t)crc32(0, chunk + 4, 30);
	for (int i = 0; i < 4; i++) chunk[34 + i] = (uint8_t)(crc >> (24 - 8 * i));
	memcpy(longer, all, 33);
	memcpy(longer + 33, chunk, sizeof chunk);
	memcpy(longer + 33 + sizeof chunk, all + 33, size - 33);
	if (orientation) made_file(path, longer, size + sizeof chunk);
	free(longer);
	free(all);
}

static struct nr_picture read_one(const char *path)
{
	struct nr_picture p = { 0 };
	assert_int_equal(nr_picture_read(&p, path, 3, NULL), 0);
	return p;
}

static bool is_stored(const struct nr_picture *p)
{
	bool same = p->h == H && p->w == W;
	for (int y = 0; y < H && same; y++)
		for (int x = 0; x < W; x++) same &= p->pixels[3 * (y * W + x)] == made_pixel(1, y, x, 0);
	return same;
}

/* Row y is column y as stored, from below. */
static bool is_upright_6(const struct nr_picture *p)
{
	bool same = p->h == W && p->w == H;
	for (int y = 0; y < W && same; y++)
		for (int x = 0; x < H; x++) same &= p->pixels[3 * (y * H + x)] == made_pixel(1, H - 1 - x, y, 0);
	return same;
}

static void every_turn_can_be_undone(void **state)
{
	(void)state;
	for (int turn = 0; turn <= 9; turn++) {
		held_picture(made_path("one.png"), H, W, turn);
		struct nr_picture p = read_one(made_path("one.png"));
		const bool turned = turn >= 2 && turn <= 8;
		assert_int_equal(p.turned, turned ? turn : 0);
		assert_int_equal(p.h, turned && turn > 4 ? W : H);
		assert_int_equal(is_stored(&p), !turned);
		if (turn == 6) assert_true(is_upright_6(&p));
		assert_int_equal(nr_picture_as_stored(&p, "p", NULL), 0);
		assert_true(is_stored(&p));
		assert_int_equal(p.turned, 0);
		nr_picture_release(&p);
	}
}

static void a_size_tells_what_was_annotated(void **state)
{
	(void)state;
	held_picture(made_path("one.png"), H, W, 6);
	static const struct { int h, w; bool stored; } cases[] = { { H, W, true }, { W, H, false }, { W, W, false }, { 1, 1, false } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_picture p = read_one(made_path("one.png"));
		assert_int_equal(nr_picture_as_sized(&p, cases[i].h, cases[i].w, "p", NULL), 0);
		assert_int_equal(is_stored(&p), cases[i].stored);
		nr_picture_release(&p);
	}
	held_picture(made_path("half.png"), H, W, 3);           /* a half turn: both have this size */
	struct nr_picture p = read_one(made_path("half.png"));
	assert_int_equal(nr_picture_as_sized(&p, H, W, "p", NULL), 0);
	assert_int_equal(p.turned, 3);
	nr_picture_release(&p);
}

/* ---- data sets -------------------------------------------------------------------------------------------------------------- */

/* How sample i of the training is seen. */
static struct nr_picture sample(const char *text, int64_t i)
{
	struct nr_source *s = made_source(text);
	struct nr_picture p = { 0 };
	struct nr_error err = { 0 };
	int32_t label;
	assert_true(i < s->count[NR_TRAIN]);
	assert_int_equal(nr_source_get(s, NR_TRAIN, i, &p, &label, &err), 0);
	nr_source_close(s);
	return p;
}

static void classes_are_learned_from_upright_pictures(void **state)
{
	(void)state;
	char text[600];
	for (int i = 0; i < 3; i++) held_picture(made_path("own/a/%d.png", i), H, W, 6);
	snprintf(text, sizeof text, "folder:path=%s,val=0", made_path("own"));
	struct nr_picture p = sample(text, 0);
	assert_true(is_upright_6(&p));
	nr_picture_release(&p);
}

#define IMAGE(id, file, h, w) "{\"id\":" #id ",\"file_name\":\"" file "\",\"height\":" #h ",\"width\":" #w "}"
#define BOX(id, image) "{\"id\":" #id ",\"image_id\":" #image ",\"category_id\":1,\"bbox\":[0,0,1,2],\"iscrowd\":0}"

static void boxes_are_of_the_picture_that_has_their_size(void **state)
{
	(void)state;
	char text[600];
	static const char *const names[] = { "up.png", "stored.png", "half.png", "plain.png" };
	for (int i = 0; i < 4; i++) held_picture(made_path("set/train/%s", names[i]), H, W, (int[]){ 6, 6, 3, 0 }[i]);
	made_text(made_path("set/train.json"), "{\"images\":[" IMAGE(1, "up.png", 4, 2) "," IMAGE(2, "stored.png", 2, 4) "," IMAGE(3,
		"half.png", 2, 4) "," IMAGE(4, "plain.png", 2, 4) "],\"annotations\":[" BOX(1, 1) "," BOX(2, 2) "," BOX(3, 3) "," BOX(4, 4)
		"],\"categories\":[{\"id\":1,\"name\":\"a\"}]}");
	snprintf(text, sizeof text, "coco:path=%s", made_path("set"));
	for (int i = 0; i < 4; i++) {
		struct nr_picture p = sample(text, i);
		if (i == 0) assert_true(is_upright_6(&p));
		else assert_int_equal(is_stored(&p), i != 2);
		nr_picture_release(&p);
	}
	/* all as stored: the half turn, too; and the one that was annotated upright has the wrong size */
	snprintf(text, sizeof text, "coco:path=%s,stored=1,bad=skip", made_path("set"));
	for (int i = 0; i < 3; i++) {
		struct nr_picture p = sample(text, i);
		assert_true(is_stored(&p));
		nr_picture_release(&p);
	}
	struct nr_source *s = made_source(text);
	assert_int_equal(s->count[NR_TRAIN], 3);
	nr_source_close(s);
}

static void label_maps_are_of_the_picture_that_has_their_size(void **state)
{
	(void)state;
	char text[600];
	for (int i = 0; i < 3; i++) {
		held_picture(made_path("maps/images/%d.png", i), H, W, i == 2 ? 3 : 6);
		const int32_t h = i ? H : W, w = i ? W : H;
		struct nr_picture map = { 0 };
		assert_int_equal(nr_picture_resize(&map, h, w, 1, NULL), 0);
		for (int k = 0; k < h * w; k++) map.pixels[k] = (uint8_t)(k % 2);
		assert_int_equal(nr_picture_write_png(&map, made_path("maps/labels/%d.png", i), NULL), 0);
		nr_picture_release(&map);
	}
	snprintf(text, sizeof text, "labelmaps:path=%s,val=0", made_path("maps"));
	for (int i = 0; i < 3; i++) {
		struct nr_picture p = sample(text, i);
		if (i == 0) assert_true(is_upright_6(&p));
		else assert_int_equal(is_stored(&p), i == 1);
		nr_picture_release(&p);
	}
	snprintf(text, sizeof text, "labelmaps:path=%s,val=0,stored=1,bad=skip", made_path("maps"));
	struct nr_picture p = sample(text, 1);
	assert_true(is_stored(&p));
	nr_picture_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_turn_can_be_undone), cmocka_unit_test(a_size_tells_what_was_annotated),
		cmocka_unit_test(classes_are_learned_from_upright_pictures), cmocka_unit_test(boxes_are_of_the_picture_that_has_their_size),
		cmocka_unit_test(label_maps_are_of_the_picture_that_has_their_size),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
