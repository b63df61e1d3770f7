/* IDX, the format of MNIST (http://yann.lecun.com/exdb/mnist): two zero bytes, type, number of dimensions, a big-endian
 * uint32 per dimension, then the data in C order. */
#ifndef NR_IDX_H
#define NR_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

enum { NR_IDX_MAXD = 4 };
struct nr_idx { int nd; int64_t dim[NR_IDX_MAXD]; const uint8_t *data; };

/* Bytes only (type 8); the size must be exactly what the header says. data points into bytes. */
int nr_idx_parse(struct nr_idx *, const uint8_t *bytes, size_t size, const char *name, struct nr_error *);

#endif
