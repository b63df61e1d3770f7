/* base/wrap.c: texts in lines of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/wrap.h"

static void words_fill_lines(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_wrap(&s, "one two  three\nfour", 2, 10);
	assert_string_equal(nr_str_text(&s), "one two\n  three\n  four");
	nr_str_release(&s);
	nr_wrap(&s, "\u03bb\u03bb\u03bb \u03bb\u03bb\u03bb averylongword", 0, 7);      /* letters count, not bytes */
	assert_string_equal(nr_str_text(&s), "\u03bb\u03bb\u03bb \u03bb\u03bb\u03bb\naverylongword");
	nr_str_release(&s);
	nr_wrap(&s, "", 2, 10);
	assert_string_equal(nr_str_text(&s), "");
	nr_str_release(&s);
}

static void paragraphs_are_filled_and_examples_kept(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_wrap_paragraphs(&s, "one\ntwo three\n\n  norma x   # kept as it is\n  list  a text that goes on\nend", 16);
	assert_string_equal(nr_str_text(&s),
		"one two three\n\n  norma x   # kept as it is\n  list  a text\n        that\n        goes on\nend");
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_fill_lines),
		cmocka_unit_test(paragraphs_are_filled_and_examples_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
