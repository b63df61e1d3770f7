/* What the files of lsh_attention share: sizes, memory of a thread, and one sample's head. */
#ifndef NR_NN_LSH_H
#define NR_NN_LSH_H

#include <stdbool.h>

#include "math/tile.h"
#include "nn/op.h"

struct nr_lsh {                                 /* the op's attribute */
	struct nr_lsh_options o;                /* pointers are not read */
	bool local, has_rotations, has_valid;   /* after x come rotations, then lengths */
	int threads;
	uint32_t stream;
};

struct nr_lsh_sizes {
	int64_t B, T, H, d, C, width, L;        /* width: of a row of x; L: tokens, filled up */
	int64_t rounds, chunk, chunks, before, seen;    /* seen: chunks that a chunk sees */
	int64_t buckets, half;                  /* of a round; columns of its rotations */
};
struct nr_lsh_sizes nr_lsh_sizes(const struct nr_node *);
int nr_lsh_check(struct nr_node *);             /* of its options: 0, or an error in the net */

/* Memory of a thread: rotations, hashed rows, buckets of all rounds, counts, what backward adds up for the keys, and the tile. */
struct nr_lsh_memory { real *rotations, *hashed, *norm, *gk; int32_t *bucket, *count; void *tile; };
size_t nr_lsh_bytes(const struct nr_lsh_sizes *);

struct nr_lsh_unit {
	const struct nr_call *k;
	const struct nr_lsh *c;
	struct nr_lsh_sizes s;
	int64_t b, h, valid;                    /* valid: keys that count, of L */
	const real *q, *keys, *v;               /* rows `width` apart */
	real *lse;                              /* (L) of all rounds together; +inf: nothing is seen */
	int32_t *order;                         /* (rounds L) tokens */
	struct nr_lsh_memory m;
	struct nr_attention_tile tile;
};
struct nr_lsh_unit nr_lsh_unit(const struct nr_call *, int64_t number);
size_t nr_lsh_stash(const struct nr_lsh_sizes *);
bool nr_lsh_hashes(const struct nr_node *, const struct nr_lsh_sizes *);        /* or is it local, or plain? */
/* Fills order, and y[1] if somebody reads the buckets. */
void nr_lsh_order(struct nr_lsh_unit *);
/* 1 / root mean square of each query, which makes it a key; 1 where keys are not normalised. */
void nr_lsh_norms(const struct nr_lsh_unit *);
/* Tokens of the j-th of the chunks that chunk c sees. */
const int32_t *nr_lsh_keys(const struct nr_lsh_unit *, int64_t c, int64_t j);

#endif
