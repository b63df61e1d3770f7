/* What a model says to made-up inputs, and how fast: to compare it with itself after surgery. */
#ifndef NR_OUTPUTS_H
#define NR_OUTPUTS_H

#include "norma/infer.h"

struct nr_outputs {
	float *values;                      /* of the head, or pooled features; NULL: the model reads what cannot be made up (graphs) */
	int64_t count;
	double seconds;                     /* of one run, the best of some */
};
/* `batch` samples of pictures (normal values) or tokens, the same for the same model. */
int nr_outputs_of(struct nr_outputs *, const struct nr_weights *, int64_t batch, struct nr_error *);
void nr_outputs_release(struct nr_outputs *);
/* Largest difference, over the largest value; NAN where there is nothing to compare. */
double nr_outputs_change(const struct nr_outputs *was, const struct nr_outputs *is);

#endif
