/* Models of pictures that have another size than the model was made for. */
#ifndef NR_RUNNER_H
#define NR_RUNNER_H

#include "norma/infer.h"

/* As nr_runner_open; hierarchical models take pictures of h x width if their stages can, all others their own size. */
int nr_runner_open_at(struct nr_runner *, const struct nr_weights *, int64_t batch, int64_t h, int64_t width, struct nr_error *);

#endif
