/* src/picture/png.c (numbers), src/data/{label_maps,label_folder,label_classes,names_in,labelmaps,camvid,ade20k}.c: which numbers of which
 * files are which classes. */
#include "unit/datasets.h"

#include "base/mem.h"
#include "data/label_maps.h"
#include "picture/picture.h"

static const uint8_t indexed[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 3, 0, 0, 0, 2, 2, 3, 0, 0, 0, 224, 26, 142, 137, 0, 0, 0,
	9, 80, 76, 84, 69, 10, 20, 30, 40, 50, 60, 70, 80, 90, 22, 172, 132, 116, 0, 0, 0, 12, 73, 68, 65, 84, 120, 218, 99, 144, 96,
	152, 0, 0, 0, 220, 0, 169, 82, 26, 19, 143, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
};
static const uint8_t one_bit[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 3, 0, 0, 0, 2, 1, 0, 0, 0, 0, 181, 15, 91, 183, 0, 0, 0,
	12, 73, 68, 65, 84, 120, 218, 99, 112, 96, 88, 0, 0, 1, 100, 0, 225, 175, 199, 12, 128, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96,
	130,
};
static const uint8_t four_bits[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 3, 0, 0, 0, 1, 4, 0, 0, 0, 0, 251, 123, 166, 105, 0, 0, 0,
	11, 73, 68, 65, 84, 120, 218, 99, 96, 255, 0, 0, 1, 1, 0, 248, 77, 208, 178, 226, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
};
static const uint8_t wide[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 1, 16, 0, 0, 0, 0, 129, 217, 252, 21, 0, 0, 0,
	13, 73, 68, 65, 84, 120, 218, 99, 96, 96, 102, 56, 1, 0, 0, 214, 0, 204, 13, 187, 31, 198, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66,
	96, 130,
};
static const uint8_t too_wide[] = {
	137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 1, 16, 0, 0, 0, 0, 129, 217, 252, 21, 0, 0, 0,
	13, 73, 68, 65, 84, 120, 218, 99, 96, 96, 102, 212, 1, 0, 0, 60, 0, 49, 174, 194, 8, 114, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66,
	96, 130,
};

#define FILE_OF(name, bytes) made_file(made_path("%s", name), bytes, sizeof bytes)

/* ---- numbers of a PNG -------------------------------------------------------------------------------------------------------- */

static void numbers_are(const char *name, const uint8_t *bytes, size_t size, const uint8_t *want, int n)
{
	struct nr_picture p = { 0 };
	struct nr_palette palette = { 0 };
	struct nr_error err = { 0 };
	made_file(made_path("%s.png", name), bytes, size);
	assert_int_equal(nr_picture_numbers(&p, made_path("%s.png", name), &palette, &err), 0);
	assert_int_equal(p.channels, 1);
	assert_int_equal(p.h * p.w, n);
	assert_memory_equal(p.pixels, want, (size_t)n);
	nr_picture_release(&p);
}

static void numbers_stay_as_they_are_stored(void **state)
{
	(void)state;
	numbers_are("palette", indexed, sizeof indexed, (const uint8_t[]){ 0, 1, 2, 2, 1, 0 }, 6);
	numbers_are("one", one_bit, sizeof one_bit, (const uint8_t[]){ 0, 1, 0, 1, 0, 1 }, 6);
	numbers_are("four", four_bits, sizeof four_bits, (const uint8_t[]){ 0, 7, 15 }, 3);
	numbers_are("wide", wide, sizeof wide, (const uint8_t[]){ 3, 200 }, 2);
	struct nr_picture p = { 0 };
	struct nr_palette colours = { 0 };
	struct nr_error err = { 0 };
	assert_int_equal(nr_picture_numbers(&p, made_path("palette.png"), &colours, &err), 0);
	assert_int_equal(colours.count, 3);
	assert_memory_equal(colours.colour[1], ((const uint8_t[]){ 40, 50, 60 }), 3);
	FILE_OF("too_wide.png", too_wide);
	assert_int_not_equal(nr_picture_numbers(&p, made_path("too_wide.png"), &colours, &err), 0);
	assert_non_null(strstr(err.detail, "pixel (1,0) is 300"));
	err = (struct nr_error){ 0 };
	made_text(made_path("a.jpg"), "something else");
	assert_int_not_equal(nr_picture_numbers(&p, made_path("a.jpg"), &colours, &err), 0);
	assert_non_null(strstr(err.detail, "PNG"));
	nr_picture_release(&p);
}

