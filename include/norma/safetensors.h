/* For reading and writing weights: safetensors, named tensors in one file (https://huggingface.co/docs/safetensors). Little-endian hosts
 * only.
 *
 * A file is checked whole when it is opened: header length, UTF-8, JSON, duplicate names, dtypes, shapes,
 * offsets, overlaps and holes. What nr_st_get returns needs no further checks.
 *
 * Example:
 *   struct nr_st_file *file;
 *   if (!nr_st_open(&file, "model.safetensors", &err)) {
 *           const struct nr_st_tensor *weight = nr_st_need(file, "head.weight", &err);
 *           if (weight) printf("%lld values of type %s\n", (long long)nr_st_elements(weight), nr_st_dtype_name(weight->dtype));
 *           nr_st_close(file);
 *   }
 */
#ifndef NORMA_SAFETENSORS_H
#define NORMA_SAFETENSORS_H

#include "norma/err.h"

enum { NR_ST_MAXD = 8 };

enum nr_st_dtype {
	NR_ST_F64, NR_ST_F32, NR_ST_F16, NR_ST_BF16,
	NR_ST_I64, NR_ST_I32, NR_ST_I16, NR_ST_I8,
	NR_ST_U64, NR_ST_U32, NR_ST_U16, NR_ST_U8, NR_ST_BOOL,
};

/* data of an opened file lives until nr_st_close and may be unaligned in files that others wrote: copy or
 * convert it. */
struct nr_st_tensor {
	const char *name;
	enum nr_st_dtype dtype;
	int nd;                     /* 0: a scalar */
	int64_t shape[NR_ST_MAXD];
	const void *data;
	size_t bytes;
};

struct nr_st_meta { const char *key, *value; };
struct nr_st_file;

/* On failure *out is NULL and the error names the file and the tensor or the place. The file is mapped:
 * whoever shortens it while it is open breaks the reader; writers that rename, as nr_st_write does, are safe.
 * "model.safetensors.index.json" opens all the files that it names as one. */
NR_API int nr_st_open(struct nr_st_file **out, const char *path, struct nr_error *);
/* The same for bytes in memory, which must outlive the object; name is for messages. */
NR_API int nr_st_open_memory(struct nr_st_file **out, const void *bytes, size_t size, const char *name,
			     struct nr_error *);
NR_API void nr_st_close(struct nr_st_file *);  /* NULL is fine */

NR_API const char *nr_st_path(const struct nr_st_file *);         /* as it was opened */
NR_API int64_t nr_st_count(const struct nr_st_file *);
/* In the order of the data. */
NR_API const struct nr_st_tensor *nr_st_get(const struct nr_st_file *, int64_t i);
/* NULL: not there. */
NR_API const struct nr_st_tensor *nr_st_find(const struct nr_st_file *, const char *name);
/* As nr_st_find, but a missing name is an error with the nearest one as hint. */
NR_API const struct nr_st_tensor *nr_st_need(const struct nr_st_file *, const char *name, struct nr_error *);
NR_API const char *nr_st_metadata(const struct nr_st_file *, const char *key);  /* NULL: not there */
NR_API int64_t nr_st_metadata_count(const struct nr_st_file *);
NR_API struct nr_st_meta nr_st_metadata_get(const struct nr_st_file *, int64_t i);

NR_API int64_t nr_st_elements(const struct nr_st_tensor *);
NR_API size_t nr_st_width(enum nr_st_dtype);       /* bytes of one element */
NR_API const char *nr_st_dtype_name(enum nr_st_dtype);
/* Every dtype to float or double; to int64 from whole numbers and BOOL only. n must be the number of
 * elements. */
NR_API int nr_st_to_f32(const struct nr_st_tensor *, float *out, int64_t n, struct nr_error *);
NR_API int nr_st_to_f64(const struct nr_st_tensor *, double *out, int64_t n, struct nr_error *);
NR_API int nr_st_to_i64(const struct nr_st_tensor *, int64_t *out, int64_t n, struct nr_error *);

/* Replaces path at once or not at all: temporary file beside it, fsync, rename. Data are ordered by falling
 * element width, then by name, as the public library does, so equal tensors give equal bytes and each is
 * aligned. */
NR_API int nr_st_write(const char *path, const struct nr_st_tensor *, int64_t n, const struct nr_st_meta *,
		       int64_t n_meta, struct nr_error *);

#endif
