/* Running statistics of batchwise norms, measured anew. */
#ifndef NR_RECALIBRATE_H
#define NR_RECALIBRATE_H

#include "infer/evaluate.h"

/* Batches of somebody's: put fills the inputs of a plan with batch b. */
struct nr_feed { int64_t batches; int (*put)(void *context, int64_t b, struct nr_error *); void *context; };

/* Replaces running statistics by the mean of what the batches give, all weighted alike. *changed: how many buffers were measured;
 * those that are no running mean (counters) stay. */
int nr_recalibrate_plan(struct nr_store *, struct nr_plan *, const struct nr_feed *, int64_t *changed, struct nr_error *);
/* The same with `batches` batches of pictures. */
int nr_recalibrate(const struct nr_weights *, const struct nr_evaluation *train, int64_t batch, int64_t batches, int64_t *changed,
	struct nr_error *);

#endif