/* ---- folders ------------------------------------------------------------------------------------------------------------------ */

/* 4 x 2 pixels of a value each, or of three. */
static void draw(const char *path, int channels, const uint8_t *pixels)
{
	uint8_t copy[24];
	struct nr_picture p = { .h = 2, .w = 4, .channels = channels, .pixels = copy };
	memcpy(copy, pixels, (size_t)(8 * channels));
	assert_int_equal(nr_picture_write_png(&p, path, NULL), 0);
}
static void draw_picture(const char *path) { draw(path, 1, (const uint8_t[]){ 10, 20, 30, 40, 50, 60, 70, 80 }); }

static void refused(const char *text, const char *why)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char line[1500];
	assert_int_not_equal(nr_source_open(&s, text, made_path("cache"), &err), 0);
	if (!strstr(nr_error_text(&err, line, sizeof line), why)) fail_msg("'%s' lacks '%s'", line, why);
}

static void map_is(const struct nr_source *s, enum nr_split split, int64_t i, const uint8_t *want)
{
	struct nr_picture p = { 0 };
	struct nr_error err = { 0 };
	char line[1500];
	if (nr_source_map(s, split, i, NULL, &p, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	assert_int_equal(p.h * p.w, 8);
	assert_memory_equal(p.pixels, want, 8);
	nr_picture_release(&p);
}

static void numbers_seen_are_classes_and_255_does_not_count(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		draw_picture(made_path("own/images/%d.png", i));
		draw(made_path("own/masks/%d%s.png", i, i == 2 ? "_mask" : ""), 1, (const uint8_t[]){ 0, 1, 4, 255, 0, 1, 4, 255 });
	}
	struct nr_source *s = made_source(made_path("own"));         /* a plain path, known by what it looks like */
	assert_string_equal(s->of->name, "labelmaps");
	assert_int_equal(s->classes, 5);
	assert_string_equal(s->class_name[4], "4");
	assert_int_equal(s->count[NR_TRAIN] + s->count[NR_VAL], 4);
	assert_true(s->count[NR_VAL] > 0);
	assert_int_equal(nr_source_label(s, NR_TRAIN, 0), -1);
	map_is(s, NR_TRAIN, 1, (const uint8_t[]){ 0, 1, 4, 255, 0, 1, 4, 255 });
	nr_source_close(s);
	char text[600];
	snprintf(text, sizeof text, "labelmaps:path=%s,ignore=1,val=0", made_path("own"));
	s = made_source(text);
	assert_int_equal(s->classes, 4);
	map_is(s, NR_TRAIN, 0, (const uint8_t[]){ 0, 255, 3, 255, 0, 255, 3, 255 });
	nr_source_close(s);
}

static void masks_of_0_and_255_have_two_classes(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		draw_picture(made_path("binary/train/%d.png", i));
		draw(made_path("binary/train_masks/%d.png", i), 1, (const uint8_t[]){ 0, 255, 0, 255, 0, 0, 0, 0 });
		draw_picture(made_path("binary/val/%d.png", i));
		draw(made_path("binary/val_masks/%d.png", i), 1, (const uint8_t[]){ 0, 0, 0, 0, 0, 0, 0, 255 });
	}
	struct nr_source *s = made_source(made_path("binary"));
	assert_int_equal(s->count[NR_TRAIN], 2);
	assert_int_equal(s->count[NR_VAL], 2);
	assert_int_equal(s->classes, 2);
	assert_string_equal(s->class_name[1], "foreground");
	map_is(s, NR_VAL, 0, (const uint8_t[]){ 0, 0, 0, 0, 0, 0, 0, 1 });
	nr_source_close(s);
}

