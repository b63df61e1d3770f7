/* src/data/{tsv,sts,senteval,sentences}.c: rows, what is wrong with a file, folders of made-up sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include "unit/values.h"
#include "unit/folder.h"

#include "base/save.h"
#include "data/sentences.h"
#include "data/senteval.h"
#include "data/sts.h"

static const struct nr_tsv_form pairs = { .texts = 2, .more = true, .high = 5 }, labels = { .texts = 1, .whole = true, .high = 1 };

static int parse(struct nr_tsv *t, const char *text, const struct nr_tsv_form *f, struct nr_error *err)
{
	*err = (struct nr_error){ 0 };
	return nr_tsv_parse(t, text, strlen(text), f, "made-up.tsv", err);
}

static void rows_are_read_with_or_without_a_last_newline(void **state)
{
	(void)state;
	struct nr_tsv t;
	struct nr_error err;
	assert_int_equal(parse(&t, "4.5\ta b\tc\r\n0\t\t\xc3\xa9\tNEUTRAL\tmore", &pairs, &err), 0);
	assert_int_equal(t.count, 2);
	assert_true(t.value[0] == 4.5 && t.value[1] == 0);
	assert_string_equal(t.text[0][0], "a b");
	assert_string_equal(t.text[1][0], "c");
	assert_string_equal(t.text[0][1], "");
	assert_string_equal(t.text[1][1], "\xc3\xa9");
	nr_tsv_release(&t);
	assert_int_equal(parse(&t, "1\tgood\n0\t\n", &labels, &err), 0);
	assert_int_equal(t.count, 2);
	assert_null(t.text[1]);
	assert_string_equal(t.text[0][1], "");
	nr_tsv_release(&t);
}

static void what_is_wrong_is_told_with_the_line(void **state)
{
	(void)state;
	static const struct { const char *text, *says; } bad[] = {
		{ "1\ta\n\n", "line 2 is empty" }, { "1\ta\n2", "line 2 has 1 columns instead of 2" },
		{ "1\ta\tb\n", "line 1 has 3 columns" },
		{ "one\ta\n", "'one' is not a number" }, { "0\ta\n.5\tb\n", "line 2: label .5 is not a whole number" },
		{ "0\ta\n2\tb\n", "line 2: 2 is outside 0 to 1" }, { "inf\ta\n", "is not a number" },
		{ "0\ta\n1\t\xff\n", "line 2 is not UTF-8" },
		{ "", "no rows" },
	};
	struct nr_tsv t;
	struct nr_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_true(parse(&t, bad[i].text, &labels, &err) < 0);
		if (!strstr(err.detail, bad[i].says)) fail_msg("'%s' does not say '%s'", err.detail, bad[i].says);
		assert_string_equal(err.subject, "made-up.tsv");
		assert_null(t.memory);
	}
	err = (struct nr_error){ 0 };
	assert_true(nr_tsv_parse(&t, "0\ta\0b\n", 6, &labels, "made-up.tsv", &err) < 0);
	assert_non_null(strstr(err.detail, "zero byte"));
}

/* ---- folders --------------------------------------------------------------------------------------------------------------- */

static void write_at(const char *path, const char *text, int packed)
{
	if (!packed) {
		made_with(path, text);
		return;
	}
	gzFile f = gzopen(made_path("%s.gz", path), "wb");
	assert_non_null(f);
	assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
	gzclose(f);
}

/* raw.tar.gz with one file. */
static void write_archive(const char *path, const char *name, const char *text)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	archive_write_set_format_pax_restricted(a);
	archive_write_add_filter_gzip(a);
	assert_int_equal(archive_write_open_filename(a, made_path("%s", path)), ARCHIVE_OK);
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (la_int64_t)strlen(text));
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, text, strlen(text)), strlen(text));
	archive_entry_free(e);
	archive_write_free(a);
}

static void original_texts_are_read_from_their_archive(void **state)
{
	(void)state;
	struct nr_tsv t;
	struct nr_error err = { 0 };
	const struct nr_sts_task *sts12 = nr_sts_find("STS12", NULL);
	write_at("sts/tokenized/STS12/MSRpar.tsv", "1\ta\tb\n", 0);
	write_archive("sts/raw.tar.gz", "./raw/STS12/MSRpar.tsv", "1\tA\tB\n2\tC\tD\n");
	assert_int_equal(nr_sts_open(&t, made_dir, true, sts12, "MSRpar", &err), 0);
	assert_int_equal(t.count, 2);
	assert_string_equal(t.text[1][1], "D");
	nr_tsv_release(&t);
	assert_int_equal(nr_sts_open(&t, made_dir, true, sts12, "MSRvid", &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "no file 'raw/STS12/MSRvid.tsv'"));
	write_at("sts/raw/STS12/MSRpar.tsv", "1\tplain\tfirst\n", 0);
	assert_int_equal(nr_sts_open(&t, made_dir, true, sts12, "MSRpar", NULL), 0);
	assert_string_equal(t.text[0][0], "plain");
	nr_tsv_release(&t);
}

