/* safetensors, reading: 8 bytes of header length, a JSON header, then the data. See norma/safetensors.h. */
#include "norma/safetensors.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/safetensors.h"
#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "safetensors data are little-endian and are mapped as they are");

enum { HEADER_CAP = 100 * 1000 * 1000 };  /* the public library's limit */

static const struct { const char *name; size_t width; } dtypes[] = {
	[NR_ST_F64] = { "F64", 8 }, [NR_ST_F32] = { "F32", 4 }, [NR_ST_F16] = { "F16", 2 },
	[NR_ST_BF16] = { "BF16", 2 }, [NR_ST_I64] = { "I64", 8 }, [NR_ST_I32] = { "I32", 4 },
	[NR_ST_I16] = { "I16", 2 }, [NR_ST_I8] = { "I8", 1 }, [NR_ST_U64] = { "U64", 8 },
	[NR_ST_U32] = { "U32", 4 }, [NR_ST_U16] = { "U16", 2 }, [NR_ST_U8] = { "U8", 1 },
	[NR_ST_BOOL] = { "BOOL", 1 },
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

struct nr_st_file {
	struct nr_arena *arena;
	const char *path;
	const unsigned char *bytes;  /* the whole file */
	size_t size;
	bool mapped;
	struct nr_st_file **part;            /* of an index: the files that it names */
	int64_t parts;
	struct nr_st_tensor *tensor;         /* in the order of the data */
	const struct nr_st_tensor **by_name;
	struct nr_st_meta *meta;
	int64_t count, n_meta;
};

size_t nr_st_width(enum nr_st_dtype t)
{
	return dtypes[t].width;
}

const char *nr_st_dtype_name(enum nr_st_dtype t)
{
	return dtypes[t].name;
}

int64_t nr_st_elements(const struct nr_st_tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->nd; i++)
		n *= t->shape[i];
	return n;
}

#define BAD(f, err, ...) nr_fail(err, NR_EFORMAT, "cannot read", (f)->path, __VA_ARGS__)

/* A zero makes the product zero whatever follows, yet the other dims alone must not overflow: who multiplies
 * them in order would meet the overflow first. */
bool nr_st_shape_bytes(const struct nr_st_tensor *t, size_t *out)
{
	int64_t n = (int64_t)nr_st_width(t->dtype);
	bool zero = false;
	for (int i = 0; i < t->nd; i++) {
		if (t->shape[i] == 0)
			zero = true;
		else if (__builtin_mul_overflow(n, t->shape[i], &n))
			return false;
	}
	*out = zero ? 0 : (size_t)n;
	return true;
}

static int read_dtype(const struct nr_st_file *f, struct nr_st_tensor *t, const json_t *v,
		      struct nr_error *err)
{
	if (!json_is_string(v))
		return BAD(f, err, "tensor '%s' has no dtype", t->name);
	const char *name = json_string_value(v);
	for (int i = 0; i < N_DTYPES; i++)
		if (strcmp(dtypes[i].name, name) == 0) {
			t->dtype = (enum nr_st_dtype)i;
			return NR_OK;
		}
	BAD(f, err, "tensor '%s' has dtype '%.40s'", t->name, name);
	nr_hint(err, "supported: F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL");
	return NR_EFORMAT;
}

static int read_shape(const struct nr_st_file *f, struct nr_st_tensor *t, const json_t *v,
		      struct nr_error *err)
{
	if (!json_is_array(v))
		return BAD(f, err, "tensor '%s' has no shape", t->name);
	if (json_array_size(v) > NR_ST_MAXD)
		return BAD(f, err, "tensor '%s' has %zu dims, at most %d are supported", t->name,
			   json_array_size(v), NR_ST_MAXD);
	t->nd = (int)json_array_size(v);
	for (int i = 0; i < t->nd; i++) {
		const json_t *d = json_array_get(v, (size_t)i);
		if (!json_is_integer(d) || json_integer_value(d) < 0)
			return BAD(f, err, "tensor '%s' has a bad shape: dim %d is not a whole number >= 0",
				   t->name, i);
		t->shape[i] = json_integer_value(d);
	}
	if (!nr_st_shape_bytes(t, &t->bytes))
		return BAD(f, err, "tensor '%s' has a shape whose size overflows", t->name);
	return NR_OK;
}

