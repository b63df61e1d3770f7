/* NPY, the file format of NumPy arrays (numpy.lib.format, versions 1 to 3), and NPZ, a zip of them.
 * Little-endian, C order. An
 * array is a struct nr_st_tensor, so that nr_st_to_f32 and its sisters convert it. */
#ifndef NR_NPY_H
#define NR_NPY_H

#include "base/bytes.h"
#include "norma/safetensors.h"

/* The header alone: type, shape and, in bytes, how much data must follow from *start on. */
int nr_npy_head(struct nr_st_tensor *, const void *bytes, size_t size, size_t *start, const char *name, struct nr_error *);
/* data points into bytes; name is kept. Pickled objects, text and big-endian numbers are refused. */
int nr_npy_parse(struct nr_st_tensor *, const void *bytes, size_t size, const char *name, struct nr_error *);

struct nr_npy { struct nr_st_tensor array; struct nr_bytes file; };
int nr_npy_open(struct nr_npy *, const char *path, struct nr_error *);
void nr_npy_close(struct nr_npy *);
/* Atomically. BF16 has no NumPy type and is refused. */
int nr_npy_write(const char *path, const struct nr_st_tensor *, struct nr_error *);

/* The member NAME.npy of an NPZ. *there false, and no error: there is none. */
int nr_npz_read(struct nr_npy *, const char *path, const char *name, bool *there, struct nr_error *);
/* The same, row after row (of the first axis), for arrays that need not be in memory as a whole: take sees each row once. check sees the
 * header before; non-zero from it, with an error, stops. */
struct nr_npz_rows {
	int (*check)(void *context, const struct nr_st_tensor *, struct nr_error *);
	void (*take)(void *context, int64_t row, const uint8_t *bytes);
	void *context;
};
int nr_npz_read_rows(const char *path, const char *name, const struct nr_npz_rows *, struct nr_error *);
/* Calls tell for each member, without ".npy". */
int nr_npz_names(const char *path, void (*tell)(void *arg, const char *name), void *arg, struct nr_error *);

#endif
