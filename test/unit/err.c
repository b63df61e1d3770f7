/* base/err.c: the error slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "norma/err.h"

static void text_has_what_subject_detail_hint(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char buf[256];
	int code = nr_fail(&e, NR_EFORMAT, "cannot read", "ckpt/7.safetensors",
			   "header says %d bytes, file has %d", 812, 640);
	assert_int_equal(code, NR_EFORMAT);
	assert_int_equal(nr_hint(&e, "copy it again: it is %s", "incomplete"), NR_EFORMAT);
	assert_string_equal(nr_error_text(&e, buf, sizeof buf),
			    "cannot read 'ckpt/7.safetensors': header says 812 bytes, file has 640 "
			    "(copy it again: it is incomplete)");
}

static void absent_parts_leave_no_marks(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char buf[256];
	nr_fail(&e, NR_ENAME, "unknown norm", "lnn", NULL);
	assert_string_equal(nr_error_text(&e, buf, sizeof buf), "unknown norm 'lnn'");
	e = (struct nr_error){ 0 };
	nr_fail(&e, NR_EMEMORY, NULL, NULL, NULL);
	assert_string_equal(nr_error_text(&e, buf, sizeof buf), "out of memory");
}

static void first_error_and_first_hint_stick(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	nr_fail(&e, NR_ENAME, "first", NULL, NULL);
	nr_hint(&e, "one");
	assert_int_equal(nr_fail(&e, NR_EIO, "second", NULL, NULL), NR_EIO);
	nr_hint(&e, "two");
	assert_int_equal(e.code, NR_ENAME);
	assert_string_equal(e.what, "first");
	assert_string_equal(e.hint, "one");
}

static void no_slot_still_returns_the_code(void **state)
{
	(void)state;
	assert_int_equal(nr_fail(NULL, NR_EIO, "x", NULL, NULL), NR_EIO);
	assert_int_equal(nr_hint(NULL, "x"), NR_EVALUE); /* a failure stays one without a slot */
}

static void long_text_is_cut_between_characters(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char name[600], buf[16];
	for (size_t i = 0; i + 3 < sizeof name; i += 3)
		memcpy(name + i, "\xE2\x82\xAC", 4);
	nr_fail(&e, NR_EIO, "x", name, NULL);
	assert_int_equal(strlen(e.subject) % 3, 0);
	assert_true(strlen(e.subject) >= 250);
	nr_error_text(&e, buf, sizeof buf);
	assert_int_equal((strlen(buf) - strlen("x '")) % 3, 0);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char buf[64];
	nr_fail(&e, NR_EIO, "bad name", "a\nb\x1b[2J", NULL);
	assert_string_equal(nr_error_text(&e, buf, sizeof buf), "bad name 'a?b?[2J'");
}

static void every_code_has_a_text(void **state)
{
	(void)state;
	for (int c = NR_ELIMIT; c <= NR_OK; c++)
		assert_string_not_equal(nr_strerror((enum nr_err)c), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_what_subject_detail_hint),
		cmocka_unit_test(absent_parts_leave_no_marks),
		cmocka_unit_test(first_error_and_first_hint_stick),
		cmocka_unit_test(no_slot_still_returns_the_code),
		cmocka_unit_test(long_text_is_cut_between_characters),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
		cmocka_unit_test(every_code_has_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
