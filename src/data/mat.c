/* MAT v5 (MathWorks, "MAT-File Format", level 5): 128 bytes of header, then elements, each a tag (type, bytes) and its data, padded to 8
 * bytes. A variable is an element of elements: flags, dimensions, name, numbers; it may be compressed as a whole (zlib). Its size is
 * compared with what the file can hold before memory is taken. */
#include "data/mat.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"

enum { INT8 = 1, UINT8, INT16, UINT16, INT32, UINT32, SINGLE, DOUBLE = 9, INT64 = 12, UINT64, MATRIX, COMPRESSED };
enum { CLASS_FIRST = 6, CLASS_UINT8 = 9, CLASS_LAST = 15, COMPLEX = 8 };    /* classes of numbers: double, single, (u)int8 to (u)int64 */
enum { HEADER = 128, NAME_MAX_BYTES = 64, RATIO = 1032 };                   /* deflate makes no more of a byte */

static size_t width(int type)
{
	switch (type) {
	case INT8: case UINT8: return 1;
	case INT16: case UINT16: return 2;
	case INT32: case UINT32: case SINGLE: return 4;
	case DOUBLE: case INT64: case UINT64: return 8;
	default: return 0;
	}
}

/* ---- bytes in their order, as they are or inflated ------------------------------------------------------------------------- */

struct in { const uint8_t *at; size_t left; bool packed; z_stream z; };

static bool in_open(struct in *in, const uint8_t *at, size_t size, bool packed)
{
	*in = (struct in){ .at = at, .left = size, .packed = packed };
	in->z.next_in = (Bytef *)(uintptr_t)at;
	in->z.avail_in = (uInt)size;                            /* an element has less than 2^32 bytes */
	return !packed || inflateInit(&in->z) == Z_OK;
}

static void in_close(struct in *in)
{
	if (in->packed) inflateEnd(&in->z);
}

static bool take(struct in *in, void *to, size_t n)
{
	if (!in->packed) {
		if (n > in->left) return false;
		memcpy(to, in->at, n);
		in->at += n;
		in->left -= n;
		return true;
	}
	for (uint8_t *p = to; n;) {
		in->z.next_out = p;
		in->z.avail_out = n < 1u << 30 ? (uInt)n : 1u << 30;
		const int state = inflate(&in->z, Z_NO_FLUSH);
		const size_t got = (size_t)(in->z.next_out - p);
		if (!got && state != Z_OK) return false;
		p += got;
		n -= got;
	}
	return true;
}

/* The most bytes that can still come. */
static size_t most(const struct in *in) { return in->packed ? ((size_t)in->z.avail_in + 64) * RATIO : in->left; }

/* ---- elements ---------------------------------------------------------------------------------------------------------------- */

struct tag { uint32_t type, bytes; bool small; uint8_t data[4]; };      /* small: up to four bytes in the tag itself */

static bool read_tag(struct in *in, struct tag *t)
{
	uint8_t b[8];
	if (!take(in, b, sizeof b)) return false;
	memcpy(&t->type, b, 4);
	memcpy(&t->bytes, b + 4, 4);
	memcpy(t->data, b + 4, 4);
	t->small = t->type >> 16;
	if (t->small) t->bytes = t->type >> 16, t->type &= 0xffff;
	return !t->small || t->bytes <= 4;
}

/* The data of a tag, at most n bytes. */
static bool read_data(struct in *in, const struct tag *t, void *to, size_t n)
{
	uint8_t padding[8];
	if (t->bytes > n) return false;
	if (t->small) {
		memcpy(to, t->data, t->bytes);
		return true;
	}
	return take(in, to, t->bytes) && take(in, padding, (8 - t->bytes % 8) % 8);
}

enum found { OTHER, WANTED, BROKEN };

static const char *read_dims(struct nr_mat *m, const int32_t *d, int rank, int64_t max)
{
	if (rank < 1 || rank > 4) return "has more than four dimensions";
	m->rank = rank;
	m->count = 1;
	for (int i = 0; i < 4; i++) {
		m->dim[i] = i < rank ? d[i] : 1;
		if (m->dim[i] < 0 || __builtin_mul_overflow(m->count, m->dim[i], &m->count) || m->count > max) return "is too large";
	}
	return m->count ? NULL : "is empty";
}

static const char *read_numbers(struct nr_mat *m, struct in *in)
{
	struct tag t;
	if (!read_tag(in, &t)) return "cannot be read: the file is damaged or incomplete";
	const size_t each = width((int)t.type), need = (size_t)m->count * each;
	if (!each || t.bytes != need) return "has fewer numbers than its header states";
	if (!t.small && need > most(in)) return "cannot be read: the file is damaged or incomplete";
	m->type = (int)t.type;
	m->data = malloc(need);
	if (!m->data) return "does not fit into memory";
	if (t.small) memcpy(m->data, t.data, need);
	else if (!take(in, m->data, need)) return "cannot be read: the file is damaged or incomplete";
	return NULL;
}