static int read_offsets(const struct nr_st_file *f, struct nr_st_tensor *t, const json_t *v,
			const unsigned char *data, size_t data_size, struct nr_error *err)
{
	const json_t *b = json_array_get(v, 0), *e = json_array_get(v, 1);
	if (!json_is_array(v) || json_array_size(v) != 2 || !json_is_integer(b) || !json_is_integer(e))
		return BAD(f, err, "tensor '%s': data_offsets are not two whole numbers", t->name);
	json_int_t begin = json_integer_value(b), end = json_integer_value(e);
	if (begin < 0 || end < begin)
		return BAD(f, err, "tensor '%s': data_offsets %lld to %lld run backwards", t->name,
			   (long long)begin, (long long)end);
	if ((uint64_t)end > data_size) {
		BAD(f, err, "tensor '%s' ends at byte %lld of the data, but the file has %zu", t->name,
		    (long long)end, data_size);
		nr_hint(err, "copy it again: it is incomplete or damaged");
		return NR_EFORMAT;
	}
	if ((uint64_t)(end - begin) != t->bytes)
		return BAD(f, err, "tensor '%s' has %lld bytes, but its shape and dtype need %zu", t->name,
			   (long long)(end - begin), t->bytes);
	t->data = data + begin;
	return NR_OK;
}

static int by_place(const void *a, const void *b)
{
	const struct nr_st_tensor *s = a, *t = b;
	if (s->data != t->data)
		return (const char *)s->data < (const char *)t->data ? -1 : 1;
	if (s->bytes != t->bytes)
		return s->bytes < t->bytes ? -1 : 1;
	return strcmp(s->name, t->name);
}

static int by_name(const void *a, const void *b)
{
	const struct nr_st_tensor *const *s = a, *const *t = b;
	return strcmp((*s)->name, (*t)->name);
}

/* The format wants every byte of the data to belong to exactly one tensor. */
static int check_cover(struct nr_st_file *f, const unsigned char *data, size_t data_size,
		       struct nr_error *err)
{
	qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, by_place);
	const unsigned char *end = data;
	for (int64_t i = 0; i < f->count; i++) {
		const struct nr_st_tensor *t = &f->tensor[i];
		const unsigned char *begin = t->data;
		if (begin < end)
			return BAD(f, err, "tensors '%s' and '%s' overlap", f->tensor[i - 1].name, t->name);
		if (begin > end)
			return BAD(f, err, "%td bytes of data before tensor '%s' belong to no tensor", begin - end,
				   t->name);
		end = begin + t->bytes;
	}
	if (end != data + data_size)
		return BAD(f, err, "the last %td bytes of data belong to no tensor", data + data_size - end);
	return NR_OK;
}

static int read_metadata(struct nr_st_file *f, json_t *object, struct nr_error *err)
{
	if (!json_is_object(object))
		return BAD(f, err, "__metadata__ is not an object of strings");
	f->meta = nr_arena_alloc(f->arena, json_object_size(object) * sizeof *f->meta);
	if (!f->meta)
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	const char *key;
	json_t *value;
	json_object_foreach(object, key, value) {
		if (!json_is_string(value))
			return BAD(f, err, "__metadata__ '%s' is not a string", key);
		struct nr_st_meta *m = &f->meta[f->n_meta++];
		m->key = nr_arena_strdup(f->arena, key);
		m->value = nr_arena_strdup(f->arena, json_string_value(value));
		if (!m->key || !m->value)
			return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	}
	return NR_OK;
}

static int read_tensor(struct nr_st_file *f, const char *name, const json_t *entry, const unsigned char *data,
		       size_t data_size, struct nr_error *err)
{
	struct nr_st_tensor *t = &f->tensor[f->count];
	t->name = nr_arena_strdup(f->arena, name);
	if (!t->name)
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	if (!json_is_object(entry))
		return BAD(f, err, "tensor '%s' is not described by an object", name);
	int e = read_dtype(f, t, json_object_get(entry, "dtype"), err);
	if (!e)
		e = read_shape(f, t, json_object_get(entry, "shape"), err);
	if (!e)
		e = read_offsets(f, t, json_object_get(entry, "data_offsets"), data, data_size, err);
	f->count += !e;
	return e;
}

static int read_entries(struct nr_st_file *f, json_t *root, const unsigned char *data, size_t data_size,
			struct nr_error *err)
{
	size_t n = json_object_size(root);
	f->tensor = nr_arena_alloc(f->arena, n * sizeof *f->tensor);
	f->by_name = nr_arena_alloc(f->arena, n * sizeof *f->by_name);
	if (!f->tensor || !f->by_name)
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	const char *name;
	json_t *entry;
	int e = NR_OK;
	json_object_foreach(root, name, entry) {
		e = strcmp(name, "__metadata__") == 0 ? read_metadata(f, entry, err)
						      : read_tensor(f, name, entry, data, data_size, err);
		if (e)
			return e;
	}
	e = check_cover(f, data, data_size, err);
	for (int64_t i = 0; i < f->count; i++)
		f->by_name[i] = &f->tensor[i];
	qsort(f->by_name, (size_t)f->count, sizeof *f->by_name, by_name);
	return e;
}

