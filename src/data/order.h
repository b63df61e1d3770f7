/* The order in which batches take samples of different lengths. */
#ifndef NR_ORDER_H
#define NR_ORDER_H

#include "norma/err.h"

/* Batches of samples of like lengths. The order of an epoch is a permutation by (seed, epoch); with a window, the samples of so many
 * batches are sorted by length before they are cut into batches, and the batches are shuffled: a batch then holds little padding.
 * Window 0: plain shuffling. What does not fill a batch is left out of its epoch. */
struct nr_order {
	const int32_t *length;              /* (samples) */
	int64_t samples, batch, window;
	uint64_t seed;
	int64_t epoch;                      /* whose order is at hand; -1: none */
	int32_t *sample;                    /* (samples) */
	int32_t *place;                     /* (batches): which of the cut batches comes when */
	int32_t longest, *spare;            /* of all samples; of sorting */
};
int nr_order_make(struct nr_order *, const int32_t *length, int64_t samples, int64_t batch, int64_t window, uint64_t seed,
	struct nr_error *);
void nr_order_release(struct nr_order *);
/* The samples of a batch, counted over epochs; valid until the next call. *longest of their lengths. */
const int32_t *nr_order_batch(struct nr_order *, int64_t number, int32_t *longest);

#endif
