/* safetensors, writing: see norma/safetensors.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/safetensors.h"
#include "base/json.h"
#include "base/save.h"
#include "base/str.h"

#define BAD(code, ...) nr_fail(err, code, "cannot write", path, __VA_ARGS__)

static int by_width_then_name(const void *a, const void *b)
{
	const struct nr_st_tensor *s = *(const struct nr_st_tensor *const *)a,
				  *t = *(const struct nr_st_tensor *const *)b;
	size_t v = nr_st_width(s->dtype), w = nr_st_width(t->dtype);
	if (v != w)
		return v > w ? -1 : 1;
	return strcmp(s->name, t->name);
}

static int check(const char *path, const struct nr_st_tensor *t, struct nr_error *err)
{
	size_t bytes;
	if (!t->name || !nr_utf8_valid(t->name, strlen(t->name)) || strcmp(t->name, "__metadata__") == 0)
		return BAD(NR_ENAME, "'%s' cannot name a tensor", t->name ? t->name : "");
	if (t->nd < 0 || t->nd > NR_ST_MAXD)
		return BAD(NR_ELIMIT, "tensor '%s' has %d dims, at most %d are supported", t->name, t->nd,
			   NR_ST_MAXD);
	for (int i = 0; i < t->nd; i++)
		if (t->shape[i] < 0)
			return BAD(NR_ESHAPE, "tensor '%s': dim %d is negative", t->name, i);
	if (!nr_st_shape_bytes(t, &bytes))
		return BAD(NR_ELIMIT, "tensor '%s' has a shape whose size overflows", t->name);
	if (bytes != t->bytes || (bytes && !t->data))
		return BAD(NR_ESHAPE, "tensor '%s' has %zu bytes, but its shape and dtype need %zu", t->name,
			   t->data ? t->bytes : 0, bytes);
	return NR_OK;
}

static json_t *entry(const struct nr_st_tensor *t, json_int_t begin)
{
	json_t *shape = json_array();
	for (int i = 0; i < t->nd; i++)
		json_array_append_new(shape, json_integer(t->shape[i]));
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", nr_st_dtype_name(t->dtype), "shape", shape,
			 "data_offsets", begin, begin + (json_int_t)t->bytes);
}

static int add_metadata(json_t *root, const char *path, const struct nr_st_meta *meta, int64_t n,
			struct nr_error *err)
{
	json_t *object = json_object();
	if (json_object_set_new(root, "__metadata__", object))
		return BAD(NR_EMEMORY, "out of memory");
	for (int64_t i = 0; i < n; i++) {
		if (json_object_get(object, meta[i].key))
			return BAD(NR_ENAME, "metadata '%s' is given twice", meta[i].key);
		if (json_object_set_new(object, meta[i].key, json_string(meta[i].value)))
			return BAD(NR_EVALUE, "metadata '%s' is not UTF-8", meta[i].key);
	}
	return NR_OK;
}

/* JSON header padded with spaces so that the data start at a multiple of 8. */
static int make_header(struct nr_str *out, const char *path, const struct nr_st_tensor *const *t, int64_t n,
		       const struct nr_st_meta *meta, int64_t n_meta, struct nr_error *err)
{
	json_t *root = json_object();
	int e = n_meta ? add_metadata(root, path, meta, n_meta, err) : NR_OK;
	json_int_t at = 0;
	for (int64_t i = 0; i < n && !e; i++) {
		if (json_object_get(root, t[i]->name))
			e = BAD(NR_ENAME, "tensor '%s' is given twice", t[i]->name);
		else if (json_object_set_new(root, t[i]->name, entry(t[i], at)))
			e = BAD(NR_EMEMORY, "out of memory");
		at += (json_int_t)t[i]->bytes;
	}
	char *text = e ? NULL : nr_json_dump(root, JSON_COMPACT);
	json_decref(root);
	if (e)
		return e;
	uint64_t size = 0;
	nr_str_add_n(out, (const char *)&size, sizeof size);  /* filled in below */
	if (text)
		nr_str_add(out, text);
	free(text);
	nr_str_fill(out, ' ', (8 - out->len % 8) % 8);
	if (!text || out->failed)
		return BAD(NR_EMEMORY, "out of memory");
	size = out->len - sizeof size;
	memcpy(out->text, &size, sizeof size);
	return NR_OK;
}

int nr_st_write(const char *path, const struct nr_st_tensor *tensors, int64_t n,
		const struct nr_st_meta *meta, int64_t n_meta, struct nr_error *err)
{
	int e = NR_OK;
	const struct nr_st_tensor **order = malloc(((size_t)n + 1) * sizeof *order);
	if (!order)
		return BAD(NR_EMEMORY, "out of memory");
	for (int64_t i = 0; i < n && !e; i++) {
		order[i] = &tensors[i];
		e = check(path, order[i], err);
	}
	struct nr_str header = { 0 };
	struct nr_save save = { .fd = -1 };
	if (!e) {
		qsort(order, (size_t)n, sizeof *order, by_width_then_name);
		e = make_header(&header, path, order, n, meta, n_meta, err);
	}
	if (!e)
		e = nr_save_open(&save, path, err);
	if (!e)
		e = nr_save_write(&save, header.text, header.len, err);
	for (int64_t i = 0; i < n && !e; i++)
		e = nr_save_write(&save, order[i]->data, order[i]->bytes, err);
	if (!e)
		e = nr_save_close(&save, err);
	nr_str_release(&header);
	free(order);
	return e;
}
