/* A linear probe of an encoder while it is pre-trained: is what it learns useful yet? */
#ifndef NR_MAE_PROBE_H
#define NR_MAE_PROBE_H

#include "infer/features.h"
#include "train/task.h"

/* Logistic regression, to convergence, on frozen features of `count` training pictures (those that the run trains on come first),
 * scored on the pictures of the evaluation: top-1 for [CLS] (NAN: there is none) and for the mean of the patch tokens. */
int nr_mae_probe(struct nr_task_run *, const struct nr_evaluation *, int64_t count, int64_t batch, double top1[NR_FEATURE_KINDS],
	struct nr_error *);

/* The trainer's order of the training split, in which those held out come last; the caller frees it. *count is cut to what is there. */
int32_t *nr_probe_order(const struct nr_task_run *, int64_t *count, struct nr_error *);

#endif
