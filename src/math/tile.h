/* Sparse attention as a sequence of small dense ones: some queries against some keys, whose rows are gathered into memory of their own
 * and then given to the dense kernel (math/attention.h). T x T is never stored, and every instruction set's kernel serves. */
#ifndef NR_TILE_H
#define NR_TILE_H

#include "math/attention.h"

/* Memory of one thread for tiles of at most so many queries and keys. */
struct nr_attention_tile {
	int64_t d;
	real *q, *k, *v;            /* (queries,d) (keys,d) (keys,d) */
	real *out, *lse, *gout;     /* (queries,d) (queries) (queries,d) */
	real *gq, *gk, *gv;
	real *mask;                 /* (queries,keys): 0, or -inf where a key does not count */
	void *dense;                /* scratch of the kernel */
};
size_t nr_tile_bytes(int64_t d, int64_t queries, int64_t keys);
struct nr_attention_tile nr_tile_at(int64_t d, int64_t queries, int64_t keys, void *memory);
/* Scratch of the dense kernel for any tile up to these sizes. */
size_t nr_tile_dense_bytes(int64_t d, int64_t queries, int64_t keys);

/* The dense attention of what lies in the tile; the caller may put other pointers and strides into it. */
struct nr_attention nr_tile_attention(const struct nr_attention_tile *, int64_t queries, int64_t keys, real scale);
void nr_tile_forward(const struct nr_attention *, void *dense);
void nr_tile_backward(const struct nr_attention *, void *dense);
/* A generator of its own for each tile of a step. */
struct nr_rng nr_tile_rng(struct nr_rng, uint64_t number);

#endif
