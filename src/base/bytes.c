/* All bytes of a file: see bytes.h. gzip is RFC 1952; members that follow each other are one stream. */
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/str.h"

int nr_bytes_map(struct nr_bytes *b, const char *path, struct nr_error *err)
{
	const void *p;
	*b = (struct nr_bytes){ 0 };
	const int e = nr_file_map(&p, &b->size, path, err);
	if (e) return e;
	if (!p) return nr_fail(err, NR_EFORMAT, "cannot read", path, "the file is empty");
	b->data = p;
	b->mapped = true;
	return NR_OK;
}

void nr_bytes_release(struct nr_bytes *b)
{
	if (b->mapped) nr_file_unmap(b->data, b->size);
	else free((void *)(uintptr_t)b->data);
	*b = (struct nr_bytes){ 0 };
}

/* Room for what the last four bytes promise, as far as deflate could keep it (1032 : 1). */
static size_t first_room(const struct nr_bytes *gz, size_t limit)
{
	size_t room = 4096;
	if (gz->size >= 18) {
		const uint8_t *t = gz->data + gz->size - 4;
		const size_t said = (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 | (size_t)t[3] << 24;
		if (said / 1032 <= gz->size) room += said;
	}
	return room < limit ? room : limit;
}

static bool grow(uint8_t **out, size_t *room, size_t limit)
{
	const size_t more = *room > limit / 2 ? limit : 2 * *room;
	uint8_t *p = realloc(*out, more + 1);
	if (p) *out = p, *room = more;
	return p;
}

static int inflate_all(const struct nr_bytes *gz, size_t limit, struct nr_bytes *to, const char *path,
	struct nr_error *err)
{
	z_stream z = { 0 };
	size_t room = first_room(gz, limit), used = 0, taken = 0;
	uint8_t *out = malloc(room + 1);
	int e = NR_OK, state = Z_OK;
	if (!out || inflateInit2(&z, 15 + 16) != Z_OK) {
		free(out);
		return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	}
	while (!e) {
		const size_t in = gz->size - taken < 1u << 30 ? gz->size - taken : 1u << 30, left = room - used;
		z.next_in = (Bytef *)(uintptr_t)(gz->data + taken);
		z.avail_in = (uInt)in;
		z.next_out = out + used;
		z.avail_out = (uInt)(left < 1u << 30 ? left : 1u << 30);
		const size_t space = z.avail_out;
		state = inflate(&z, Z_NO_FLUSH);
		taken += in - z.avail_in;
		used += space - z.avail_out;
		if (state == Z_STREAM_END) {
			/* zeros after a member are padding */
			if (gz->size - taken < 18 || gz->data[taken] != 0x1f) break;
			inflateReset(&z);
		} else if (state != Z_OK && state != Z_BUF_ERROR) {
			e = nr_fail(err, NR_EFORMAT, "cannot read", path, "damaged gzip data after %zu bytes", used);
		} else if (used == room) {
			if (room == limit) e = nr_fail(err, NR_ELIMIT, "cannot read", path,
				"it has more than %zu bytes", limit);
			else if (!grow(&out, &room, limit)) e = nr_fail(err, NR_EMEMORY, "cannot read", path,
				"out of memory");
		} else if (taken == gz->size) {
			e = nr_fail(err, NR_EFORMAT, "cannot read", path,
				"the gzip data end after %zu bytes of contents", used);
			nr_hint(err, "download it again: it is incomplete");
		}
	}
	inflateEnd(&z);
	if (e) free(out);
	else *to = (struct nr_bytes){ .data = out, .size = used };
	return e;
}

int nr_bytes_gunzip(struct nr_bytes *b, const char *path, size_t limit, struct nr_error *err)
{
	struct nr_bytes gz;
	*b = (struct nr_bytes){ 0 };
	if (nr_bytes_map(&gz, path, err)) return err ? (int)err->code : NR_EIO;
	int e = gz.size < 18 || gz.data[0] != 0x1f || gz.data[1] != 0x8b ?
		nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not a gzip file") :
		inflate_all(&gz, limit, b, path, err);
	nr_bytes_release(&gz);
	return e;
}

int nr_bytes_open(struct nr_bytes *b, const char *path, size_t limit, struct nr_error *err)
{
	struct nr_str gz = { 0 };
	nr_str_printf(&gz, "%s.gz", path);
	const bool packed = access(path, F_OK) && !gz.failed && !access(gz.text, F_OK);
	int e = packed ? nr_bytes_gunzip(b, gz.text, limit, err) : nr_bytes_map(b, path, err);
	nr_str_release(&gz);
	return e;
}
