/* NPY: see npy.h. The header is a Python dictionary of three known keys; only what NumPy itself writes is read. */
#include "data/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/safetensors.h"
#include "base/save.h"
#include "base/str.h"

static const struct { const char *text; enum nr_st_dtype dtype; } types[] = {
	{ "|u1", NR_ST_U8 }, { "|i1", NR_ST_I8 }, { "|b1", NR_ST_BOOL }, { "<f4", NR_ST_F32 },
		{ "<f8", NR_ST_F64 }, { "<f2", NR_ST_F16 },
	{ "<i8", NR_ST_I64 }, { "<i4", NR_ST_I32 }, { "<i2", NR_ST_I16 }, { "<u8", NR_ST_U64 },
		{ "<u4", NR_ST_U32 }, { "<u2", NR_ST_U16 },
	{ "<u1", NR_ST_U8 }, { "<i1", NR_ST_I8 }, { "<b1", NR_ST_BOOL },
};
enum { TYPES = sizeof types / sizeof *types };

struct text { const char *at, *end, *name; struct nr_error *err; };

#define BAD(t, ...) nr_fail((t)->err, NR_EFORMAT, "cannot read", (t)->name, __VA_ARGS__)

static void blanks(struct text *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t')) t->at++;
}

static bool take(struct text *t, char c)
{
	blanks(t);
	if (t->at == t->end || *t->at != c) return false;
	t->at++;
	return true;
}

static bool word(struct text *t, const char *w)
{
	const size_t n = strlen(w);
	blanks(t);
	if ((size_t)(t->end - t->at) < n || memcmp(t->at, w, n)) return false;
	t->at += n;
	return true;
}

/* 'text' without escapes. */
static bool quoted(struct text *t, char *out, size_t size)
{
	blanks(t);
	if (t->at == t->end || (*t->at != '\'' && *t->at != '"')) return false;
	const char quote = *t->at++;
	size_t n = 0;
	while (t->at < t->end && *t->at != quote && *t->at != '\\' && n + 1 < size) out[n++] = *t->at++;
	out[n] = 0;
	return take(t, quote);
}

static int read_shape(struct text *t, struct nr_st_tensor *a)
{
	if (!take(t, '(')) return BAD(t, "shape is not a tuple");
	a->nd = 0;
	while (!take(t, ')')) {
		int64_t n = 0;
		blanks(t);
		if (t->at == t->end || !isdigit((unsigned char)*t->at)) return BAD(t,
			"shape is not a tuple of numbers");
		for (; t->at < t->end && isdigit((unsigned char)*t->at); t->at++)
			if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *t->at - '0',
				&n)) return BAD(t, "a dimension overflows");
		if (t->at < t->end && *t->at == 'L') t->at++;
		if (a->nd == NR_ST_MAXD) return BAD(t, "more than %d dimensions", NR_ST_MAXD);
		a->shape[a->nd++] = n;
		if (!take(t, ',')) {
			if (!take(t, ')')) return BAD(t, "shape is not a tuple of numbers");
			break;
		}
	}
	return NR_OK;
}

static int read_type(struct text *t, struct nr_st_tensor *a)
{
	char descr[16];
	if (!quoted(t, descr, sizeof descr)) return BAD(t,
		"descr is not a plain type (records and objects are not supported)");
	for (int i = 0; i < TYPES; i++)
		if (!strcmp(types[i].text, descr)) {
			a->dtype = types[i].dtype;
			return NR_OK;
		}
	return BAD(t, "type '%s' is not supported, only little-endian numbers and bool", descr);
}

static int read_dict(struct text *t, struct nr_st_tensor *a, bool *fortran)
{
	unsigned seen = 0;
	if (!take(t, '{')) return BAD(t, "the header is not a dictionary");
	while (!take(t, '}')) {
		char key[20];
		if (!quoted(t, key, sizeof key) || !take(t, ':')) return BAD(t,
			"the header is not a dictionary of descr, fortran_order, shape");
		const unsigned bit = !strcmp(key, "descr") ? 1 : !strcmp(key, "fortran_order") ? 2 :
			!strcmp(key, "shape") ? 4 : 0;
		if (!bit || (seen & bit)) return BAD(t, "key '%s' is unknown or given twice", key);
		seen |= bit;
		if (bit == 1 && read_type(t, a)) return NR_EFORMAT;
		if (bit == 4 && read_shape(t, a)) return NR_EFORMAT;
		if (bit == 2) {
			*fortran = word(t, "True");
			if (!*fortran && !word(t, "False")) return BAD(t, "fortran_order is neither True nor False");
		}
		if (!take(t, ',') && !(t->at < t->end && *t->at == '}')) return BAD(t, "the header is incomplete");
	}
	blanks(t);
	if (t->at != t->end) return BAD(t, "something follows the header's dictionary");
	return seen == 7 ? NR_OK : BAD(t, "the header lacks descr, fortran_order or shape");
}

