/* data/npy.c, data/npz*.c: arrays come back as they were written; damaged and foreign files are refused by name. */
#include "unit/datasets.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/resource.h>

#include "data/npy.h"

static void put(struct nr_str *s, const char *header)
{
	const size_t n = strlen(header);
	nr_str_add_n(s, "\x93NUMPY\1\0", 8);
	nr_str_add_n(s, (const char[]){ (char)(n & 255), (char)(n >> 8) }, 2);
	nr_str_add(s, header);
}

static void refuses(const char *header, size_t data, const char *part)
{
	struct nr_str s = { 0 };
	struct nr_st_tensor a;
	struct nr_error err = { 0 };
	put(&s, header);
	nr_str_fill(&s, 1, data);
	char *exact = malloc(s.len);    /* the sanitizer sees a step too far */
	memcpy(exact, s.text, s.len);
	assert_int_equal(nr_npy_parse(&a, exact, s.len, "x.npy", &err), NR_EFORMAT);
	if (!strstr(err.detail, part) || strcmp(err.subject, "x.npy")) fail_msg("'%s' should say '%s'", err.detail, part);
	free(exact);
	nr_str_release(&s);
}

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	const float x[6] = { 1, -2, 3.5f, 0, 1e30f, -1e-30f };
	const struct nr_st_tensor arrays[] = {
		{ .dtype = NR_ST_F32, .nd = 2, .shape = { 2, 3 }, .data = x, .bytes = 24 },
		{ .dtype = NR_ST_U8, .nd = 1, .shape = { 24 }, .data = x, .bytes = 24 },
		{ .dtype = NR_ST_I64, .nd = 0, .data = x, .bytes = 8 },
		{ .dtype = NR_ST_BOOL, .nd = 3, .shape = { 2, 0, 5 }, .data = x, .bytes = 0 },
	};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		struct nr_npy n;
		struct nr_error err = { 0 };
		assert_int_equal(nr_npy_write(made_path("a.npy"), &arrays[i], &err), 0);
		assert_int_equal(nr_npy_open(&n, made_path("a.npy"), &err), 0);
		assert_int_equal(n.array.dtype, arrays[i].dtype);
		assert_int_equal(n.array.nd, arrays[i].nd);
		assert_int_equal(n.array.bytes, arrays[i].bytes);
		assert_memory_equal(n.array.shape, arrays[i].shape, sizeof n.array.shape);
		assert_memory_equal(n.array.data, arrays[i].data, n.array.bytes);
		assert_int_equal((size_t)((const uint8_t *)n.array.data - n.file.data) % 64,
			0);    /* as NumPy aligns it */
		nr_npy_close(&n);
	}
	struct nr_st_tensor bf16 = { .dtype = NR_ST_BF16, .nd = 1, .shape = { 2 }, .data = x, .bytes = 4 };
	assert_int_equal(nr_npy_write(made_path("b.npy"), &bf16, NULL), NR_EVALUE);
	bf16.dtype = NR_ST_F32;
	assert_int_equal(nr_npy_write(made_path("b.npy"), &bf16, NULL), NR_ESHAPE);
}

static void numpy_headers_are_read(void **state)
{
	(void)state;
	static const char *const good[] = {
		"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }     \n",
			"{'shape': (3L,), 'descr': '<f4', 'fortran_order': True}",
		"{'descr':'<f4','fortran_order':False,'shape':(1,3)}",
			"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }",
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct nr_str s = { 0 };
		struct nr_st_tensor a;
		put(&s, good[i]);
		nr_str_fill(&s, 0, 12);
		assert_int_equal(nr_npy_parse(&a, s.text, s.len, "x", NULL), 0);
		assert_int_equal(nr_st_elements(&a), 3);
		nr_str_release(&s);
	}
}

static void wrong_headers_are_refused(void **state)
{
	(void)state;
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11, "it has 11 bytes of data instead of 12");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13, "it has 13 bytes of data instead of 12");
	refuses("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", 24, "Fortran");
	refuses("{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", 12, "type '>f4'");
	refuses("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 12, "type '|O'");
	refuses("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", 12, "records");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 12, "overflows");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 12, "overflows");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 12, "tuple");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 12, "more than 8");
	refuses("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,), }", 12, "neither");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (3,", 12, "tuple");
	refuses("{'descr': '<f4', 'fortran_order': False}", 12, "lacks");
	refuses("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 12, "twice");
	refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} print", 12, "follows");
	refuses("['descr']", 12, "not a dictionary");
	refuses("", 12, "not a dictionary");
	refuses("{'descr", 12, "dictionary");
	struct nr_st_tensor a;
	assert_int_equal(nr_npy_parse(&a, "\x93NUMPY", 6, "x", NULL), NR_EFORMAT);
	assert_int_equal(nr_npy_parse(&a, "\x93NUMPY\1\0\xff\xff", 10, "x", NULL), NR_EFORMAT);
	assert_int_equal(nr_npy_parse(&a, "\x93NUMPY\2\0\xff\xff", 10, "x", NULL), NR_EFORMAT);
	assert_int_equal(nr_npy_parse(&a, "\x93NUMPY\7\0\1\0{", 11, "x", NULL), NR_EFORMAT);
}

/* ---- NPZ
 * -------------------------------------------------------------------------------------------------------------- */

static struct archive *start(const char *path)
{
	struct archive *a = archive_write_new();
	archive_write_set_format_zip(a);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	return a;
}