/* A zip archive, or a pickle of protocol 2 to 5. Of files that cannot be ours: a header of 640 bytes begins as a pickle does. */
static bool is_pickle(const void *bytes)
{
	const uint8_t *b = bytes;
	return !memcmp(b, "PK\3\4", 4) || (b[0] == 0x80 && b[1] >= 2 && b[1] <= 5);
}

static int read_header(struct nr_st_file *f, struct nr_error *err)
{
	if (f->size < 8)
		return BAD(f, err, "%zu bytes are too few for a safetensors file", f->size);
	uint64_t n;
	memcpy(&n, f->bytes, 8);
	if (n > HEADER_CAP && is_pickle(f->bytes)) {
		BAD(f, err, "it is a PyTorch pickle, which can run any program when it is read");
		nr_hint(err, "save its weights in Python: safetensors.torch.save_file(state_dict, 'model.safetensors')");
		return NR_EFORMAT;
	}
	if (n > HEADER_CAP) {
		BAD(f, err, "header says %llu bytes, at most %d are accepted", (unsigned long long)n,
		    HEADER_CAP);
		nr_hint(err, "it is damaged, or not a safetensors file");
		return NR_EFORMAT;
	}
	if (n > f->size - 8) {
		BAD(f, err, "header says %llu bytes, file has %zu", (unsigned long long)n, f->size - 8);
		nr_hint(err, "copy it again: it is incomplete");
		return NR_EFORMAT;
	}
	const char *text = (const char *)f->bytes + 8;
	size_t valid = nr_utf8_span(text, n);
	if (valid != n)
		return BAD(f, err, "header is not UTF-8 at byte %zu", valid + 8);
	if (n == 0 || text[0] != '{')
		return BAD(f, err, "header does not begin with '{'");
	json_error_t je;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
	if (!root)
		return BAD(f, err, "header, byte %d: %s", je.position + 8, je.text);
	int e = read_entries(f, root, f->bytes + 8 + n, f->size - 8 - n, err);
	json_decref(root);
	return e;
}

int nr_st_open_memory(struct nr_st_file **out, const void *bytes, size_t size, const char *name,
		      struct nr_error *err)
{
	*out = NULL;
	struct nr_arena *arena = nr_arena_make();
	struct nr_st_file *f = arena ? nr_arena_alloc(arena, sizeof *f) : NULL;
	char *path = f ? nr_arena_strdup(arena, name) : NULL;
	if (!path) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot read", name, "out of memory");
	}
	*f = (struct nr_st_file){ .arena = arena, .path = path, .bytes = bytes, .size = size };
	int e = read_header(f, err);
	if (e)
		nr_st_close(f);
	else
		*out = f;
	return e;
}

/* ---- several files ------------------------------------------------------------------------------------------ */

static bool is_index(const char *path)
{
	static const char end[] = ".index.json";
	const size_t length = strlen(path), tail = sizeof end - 1;
	return length > tail && strcmp(path + length - tail, end) == 0;
}

static int open_part(struct nr_st_file *f, const char *name, struct nr_error *err)
{
	const char *slash = strrchr(f->path, '/');
	if (strchr(name, '/'))
		return BAD(f, err, "it names '%.100s', which is not in its folder", name);
	if (is_index(name))
		return BAD(f, err, "it names '%.100s', an index in the place of a file with tensors", name);
	const char *path = nr_arena_printf(f->arena, "%.*s%s", slash ? (int)(slash - f->path) + 1 : 0, f->path, name);
	if (!path)
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	for (int64_t i = 0; i < f->parts; i++)
		if (strcmp(nr_st_path(f->part[i]), path) == 0)
			return NR_OK;
	const int e = nr_st_open(&f->part[f->parts], path, err);
	f->parts += !e;
	f->count += e ? 0 : nr_st_count(f->part[f->parts - 1]);
	return e;
}

/* All tensors of the parts as those of one file; each has one place, and the index knows it. */
static int join_parts(struct nr_st_file *f, json_t *map, struct nr_error *err)
{
	int64_t n = 0;
	f->tensor = nr_arena_alloc(f->arena, (size_t)f->count * sizeof *f->tensor);
	f->by_name = nr_arena_alloc(f->arena, (size_t)f->count * sizeof *f->by_name);
	if (f->count && (!f->tensor || !f->by_name))
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	for (int64_t p = 0; p < f->parts; p++)
		for (int64_t i = 0; i < nr_st_count(f->part[p]); i++, n++) {
			f->tensor[n] = *nr_st_get(f->part[p], i);
			f->by_name[n] = &f->tensor[n];
		}
	qsort(f->by_name, (size_t)n, sizeof *f->by_name, by_name);
	for (int64_t i = 1; i < n; i++)
		if (strcmp(f->by_name[i - 1]->name, f->by_name[i]->name) == 0)
			return BAD(f, err, "two of its files have a tensor '%s'", f->by_name[i]->name);
	const char *name;
	json_t *file;
	json_object_foreach(map, name, file) {
		if (nr_st_find(f, name))
			continue;
		BAD(f, err, "it says that '%.100s' has '%.200s', but it does not", json_string_value(file), name);
		return nr_hint(err, "download all files again: they are not of one model");
	}
	return NR_OK;
}

