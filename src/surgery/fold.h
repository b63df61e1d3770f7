/* The deployed form of a trained model: batch norms that follow a layer, or stand before one, become part of its weights and bias. */
#ifndef NR_FOLD_H
#define NR_FOLD_H

#include "norma/infer.h"

/* For models with the option `folded` (LeViT), whose norms at LAYER.norm have running statistics. The outputs stay what they are, up to
 * rounding. *folded: how many norms. After a failure the weights are as they were. */
int nr_fold_norms(struct nr_weights *, int64_t *folded, struct nr_error *);

#endif
