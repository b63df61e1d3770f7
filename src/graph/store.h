/* The inside of the store. */
#ifndef NR_STORE_H
#define NR_STORE_H

#include "base/mem.h"
#include "norma/graph.h"

struct nr_store {
	struct nr_arena *arena;
	struct nr_entry **entry;
	int64_t n_entry, cap_entry;
	uint64_t seed;
	int64_t params, total;              /* values of the slabs: parameters, then buffers */
	real *value, *grad, *moment[2];     /* total; params; params each */
};

#endif
