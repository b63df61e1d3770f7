/* base/json.c: loading with places, one object per line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/str.h"

static void refuses(const char *text, const char *part)
{
	struct nr_error e = { 0 };
	assert_null(nr_json_parse(text, strlen(text), "x.json", &e));
	assert_int_equal(e.code, NR_EFORMAT);
	assert_string_equal(e.subject, "x.json");
	if (!strstr(e.detail, part))
		fail_msg("'%s' should contain '%s'", e.detail, part);
}

static void errors_say_line_and_column(void **state)
{
	(void)state;
	refuses("{\"a\": 1,\n \"b\": }", "line 2, column 7");
	refuses("{\"a\": 1, \"a\": 2}", "duplicate");
	refuses("", "line 1");
	refuses("{\"a\": \"\xFF\"}", "column 7");
}

static void files_load_or_say_why_not(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char path[] = "/tmp/norma-json-XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "[1]", 3), 3);
	close(fd);
	json_t *root = nr_json_load(path, &e);
	assert_int_equal(json_array_size(root), 1);
	json_decref(root);
	unlink(path);
	assert_null(nr_json_load(path, &e));
	assert_int_equal(e.code, NR_EIO);
	assert_string_equal(e.subject, path);
	e = (struct nr_error){ 0 };
	assert_null(nr_json_load("/tmp", &e));
	assert_int_equal(e.code, NR_EIO);
}

static void object_is_one_line_that_reads_back(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	struct nr_error e = { 0 };
	assert_int_equal(
		nr_json_add(&s, json_pack("{s:i, s:f, s:s}", "step", 3, "loss", 0.1, "note", "a\nb"), &e),
		NR_OK);
	assert_ptr_equal(strchr(s.text, '\n'), s.text + s.len - 1);
	json_t *back = nr_json_parse(s.text, s.len, "line", &e);
	assert_true(json_real_value(json_object_get(back, "loss")) == 0.1);
	assert_string_equal(json_string_value(json_object_get(back, "note")), "a\nb");
	json_decref(back);
	nr_str_release(&s);
}

static void lines_go_to_a_stream(void **state)
{
	(void)state;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	assert_int_equal(nr_json_line(f, json_pack("{s:i}", "a", 1), NULL), NR_OK);
	assert_int_equal(nr_json_line(f, json_pack("{s:i}", "b", 2), NULL), NR_OK);
	fclose(f);
	assert_string_equal(text, "{\"a\":1}\n{\"b\":2}\n");
	free(text);
}

static void full_disk_is_an_error(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	FILE *f = fopen("/dev/full", "w");
	assert_int_equal(nr_json_line(f, json_pack("{s:i}", "a", 1), &e), NR_EIO);
	fclose(f);
	assert_string_equal(e.detail, "No space left on device");
}

static void not_a_number_is_an_error_not_a_crash(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	assert_int_equal(nr_json_add(&s, json_pack("{s:f}", "loss", (double)NAN), NULL), NR_EVALUE);
	nr_str_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_say_line_and_column),
		cmocka_unit_test(files_load_or_say_why_not),
		cmocka_unit_test(object_is_one_line_that_reads_back),
		cmocka_unit_test(lines_go_to_a_stream),
		cmocka_unit_test(full_disk_is_an_error),
		cmocka_unit_test(not_a_number_is_an_error_not_a_crash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
