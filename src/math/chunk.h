/* Fixed chunks of rows: sums across rows are made per chunk and folded in chunk order, so the bits are the same for any
 * number of threads. */
#ifndef NR_CHUNK_H
#define NR_CHUNK_H

#include "base/real.h"

#define NR_CHUNK 64

static inline int64_t nr_chunks(int64_t rows) { return (rows + NR_CHUNK - 1) / NR_CHUNK; }
static inline int64_t nr_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t nr_max64(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
