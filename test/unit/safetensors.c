/* base/safetensors*.c: what is written is read back; every damaged or malicious file gives one error that
 * names the place. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/save.h"
#include "base/str.h"
#include "norma/safetensors.h"

static char dir[64], path[128];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/norma-st-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof path, "%s/x.safetensors", dir);
	return 0;
}

static int files_in_dir(bool remove_them)
{
	int n = 0;
	DIR *d = opendir(dir);
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n++;
		if (remove_them)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	return n;
}

static int teardown(void **state)
{
	(void)state;
	files_in_dir(true);
	return rmdir(dir);
}

static void put_file(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A file with this header and so many bytes of data. */
static void put_header(const char *header, size_t data)
{
	struct nr_str s = { 0 };
	uint64_t n = strlen(header);
	nr_str_add_n(&s, (const char *)&n, 8);
	nr_str_add(&s, header);
	nr_str_fill(&s, 1, data);
	put_file(s.text, s.len);
	nr_str_release(&s);
}

/* Opening fails with one message: names the file and contains part. */
static void refuses(const char *part)
{
	struct nr_error e = { 0 };
	struct nr_st_file *f = (struct nr_st_file *)&e;
	int code = nr_st_open(&f, path, &e);
	assert_null(f);
	assert_int_equal(code, NR_EFORMAT);
	char text[2048];
	nr_error_text(&e, text, sizeof text);
	assert_int_equal(e.code, NR_EFORMAT);
	if (!strstr(text, path) || !strstr(text, part))
		fail_msg("'%s' should name '%s' and '%s'", text, path, part);
}

static void refuses_header(const char *header, size_t data, const char *part)
{
	put_header(header, data);
	refuses(part);
}

static const float three[] = { 1.5f, -2, 3e10f };
static const int64_t two[] = { -7, INT64_MAX };
static const uint8_t bools[] = { 1, 0, 255, 0 };
static const struct nr_st_tensor sample[] = {
	{ "b.weight", NR_ST_F32, 2, { 1, 3 }, three, sizeof three },
	{ "flags", NR_ST_BOOL, 1, { 4 }, bools, 4 },
	{ "ids", NR_ST_I64, 1, { 2 }, two, sizeof two },
	{ "a.\"q\\\n\xC3\xA9", NR_ST_F32, 0, { 0 }, three, 4 },
	{ "empty", NR_ST_F32, 2, { 0, 5 }, NULL, 0 },
};
static const struct nr_st_meta meta[] = { { "format", "norma-1" }, { "config", "{\"eps\": 1e-6}" } };
enum { N = sizeof sample / sizeof *sample };

static void write_sample(void)
{
	struct nr_error e = { 0 };
	assert_int_equal(nr_st_write(path, sample, N, meta, 2, &e), NR_OK);
}

static void written_tensors_are_read_back(void **state)
{
	(void)state;
	write_sample();
	struct nr_error e = { 0 };
	struct nr_st_file *f;
	assert_int_equal(nr_st_open(&f, path, &e), NR_OK);
	assert_int_equal(nr_st_count(f), N);
	for (int i = 0; i < N; i++) {
		const struct nr_st_tensor *t = nr_st_find(f, sample[i].name);
		assert_non_null(t);
		assert_int_equal(t->dtype, sample[i].dtype);
		assert_int_equal(t->nd, sample[i].nd);
		assert_memory_equal(t->shape, sample[i].shape, (size_t)t->nd * sizeof *t->shape);
		assert_int_equal(t->bytes, sample[i].bytes);
		assert_int_equal((uintptr_t)t->data % nr_st_width(t->dtype), 0);
		if (t->bytes)
			assert_memory_equal(t->data, sample[i].data, t->bytes);
	}
	assert_string_equal(nr_st_get(f, 0)->name, "ids");
	assert_string_equal(nr_st_get(f, N - 1)->name, "flags");
	assert_null(nr_st_get(f, N));
	assert_int_equal(nr_st_metadata_count(f), 2);
	assert_string_equal(nr_st_metadata(f, "config"), meta[1].value);
	assert_string_equal(nr_st_metadata_get(f, 0).key, "format");
	assert_null(nr_st_metadata(f, "nothing"));
	nr_st_close(f);
	assert_int_equal(files_in_dir(false), 1);
}