int nr_npy_head(struct nr_st_tensor *a, const void *bytes, size_t size, size_t *data, const char *name, struct nr_error *err)
{
	struct nr_error own = { 0 };
	const unsigned char *b = bytes;
	struct text t = { .name = name, .err = err ? err : &own };
	*a = (struct nr_st_tensor){ .name = name };
	if (size < 10 || memcmp(b, "\x93NUMPY", 6)) return BAD(&t,
		"it is not an NPY file: it does not begin with \\x93NUMPY");
	if (b[6] < 1 || b[6] > 3 || b[7]) return BAD(&t, "NPY version %d.%d is not supported", b[6], b[7]);
	const size_t start = b[6] == 1 ? 10 : 12;
	if (size < start) return BAD(&t, "it ends within the header");
	const size_t length = b[6] == 1 ? (size_t)b[8] | (size_t)b[9] << 8 :
		(size_t)b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (length > size - start) return BAD(&t, "the header says %zu bytes, but only %zu follow", length,
		size - start);
	t.at = (const char *)b + start;
	t.end = t.at + length;
	bool fortran = false;
	if (read_dict(&t, a, &fortran)) return NR_EFORMAT;
	int wide = 0;
	for (int i = 0; i < a->nd; i++) wide += a->shape[i] > 1;
	if (fortran && wide > 1) {
		BAD(&t, "it is in Fortran order");
		return nr_hint(t.err, "save numpy.ascontiguousarray(x)");
	}
	if (!nr_st_shape_bytes(a, &a->bytes)) return BAD(&t, "the product of its dimensions overflows");
	*data = start + length;
	return NR_OK;
}

int nr_npy_parse(struct nr_st_tensor *a, const void *bytes, size_t size, const char *name, struct nr_error *err)
{
	size_t start;
	const int e = nr_npy_head(a, bytes, size, &start, name, err);
	if (e) return e;
	if (a->bytes != size - start)
		return nr_fail(err, NR_EFORMAT, "cannot read", name, "it has %zu bytes of data instead of %zu", size - start, a->bytes);
	a->data = (const unsigned char *)bytes + start;
	return NR_OK;
}

int nr_npy_open(struct nr_npy *n, const char *path, struct nr_error *err)
{
	*n = (struct nr_npy){ 0 };
	if (nr_bytes_map(&n->file, path, err)) return NR_EIO;
	const int e = nr_npy_parse(&n->array, n->file.data, n->file.size, path, err);
	if (e) nr_npy_close(n);
	return e;
}

void nr_npy_close(struct nr_npy *n)
{
	nr_bytes_release(&n->file);
	*n = (struct nr_npy){ 0 };
}

int nr_npy_write(const char *path, const struct nr_st_tensor *a, struct nr_error *err)
{
	const char *descr = NULL;
	for (int i = 0; i < TYPES && !descr; i++)
		if (types[i].dtype == a->dtype) descr = types[i].text;
	size_t bytes;
	if (!descr) return nr_fail(err, NR_EVALUE, "cannot write", path, "NumPy has no type %s",
		nr_st_dtype_name(a->dtype));
	if (!nr_st_shape_bytes(a, &bytes) || bytes != a->bytes)
		return nr_fail(err, NR_ESHAPE, "cannot write", path, "%zu bytes do not fill the shape", a->bytes);
	struct nr_str h = { 0 };
	nr_str_printf(&h, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
	for (int i = 0; i < a->nd; i++) nr_str_printf(&h, "%s%lld%s", i ? ", " : "", (long long)a->shape[i],
		a->nd == 1 ? "," : "");
	nr_str_add(&h, "), }");
	nr_str_fill(&h, ' ', (64 - (10 + h.len + 1) % 64) % 64);
	nr_str_add(&h, "\n");
	const unsigned char head[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, h.len & 255, (unsigned char)(h.len >> 8) };
	struct nr_save s;
	int e = h.failed ? nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory") : nr_save_open(&s, path, err);
	if (!e) e = nr_save_write(&s, head, sizeof head, err);
	if (!e) e = nr_save_write(&s, h.text, h.len, err);
	if (!e) e = nr_save_write(&s, a->data, a->bytes, err);
	if (!e) e = nr_save_close(&s, err);
	nr_str_release(&h);
	return e;
}
