/* Models of pictures that have another size than the model was made for. */
#ifndef NR_RUNNER_H
#define NR_RUNNER_H

#include "norma/infer.h"

/* As nr_runner_open, with the head or without it (logits is NULL then); hierarchical models take pictures of h x width if their stages
 * can, all others their own size. */
int nr_runner_open_at(struct nr_runner *, const struct nr_weights *, int64_t batch, bool head, int64_t h, int64_t width,
	struct nr_error *);

#endif