static void order_of_tensors_does_not_change_the_bytes(void **state)
{
	(void)state;
	struct nr_st_tensor back[N];
	char first[1024], second[1024];
	for (int i = 0; i < N; i++)
		back[i] = sample[N - 1 - i];
	write_sample();
	FILE *f = fopen(path, "rb");
	size_t n = fread(first, 1, sizeof first, f);
	fclose(f);
	assert_int_equal(nr_st_write(path, back, N, meta, 2, NULL), NR_OK);
	f = fopen(path, "rb");
	assert_int_equal(fread(second, 1, sizeof second, f), n);
	fclose(f);
	assert_memory_equal(first, second, n);
}

static void file_without_tensors_is_fine(void **state)
{
	(void)state;
	struct nr_st_file *f;
	assert_int_equal(nr_st_write(path, NULL, 0, NULL, 0, NULL), NR_OK);
	assert_int_equal(nr_st_open(&f, path, NULL), NR_OK);
	assert_int_equal(nr_st_count(f), 0);
	assert_null(nr_st_find(f, "x"));
	nr_st_close(f);
}

static void missing_name_gets_the_nearest(void **state)
{
	(void)state;
	write_sample();
	struct nr_st_file *f;
	struct nr_error e = { 0 };
	assert_int_equal(nr_st_open(&f, path, &e), NR_OK);
	assert_non_null(nr_st_need(f, "ids", &e));
	assert_null(nr_st_need(f, "b.wieght", &e));
	assert_int_equal(e.code, NR_ENAME);
	assert_string_equal(e.hint, "did you mean 'b.weight'?");
	nr_st_close(f);
}

static void truncation_at_every_byte_is_refused(void **state)
{
	(void)state;
	char bytes[1024];
	write_sample();
	FILE *f = fopen(path, "rb");
	size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (size_t cut = 0; cut < n; cut++) {
		put_file(bytes, cut);
		refuses("");
	}
	bytes[n] = 0;
	put_file(bytes, n + 1);
	refuses("the last 1 bytes of data belong to no tensor");
}

static void absurd_header_lengths_are_refused(void **state)
{
	(void)state;
	const uint64_t lengths[] = { UINT64_MAX, UINT64_MAX - 7, 1ull << 60, 100000001, 1000 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		char bytes[32] = { 0 };
		memcpy(bytes, &lengths[i], 8);
		put_file(bytes, sizeof bytes);
		refuses("header says");
	}
}

static void header_must_be_one_json_object(void **state)
{
	(void)state;
	refuses_header("", 0, "begin with '{'");
	refuses_header("[]", 0, "begin with '{'");
	refuses_header(" {}", 0, "begin with '{'");
	refuses_header("{", 0, "header, byte");
	refuses_header("{} x", 0, "header, byte");
	refuses_header("{\"a\": 99999999999999999999}", 0, "too big");
	refuses_header("{\"\xFF\": 1}", 0, "not UTF-8 at byte 10");
	refuses_header("{\"a\\u0000\": 1}", 0, "header, byte");
	refuses_header("{\"a\":{}, \"a\":{}}", 0, "duplicate");
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	struct nr_str s = { 0 };
	nr_str_add(&s, "{\"a\":");
	nr_str_fill(&s, '[', 1000000);
	refuses_header(s.text, 0, "header, byte");
	nr_str_release(&s);
}

#define T(dtype, shape, offsets) "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{\"w\":" T(dtype, shape, offsets) "}"

