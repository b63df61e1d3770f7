/* The inside of the store. */
#ifndef NR_STORE_H
#define NR_STORE_H

#include "base/mem.h"
#include "base/real.h"
#include "norma/graph.h"

struct nr_store {
	struct nr_arena *arena;
	struct nr_entry **entry;
	int64_t n_entry, cap_entry;
	int64_t *slot;                      /* 2 cap_entry of them, a power of two: numbers of entries + 1 by hashed name; 0: empty */
	uint64_t seed;
	int64_t params, total;              /* values of the slabs: parameters, then buffers */
	real *value, *grad, *moment[2];     /* total; params; params each */
	bool filled;                        /* with initial values: sealed */
	int fixed;                          /* nr_store_fix was called */
	real *turned;                       /* params: copies of weights; only those that a plan asked for take memory */
};

#define NR_SMALLER "use a smaller model, picture or batch, or larger patches"
/* The first half of nr_store_seal: addresses, but no memory is touched. A plan can tell from them how much it needs. */
int nr_store_reserve(struct nr_store *, struct nr_error *);
/* Bytes of values and gradients. */
double nr_store_bytes(const struct nr_store *);
/* A parameter (out,in) as (in,out). NULL: values may still change, or there is no memory. */
real *nr_store_turned(struct nr_entry *);

#endif
