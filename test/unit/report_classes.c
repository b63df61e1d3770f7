/* src/infer/classes.c and src/report/class_figures.c: which classes are told apart, recorded and shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "infer/classes.h"
#include "report/class_figures.h"
#include "unit/arena.h"

/* The section of one arm for each list of files, an arm's files being its seeds. */
static char *section_of(const char *const *file, const int *of, int runs, int arms)
{
	static const char *const name[] = { "ln", "bn" };
	struct nr_runfolder run[4];
	struct nr_arms a;
	struct nr_str s = { 0 };
	for (int i = 0; i < runs; i++) {
		run[i] = (struct nr_runfolder){ .dir = "d", .name = "d", .status = "done", .seed = i };
		run[i].classes = file[i] ? json_loads(file[i], 0, NULL) : NULL;
		assert_true(run[i].classes || !file[i]);
	}
	assert_int_equal(nr_arms_given(&a, run, runs, of, name, arms, arena, NULL), NR_OK);
	nr_section_classes(&s, &a, arena);
	char *html = nr_arena_printf(arena, "%s", nr_str_text(&s));
	for (int i = 0; i < runs; i++) nr_runfolder_release(&run[i]);
	nr_str_release(&s);
	return html;
}

static char *record_of(int64_t classes, const int64_t *confusion, char *const *name)
{
	struct nr_str s = { 0 };
	assert_int_equal(nr_class_counts_record(&s, &(struct nr_class_counts){ classes, confusion, name }, "val", NULL), NR_OK);
	char *text = nr_arena_printf(arena, "%s", nr_str_text(&s));
	nr_str_release(&s);
	return text;
}

static char cat[] = "cat", dog[] = "dog & <wolf>", bird[] = "bird", *const cat_dog[] = { cat, dog }, *const other[] = { cat, bird };

static void records_have_scores_of_each_class(void **state)
{
	(void)state;
	json_t *o = json_loads(record_of(2, (const int64_t[]){ 3, 1, 2, 4 }, cat_dog), 0, NULL);
	const json_t *second = json_array_get(json_object_get(o, "classes"), 1);
	assert_string_equal(json_string_value(json_object_get(second, "name")), "dog & <wolf>");
	assert_int_equal(json_integer_value(json_object_get(second, "samples")), 6);
	assert_true(json_number_value(json_object_get(second, "precision")) == 0.8);
	assert_true(json_number_value(json_object_get(o, "accuracy")) == 0.7);
	assert_int_equal(json_array_size(json_object_get(o, "confusion")), 4);
	json_decref(o);
	assert_non_null(strstr(record_of(2, (const int64_t[]){ 0, 0, 0, 0 }, NULL), "\"accuracy\":0.0,\"macro_f1\":0.0"));
}

static void seeds_of_an_arm_count_together(void **state)
{
	(void)state;
	const char *file[] = { record_of(2, (const int64_t[]){ 4, 0, 2, 2 }, cat_dog),
		record_of(2, (const int64_t[]){ 2, 2, 0, 4 }, cat_dog),
		record_of(2, (const int64_t[]){ 4, 0, 0, 4 }, cat_dog) };
	const char *html = section_of(file, (const int[]){ 0, 0, 1 }, 3, 2);
	assert_non_null(strstr(html, "on 8 samples of the val split"));
	assert_non_null(strstr(html, "75.0 %"));        /* (4 + 2) of 8 cats */
	assert_non_null(strstr(html, "dog &amp; &lt;wolf&gt;"));
	assert_non_null(strstr(html, "2 seeds together. Most often: cat taken for dog"));
	assert_non_null(strstr(html, "No mistake."));
	assert_non_null(strstr(html, "macro-F1"));
}

static void runs_with_other_classes_are_left_out(void **state)
{
	(void)state;
	static const int64_t right[] = { 1, 0, 0, 1 };
	const char *file[] = { record_of(2, right, cat_dog), record_of(2, right, other), NULL };
	const char *html = section_of(file, (const int[]){ 0, 1, 1 }, 3, 2);
	assert_non_null(strstr(html, "Confusion: ln"));
	assert_null(strstr(html, "Confusion: bn"));
	assert_string_equal(section_of(&file[2], (const int[]){ 0 }, 1, 1), "");
}

/* A file is a stranger's: what does not add up is not drawn. */
static void odd_files_do_no_harm(void **state)
{
	(void)state;
	static const char *const odd[] = { "{}", "{\"classes\": 3}", "{\"classes\": []}", "{\"classes\": [1, null]}",
		"{\"classes\": [{\"name\": \"a\"}], \"confusion\": [-1], \"samples\": 1e300}",
		"{\"classes\": [{\"name\": \"a\", \"samples\": \"x\"}], \"confusion\": [1, 2]}" };
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		assert_null(strstr(section_of(&odd[i], (const int[]){ 0 }, 1, 1), "Confusion: "));
}

static void of_many_classes_the_worst_are_listed(void **state)
{
	(void)state;
	enum { K = 40 };
	static int64_t m[K * K];
	for (int k = 0; k < K; k++) m[k * (K + 1)] = k == 37 ? 0 : 2, m[k * K + (k + 1) % K] = 1;
	const char *file = record_of(K, m, NULL), *html = section_of(&file, (const int[]){ 0 }, 1, 1);
	assert_non_null(strstr(html, "The 30 of 40 classes that are told worst"));
	assert_null(strstr(html, "Confusion: "));
	const char *worst = strstr(html, "<td>37</td>"), *next = strstr(html, "<td>0</td>");
	assert_true(worst && next && worst < next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_have_scores_of_each_class),
		cmocka_unit_test(seeds_of_an_arm_count_together),
		cmocka_unit_test(runs_with_other_classes_are_left_out),
		cmocka_unit_test(odd_files_do_no_harm),
		cmocka_unit_test(of_many_classes_the_worst_are_listed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
