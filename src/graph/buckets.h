/* Gradients on their way to the other ranks while backward goes on: the slab is cut into buckets of about 4 MB, each of which leaves when
 * its last writer is done. Buckets leave in the order of their last writers in the first plan, the same on all ranks. */
#ifndef NR_BUCKETS_H
#define NR_BUCKETS_H

#include "graph/comm.h"
#include "norma/graph.h"

/* auto: between where there are several hosts, else after, which is what was faster. after: all of them when backward is done; between:
 * asked after between its calls; thread: by a thread of its own */
enum nr_overlap { NR_OVERLAP_AUTO, NR_OVERLAP_AFTER, NR_OVERLAP_BETWEEN, NR_OVERLAP_THREAD };

struct nr_buckets;
/* leave(context, from, n): what is to be done to values of the slab before they leave. room: as large as the slab. */
int nr_buckets_open(struct nr_buckets **, struct nr_comm *, const struct nr_plan *first, real *room, enum nr_overlap, bool bf16,
	void (*leave)(void *, int64_t from, int64_t n), void *context, struct nr_error *);
void nr_buckets_close(struct nr_buckets *);
/* Before the backward pass that makes the gradients whole: sets what it calls. */
int nr_buckets_begin(struct nr_buckets *, const struct nr_plan *, struct nr_exec *, struct nr_error *);
/* After it, or instead of it: what has not left does, and all arrive. */
int nr_buckets_end(struct nr_buckets *, struct nr_error *);
int64_t nr_buckets_count(const struct nr_buckets *);

#endif