static void tensor_fields_are_checked(void **state)
{
	(void)state;
	refuses_header("{\"w\":7}", 0, "tensor 'w'");
	refuses_header("{\"w\":{}}", 0, "'w' has no dtype");
	refuses_header(ONE("3", "[1]", "[0,4]"), 4, "'w' has no dtype");
	refuses_header(ONE("\"F7\"", "[1]", "[0,4]"), 4, "'w' has dtype 'F7'");
	refuses_header(ONE("\"F32\"", "1", "[0,4]"), 4, "'w' has no shape");
	refuses_header(ONE("\"F32\"", "[-1]", "[0,4]"), 4, "'w' has a bad shape: dim 0");
	refuses_header(ONE("\"F32\"", "[1,1.0]", "[0,4]"), 4, "'w' has a bad shape: dim 1");
	refuses_header(ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "'w' has 9 dims");
	refuses_header(ONE("\"F32\"", "[4611686018427387904,4]", "[0,0]"), 0,
		       "'w' has a shape whose size overflows");
	refuses_header(ONE("\"F32\"", "[0,9223372036854775807,9223372036854775807]", "[0,0]"), 0,
		       "overflows");
	refuses_header(ONE("\"F32\"", "[1]", "[0]"), 4, "'w': data_offsets");
	refuses_header(ONE("\"F32\"", "[1]", "[0,\"4\"]"), 4, "'w': data_offsets");
	refuses_header(ONE("\"F32\"", "[1]", "[-4,0]"), 4, "'w': data_offsets");
	refuses_header(ONE("\"F32\"", "[1]", "[4,0]"), 4, "'w': data_offsets 4 to 0 run backwards");
	refuses_header(ONE("\"F32\"", "[2]", "[0,8]"), 4, "'w' ends at byte 8 of the data, but the file has 4");
	refuses_header(ONE("\"F32\"", "[1]", "[9223372036854775800,9223372036854775804]"), 4,
		       "'w' ends at byte");
	refuses_header(ONE("\"F32\"", "[2]", "[0,4]"), 4, "'w' has 4 bytes, but its shape and dtype need 8");
}

static void overlaps_and_holes_are_refused(void **state)
{
	(void)state;
	refuses_header("{\"a\":" T("\"U8\"", "[4]", "[0,4]") ",\"b\":" T("\"U8\"", "[4]", "[2,6]") "}", 6,
		       "tensors 'a' and 'b' overlap");
	refuses_header("{\"a\":" T("\"U8\"", "[4]", "[0,4]") ",\"b\":" T("\"U8\"", "[4]", "[0,4]") "}", 4,
		       "overlap");
	refuses_header("{\"a\":" T("\"U8\"", "[2]", "[0,2]") ",\"b\":" T("\"U8\"", "[2]", "[4,6]") "}", 6,
		       "2 bytes of data before tensor 'b' belong to no tensor");
	refuses_header(ONE("\"U8\"", "[2]", "[0,2]"), 5, "the last 3 bytes");
}

static void metadata_must_be_texts(void **state)
{
	(void)state;
	refuses_header("{\"__metadata__\": 3}", 0, "__metadata__");
	refuses_header("{\"__metadata__\": {\"k\": 3}}", 0, "__metadata__ 'k' is not a string");
	refuses_header("{\"__metadata__\": {\"k\": \"a\", \"k\": \"b\"}}", 0, "duplicate");
}

static void files_of_other_kinds_are_refused(void **state)
{
	(void)state;
	struct nr_st_file *f;
	struct nr_error e = { 0 };
	assert_int_equal(nr_st_open(&f, dir, &e), NR_EIO);
	assert_string_equal(e.detail, "Is a directory");
	e = (struct nr_error){ 0 };
	assert_int_equal(nr_st_open(&f, "/dev/zero", &e), NR_EIO);
	assert_string_equal(e.detail, "it is not a regular file");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(nr_st_open(&f, path, NULL), NR_EIO);
	e = (struct nr_error){ 0 };
	assert_int_equal(nr_st_open(&f, "/no/such/file", &e), NR_EIO);
	assert_string_equal(e.detail, "No such file or directory");
}

