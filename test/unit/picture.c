/* data/picture*.c: JPEG and PNG as Pillow reads them; damaged files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "picture/picture.h"
#include "unit/pictures.h"

static const struct file { const char *name; int32_t h, w, channels; uint64_t rgb, grey; } files[] = {
#define FILE(...) { __VA_ARGS__ },
#include "data/pictures/files.def"
#undef FILE
};
enum { FILES = sizeof files / sizeof *files };

static struct nr_picture p;
static struct nr_error err;

static int reset(void **state)
{
	(void)state;
	nr_picture_release(&p);
	err = (struct nr_error){ 0 };
	return 0;
}

static void every_kind_of_file_gives_pillows_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		const struct file *f = &files[i];
		for (int32_t channels = 0; channels <= 3; channels++) {
			if (channels == 2) continue;
			const int code = nr_picture_read(&p, picture_path(f->name), channels, &err);
			if (code) fail_msg("%s: %s", f->name, err.detail);
			const int32_t want = channels ? channels : f->channels;
			assert_int_equal(p.h, f->h);
			assert_int_equal(p.w, f->w);
			assert_int_equal(p.channels, want);
			if (picture_hash(&p) != (want == 3 ? f->rgb : f->grey)) fail_msg("%s with %d channels differs", f->name, (int)want);
		}
	}
}

static void a_file_that_is_cut_off_is_refused_by_name(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		uint8_t *bytes = file_bytes(picture_path(files[i].name), &size);
		for (size_t n = 0; n < size - 12; n += n < 64 ? 1 : 37) {
			uint8_t *part = malloc(n + 1);  /* so that a sanitizer sees reads beyond it */
			memcpy(part, bytes, n);
			err = (struct nr_error){ 0 };
			if (nr_picture_decode(&p, part, n, 3, files[i].name, &err) == NR_OK)
				fail_msg("%s: %zu of %zu bytes were enough", files[i].name, n, size);
			if (err.code != NR_EFORMAT) fail_msg("%s: %zu of %zu bytes: %s", files[i].name, n, size, err.detail);
			assert_string_equal(err.subject, files[i].name);
			assert_true(err.detail[0] && err.hint[0]);
			free(part);
		}
		free(bytes);
	}
}

static void damaged_bytes_never_do_harm(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		uint8_t *bytes = file_bytes(picture_path(files[i].name), &size);
		for (size_t n = 2; n < size; n += 5) {
			const uint8_t old = bytes[n];
			bytes[n] ^= 0x55;
			nr_picture_decode(&p, bytes, size, 0, "damaged", NULL);
			bytes[n] = old;
		}
		free(bytes);
	}
}

static void what_is_no_picture_is_named(void **state)
{
	(void)state;
	assert_int_equal(nr_picture_decode(&p, "GIF89a..", 8, 3, "x.gif", &err), NR_EFORMAT);
	assert_string_equal(err.subject, "x.gif");
	reset(NULL);
	assert_int_equal(nr_picture_decode(&p, "", 0, 3, "empty.png", &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "empty"));
	reset(NULL);
	assert_int_equal(nr_picture_read(&p, "/nowhere/x.png", 3, &err), NR_EIO);
	assert_string_equal(err.subject, "/nowhere/x.png");
	reset(NULL);
	assert_int_equal(nr_picture_read(&p, "/", 3, &err), NR_EIO);
	reset(NULL);
	assert_int_equal(nr_picture_decode(&p, "GIF89a..", 8, 2, "x.gif", &err), NR_EVALUE);
}

/* A header that promises 60000 x 60000 pixels must not be believed. */
static void bombs_are_refused_before_memory_is_taken(void **state)
{
	(void)state;
	size_t size;
	uint8_t *bytes = file_bytes(picture_path("420.jpg"), &size);
	size_t sof = 0;
	for (size_t i = 0; i + 9 < size && !sof; i++)
		if (bytes[i] == 0xff && bytes[i + 1] == 0xc0) sof = i;
	assert_true(sof > 0);
	bytes[sof + 5] = bytes[sof + 7] = 0xea;
	assert_int_equal(nr_picture_decode(&p, bytes, size, 3, "bomb.jpg", &err), NR_ELIMIT);
	assert_string_equal(err.subject, "bomb.jpg");
	assert_null(p.pixels);
	free(bytes);
	reset(NULL);
	assert_int_equal(nr_picture_resize(&p, 1 << 15, 1 << 15, 3, &err), NR_ELIMIT);
	reset(NULL);
	assert_int_equal(nr_picture_resize(&p, 0, 5, 3, &err), NR_ELIMIT);
	reset(NULL);
	assert_int_equal(nr_picture_resize(&p, 5, 5, 2, &err), NR_EVALUE);
}

static void png_comes_back_as_it_was_written(void **state)
{
	(void)state;
	char path[] = "/tmp/norma-picture-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	for (int channels = 1; channels <= 3; channels += 2) {
		struct nr_picture made = { 0 };
		make_picture(&made, 1000, channels == 1 ? 1024 : 33, channels, 0);
		assert_int_equal(nr_picture_write_png(&made, path, &err), NR_OK);
		assert_int_equal(nr_picture_read(&p, path, 0, &err), NR_OK);
		assert_int_equal(p.channels, channels);
		assert_true(picture_hash(&p) == picture_hash(&made));
		nr_picture_release(&made);
	}
	unlink(path);
	reset(NULL);
	assert_int_not_equal(nr_picture_write_png(&p, path, &err), NR_OK);
	reset(NULL);
	make_picture(&p, 2, 2, 1, 0);
	assert_int_equal(nr_picture_write_png(&p, "/nowhere/x.png", &err), NR_EIO);
}

static void a_picture_keeps_its_memory(void **state)
{
	(void)state;
	make_picture(&p, 20, 20, 3, 0);
	const uint8_t *pixels = p.pixels;
	make_picture(&p, 10, 7, 3, 0);
	assert_ptr_equal(p.pixels, pixels);
	assert_int_equal(p.capacity, 1200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_kind_of_file_gives_pillows_bytes, reset, reset),
		cmocka_unit_test_setup_teardown(a_file_that_is_cut_off_is_refused_by_name, reset, reset),
		cmocka_unit_test_setup_teardown(damaged_bytes_never_do_harm, reset, reset),
		cmocka_unit_test_setup_teardown(what_is_no_picture_is_named, reset, reset),
		cmocka_unit_test_setup_teardown(bombs_are_refused_before_memory_is_taken, reset, reset),
		cmocka_unit_test_setup_teardown(png_comes_back_as_it_was_written, reset, reset),
		cmocka_unit_test_setup_teardown(a_picture_keeps_its_memory, reset, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
