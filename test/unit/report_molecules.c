/* src/report/molecules.c: what the section says of predictions that differ from arm to arm, or are odd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/molecules.h"
#include "unit/arena.h"

#define HEAD "split,graph,task,smiles,target,prediction\n"
#define COUNTED "split,graph,task,smiles,target,prediction,tasks,known\n"

/* The section of arms A, B, ... with one run each, of these predictions. */
static char *section_of(const char *const *csv, int count)
{
	static const char *const name[] = { "ln", "bn", "rms" };
	static const int of[] = { 0, 1, 2 };
	struct nr_runfolder run[3];
	struct nr_arms arms;
	struct nr_str s = { 0 };
	for (int i = 0; i < count; i++) {
		run[i] = (struct nr_runfolder){ .dir = "d", .name = "d", .status = "done" };
		char *text = nr_arena_printf(arena, "%s", csv[i]);
		assert_int_equal(nr_columns_parse(text, strlen(text), "t", arena, &run[i].predictions, NULL), NR_OK);
	}
	assert_int_equal(nr_arms_given(&arms, run, count, of, name, count, arena, NULL), NR_OK);
	nr_section_molecules(&s, &arms, arena);
	char *html = nr_arena_printf(arena, "%s", nr_str_text(&s));
	nr_str_release(&s);
	return html;
}

static char *section(const char *csv) { return section_of(&csv, 1); }

static int count_of(const char *text, const char *what)
{
	int n = 0;
	for (; (text = strstr(text, what)); text++) n++;
	return n;
}

static void only_probabilities_are_called_so(void **state)
{
	(void)state;
	assert_non_null(strstr(section(HEAD "test,0,1,CC,1,0.75\ntest,1,1,CO,0,0\n"), "Predictions are probabilities."));
	const char *scores = section(HEAD "test,0,1,CC,1,0.75\ntest,1,1,CO,0,-4\n");
	assert_null(strstr(scores, "probabilities"));
	assert_non_null(strstr(scores, "Predictions are scores."));
}

static void another_molecule_of_the_same_number_is_not_the_same(void **state)
{
	(void)state;
	static const char *const same[] = { HEAD "test,0,1,CC,1.5,1\n", HEAD "test,0,1,CC,1.5,7.25\n" };
	static const char *const other[][2] = {
		{ HEAD "test,0,1,CC,1.5,1\n", HEAD "test,0,1,CO,1.5,7.25\n" },
		{ HEAD "test,0,1,CC,1.5,1\n", HEAD "test,0,1,CC,2.5,7.25\n" },
		{ HEAD "test,0,1,CC,1.5,1\n", HEAD "val,0,1,CC,1.5,7.25\n" },
		{ HEAD "test,0,1,CC,1.5,1\n", HEAD "test,3,1,CC,1.5,7.25\n" } };
	/* B's own rows, best and worst; A's two name it only of the same molecule */
	assert_int_equal(count_of(section_of(same, 2), ">7.25<"), 4);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) assert_int_equal(count_of(section_of(other[i], 2), ">7.25<"), 2);
}

static void every_arm_has_its_own_split_and_kind(void **state)
{
	(void)state;
	static const char *const csv[] = { HEAD "val,0,1,CC,1.5,1\nval,1,1,CO,2,2\n", HEAD "test,0,1,CC,1,.9\ntest,1,1,CO,0,.2\n" };
	const char *html = section_of(csv, 2);
	assert_non_null(strstr(html, "Prediction against target: ln"));
	assert_null(strstr(html, "Prediction against target: bn"));
	assert_int_equal(count_of(html, "ROC curve: found against false alarms"), 1);
	assert_non_null(strstr(html, "predicted worst"));
	assert_non_null(strstr(html, "missed: positive"));
	assert_non_null(strstr(html, "A: ln, val split"));
	assert_non_null(strstr(html, "B: bn, test split"));
	assert_non_null(strstr(html, "Where targets are yes or no, predictions are probabilities"));
}

static void rows_with_gaps_do_not_count(void **state)
{
	(void)state;
	const char *html = section(HEAD "test,0,1,CC,1.5,1\ntest,1,1,CO,,3\ntest,2,1,CN,2,\ntest,3,1,CF\ntest,4,1,CCl,x,1\n");
	assert_non_null(strstr(html, "1 molecule;"));
	assert_non_null(strstr(html, "of the best weights 0.5"));
	assert_null(strstr(html, "nan"));
	assert_string_equal(section(HEAD "test,0,1,CC\n"), "");
	assert_non_null(strstr(section(HEAD "test,0,1,CC\nval,1,1,CC,1.5,1\n"), "for the val split"));
}

static void the_task_shown_is_named(void **state)
{
	(void)state;
	assert_null(strstr(section(HEAD "test,0,1,CC,1.5,1\n"), "The page shows"));
	assert_null(strstr(section(COUNTED "test,0,1,CC,1.5,1,1,1\n"), "The page shows"));
	assert_non_null(strstr(section(HEAD "test,0,1,CC,1.5,1\ntest,0,3,CC,2,1\n"), "The page shows task 1 of 3."));
	assert_non_null(strstr(section(COUNTED "test,0,1,CC,1.5,1,12,1\n"), "The page shows task 1 of 12."));
	static const char *const csv[] = { COUNTED "test,0,1,CC,1.5,1,12,1\n", COUNTED "test,0,1,CC,1.5,1,2,1\n",
		HEAD "test,0,1,CC,1.5,1\n" };
	const char *html = section_of(csv, 3);
	assert_non_null(strstr(html, "The page shows the first task of each."));
	assert_non_null(strstr(html, "A: ln, task 1 of 12<"));
	assert_non_null(strstr(html, "B: bn, task 1 of 2<"));
	assert_non_null(strstr(html, "C: rms<"));
}

static void a_file_that_was_cut_is_said_to_be(void **state)
{
	(void)state;
	static const char whole[] = COUNTED "test,0,1,CC,1.5,1,2,2\ntest,0,2,CC,2,1,2,2\nval,1,1,CO,1,1,2,7\n";
	static const char cut[] = COUNTED "test,0,1,CC,1.5,1,2,60000\ntest,0,2,CC,2,1,2,60000\nval,1,1,CO,1,1,2,7\n";
	assert_null(strstr(section(whole), "is truncated"));
	assert_null(strstr(section(HEAD "test,0,1,CC,1.5,1\n"), "is truncated"));
	assert_null(strstr(section(COUNTED "test,0,1,CC,1.5,1,1,nan\n"), "is truncated"));
	assert_non_null(strstr(section(cut), "the first 2 of the 60000 known targets of the test split"));
	static const char *const same[] = { cut, cut }, *const differ[] = { cut, whole };
	assert_int_equal(count_of(section_of(same, 2), "is truncated"), 1);
	const char *html = section_of(differ, 2), *said = strstr(html, "is truncated"), *b = strstr(html, "B: bn</h3>");
	assert_int_equal(count_of(html, "is truncated"), 1);
	assert_true(strstr(html, "A: ln</h3>") < said && said < b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_probabilities_are_called_so),
		cmocka_unit_test(another_molecule_of_the_same_number_is_not_the_same),
		cmocka_unit_test(every_arm_has_its_own_split_and_kind),
		cmocka_unit_test(rows_with_gaps_do_not_count),
		cmocka_unit_test(the_task_shown_is_named),
		cmocka_unit_test(a_file_that_was_cut_is_said_to_be),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
