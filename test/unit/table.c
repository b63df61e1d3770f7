/* base/table.c: one table, three forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/table.h"

static struct nr_table *sample(void)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "norm", NR_LEFT);
	nr_table_column(t, "ms", NR_RIGHT);
	nr_table_column(t, "note", NR_LEFT);
	nr_table_cell(t, "layer");
	nr_table_cell(t, "%.1f", 12.5);
	nr_table_cell(t, "%s", "");
	nr_table_cell(t, "\xE4\xB8\xAD");
	nr_table_cell(t, "%d", 3);
	nr_table_cell(t, "a, \"b\" | c");
	return t;
}

static void is(struct nr_str *s, const char *want)
{
	assert_string_equal(nr_str_text(s), want);
	nr_str_release(s);
}

static void text_is_aligned_without_trailing_spaces(void **state)
{
	(void)state;
	struct nr_table *t = sample();
	struct nr_str s = { 0 };
	nr_table_text(t, &s);
	is(&s, "norm     ms  note\n"
	       "layer  12.5\n"
	       "\xE4\xB8\xAD        3  a, \"b\" | c\n");
	assert_int_equal(nr_table_rows(t), 2);
	nr_table_free(t);
}

static void csv_quotes_what_needs_it(void **state)
{
	(void)state;
	struct nr_table *t = sample();
	struct nr_str s = { 0 };
	nr_table_csv(t, &s);
	is(&s, "norm,ms,note\nlayer,12.5,\n\xE4\xB8\xAD,3,\"a, \"\"b\"\" | c\"\n");
	nr_table_free(t);
}

static void markdown_keeps_alignment_and_escapes_bars(void **state)
{
	(void)state;
	struct nr_table *t = sample();
	struct nr_str s = { 0 };
	nr_table_markdown(t, &s);
	is(&s,
	   "| norm | ms | note |\n|---|--:|---|\n| layer | 12.5 |  |\n| \xE4\xB8\xAD | 3 | a, \"b\" \\| c |\n");
	nr_table_free(t);
}

static void unfinished_row_is_filled_with_empty_cells(void **state)
{
	(void)state;
	struct nr_table *t = sample();
	struct nr_str s = { 0 };
	nr_table_cell(t, "last");
	nr_table_csv(t, &s);
	assert_non_null(strstr(s.text, "\nlast,,\n"));
	nr_str_release(&s);
	nr_table_free(t);
}

static void many_rows_keep_their_cells(void **state)
{
	(void)state;
	struct nr_table *t = nr_table_make();
	struct nr_str s = { 0 };
	nr_table_column(t, "i", NR_RIGHT);
	for (int i = 0; i < 1000; i++)
		nr_table_cell(t, "%d", i);
	assert_int_equal(nr_table_rows(t), 1000);
	nr_table_text(t, &s);
	assert_int_equal(s.len, 1001 * 4);
	nr_str_release(&s);
	nr_table_free(t);
}

static void empty_and_null_tables_write_nothing(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_table *t = nr_table_make();
	nr_table_text(t, &s);
	nr_table_csv(NULL, &s);
	nr_table_markdown(NULL, &s);
	nr_table_text(NULL, &s);
	nr_table_cell(NULL, "x");
	is(&s, "");
	nr_table_free(t);
	nr_table_free(NULL);
}

static void numbers_that_are_none_are_empty(void **state)
{
	(void)state;
	struct nr_table *t = nr_table_make();
	struct nr_str s = { 0 };
	nr_table_column(t, "a", NR_RIGHT);
	nr_table_column(t, "b", NR_RIGHT);
	nr_table_number(t, 12.345, " %");
	nr_table_number(t, NAN, " %");
	nr_table_number(t, -INFINITY, "");
	nr_table_number(t, 0, "");
	nr_table_csv(t, &s);
	is(&s, "a,b\n12.35 %,\n,0.00\n");
	nr_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_that_are_none_are_empty),
		cmocka_unit_test(text_is_aligned_without_trailing_spaces),
		cmocka_unit_test(csv_quotes_what_needs_it),
		cmocka_unit_test(markdown_keeps_alignment_and_escapes_bars),
		cmocka_unit_test(unfinished_row_is_filled_with_empty_cells),
		cmocka_unit_test(many_rows_keep_their_cells),
		cmocka_unit_test(empty_and_null_tables_write_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
