/* data/coco_file.c and coco_parts.c: annotations of COCO become objects; what cannot be used is named, or left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "data/coco_file.h"
#include "picture/rle.h"

#define IMAGES "\"images\": [{\"id\": 9, \"file_name\": \"b.jpg\", \"height\": 20, \"width\": 30}, " \
	"{\"id\": 4, \"file_name\": \"a.jpg\", \"height\": 10, \"width\": 12}]"
#define CATEGORIES "\"categories\": [{\"id\": 90, \"name\": \"toothbrush\"}, {\"id\": 3, \"name\": \"car\"}]"
#define GOOD "{\"id\": 5, \"image_id\": 4, \"category_id\": 90, \"bbox\": [1, 2, 3, 4]}"

static struct nr_arena *arena;
static int setup(void **test) { (void)test; return (arena = nr_arena_make()) ? 0 : -1; }
static int teardown(void **test) { (void)test; nr_arena_free(arena); return 0; }

static int parse(struct nr_coco *c, const char *text, enum nr_coco_bad bad, struct nr_error *err)
{
	return nr_coco_parse(c, text, strlen(text), "a.json", &(struct nr_coco_how){ bad, true }, arena, err);
}

static void with(struct nr_coco *c, const char *annotations, enum nr_coco_bad bad, struct nr_error *err)
{
	char text[4096];
	snprintf(text, sizeof text, "{" IMAGES ", " CATEGORIES ", \"annotations\": [%s]}", annotations);
	parse(c, text, bad, err);
}

static void ids_become_places_and_labels(void **test)
{
	(void)test;
	struct nr_coco c;
	struct nr_error err = { 0 };
	with(&c, GOOD ", {\"id\": 6, \"image_id\": 4, \"category_id\": 3, \"bbox\": [0.5, 0, 2.25, 9], \"area\": 7.5, \"iscrowd\": 1, "
		"\"segmentation\": {\"size\": [10, 12], \"counts\": [0, 10, 110]}}, {\"id\": 1, \"image_id\": 9, \"category_id\": 3, "
		"\"bbox\": [0, 0, 30, 20], \"area\": 600, \"iscrowd\": 0, \"segmentation\": [[0, 0, 30, 0, 30, 10, 0, 10], [2, 10, 4, 5]]}",
		NR_COCO_FAIL, &err);
	assert_int_equal(err.code, NR_OK);
	assert_int_equal(c.images, 2);
	assert_int_equal(c.objects, 3);
	assert_int_equal(c.image[0].image_id, 4);
	assert_string_equal(c.file[1], "b.jpg");
	assert_int_equal(c.category[0], 3);
	assert_string_equal(c.name[1], "toothbrush");
	assert_int_equal(nr_coco_image(&c, 9), 1);
	assert_int_equal(nr_coco_image(&c, 5), -1);
	assert_int_equal(nr_coco_class(&c, 90), 1);
	assert_int_equal(nr_coco_class(&c, 4), -1);
	const struct nr_object *o = c.image[0].object;
	assert_int_equal(c.image[0].count, 2);
	assert_true(o[0].label == 1 && o[0].area == 12 && !o[0].mask && !o[0].crowd && o[0].id == 5);
	assert_true(o[1].crowd && o[1].xywh[2] == 2.25 && o[1].area == 7.5 && nr_rle_area(o[1].mask) == 10);
	assert_int_equal(nr_rle_area(c.image[1].object[0].mask), 30 * 10 + 4 * 5);         /* a list of four numbers is a box */
}

static void refuses(const char *annotation, const char *message)
{
	struct nr_coco c;
	struct nr_error err = { 0 };
	char text[1024];
	with(&c, annotation, NR_COCO_FAIL, &err);
	nr_error_text(&err, text, sizeof text);
	if (!strstr(text, message)) fail_msg("'%s' is not in '%s'", message, text);
	assert_non_null(strstr(text, "'a.json'"));
	err = (struct nr_error){ 0 };
	char both[2048];
	snprintf(both, sizeof both, "%s, " GOOD, annotation);
	with(&c, both, NR_COCO_SKIP, &err);
	assert_int_equal(err.code, NR_OK);
	assert_true(c.left_out == 1 && c.objects == 1);
}