static void sets_are_found_plain_and_packed(void **state)
{
	(void)state;
	struct nr_tsv t;
	struct nr_error err = { 0 };
	const struct nr_sts_task *sts13 = nr_sts_find("STS13", NULL), *sick = nr_sts_find("SICK", NULL);
	write_at("sts/tokenized/STS13/FNWN.tsv", "1\ta\tb\n2\tc\td\n", 0);
	write_at("sts/raw/STS13/FNWN.tsv", "1\tA\tB\n", 1);
	write_at("sts/tokenized/SICK/train.tsv", "3.5\ta\tsick\tNEUTRAL\n", 0);
	assert_int_equal(nr_sts_open(&t, made_dir, false, sts13, "FNWN", &err), 0);
	assert_int_equal(t.count, 2);
	nr_tsv_release(&t);
	assert_int_equal(nr_sts_open(&t, made_dir, true, sts13, "FNWN", &err), 0);
	assert_string_equal(t.text[1][0], "B");
	nr_tsv_release(&t);
	assert_int_equal(nr_sts_open(&t, made_path("sts"), false, sick, "train", &err), 0);
	nr_tsv_release(&t);
	assert_int_equal(nr_sts_open(&t, made_dir, true, sick, "train", &err), NR_EIO);
	assert_non_null(strstr(err.subject, "sts/raw/SICK/train.tsv"));
	assert_non_null(strstr(err.hint, "raw.tar.gz"));
	err = (struct nr_error){ 0 };
	assert_null(nr_sts_find("STS17", &err));
	assert_non_null(strstr(err.hint, "did you mean"));
}

static void labels_outside_a_task_are_refused(void **state)
{
	(void)state;
	struct nr_tsv t;
	struct nr_error err = { 0 };
	const struct nr_senteval_task *mr = nr_senteval_find("MR", NULL), *trec = nr_senteval_find("TREC", NULL);
	write_at("senteval/MR.tsv", "1\tgood\n2\tbetter\n", 1);
	assert_true(nr_senteval_open(&t, made_dir, mr, NULL, &err) < 0);
	assert_non_null(strstr(err.detail, "line 2: 2 is outside 0 to 1"));
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_senteval_open(&t, made_dir, trec, "test", &err), NR_EIO);
	assert_non_null(strstr(err.hint, "senteval/TREC/test.tsv.gz"));
}

static void sentences_come_once_and_never_empty(void **state)
{
	(void)state;
	struct nr_sentences s;
	struct nr_error err = { 0 };
	assert_int_equal(nr_sentences_open(&s, made_dir, &err), NR_EIO);     /* STSB is missing */
	nr_sentences_release(&s);
	write_at("sts/tokenized/STSB/train.tsv", "1\ta\tb\n2\tb\tc\n", 0);
	write_at("senteval/MR.tsv", "1\tgood\n0\ta\n0\t\n", 1);
	write_at("senteval/CR.tsv", "1\tgood\n", 0);
	write_at("senteval/SUBJ.tsv", "1\tgood\n", 0);
	write_at("senteval/MPQA.tsv", "1\tbad\n", 0);
	write_at("senteval/SST2/train_sentences.tsv", "1\tfilm\n", 0);
	write_at("senteval/TREC/train.tsv", "5\twho\n", 0);
	write_at("senteval/MRPC/train.tsv", "1\twho\twhom\n", 0);
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_sentences_open(&s, made_dir, &err), 0);
	static const char *const want[] = { "a", "b", "c", "sick", "good", "bad", "film", "who", "whom" };
	assert_int_equal(s.count, sizeof want / sizeof *want);
	for (int64_t i = 0; i < s.count; i++) assert_string_equal(s.text[i], want[i]);
	nr_sentences_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_with_or_without_a_last_newline),
		cmocka_unit_test(what_is_wrong_is_told_with_the_line),
		cmocka_unit_test(sets_are_found_plain_and_packed),
		cmocka_unit_test(original_texts_are_read_from_their_archive),
		cmocka_unit_test(labels_outside_a_task_are_refused),
		cmocka_unit_test(sentences_come_once_and_never_empty),
	};
	return cmocka_run_group_tests(tests, made_setup, made_teardown);
}
