/* Random ops are numbered among themselves, in the order of recording: one more view or norm leaves the masks alone. */
#ifndef NR_NN_STREAM_H
#define NR_NN_STREAM_H

#include "base/rng.h"
#include "graph/net.h"
#include "graph/streams.h"

/* Number of the next random op; goes into its attributes. */
static inline uint32_t nr_stream_next(const struct nr_net *n) { return n->n_random; }

#endif