/* One variable: is it the wanted one? *wrong: what is wrong with it then. */
static enum found read_matrix(struct nr_mat *m, struct in *in, const char *name, int64_t max, const char **wrong)
{
	uint32_t flags[2];
	int32_t dims[8];
	char own[NAME_MAX_BYTES + 1] = "";
	struct tag t;
	if (!read_tag(in, &t) || t.type != UINT32 || t.bytes != sizeof flags || !read_data(in, &t, flags, sizeof flags)) return BROKEN;
	const int class = flags[0] & 0xff;
	if (class > CLASS_LAST) return OTHER;                   /* functions and objects are laid out in other ways */
	if (!read_tag(in, &t) || t.type != INT32) return BROKEN;
	if (t.bytes > sizeof dims) return OTHER;                /* no array of ours has that many dimensions */
	const int rank = (int)(t.bytes / sizeof *dims);
	if (!read_data(in, &t, dims, sizeof dims)) return BROKEN;
	if (!read_tag(in, &t) || t.type != INT8) return BROKEN;
	if (t.bytes > NAME_MAX_BYTES) return OTHER;
	if (!read_data(in, &t, own, NAME_MAX_BYTES)) return BROKEN;
	if (strcmp(own, name)) return OTHER;
	m->class = class;
	if (class < CLASS_FIRST) *wrong = "is not an array of numbers";
	else if (flags[0] >> 8 & COMPLEX) *wrong = "is complex";
	else if (!(*wrong = read_dims(m, dims, rank, max))) *wrong = read_numbers(m, in);
	return WANTED;
}

/* An element of the file that may be the variable. */
static enum found read_element(struct nr_mat *m, const uint8_t *at, size_t size, bool packed, const char *name, int64_t max,
	const char **wrong)
{
	struct in in;
	struct tag t;
	if (!in_open(&in, at, size, packed)) {
		*wrong = "does not fit into memory";
		return WANTED;
	}
	enum found found = BROKEN;
	if (!packed) found = read_matrix(m, &in, name, max, wrong);
	else if (read_tag(&in, &t)) found = t.type == MATRIX ? read_matrix(m, &in, name, max, wrong) : OTHER;
	in_close(&in);
	return found;
}

static const char *find(struct nr_mat *m, const uint8_t *file, size_t size, const char *name, int64_t max)
{
	const char *wrong = NULL;
	enum found found = OTHER;
	for (size_t at = HEADER; found == OTHER && size - at >= 8;) {
		uint32_t type, bytes;
		memcpy(&type, file + at, 4);
		memcpy(&bytes, file + at + 4, 4);
		at += 8;
		if (bytes > size - at) break;
		if (type == MATRIX || type == COMPRESSED) found = read_element(m, file + at, bytes, type == COMPRESSED, name, max, &wrong);
		at += bytes;
		const size_t padding = type == COMPRESSED ? 0 : (8 - bytes % 8) % 8;
		at += padding < size - at ? padding : size - at;
	}
	return found == WANTED ? wrong : "is missing, or the file is incomplete";
}

int nr_mat_parse(struct nr_mat *m, const void *bytes, size_t size, const char *path, const char *name, int64_t max, struct nr_error *err)
{
	const uint8_t *head = bytes;
	*m = (struct nr_mat){ 0 };
	if (size < HEADER) return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is shorter than the 128 bytes of a MAT header");
	if (head[124] == 0 && head[125] == 2)
		return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is MAT v7.3 (HDF5) instead of v5");
	if (memcmp(head + 124, "\0\1IM", 4)) return nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not a little-endian MAT v5 file");
	const char *wrong = find(m, bytes, size, name, max);
	if (!wrong) return NR_OK;
	nr_mat_release(m);
	return nr_fail(err, NR_EFORMAT, "cannot read", path, "variable '%s' %s", name, wrong);
}

int nr_mat_read(struct nr_mat *m, const char *path, const char *name, int64_t max, struct nr_error *err)
{
	struct nr_bytes b;
	*m = (struct nr_mat){ 0 };
	int code = nr_bytes_map(&b, path, err);
	if (!code) code = nr_mat_parse(m, b.data, b.size, path, name, max, err);
	nr_bytes_release(&b);
	return code;
}

double nr_mat_at(const struct nr_mat *m, int64_t i)
{
	switch (m->type) {
	case DOUBLE: return ((const double *)m->data)[i];
	case SINGLE: return (double)((const float *)m->data)[i];
	case INT64: return (double)((const int64_t *)m->data)[i];
	case UINT64: return (double)((const uint64_t *)m->data)[i];
	case INT32: return ((const int32_t *)m->data)[i];
	case UINT32: return ((const uint32_t *)m->data)[i];
	case INT16: return ((const int16_t *)m->data)[i];
	case UINT16: return ((const uint16_t *)m->data)[i];
	case INT8: return ((const int8_t *)m->data)[i];
	default: return ((const uint8_t *)m->data)[i];
	}
}

const uint8_t *nr_mat_bytes(const struct nr_mat *m) { return m->class == CLASS_UINT8 && m->type == UINT8 ? m->data : NULL; }

void nr_mat_release(struct nr_mat *m)
{
	free(m->data);
	*m = (struct nr_mat){ 0 };
}
