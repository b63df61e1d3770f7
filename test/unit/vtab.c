/* src/data/vtab.c: published lists, tasks drawn from other sets, and what is said when files are missing or wrong. */
#include "unit/values.h"

#include "data/vtab.h"
#include "unit/folder.h"

enum { SIDE = 6 };

/* A grey or coloured PNG whose first pixel is `shade`. */
static void paint(const char *path, int channels, int shade)
{
	struct nr_picture p = { 0 };
	assert_int_equal(nr_picture_resize(&p, SIDE, SIDE, channels, NULL), 0);
	for (int i = 0; i < SIDE * SIDE * channels; i++) p.pixels[i] = (uint8_t)shade;
	assert_int_equal(nr_picture_write_png(&p, path, NULL), 0);
	nr_picture_release(&p);
}

static void lists_are_read_as_they_are_published(void **state)
{
	const char *root = made_dir;
	(void)state;
	struct nr_source *s;
	struct nr_error err = { 0 };
	char line[1200];
	for (int i = 0; i < 4; i++) paint(made_path("vtab-1k/kitti/images/a b %d.png", i), 3, 10 * i);
	made_with("vtab-1k/kitti/train800.txt", "images/a b 0.png 3\nimages/a b 1.png 0\n");
	made_with("vtab-1k/kitti/val200.txt", "images/a b 2.png 1\n");
	made_with("vtab-1k/kitti/test.txt", "images/a b 3.png 2\n");
	if (nr_source_open(&s, "vtab:task=kitti-dist", root, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	assert_int_equal(s->count[NR_TRAIN], 2);
	assert_int_equal(s->count[NR_VAL], 1);
	assert_int_equal(s->count[NR_TEST], 1);
	assert_int_equal(s->classes, 4);
	assert_int_equal(nr_source_label(s, NR_TRAIN, 0), 3);
	assert_int_equal(nr_source_label(s, NR_TEST, 0), 2);
	assert_true(nr_vtab_origin(s).published && !nr_vtab_origin(s).partial);
	assert_true(s->mean[1] == .5F && s->std[2] == .5F);
	struct nr_picture p = { 0 };
	assert_int_equal(nr_source_get(s, NR_TEST, 0, &p, NULL, &err), 0);
	assert_int_equal(p.pixels[0], 30);
	nr_picture_release(&p);
	nr_source_close(s);
	made_with("vtab-1k/kitti/test.txt", "images/a b 3.png 4\n");
	assert_int_not_equal(nr_source_open(&s, "vtab:task=kitti-dist", root, &err), 0);
	assert_non_null(strstr(nr_error_text(&err, line, sizeof line), "line 1 is not a path and a class from 0 to 3"));
}

/* 20 pictures of two classes to train on, 4 to test with; greys become colours. */
static void other_sets_are_drawn_from(void **state)
{
	const char *root = made_dir;
	(void)state;
	struct nr_source *s;
	struct nr_error err = { 0 };
	char name[256], line[1200];
	for (int i = 0; i < 20; i++) paint(made_path("mine/train/%s/%d.png", i % 2 ? "b" : "a", i), 1, 100 + i);
	for (int i = 0; i < 4; i++) paint(made_path("mine/test/%s/%d.png", i % 2 ? "b" : "a", i), 1, i);
	snprintf(name, sizeof name, "vtab:of=folder:path=%s,train=10,val=5,pixels=imagenet", made_path("mine"));
	if (nr_source_open(&s, name, root, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	assert_int_equal(s->count[NR_TRAIN], 10);
	assert_int_equal(s->count[NR_VAL], 5);
	assert_int_equal(s->count[NR_TEST], 4);
	assert_false(nr_vtab_origin(s).partial);
	assert_int_equal(s->channels, 3);
	assert_true(s->mean[0] == .485F);
	int seen[256] = { 0 };
	struct nr_picture p = { 0 };
	for (int split = NR_TRAIN; split <= NR_VAL; split++)
		for (int64_t i = 0; i < s->count[split]; i++) {
			int32_t label;
			assert_int_equal(nr_source_get(s, (enum nr_split)split, i, &p, &label, &err), 0);
			assert_int_equal(p.channels, 3);
			assert_true(p.pixels[0] == p.pixels[1] && p.pixels[1] == p.pixels[2]);
			assert_int_equal(label, p.pixels[0] % 2);
			assert_int_equal(seen[p.pixels[0]]++, 0);       /* nothing is in both */
		}
	nr_picture_release(&p);
	nr_source_close(s);
	snprintf(name, sizeof name, "vtab:of=folder:path=%s", made_path("mine"));       /* fewer than 1000: a fifth chooses */
	assert_int_equal(nr_source_open(&s, name, root, &err), 0);
	assert_int_equal(s->count[NR_TRAIN], 16);
	assert_int_equal(s->count[NR_VAL], 4);
	assert_true(nr_vtab_origin(s).partial);
	nr_source_close(s);
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	static const struct { const char *data, *says; } cases[] = {
		{ "vtab:task=dtd", "catalog/dtd" }, { "vtab:task=flowers", "did you mean 'flowers102'?" },
		{ "vtab", "task= or of= must say what" }, { "vtab:task=dtd,of=mnist", "exclude each other" } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nr_source *s;
		struct nr_error err = { 0 };
		char line[1200];
		assert_int_not_equal(nr_source_open(&s, cases[i].data, made_dir, &err), 0);
		nr_error_text(&err, line, sizeof line);
		if (!strstr(line, cases[i].says)) fail_msg("'%s' says: %s", cases[i].data, line);
	}
	int tasks[NR_VTAB_GROUPS] = { 0 };
	for (const struct nr_vtab_task *t = nr_vtab_tasks; t->id; t++) tasks[t->group]++;
	assert_true(tasks[NR_VTAB_NATURAL] == 7 && tasks[NR_VTAB_SPECIALIZED] == 4 && tasks[NR_VTAB_STRUCTURED] == 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read_as_they_are_published),
		cmocka_unit_test(other_sets_are_drawn_from),
		cmocka_unit_test(what_is_missing_is_said),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
