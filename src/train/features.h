/* What a model makes of a split: features for probes, and running statistics measured anew. */
#ifndef NR_FEATURES_H
#define NR_FEATURES_H

#include "train/evaluate.h"

struct nr_feature_set { int64_t count, width; float *x; int32_t *label; };  /* (count,width), (count) */
/* Pooled features of samples of a split (index NULL: all). watch as in nr_evaluation. */
int nr_features_of(struct nr_feature_set *, const struct nr_weights *, const struct nr_evaluation *, int64_t batch, struct nr_error *);
void nr_features_release(struct nr_feature_set *);

/* Replaces running statistics by the mean of what `batches` training batches give, all weighted alike. Returns how many
 * buffers were measured in *changed. Buffers that are no running mean (counters) stay. */
int nr_recalibrate(const struct nr_weights *, const struct nr_evaluation *train, int64_t batch, int64_t batches, int64_t *changed,
	struct nr_error *);

#endif