#define BOX ", \"image_id\": 4, \"category_id\": 3, \"bbox\": [1, 2, 3, 4]"
static void what_cannot_be_used_is_named(void **test)
{
	(void)test;
	refuses("{\"id\": 17, \"image_id\": 5, \"category_id\": 3, \"bbox\": [1, 2, 3, 4]}", "annotation 17: there is no image 5");
	refuses("{\"id\": 17, \"image_id\": 4, \"category_id\": 4, \"bbox\": [1, 2, 3, 4]}", "annotation 17: there is no category 4");
	refuses("{\"id\": 17, \"image_id\": 4, \"category_id\": 3, \"bbox\": [1, 2, 0, 4]}",
		"annotation 17: its box (left 1, top 2, width 0");
	refuses("{\"id\": 17, \"image_id\": 4, \"category_id\": 3, \"bbox\": [11, 2, 3, 4]}", "not inside the picture of 12 x 10");
	refuses("{\"id\": 17, \"image_id\": 4, \"category_id\": 3, \"bbox\": [1, 2, 3]}", "no 'bbox' of four numbers");
	refuses("{\"id\": 17, \"image_id\": 4, \"category_id\": 3, \"bbox\": \"wide\"}", "no 'bbox' of four numbers");
	refuses("{\"id\": 17, \"image_id\": \"4\", \"category_id\": 3, \"bbox\": [1, 2, 3, 4]}", "no 'image_id', a whole number");
	refuses("{\"image_id\": 4}", "entry 1 of 'annotations': it has no 'id'");
	refuses("7", "entry 1 of 'annotations': it has no 'id'");
	refuses("{\"id\": 17" BOX ", \"iscrowd\": 2}", "neither 0 nor 1");
	refuses("{\"id\": 17" BOX ", \"area\": \"big\"}", "'area' is not a number");
	refuses("{\"id\": 17" BOX ", \"segmentation\": {\"size\": [10, 12], \"counts\": \"0?P\"}}",
		"annotation 17: its mask cannot be read");
	refuses("{\"id\": 17" BOX ", \"segmentation\": {\"size\": [10, 12], \"counts\": [5, 7]}}", "add up to 12 pixels");
	refuses("{\"id\": 17" BOX ", \"segmentation\": {\"size\": [10, 12], \"counts\": [-5, 125]}}", "run 1 is not a length");
	refuses("{\"id\": 17" BOX ", \"segmentation\": {\"size\": [12, 10], \"counts\": [120]}}", "its mask has 12 x 10 pixels");
	refuses("{\"id\": 17" BOX ", \"segmentation\": [[1, 2, 3]]}", "polygon 1 of its mask is not a list of points");
	refuses("{\"id\": 17" BOX ", \"segmentation\": [[1, 2, 3, 4, 5, \"x\"]]}", "value 6 of polygon 1");
	refuses("{\"id\": 17" BOX ", \"segmentation\": [[1, 2, 3, 4, 5, 1e9]]}", "point 3 of polygon 1 of its mask is far outside");
	refuses("{\"id\": 17" BOX ", \"segmentation\": \"all\"}", "neither polygons nor runs");
	struct nr_coco c;
	struct nr_error err = { 0 };
	with(&c, GOOD ", " GOOD, NR_COCO_FAIL, &err);
	assert_non_null(strstr(err.detail, "annotation 5: entry 1 of 'annotations' has the same id"));
	err = (struct nr_error){ 0 };
	with(&c, "{}, {}, {}", NR_COCO_FAIL, &err);
	assert_non_null(strstr(err.detail, "3 of its entries are wrong, the first: entry 1"));
	err = (struct nr_error){ 0 };
	with(&c, "{\"id\": 17, \"image_id\": 4, \"category_id\": 3, \"bbox\": [-5, 2, 0, 4]}", NR_COCO_TRUST, &err);
	assert_true(!err.code && c.objects == 1);
}

static void damaged(const char *text, const char *message)
{
	struct nr_coco c;
	struct nr_error err = { 0 };
	assert_int_not_equal(parse(&c, text, NR_COCO_SKIP, &err), NR_OK);
	if (!strstr(err.detail, message)) fail_msg("'%s' is not in '%s'", message, err.detail);
}

static void a_file_without_its_lists_is_none(void **test)
{
	(void)test;
	damaged("{" IMAGES, "line 1, column");
	damaged("[]", "no list 'images'");
	damaged("{" IMAGES ", \"annotations\": {}, " CATEGORIES "}", "no list 'annotations'");
	damaged("{" IMAGES ", \"annotations\": [], \"categories\": []}", "0 categories");
	damaged("{" IMAGES ", \"annotations\": [], \"categories\": [{\"id\": 1, \"name\": \"x\"}, {\"id\": 1, \"name\": \"y\"}]}",
		"two categories 1");
	damaged("{" IMAGES ", \"annotations\": [], \"categories\": [{\"id\": 1}]}", "entry 1 of 'categories'");
}

static void bad_image(const char *image, const char *message)
{
	char text[1024];
	struct nr_coco c;
	struct nr_error err = { 0 };
	snprintf(text, sizeof text, "{\"images\": [{\"id\": 4, \"file_name\": \"a\", \"height\": 1, \"width\": 1}, %s], "
		"\"annotations\": [], "
		CATEGORIES "}", image);
	parse(&c, text, NR_COCO_FAIL, &err);
	if (!strstr(err.detail, message)) fail_msg("'%s' is not in '%s'", message, err.detail);
	assert_int_equal(parse(&c, text, NR_COCO_SKIP, NULL), NR_OK);
	assert_int_equal(c.images, 1);
}

static void images_that_cannot_be_used_are_named(void **test)
{
	(void)test;
	bad_image("{\"id\": 4, \"file_name\": \"b\", \"height\": 1, \"width\": 1}", "image 4: entry 1 of 'images' has the same id");
	bad_image("{\"id\": 5, \"file_name\": 6, \"height\": 1, \"width\": 1}", "image 5: it has no 'file_name'");
	bad_image("{\"id\": 5, \"file_name\": \"b\", \"height\": 0, \"width\": 1}", "image 5: its size is 0 x 1");
	bad_image("{\"id\": 5, \"file_name\": \"b\", \"height\": 1000000, \"width\": 1000000}", "image 5: its size is 1000000 x 1000000");
	bad_image("{\"id\": 5, \"file_name\": \"b\", \"height\": 1e300, \"width\": 1}", "'height' and 'width', whole numbers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_become_places_and_labels),
		cmocka_unit_test(what_cannot_be_used_is_named),
		cmocka_unit_test(a_file_without_its_lists_is_none),
		cmocka_unit_test(images_that_cannot_be_used_are_named),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
