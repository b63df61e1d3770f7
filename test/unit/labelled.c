/* src/data/{labelled,cells}.c: columns by name, classes in order, splits, and what is wrong with a row. */
#include <stdio.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "norma/data.h"

static struct nr_source *opened(const char *name, const char *text, const char *more)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char spec[700], line[1200];
	assert_int_equal(nr_save_file(made_path("%s", name), text, strlen(text), &err), 0);
	snprintf(spec, sizeof spec, "labelled:path=%s%s", made_path("%s", name), more);
	if (nr_source_open(&s, spec, NULL, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return s;
}

static void columns_are_found_by_name(void **state)
{
	(void)state;
	struct nr_source *s = opened("a.csv",
		"\xEF\xBB\xBFid,sentence1,label,sentence2\r\n1,\"a, \"\"b\"\"\",yes,c\r\n\r\n2,d,no,\"e\nf\"\r\n", "");
	assert_true(s->count[NR_TRAIN] == 2 && s->columns == 2 && s->classes == 2);
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 0), "a, \"b\"");
	assert_string_equal(nr_source_text(s, NR_TRAIN, 1, 1), "e\nf");
	assert_string_equal(s->class_name[0], "no");
	assert_int_equal(nr_source_label(s, NR_TRAIN, 0), 1);
	assert_true(isnan(nr_source_value(s, NR_TRAIN, 0)));
	nr_source_close(s);
	s = opened("b.tsv", "x\ty\n5\t\"q\n-1\tr\n", ",text=y,label=x");
	assert_true(s->columns == 1 && s->classes == 2 && nr_source_value(s, NR_TRAIN, 0) == 5);
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 0), "\"q");
	assert_string_equal(s->class_name[0], "-1");                    /* numbers by their size */
	nr_source_close(s);
	s = opened("c.jsonl", "{\"text\": \"\xc3\xa9\", \"score\": 1.5}\n\n{\"score\": 2, \"text\": \"b\"}\n", "");
	assert_true(s->count[NR_TRAIN] == 2 && nr_source_value(s, NR_TRAIN, 0) == 1.5 && nr_source_value(s, NR_TRAIN, 1) == 2);
	nr_source_close(s);
}

static void rows_are_set_apart_once(void **state)
{
	(void)state;
	char text[800] = "text,label\n";
	for (int i = 0; i < 20; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "t%d,%d\n", i, i % 2);
	struct nr_source *s = opened("a.csv", text, ",val=0.2,test=0.1");
	assert_true(s->count[NR_TRAIN] == 14 && s->count[NR_VAL] == 4 && s->count[NR_TEST] == 2);
	bool seen[20] = { false };
	for (enum nr_split k = NR_TRAIN; k <= NR_TEST; k++)
		for (int64_t i = 0; i < s->count[k]; i++) {
			const int number = atoi(nr_source_text(s, k, i, 0) + 1);
			assert_false(seen[number]);
			seen[number] = true;
			assert_int_equal(nr_source_label(s, k, i), number % 2);
		}
	nr_source_close(s);
}

static void refused(const char *name, const char *text, const char *more, const char *why)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char spec[700];
	assert_int_equal(nr_save_file(made_path("%s", name), text, strlen(text), &err), 0);
	snprintf(spec, sizeof spec, "labelled:path=%s%s", made_path("%s", name), more);
	assert_int_not_equal(nr_source_open(&s, spec, NULL, &err), 0);
	if (!strstr(err.detail, why)) fail_msg("'%s' instead of '%s'", err.detail, why);
}

static void wrong_rows_are_named(void **state)
{
	(void)state;
	refused("a.csv", "text,label\na\n", "", "line 2 has 1 columns, but the header line has 2");
	refused("a.csv", "text,label\na,\n", "", "line 2: the label is empty");
	refused("a.csv", "text,label\n\"a,1\n", "", "a quote is not closed");
	refused("a.csv", "text,label\n\"a\"b,1\n", "", "text follows a closing quote");
	refused("a.csv", "text,label\n", "", "it has no rows");
	refused("a.csv", "text,label\n\xff,1\n", "", "it is not UTF-8");
	refused("a.csv", "x,label\na,1\n", "", "which column is the text? there are x, label");
	refused("a.csv", "text,label\na,1\n", ",label=lab", "no column 'lab' among text, label");
	refused("a.jsonl", "[1]\n", "", "line 1: it is not a JSON object");
	refused("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": {}, \"label\": 1}\n", "", "line 2: 'text' is missing");
	refused("a.csv", "text,label\na,1\nb,2\n", ",val=0.9,test=0.9", "leave no rows to train on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(columns_are_found_by_name, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(rows_are_set_apart_once, made_setup, made_teardown),
		cmocka_unit_test_setup_teardown(wrong_rows_are_named, made_setup, made_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
