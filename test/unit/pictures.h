/* Pictures made by rule, and hashes of what becomes of them: as test/data/pictures/make.py makes them. */
#ifndef NR_TEST_PICTURES_H
#define NR_TEST_PICTURES_H

#include <stdio.h>
#include <stdlib.h>

#include "norma/data.h"

static inline uint64_t fnv(const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

static inline uint64_t picture_hash(const struct nr_picture *p)
{
	return fnv(p->pixels, (size_t)p->h * (size_t)p->w * (size_t)p->channels);
}

/* kind: noise, slopes, black and white, dull. */
static inline void make_picture(struct nr_picture *p, int32_t h, int32_t w, int32_t channels, int kind)
{
	if (nr_picture_resize(p, h, w, channels, NULL)) abort();
	uint32_t v = 12345u + (uint32_t)kind;
	for (int32_t i = 0; i < h * w * channels; i++) {
		v = v * 1664525u + 1013904223u;
		const int b = (int)(v >> 24), x = i / channels % w, y = i / channels / w, c = i % channels;
		const int value[] = { b, (x * 5 + y * 3 + c * 40) & 255, b > 127 ? 255 : 0, 60 + b % 90 + 20 * c };
		p->pixels[i] = (uint8_t)value[kind];
	}
}

static inline char *picture_path(const char *name)
{
	static char path[4096];
	const char *root = getenv("NORMA_SOURCE");
	snprintf(path, sizeof path, "%s/test/data/pictures/%s", root ? root : ".", name);
	return path;
}

/* The caller frees it. */
static inline uint8_t *file_bytes(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(1 << 20);
	if (!f || !bytes) abort();
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

#endif
