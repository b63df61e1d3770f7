/* What reading and writing safetensors share. */
#ifndef NR_BASE_SAFETENSORS_H
#define NR_BASE_SAFETENSORS_H

#include <stdbool.h>

#include "norma/safetensors.h"

/* Product of the dims (none negative) times the element's width; false on overflow. */
bool nr_st_shape_bytes(const struct nr_st_tensor *, size_t *);

#endif
