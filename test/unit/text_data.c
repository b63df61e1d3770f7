/* src/data/{text,tokenizer_copy}.c: lines, documents, quoted columns, packed files, and what is wrong with a line. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "base/save.h"
#include "norma/data.h"
#include "norma/tokenizer.h"

static int open_with(struct nr_source **s, const char *name, const char *text, size_t size, const char *more, struct nr_error *err)
{
	const char *path = made_path("%s", name);
	char spec[600];
	*err = (struct nr_error){ 0 };
	*s = NULL;
	assert_int_equal(nr_save_file(path, text, size, err), 0);
	snprintf(spec, sizeof spec, "text:path=%s%s", path, more);
	return nr_source_open(s, spec, NULL, err);
}

static struct nr_source *opened(const char *name, const char *text, const char *more)
{
	struct nr_source *s;
	struct nr_error err;
	char line[1200];
	if (open_with(&s, name, text, strlen(text), more, &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return s;
}

static void refused(const char *name, const char *text, const char *why)
{
	struct nr_source *s;
	struct nr_error err;
	assert_int_equal(open_with(&s, name, text, strlen(text), "", &err), NR_EFORMAT);
	if (!strstr(err.detail, why)) fail_msg("'%s' instead of '%s'", err.detail, why);
}

static void blank_lines_part_documents(void **state)
{
	(void)state;
	struct nr_source *s = opened("a.txt", "\xEF\xBB\xBF\n\none\r\ntwo \rthree\n \t\n\n\"four\",4\n\nfive", "");
	static const char *const want[] = { "one", "two \rthree", "\"four\",4", "five" };
	static const int32_t documents[] = { 0, 0, 1, 2 };
	assert_int_equal(s->count[NR_TRAIN], 4);
	assert_int_equal(s->columns, 1);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(nr_source_text(s, NR_TRAIN, i, 0), want[i]);
		assert_int_equal(nr_source_label(s, NR_TRAIN, i), documents[i]);
	}
	assert_null(nr_source_text(s, NR_TRAIN, 4, 0));
	assert_null(nr_source_text(s, NR_TRAIN, 0, 1));
	nr_source_close(s);
	s = opened("a.txt", "a\nb\nc\nd\n\ne\n", ",val=0.4");
	assert_true(s->count[NR_TRAIN] == 3 && s->count[NR_VAL] == 2);
	assert_string_equal(nr_source_text(s, NR_VAL, 0, 0), "d");
	assert_int_equal(nr_source_label(s, NR_VAL, 1), 1);
	nr_source_close(s);
}

static void columns_are_unquoted(void **state)
{
	(void)state;
	struct nr_source *s = opened("t.csv", "sent0,sent1,hard_neg\r\n\"a, \"\"b\"\"\",plain,\"two\nlines\"\r\n\n,,\r\nx,\"\",y\n", "");
	static const char *const want[3][3] = { { "a, \"b\"", "plain", "two\nlines" }, { "", "", "" }, { "x", "", "y" } };
	assert_int_equal(s->columns, 3);
	assert_int_equal(s->count[NR_TRAIN], 3);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) assert_string_equal(nr_source_text(s, NR_TRAIN, i, k), want[i][k]);
	nr_source_close(s);
	s = opened("t.tsv", "a\tb\n\"x\ty, z\n", "");
	assert_int_equal(s->columns, 2);
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 0), "\"x");
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 1), "y, z");
	nr_source_close(s);
	s = opened("plain", "head\n\"a\"\n", ",form=csv");
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 0), "a");
	nr_source_close(s);
}

static void what_is_wrong_is_told_with_the_line(void **state)
{
	(void)state;
	struct nr_source *s;
	struct nr_error err;
	refused("t.csv", "a,b\nx,y\n\"x\n\nz", "line 5: a quote is not closed");
	refused("t.csv", "a,b\nx,\"y\"z\n", "line 2: text follows a closing quote");
	refused("t.csv", "a,b\nx,\"y\"\rz\n", "line 2: text follows a closing quote");
	refused("t.csv", "a,b\nx,y\nx,y,z\n", "line 3 has 3 columns, but the header line has 2");
	refused("t.csv", "a,b,c,d\n", "line 1: more than 3 columns");
	refused("t.csv", "a,b\n", "it has no text");
	refused("t.txt", "\n \n", "it has no text");
	refused("t.txt", "a\n\nb\xff\n", "line 3: it is not UTF-8");
	assert_int_equal(open_with(&s, "z.txt", "ab\0c\n", 5, "", &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "byte 2 is zero"));
	assert_int_not_equal(open_with(&s, "empty.txt", "", 0, "", &err), 0);
	assert_int_equal(nr_source_open(&s, "text:path=/no/such/file", NULL, &(struct nr_error){ 0 }), NR_EIO);
}

static void packed_files_are_read(void **state)
{
	(void)state;
	const char *path = made_path("p.csv.gz");
	char spec[600];
	struct nr_error err = { 0 };
	struct nr_source *s;
	snprintf(spec, sizeof spec, "text:path=%s", path);
	gzFile f = gzopen(path, "wb");
	assert_non_null(f);
	gzputs(f, "a,b\nx,y\n");
	gzclose(f);
	assert_int_equal(nr_source_open(&s, spec, NULL, &err), 0);
	assert_int_equal(s->columns, 2);
	assert_string_equal(nr_source_text(s, NR_TRAIN, 0, 1), "y");
	nr_source_close(s);
}

static bool has(const char *name) { return !access(made_path("%s", name), R_OK); }

/* A vocabulary that was named by its file goes alone; what else is in the folder may be another tokenizer's. */
static void a_tokenizer_is_copied_as_it_was_named(void **state)
{
	(void)state;
	struct nr_error err = { 0 };
	made_with("from/my-words.txt", "[UNK]\n");
	made_with("from/tokenizer.json", "{}");
	made_with("from/tokenizer_config.json", "{}");
	made_with("from/vocab.json", "{}");
	made_with("from/merges.txt", "a b\n");
	assert_int_equal(nr_tokenizer_copy(made_path("from/my-words.txt"), made_path("one/"), &err), 0);
	assert_true(has("one/vocab.txt") && has("one/tokenizer_config.json"));
	assert_false(has("one/tokenizer.json") || has("one/vocab.json") || has("one/merges.txt"));
	assert_int_equal(nr_tokenizer_copy(made_path("from/vocab.json"), made_path("bpe/"), &err), 0);
	assert_true(has("bpe/vocab.json") && has("bpe/merges.txt") && !has("bpe/tokenizer.json"));
	assert_int_equal(nr_tokenizer_copy(made_path("from/model.safetensors"), made_path("all/"), &err), 0);
	assert_true(has("all/tokenizer.json") && has("all/merges.txt"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blank_lines_part_documents),
		cmocka_unit_test(columns_are_unquoted),
		cmocka_unit_test(what_is_wrong_is_told_with_the_line),
		cmocka_unit_test(packed_files_are_read),
		cmocka_unit_test(a_tokenizer_is_copied_as_it_was_named),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
