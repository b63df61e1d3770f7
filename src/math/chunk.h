/* Fixed chunks of rows: sums across rows are made per chunk and folded in chunk order, so the bits are the same for any
 * number of threads. */
#ifndef NR_CHUNK_H
#define NR_CHUNK_H

#include "base/real.h"

#define NR_CHUNK 64

static inline int64_t nr_chunks(int64_t rows) { return (rows + NR_CHUNK - 1) / NR_CHUNK; }
static inline int64_t nr_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t nr_max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Of n tasks, the one to be handed out x-th: while the threads keep pace, each gets neighbours, as in a loop that is cut into one part for
 * each, and its cache may hold what it made of them before. */
static inline int64_t nr_dealt(int64_t x, int64_t n, int64_t threads)
{
	const int64_t part = x % threads, one_more = n % threads;
	return part * (n / threads) + (part < one_more ? part : one_more) + x / threads;
}

#endif