static void colours_are_classes_and_a_file_names_them(void **state)
{
	(void)state;
	static const uint8_t rgb[24] = { 255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 0 };
	for (int i = 0; i < 2; i++) {
		draw_picture(made_path("rgb/images/%d.png", i));
		draw(made_path("rgb/labels/%d.png", i), 3, rgb);
	}
	struct nr_source *s = made_source(made_path("rgb"));
	assert_int_equal(s->classes, 3);                        /* in the order of their numbers */
	assert_string_equal(s->class_name[1], "#0000ff");
	assert_memory_equal(s->colour[2], ((const uint8_t[]){ 255, 0, 0 }), 3);
	map_is(s, NR_TRAIN, 0, (const uint8_t[]){ 2, 1, 2, 0, 2, 1, 2, 0 });
	nr_source_close(s);
	made_text(made_path("rgb/classes.txt"), "a fire truck 255 0 0\nvoid\t0 0 0\n0,0,255,sky\n");
	s = made_source(made_path("rgb"));
	assert_int_equal(s->classes, 2);
	assert_string_equal(s->class_name[0], "a fire truck");
	assert_string_equal(s->class_name[1], "sky");
	map_is(s, NR_TRAIN, 0, (const uint8_t[]){ 0, 1, 0, 255, 0, 1, 0, 255 });
	nr_source_close(s);
	made_text(made_path("rgb/classes.txt"), "truck 255 0 0\nvoid 0 0 0\n");
	refused(made_path("rgb"), "2 of 2 label maps");
	remove(made_path("rgb/images/1.png"));
	refused(made_path("rgb"), "pixel (1,0) is #0000ff, which is no class of the 1");
	made_text(made_path("rgb/classes.txt"), "truck 255 0 0\nvoid\n");
	refused(made_path("rgb"), "1 of its 2 lines have a colour");
}

static void a_palette_gives_colours(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t grey[6] = { 0, 1, 2, 3, 4, 5 };
		struct nr_picture p = { .h = 2, .w = 3, .channels = 1, .pixels = grey };
		assert_int_equal(nr_picture_write_png(&p, made_path("pal/images/%d.png", i), NULL), 0);
		made_file(made_path("pal/annotations/%d.png", i), indexed, sizeof indexed);
	}
	struct nr_source *s = made_source(made_path("pal"));
	assert_int_equal(s->classes, 3);
	assert_memory_equal(s->colour[2], ((const uint8_t[]){ 70, 80, 90 }), 3);
	nr_source_close(s);
	made_text(made_path("pal/classes.txt"), "one 70 80 90\ntwo 10 20 30\nthree 40 50 60\n");      /* colours decide, not numbers */
	s = made_source(made_path("pal"));
	struct nr_picture map = { 0 };
	assert_int_equal(nr_source_map(s, NR_TRAIN, 0, NULL, &map, NULL), 0);
	assert_memory_equal(map.pixels, ((const uint8_t[]){ 1, 2, 0, 0, 2, 1 }), 6);
	nr_picture_release(&map);
	nr_source_close(s);
}

static void what_is_wrong_is_told_with_the_file(void **state)
{
	(void)state;
	struct nr_picture p = { 0 }, map = { 0 };
	struct nr_error err = { 0 };
	for (int i = 0; i < 3; i++) {
		draw_picture(made_path("bad/images/training/%d.png", i));
		draw(made_path("bad/labels/training/%d.png", i), 1, (const uint8_t[]){ 0, 1, 2, 3, 0, 1, 2, 3 });
	}
	made_text(made_path("bad/classes.txt"), "a\nb\nc\n");
	refused(made_path("bad"), "3 of 3 label maps");         /* each is logged */
	made_text(made_path("bad/classes.txt"), "a\nb\nc\nd\n");
	struct nr_source *s = made_source(made_path("bad"));
	nr_source_close(s);
	draw(made_path("bad/labels/training/1.png"), 1, (const uint8_t[]){ 0, 1, 2, 3, 0, 9, 2, 3 });
	refused(made_path("bad"), "labels/training/1.png");
	refused(made_path("bad"), "pixel (1,1) is 9, which is no class of the 4");
	remove(made_path("bad/labels/training/1.png"));
	refused(made_path("bad"), "it has no label map: no '1.png' in");
	char text[600];
	snprintf(text, sizeof text, "labelmaps:path=%s,bad=skip", made_path("bad"));
	s = made_source(text);
	assert_int_equal(s->count[NR_TRAIN] + s->count[NR_VAL], 2);
	assert_int_equal(nr_source_get(s, NR_TRAIN, 0, &p, NULL, &err), 0);
	p.h = 1;
	assert_int_not_equal(nr_source_map(s, NR_TRAIN, 0, &p, &map, &err), 0);
	assert_non_null(strstr(err.detail, "it has 4 x 2 pixels, the picture 4 x 1"));
	assert_non_null(strstr(err.subject, "images/training/"));
	nr_source_close(s);
	nr_picture_release(&p);
	nr_picture_release(&map);
	made_text(made_path("empty/images/notes.txt"), "x");
	made_text(made_path("empty/labels/notes.txt"), "x");
	refused(made_path("empty"), "there are no folders of pictures and of label maps");
}

