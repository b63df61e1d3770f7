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
	int fixed;                          /* nr_store_fix was called */
	real *turned;                       /* params: copies of weights; only those that a plan asked for take memory */
};

/* A parameter (out,in) as (in,out). NULL: values may still change, or there is no memory. */
real *nr_store_turned(struct nr_entry *);

#endif
