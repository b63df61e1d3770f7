/* The logical shards of a batch and the ranks that share them. A shard is a batch of its own, batch / shards samples; its gradient, its
 * running statistics and its measures depend on nothing else, and those of all shards are summed by one fixed binary tree. So the
 * number of ranks, each of which has a run of shards, changes no bit. */
#ifndef NR_SHARDS_H
#define NR_SHARDS_H

#include "graph/buckets.h"
#include "norma/trainer.h"

enum { NR_SHARD_PIECES = 3, NR_SHARD_DEEP = 32 };

struct nr_shards {
	struct nr_comm *comm;               /* NULL: one process */
	int64_t count, local, first;        /* of all ranks; of this one, from that one on */
	bool together;                      /* side by side: some statistics are of the whole batch */
	int64_t pieces, n;                  /* what a shard leaves behind: gradients, then buffers; values in all */
	struct { real *p; int64_t n; } piece[NR_SHARD_PIECES];
	real *start;                        /* the buffers before the step */
	real *partial[NR_SHARD_DEEP];       /* (n): sums that wait for their other half */
	int depth, waiting;                 /* how many; those that wait for the last shard's gradients */
	real **beside;                      /* (local, n) of the shards that run side by side, but for the first */
	real *room;                         /* (gradients): for sums over ranks */
	struct nr_buckets *buckets;         /* gradients on their way to other ranks; NULL: there are none */
	double *said, *all;                 /* (local, NR_SHARD_SAYS), (count, NR_SHARD_SAYS) */
};
/* What a shard says beside: its loss, the task's measures; and what its rank does. */
enum { NR_SAID_LOSS, NR_SAID_MEASURES, NR_SAID_BAD = NR_SAID_MEASURES + NR_TASK_METRICS, NR_SAID_STOP, NR_SAID_CHECK, NR_SHARD_SAYS };

/* The shards of a batch of so many samples. wanted 0: one for each rank. */
int nr_shards_share(struct nr_shards *, struct nr_comm *, int64_t batch, int64_t wanted, struct nr_error *);
struct nr_plan;
struct nr_train;
/* Memory for the sums; plan: of a step; teacher: NULL, or the store that the task moves itself. Nothing where there is one shard. */
int nr_shards_open(struct nr_shards *, const struct nr_train *, const struct nr_plan *, const struct nr_store *,
	const struct nr_store *teacher, struct nr_error *);
void nr_shards_close(struct nr_shards *);
/* Around the local shard i: the buffers are those before the step; what it left is put aside or summed, but for gradients of the last one:
 * they are summed when they leave. */
void nr_shards_begin(struct nr_shards *, int64_t i);
void nr_shards_end(struct nr_shards *, int64_t i);
/* Side by side: their buffers as the step finds them; the sum of what they left. */
void nr_shards_begin_beside(struct nr_shards *);
void nr_shards_end_beside(struct nr_shards *);
/* Before the last pass over the last shard. */
int nr_shards_last(struct nr_shards *, const struct nr_plan *, struct nr_exec *, struct nr_error *);
/* After it: sums over all shards, buffers as means. */
int nr_shards_sum(struct nr_shards *, struct nr_error *);
/* said[] of all shards: sums in said[0..NR_SAID_BAD-1], and all[] as it arrived. */
int nr_shards_tell(struct nr_shards *, struct nr_error *);

#endif