/* Half precision beside the float it stands for; data one byte off every alignment. */
static void every_dtype_converts_even_unaligned(void **state)
{
	(void)state;
	unsigned char raw[65];
	struct nr_st_tensor t = { .name = "t", .nd = 1, .data = raw + 1 };
	float out[8];
	double wide[8];
	int64_t whole[8];
	struct nr_error e = { 0 };
#define GIVE(D, ctype, ...)                                                                     \
	do {                                                                                    \
		const ctype v[] = { __VA_ARGS__ };                                              \
		memcpy(raw + 1, v, sizeof v);                                                   \
		t.dtype = D, t.bytes = sizeof v, t.shape[0] = sizeof v / sizeof *v;             \
		assert_int_equal(nr_st_to_f32(&t, out, t.shape[0], &e), NR_OK);                 \
		assert_int_equal(nr_st_to_f64(&t, wide, t.shape[0], &e), NR_OK);                \
	} while (0)
	GIVE(NR_ST_F16, uint16_t, 0x3C00, 0xC000, 0x7BFF, 0x0001, 0x7C00, 0x0400, 0x8000, 0x7E00);
	assert_true(out[0] == 1 && out[1] == -2 && out[2] == 65504 && wide[3] == 0x1p-24 && isinf(out[4]));
	assert_true(out[5] == 0x1p-14f && out[6] == 0 && signbit(out[6]) && isnan(out[7]));
	GIVE(NR_ST_BF16, uint16_t, 0x3F80, 0xC040, 0x7F80);
	assert_true(out[0] == 1 && out[1] == -3 && isinf(out[2]));
	GIVE(NR_ST_F64, double, 0.1, -1e300);
	assert_true(out[0] == 0.1f && wide[1] == -1e300 && isinf(out[1]));
	GIVE(NR_ST_F32, float, 0.1f, 7);
	assert_true(out[0] == 0.1f && wide[0] == (double)0.1f);
	GIVE(NR_ST_U64, uint64_t, UINT64_MAX);
	assert_true(wide[0] == 0x1p64);
	assert_int_equal(nr_st_to_i64(&t, whole, 1, &e), NR_EVALUE);
	GIVE(NR_ST_I8, int8_t, -128, 5);
	assert_true(out[0] == -128 && wide[1] == 5);
	assert_int_equal(nr_st_to_i64(&t, whole, 2, &e), NR_OK);
	assert_int_equal(whole[0], -128);
	GIVE(NR_ST_U32, uint32_t, 4000000000u);
	assert_true(wide[0] == 4e9);
	GIVE(NR_ST_BOOL, uint8_t, 0, 2);
	assert_true(out[0] == 0 && out[1] == 1);
}

static void conversion_checks_count_and_kind(void **state)
{
	(void)state;
	float out[3];
	int64_t whole[3];
	struct nr_error e = { 0 };
	assert_int_equal(nr_st_to_f32(&sample[0], out, 2, &e), NR_ESHAPE);
	assert_string_equal(e.detail, "it has 3 elements instead of 2");
	assert_int_equal(nr_st_to_i64(&sample[0], whole, 3, NULL), NR_EVALUE);
}

static void writer_refuses_what_it_could_not_read(void **state)
{
	(void)state;
	struct nr_st_tensor t[2] = { sample[0], sample[0] };
	assert_int_equal(nr_st_write(path, t, 2, NULL, 0, NULL), NR_ENAME);
	t[0].name = "__metadata__";
	assert_int_equal(nr_st_write(path, t, 1, NULL, 0, NULL), NR_ENAME);
	t[0].name = "\xFF";
	assert_int_equal(nr_st_write(path, t, 1, NULL, 0, NULL), NR_ENAME);
	t[1].bytes = 8;
	assert_int_equal(nr_st_write(path, t + 1, 1, NULL, 0, NULL), NR_ESHAPE);
	t[1].shape[0] = -1;
	assert_int_equal(nr_st_write(path, t + 1, 1, NULL, 0, NULL), NR_ESHAPE);
	t[1].nd = 9;
	assert_int_equal(nr_st_write(path, t + 1, 1, NULL, 0, NULL), NR_ELIMIT);
	const struct nr_st_meta twice[] = { { "a", "1" }, { "a", "2" } }, bad[] = { { "a", "\xFF" } };
	assert_int_equal(nr_st_write(path, sample, N, twice, 2, NULL), NR_ENAME);
	assert_int_equal(nr_st_write(path, sample, N, bad, 1, NULL), NR_EVALUE);
	assert_int_equal(files_in_dir(false), 0);
}

