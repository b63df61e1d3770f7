/* MAT v5 files made here, as MATLAB writes them. */
#ifndef TEST_MATS_H
#define TEST_MATS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/str.h"

enum { MAT_UINT8 = 2, MAT_DOUBLE = 9, MAT_CLASS_CHAR = 4, MAT_CLASS_DOUBLE = 6, MAT_CLASS_UINT8 = 9 };

static inline FILE *mat_begin(const char *path)
{
	FILE *f = fopen(path, "wb");
	fprintf(f, "%-124s%c%cIM", "MATLAB 5.0 MAT-file, made for a test", 0, 1);
	return f;
}

static inline void mat_element(struct nr_str *s, uint32_t type, const void *data, size_t bytes)
{
	const uint32_t tag[2] = { type, (uint32_t)bytes };
	nr_str_add_n(s, (const char *)tag, sizeof tag);
	nr_str_add_n(s, data, bytes);
	nr_str_fill(s, 0, (8 - bytes % 8) % 8);
}

/* flags: the class, and 0x800 for complex. */
static inline void mat_put(FILE *f, const char *name, uint32_t flags, uint32_t type, int rank, const int32_t *dims, const void *data,
	size_t bytes, int packed)
{
	struct nr_str s = { 0 }, whole = { 0 };
	const uint32_t two[2] = { flags, 0 };
	mat_element(&s, 6, two, sizeof two);
	mat_element(&s, 5, dims, (size_t)rank * sizeof *dims);
	mat_element(&s, 1, name, strlen(name));
	mat_element(&s, type, data, bytes);
	mat_element(&whole, 14, s.text, s.len);
	uLongf room = compressBound(whole.len);
	Bytef *z = malloc(room);
	if (packed) compress(z, &room, (const Bytef *)whole.text, whole.len);
	const uint32_t tag[2] = { 15, (uint32_t)room };
	if (packed) fwrite(tag, sizeof tag, 1, f);
	fwrite(packed ? (const char *)z : whole.text, 1, packed ? room : whole.len, f);
	free(z);
	nr_str_release(&s);
	nr_str_release(&whole);
}

#endif