static void member(struct archive *a, const char *name, const char *descr, const char *shape, const void *data,
	size_t size)
{
	struct nr_str s = { 0 };
	char header[200];
	snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
	put(&s, header);
	nr_str_add_n(&s, data, size);
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, name);
	archive_entry_set_size(e, (la_int64_t)s.len);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, s.text, s.len), (la_ssize_t)s.len);
	archive_entry_free(e);
	nr_str_release(&s);
}

static void put_npz(const char *path, const char *shape, bool planes, const char *y, int64_t bad)
{
	uint8_t x[4 * 5 * 6 * 3], labels[4] = { 2, 0, 1, 2 };
	int64_t wide[4] = { 2, 0, bad, 2 };
	for (int n = 0; n < 4; n++)
		for (int r = 0; r < 5; r++)
			for (int c = 0; c < 6; c++)
				for (int k = 0; k < 3; k++) x[n * 90 + (planes ? k * 30 + r * 6 + c :
					(r * 6 + c) * 3 + k)] = made_pixel(n, r, c, k);
	struct archive *a = start(path);
	member(a, "x_train.npy", "|u1", shape, x, sizeof x);
	member(a, y, "<i8", "(4,)", wide, sizeof wide);
	member(a, "x_test.npy", "|u1", shape, x, sizeof x);
	member(a, "y_test.npy", "|u1", "(4, 1)", labels, sizeof labels);
	archive_write_free(a);
}

static void has(const char *text)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	struct nr_picture p = { 0 };
	int32_t label;
	if (nr_source_open(&s, text, made_dir, &err)) fail_msg("%s: %s %s", text, err.subject, err.detail);
	assert_int_equal(s->classes, 3);
	assert_int_equal(s->count[NR_TRAIN], 4);
	assert_int_equal(s->count[NR_TEST], 4);
	assert_int_equal(nr_source_get(s, NR_TEST, 3, &p, &label, &err), 0);
	assert_int_equal(label, 2);
	for (int r = 0; r < 5; r++)
		for (int c = 0; c < 6; c++)
			for (int k = 0; k < 3; k++) assert_int_equal(p.pixels[(r * 6 + c) * 3 + k],
				made_pixel(3, r, c, k));
	nr_picture_release(&p);
	nr_source_close(s);
}

static void refuses_npz(const char *text, const char *part)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char line[1500];
	assert_int_not_equal(nr_source_open(&s, text, made_dir, &err), 0);
	if (!strstr(nr_error_text(&err, line, sizeof line), part)) fail_msg("'%s' should say '%s'", line, part);
}

static void npz_pictures_are_read(void **state)
{
	(void)state;
	put_npz(made_path("a.npz"), "(4, 5, 6, 3)", false, "y_train.npy", 1);
	has("npz:path=a.npz");
	put_npz(made_path("a.npz"), "(4, 3, 5, 6)", true, "y_train.npy", 1);
	has("npz:path=a.npz");
	put_npz(made_path("a.npz"), "(4, 5, 6, 3)", false, "answer.npy", 1);
	has("npz:path=a.npz,labels=answer");
	refuses_npz("npz:path=a.npz", "there is no array of labels; it has: x_train, answer, x_test, y_test");
	refuses_npz("npz:path=a.npz,images=nosuch", "no array of pictures");
	refuses_npz("npz:path=a.npz,labels=answer,classes=2", "label 2 of picture 0 is not from 0 to 1");
	put_npz(made_path("a.npz"), "(4, 5, 6, 3)", false, "y_train.npy", -1);
	refuses_npz("npz:path=a.npz", "label -1 of picture 2");
	put_npz(made_path("a.npz"), "(4, 90)", false, "y_train.npy", 1);
	refuses_npz("npz:path=a.npz", "not an array of bytes");
	put_npz(made_path("a.npz"), "(4, 5, 6, 4)", false, "y_train.npy", 1);
	refuses_npz("npz:path=a.npz", "x_train.npy");
	made_text(made_path("b.npz"), "this is no zip");
	refuses_npz("npz:path=b.npz", "b.npz");
	refuses_npz("npz:path=none.npz", "none.npz");
	refuses_npz("npz", "option 'path' is missing");
}

static int64_t peak_bytes(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return used.ru_maxrss * 1024;
}

/* A header of 360 bytes before 64 MiB that deflate to 64 KiB; and one that promises more than any machine has. */
static void bombs_are_refused_by_their_header(void **state)
{
	(void)state;
	enum { MORE = 64 << 20 };
	static const char zeros[1 << 20];
	struct nr_str s = { 0 };
	put(&s, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 5, 6, 3), }\n");
	struct archive *a = start(made_path("bomb.npz"));
	struct archive_entry *e = archive_entry_new();
	archive_entry_set_pathname(e, "x_train.npy");
	archive_entry_set_size(e, (la_int64_t)s.len + MORE);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	assert_int_equal(archive_write_data(a, s.text, s.len), (la_ssize_t)s.len);
	for (int i = 0; i < MORE / (int)sizeof zeros; i++) assert_int_equal(archive_write_data(a, zeros, sizeof zeros), sizeof zeros);
	archive_entry_free(e);
	archive_write_free(a);
	const int64_t before = peak_bytes();
	refuses_npz("npz:path=bomb.npz", "x_train.npy");
	assert_in_range(peak_bytes() - before, 0, MORE / 4);
	a = start(made_path("vast.npz"));
	member(a, "x_train.npy", "|u1", "(2000000000, 60000, 20000, 3)", zeros, 100);
	archive_write_free(a);
	refuses_npz("npz:path=vast.npz", "are all there is");
	nr_str_release(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, made_setup, made_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(what_is_written_is_read_back), TEST(numpy_headers_are_read),
		TEST(wrong_headers_are_refused),
		TEST(npz_pictures_are_read), TEST(bombs_are_refused_by_their_header) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
