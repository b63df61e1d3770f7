/* What reading and writing safetensors share. */
#ifndef NR_BASE_SAFETENSORS_H
#define NR_BASE_SAFETENSORS_H

#include <stdbool.h>

#include "base/real.h"
#include "norma/safetensors.h"

/* Product of the dims (none negative) times the element's width; false on overflow. */
bool nr_st_shape_bytes(const struct nr_st_tensor *, size_t *);

/* The i-th of the files that the tensors come from: those that an index names, or the file itself. NULL: there are no more. */
const char *nr_st_part(const struct nr_st_file *, int64_t i);

/* To this library's own numbers. */
static inline int nr_st_to_real(const struct nr_st_tensor *t, real *out, int64_t n, struct nr_error *err)
{
#ifdef NR_DOUBLE
	return nr_st_to_f64(t, out, n, err);
#else
	return nr_st_to_f32(t, out, n, err);
#endif
}

#endif