static void failed_write_leaves_the_old_file_and_no_other(void **state)
{
	(void)state;
	write_sample();
	enum { BIG = 1 << 20 };
	char *big = calloc(1, BIG);
	const struct nr_st_tensor t = { "big", NR_ST_U8, 1, { BIG }, big, BIG };
	struct rlimit old, tight;
	getrlimit(RLIMIT_FSIZE, &old);
	tight = (struct rlimit){ 4096, old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &tight);
	struct nr_error e = { 0 };
	int code = nr_st_write(path, &t, 1, NULL, 0, &e);
	setrlimit(RLIMIT_FSIZE, &old);
	free(big);
	assert_int_equal(code, NR_EIO);
	assert_string_equal(e.subject, path);
	assert_string_equal(e.detail, "File too large");
	assert_int_equal(files_in_dir(false), 1);
	struct nr_st_file *f;
	assert_int_equal(nr_st_open(&f, path, &e), NR_OK);
	assert_int_equal(nr_st_count(f), N);
	nr_st_close(f);
}

static void writer_names_what_the_system_refused(void **state)
{
	(void)state;
	struct nr_error e = { 0 };
	char line[1536];
	assert_int_equal(nr_st_write("/no/such/dir/x", sample, N, NULL, 0, &e), NR_EIO);
	assert_string_equal(e.detail, "No such file or directory");
	e = (struct nr_error){ 0 };
	assert_int_equal(nr_st_write("/dev/full", sample, N, NULL, 0, &e), NR_EIO);
	assert_string_equal(e.detail, "No space left on device");
	assert_null(strstr(nr_error_text(&e, line, sizeof line), "untouched"));
	assert_int_equal(nr_st_write("/dev/fd/999", sample, N, NULL, 0, NULL), NR_EIO);
	assert_int_equal(nr_st_write(dir, sample, N, NULL, 0, NULL), NR_EIO);
}

static void saved_file_follows_the_umask(void **state)
{
	(void)state;
	struct stat st;
	mode_t old = umask(027);
	assert_int_equal(nr_save_file(path, "abc", 3, NULL), NR_OK);
	umask(old);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(st.st_size, 3);
}

/* A link to the descriptor must not become a file, and what others wrote to it stays in front. */
static void a_descriptor_of_a_file_is_written_on(void **state)
{
	(void)state;
	char name[64], text[8] = "";
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	snprintf(name, sizeof name, "/dev/fd/%d", fd);
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(nr_save_file(name, "cd", 2, NULL), NR_OK);
	assert_int_equal(write(fd, "ef", 2), 2);
	assert_int_equal(pread(fd, text, 7, 0), 6);
	assert_string_equal(text, "abcdef");
	close(fd);
	assert_int_equal(files_in_dir(false), 1);
}

static void a_pipe_is_written_straight_through(void **state)
{
	(void)state;
	char text[8] = "";
	struct stat st;
	assert_int_equal(mkfifo(path, 0600), 0);
	const int fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(nr_save_file(path, "abc", 3, NULL), NR_OK);
	assert_int_equal(read(fd, text, 7), 3);
	assert_string_equal(text, "abc");
	close(fd);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(files_in_dir(false), 1);
}

