/* How a camera was held: the EXIF tag 0x0112 (Exif 2.32, 4.6.4) of a JPEG, of a PNG's chunk eXIf and of a WebP's EXIF, and pictures turned
 * by it. libtiff reads that of a TIFF. */
#include "picture/picture.h"

#include <stdlib.h>
#include <string.h>

struct bytes { const uint8_t *p; size_t size; bool little; };

static uint32_t number(const struct bytes *b, size_t at, int count)
{
	uint32_t v = 0;
	for (int i = 0; i < count; i++) v |= (uint32_t)b->p[at + (size_t)i] << 8 * (b->little ? i : count - 1 - i);
	return v;
}

/* From the TIFF header inside the segment: its first directory may have the tag. */
static int read_directory(const uint8_t *p, size_t size)
{
	struct bytes b = { p, size, size >= 8 && p[0] == 'I' };
	if (size < 8 || number(&b, 2, 2) != 42) return 1;
	const size_t at = number(&b, 4, 4);
	if (at > size - 2) return 1;
	const uint32_t entries = number(&b, at, 2);
	for (uint32_t i = 0; i < entries; i++) {
		const size_t entry = at + 2 + 12 * (size_t)i;
		if (entry + 12 > size) return 1;
		if (number(&b, entry, 2) != 0x0112) continue;
		static const int size_of[] = { 0, 1, 0, 2, 4 };         /* byte, short, long: some programs write another than short */
		const uint32_t type = number(&b, entry + 2, 2), value = type <= 4 ? number(&b, entry + 8, size_of[type]) : 0;
		return value >= 1 && value <= 8 ? (int)value : 1;
	}
	return 1;
}

static int of_jpeg(const uint8_t *bytes, size_t size)
{
	for (size_t at = 2; at + 4 <= size && bytes[at] == 0xff;) {
		const uint8_t marker = bytes[at + 1];
		const size_t length = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
		if (marker == 0xda || length < 2 || length > size - at - 2) return 1;   /* the picture itself begins, or the end */
		if (marker == 0xe1 && length >= 8 && !memcmp(bytes + at + 4, "Exif\0", 6))
			return read_directory(bytes + at + 10, length - 8);
		at += 2 + length;
	}
	return 1;
}

/* A PNG's chunks are length, name, data, checksum; those of a WebP name, length, data of an even length. */
static int of_chunks(const uint8_t *bytes, size_t size, size_t from, bool png)
{
	const struct bytes b = { bytes, size, !png };
	for (size_t at = from; at + 8 <= size;) {
		const size_t length = number(&b, at + (png ? 0 : 4), 4), room = size - at - 8;
		if (length > room) return 1;
		if (!memcmp(bytes + at + (png ? 4 : 0), png ? "eXIf" : "EXIF", 4)) {
			const uint8_t *data = bytes + at + 8;
			const size_t skip = length >= 6 && !memcmp(data, "Exif\0", 6) ? 6 : 0;
			return read_directory(data + skip, length - skip);
		}
		at += 8 + length + (png ? 4 : length % 2);
	}
	return 1;
}

int nr_exif_orientation(const uint8_t *bytes, size_t size)
{
	if (size > 12 && !memcmp(bytes, "\x89PNG", 4)) return of_chunks(bytes, size, 8, true);
	if (size > 12 && !memcmp(bytes, "RIFF", 4)) return of_chunks(bytes, size, 12, false);
	return size > 2 && bytes[0] == 0xff ? of_jpeg(bytes, size) : 1;
}

int nr_picture_upright(struct nr_picture *p, int orientation, const char *name, struct nr_error *err)
{
	if (orientation < 2 || orientation > 8) return NR_OK;
	const bool turned = orientation > 4;
	/* where the result's first pixel comes from; 5 and 7 are mirrored at a diagonal, 6 and 8 are quarter turns */
	const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
	const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
	struct nr_picture to = { 0 };
	const int32_t h = turned ? p->w : p->h, w = turned ? p->h : p->w, C = p->channels;
	if (nr_picture_room(&to, h, w, C, name, err)) return err ? (int)err->code : NR_EMEMORY;
	uint8_t *out = to.pixels;
	for (int32_t y = 0; y < h; y++)
		for (int32_t x = 0; x < w; x++, out += C) {
			const int32_t sx = turned ? y : x, sy = turned ? x : y;
			const int32_t fx = flip_x ? p->w - 1 - sx : sx, fy = flip_y ? p->h - 1 - sy : sy;
			memcpy(out, p->pixels + ((size_t)fy * (size_t)p->w + (size_t)fx) * (size_t)C, (size_t)C);
		}
	free(p->pixels);
	*p = to;
	p->turned = orientation;
	return NR_OK;
}

int nr_picture_as_stored(struct nr_picture *p, const char *name, struct nr_error *err)
{
	const int back = p->turned == 6 ? 8 : p->turned == 8 ? 6 : p->turned;   /* mirror images and half turns undo themselves */
	const int code = nr_picture_upright(p, back, name, err);
	if (!code) p->turned = 0;
	return code;
}

int nr_picture_as_sized(struct nr_picture *p, int32_t h, int32_t w, const char *name, struct nr_error *err)
{
	const bool quarter = p->turned > 4 && p->h != p->w;
	return quarter && p->h == w && p->w == h ? nr_picture_as_stored(p, name, err) : NR_OK;
}