static void other_data_have_no_maps(void **state)
{
	(void)state;
	struct nr_picture map = { 0 };
	struct nr_error err = { 0 };
	const struct nr_source s = { .of = nr_dataset_find("mnist", NULL) };
	assert_int_not_equal(nr_source_map(&s, NR_TRAIN, 0, NULL, &map, &err), 0);
	assert_non_null(strstr(err.hint, "labelmaps:path=DIR"));
}

/* ---- known sets ---------------------------------------------------------------------------------------------------------------- */

static void camvid_has_eleven_classes_and_void(void **state)
{
	(void)state;
	const char *const splits[] = { "train", "val", "test" };
	for (int k = 0; k < 3; k++) {
		draw_picture(made_path("cam/CamVid/%s/a.png", splits[k]));
		draw(made_path("cam/CamVid/%sannot/a.png", splits[k]), 1, (const uint8_t[]){ 0, 1, 10, 11, 0, 1, 10, 11 });
	}
	made_text(made_path("cam/CamVid/train.txt"), "x");
	struct nr_source *s;
	assert_int_equal(nr_source_open(&s, "camvid", made_path("cam"), NULL), 0);
	assert_int_equal(s->classes, 11);
	assert_string_equal(s->class_name[10], "bicyclist");
	for (int k = 0; k < 3; k++) assert_int_equal(s->count[k], 1);
	map_is(s, NR_TEST, 0, (const uint8_t[]){ 0, 1, 10, 255, 0, 1, 10, 255 });
	nr_source_close(s);
}

static void ade20k_counts_from_one(void **state)
{
	(void)state;
	struct nr_str names = { 0 };
	struct nr_picture map = { 0 };
	struct nr_error err = { 0 };
	nr_str_add(&names, "Idx\tRatio\tTrain\tVal\tName\n");
	for (int i = 1; i <= 150; i++) nr_str_printf(&names, "%d\t0.1\t7\t7\tthing %d, other word\n", i, i);
	made_text(made_path("ade/objectInfo150.txt"), nr_str_text(&names));
	nr_str_release(&names);
	draw_picture(made_path("ade/images/validation/ADE_val_00000001.png"));
	draw(made_path("ade/annotations/validation/ADE_val_00000001.png"), 1, (const uint8_t[]){ 0, 1, 2, 150, 0, 1, 2, 150 });
	draw_picture(made_path("ade/images/training/ADE_train_00000001.png"));
	draw(made_path("ade/annotations/training/ADE_train_00000001.png"), 1, (const uint8_t[]){ 0, 1, 2, 151, 0, 1, 2, 150 });
	struct nr_source *s;
	assert_int_equal(nr_source_open(&s, "ade20k", made_path("ade"), NULL), 0);
	assert_int_equal(s->classes, 150);
	assert_string_equal(s->class_name[149], "thing 150");
	map_is(s, NR_VAL, 0, (const uint8_t[]){ 255, 0, 1, 149, 255, 0, 1, 149 });
	assert_int_not_equal(nr_source_map(s, NR_TRAIN, 0, NULL, &map, &err), 0);
	assert_non_null(strstr(err.detail, "pixel (3,0) is 151"));
	nr_picture_release(&map);
	nr_source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stay_as_they_are_stored), cmocka_unit_test(numbers_seen_are_classes_and_255_does_not_count),
		cmocka_unit_test(masks_of_0_and_255_have_two_classes), cmocka_unit_test(colours_are_classes_and_a_file_names_them),
		cmocka_unit_test(a_palette_gives_colours), cmocka_unit_test(what_is_wrong_is_told_with_the_file),
		cmocka_unit_test(other_data_have_no_maps), cmocka_unit_test(camvid_has_eleven_classes_and_void),
		cmocka_unit_test(ade20k_counts_from_one),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
