/* Made-up data sets for tests: a folder of its own, and files of every format whose pixels are known by formula. */
#ifndef TEST_DATASETS_H
#define TEST_DATASETS_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/folder.h"

#include "base/str.h"
#include "norma/data.h"

static inline void made_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static inline void made_text(const char *path, const char *text) { made_file(path, text, strlen(text)); }

/* The file's bytes, the caller's to free. */
static inline uint8_t *made_read(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	uint8_t *b = malloc(*size + 1);
	assert_int_equal(fread(b, 1, *size, f), *size);
	b[*size] = 0;
	fclose(f);
	return b;
}

static inline void made_cut(const char *path, long bytes) { assert_int_equal(truncate(path, bytes), 0); }

static inline void made_poke(const char *path, long at, uint8_t value)
{
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	fseek(f, at, SEEK_SET);
	fputc(value, f);
	fclose(f);
}

/* Every pixel of every picture is another formula's value, so that swapped axes show. */
static inline uint8_t made_pixel(int64_t n, int y, int x, int k) { return (uint8_t)(n * 37 + y * 5 + x * 11 +
	k * 83 + y * x); }

static inline void made_picture(const char *path, int64_t n, int h, int w, int channels)
{
	struct nr_picture p = { 0 };
	struct nr_error err = { 0 };
	assert_int_equal(nr_picture_resize(&p, h, w, channels, &err), 0);
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			for (int k = 0; k < channels; k++) p.pixels[(y * w + x) * channels + k] = made_pixel(n, y, x, k);
	assert_int_equal(nr_picture_write_png(&p, path, &err), 0);
	nr_picture_release(&p);
}

/* The source of this text; what is measured of it is kept in a folder of its own. */
static inline struct nr_source *made_source(const char *text)
{
	struct nr_source *s;
	struct nr_error err = { 0 };
	char line[1500];
	if (nr_source_open(&s, text, made_path("cache"), &err)) fail_msg("%s", nr_error_text(&err, line, sizeof line));
	return s;
}

#endif