static int read_index(struct nr_st_file *f, json_t *root, struct nr_error *err)
{
	json_t *map = json_object_get(root, "weight_map"), *file;
	const char *name;
	f->part = nr_arena_alloc(f->arena, (json_object_size(map) + 1) * sizeof *f->part);
	if (!f->part)
		return nr_fail(err, NR_EMEMORY, "cannot read", f->path, "out of memory");
	if (!json_object_size(map))
		return BAD(f, err, "it has no 'weight_map', so it is not the index of weights in several files");
	json_object_foreach(map, name, file) {
		if (!json_is_string(file))
			return BAD(f, err, "'weight_map' names no file for '%.200s'", name);
		const int e = open_part(f, json_string_value(file), err);
		if (e)
			return e;
	}
	return join_parts(f, map, err);
}

/* "model.safetensors.index.json", as transformers writes it beside "model-00001-of-00003.safetensors" and so on. */
static int open_index(struct nr_st_file **out, const char *path, struct nr_error *err)
{
	json_error_t je;
	struct nr_arena *arena = nr_arena_make();
	struct nr_st_file *f = arena ? nr_arena_alloc(arena, sizeof *f) : NULL;
	char *own = f ? nr_arena_strdup(arena, path) : NULL;
	if (!own) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	}
	*f = (struct nr_st_file){ .arena = arena, .path = own };
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
	const int e = root ? read_index(f, root, err)
			   : BAD(f, err, "line %d: %s", je.line, je.text);
	json_decref(root);
	if (e)
		nr_st_close(f);
	else
		*out = f;
	return e;
}

int nr_st_open(struct nr_st_file **out, const char *path, struct nr_error *err)
{
	const void *bytes;
	size_t size;
	*out = NULL;
	if (is_index(path))
		return open_index(out, path, err);
	int e = nr_file_map(&bytes, &size, path, err);
	if (e)
		return e;
	e = nr_st_open_memory(out, bytes, size, path, err);
	if (e)
		nr_file_unmap(bytes, size);
	else
		(*out)->mapped = true;
	return e;
}

void nr_st_close(struct nr_st_file *f)
{
	if (!f)
		return;
	if (f->mapped)
		nr_file_unmap(f->bytes, f->size);
	for (int64_t i = 0; i < f->parts; i++)
		nr_st_close(f->part[i]);
	nr_arena_free(f->arena);
}

const char *nr_st_path(const struct nr_st_file *f)
{
	return f->path;
}

const char *nr_st_part(const struct nr_st_file *f, int64_t i)
{
	if (f->parts)
		return i < f->parts ? nr_st_path(f->part[i]) : NULL;
	return i ? NULL : f->path;
}

int64_t nr_st_count(const struct nr_st_file *f)
{
	return f->count;
}

const struct nr_st_tensor *nr_st_get(const struct nr_st_file *f, int64_t i)
{
	return i >= 0 && i < f->count ? &f->tensor[i] : NULL;
}

const struct nr_st_tensor *nr_st_find(const struct nr_st_file *f, const char *name)
{
	const struct nr_st_tensor key = { .name = name }, *p = &key;
	const struct nr_st_tensor **hit = NULL;
	if (f->count)
		hit = bsearch(&p, f->by_name, (size_t)f->count, sizeof *f->by_name, by_name);
	return hit ? *hit : NULL;
}

const struct nr_st_tensor *nr_st_need(const struct nr_st_file *f, const char *name, struct nr_error *err)
{
	const struct nr_st_tensor *t = nr_st_find(f, name);
	if (t)
		return t;
	struct nr_near near = { .word = name };
	for (int64_t i = 0; i < f->count; i++)
		nr_near_try(&near, f->tensor[i].name);
	nr_fail(err, NR_ENAME, "cannot use", f->path, "it has no tensor '%s'", name);
	if (near.best)
		nr_hint(err, "did you mean '%s'?", near.best);
	return NULL;
}

const char *nr_st_metadata(const struct nr_st_file *f, const char *key)
{
	for (int64_t i = 0; i < f->n_meta; i++)
		if (strcmp(f->meta[i].key, key) == 0)
			return f->meta[i].value;
	return NULL;
}

int64_t nr_st_metadata_count(const struct nr_st_file *f)
{
	return f->n_meta;
}

struct nr_st_meta nr_st_metadata_get(const struct nr_st_file *f, int64_t i)
{
	return i >= 0 && i < f->n_meta ? f->meta[i] : (struct nr_st_meta){ NULL, NULL };
}