/* ---- several files ------------------------------------------------------------------------------------------------- */

static int open_index(const char *text, struct nr_st_file **f, struct nr_error *err)
{
	snprintf(path, sizeof path, "%s/model.safetensors.index.json", dir);
	put_file(text, strlen(text));
	memset(err, 0, sizeof *err);
	return nr_st_open(f, path, err);
}

static void weights_in_several_files_are_one(void **state)
{
	(void)state;
	static const float x[] = { 1, 2, 3 };
	const struct nr_st_tensor one[] = { { "a", NR_ST_F32, 1, { 2 }, x, 8 }, { "b", NR_ST_F32, 1, { 1 }, x + 2, 4 } };
	struct nr_error err = { 0 };
	struct nr_st_file *f;
	snprintf(path, sizeof path, "%s/m-1.safetensors", dir);
	assert_int_equal(nr_st_write(path, one, 1, NULL, 0, &err), 0);
	snprintf(path, sizeof path, "%s/m-2.safetensors", dir);
	assert_int_equal(nr_st_write(path, one + 1, 1, NULL, 0, &err), 0);
	assert_int_equal(open_index("{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\"}}", &f, &err), 0);
	assert_int_equal(nr_st_count(f), 2);
	assert_string_equal(nr_st_path(f), path);
	float got;
	assert_int_equal(nr_st_to_f32(nr_st_find(f, "b"), &got, 1, &err), 0);
	assert_true(got == 3);
	assert_non_null(nr_st_find(f, "a"));
	nr_st_close(f);
	const char *bad[][2] = {
		{ "{\"weight_map\": {\"c\": \"m-2.safetensors\"}}", "'m-2.safetensors' has 'c', but it does not" },
		{ "{\"weight_map\": {\"a\": \"m-3.safetensors\"}}", "m-3.safetensors" },
		{ "{\"weight_map\": {\"a\": \"../m-1.safetensors\"}}", "not in its folder" },
		{ "{\"weight_map\": {\"a\": \"model.safetensors.index.json\"}}", "an index in the place of" },
		{ "{\"weight_map\": {\"a\": 3}}", "names no file for 'a'" },
		{ "{\"weight_map\": {}}", "no 'weight_map'" }, { "[]", "no 'weight_map'" }, { "{", "line 1" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char line[1024];
		assert_int_not_equal(open_index(bad[i][0], &f, &err), 0);
		assert_null(f);
		if (!strstr(nr_error_text(&err, line, sizeof line), bad[i][1])) fail_msg("%s: %s", bad[i][1], line);
	}
	snprintf(path, sizeof path, "%s/m-2.safetensors", dir);
	assert_int_equal(nr_st_write(path, one, 2, NULL, 0, &err), 0);
	assert_int_not_equal(open_index("{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\"}}", &f, &err), 0);
	assert_non_null(strstr(err.detail, "two of its files have a tensor 'a'"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(written_tensors_are_read_back),
		TEST(order_of_tensors_does_not_change_the_bytes),
		TEST(file_without_tensors_is_fine),
		TEST(missing_name_gets_the_nearest),
		TEST(truncation_at_every_byte_is_refused),
		TEST(absurd_header_lengths_are_refused),
		TEST(header_must_be_one_json_object),
		TEST(deep_nesting_is_refused),
		TEST(tensor_fields_are_checked),
		TEST(overlaps_and_holes_are_refused),
		TEST(metadata_must_be_texts),
		TEST(files_of_other_kinds_are_refused),
		TEST(every_dtype_converts_even_unaligned),
		TEST(conversion_checks_count_and_kind),
		TEST(writer_refuses_what_it_could_not_read),
		TEST(failed_write_leaves_the_old_file_and_no_other),
		TEST(writer_names_what_the_system_refused),
		TEST(saved_file_follows_the_umask),
		TEST(a_descriptor_of_a_file_is_written_on),
		TEST(a_pipe_is_written_straight_through),
		TEST(weights_in_several_files_are_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
