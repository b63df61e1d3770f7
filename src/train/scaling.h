/* What a training step costs on several ranks, on paper: docs/scaling.md derives the formulas and compares them with measurements.
 *
 * A message of n bytes takes latency + n / bandwidth. A sum of n bytes over K = 2^L ranks, each of which has all of them in the end:
 *   halving  2 L messages, 2 (K - 1) / K n bytes out of each rank: what norma does; a fixed tree, so equal bits at any K
 *   ring     2 (K - 1) messages, the same bytes: the order of the sum depends on K
 *   tree     2 L messages of n each: through the whole tree to rank 0 and back
 * For halving, ranks beyond a power of two hand theirs to another one first. */
#ifndef NR_TRAIN_SCALING_H
#define NR_TRAIN_SCALING_H

#include <stdbool.h>
#include <stdint.h>

enum nr_reduce { NR_REDUCE_HALVING, NR_REDUCE_RING, NR_REDUCE_TREE };
extern const char *const nr_reduce_names[];      /* ends with NULL */

/* Of one rank; seconds, bytes, bytes per second. */
struct nr_scaling {
	double forward, backward, update;
	double latency, bandwidth;          /* of a message; both ways at once */
	double memory;                      /* rate at which values are added: two read, one written */
	int64_t params;
	double held;                        /* bytes of activations and the like, which do not depend on the ranks */
	enum nr_reduce reduce;
	bool bf16;                          /* gradients travel as 2 bytes a value */
	bool overlap;                       /* buckets travel while backward goes on */
	double bucket;                      /* bytes of one */
	double steal;                       /* share of its time that backward loses while a bucket travels */
	double jitter;                      /* standard deviation of a rank's own time, as a share of it */
	int64_t shards;                     /* of one rank; at least 1 */
	const int64_t *channels;            /* (layers): norms whose statistics are of the whole batch (sync=1) */
	int64_t layers;
};

struct nr_scaled {
	double own;                         /* seconds: forward, backward and update */
	double wait;                        /* for the slowest rank */
	double sum;                         /* all sums of gradients, hidden or not */
	double exposed;                     /* what of them the step waits for */
	double sync;                        /* statistics of the whole batch */
	double step, efficiency;            /* efficiency: samples per second and rank, as a share of one rank's */
	double sent;                        /* bytes that leave a rank; the busiest one, for a tree */
	double memory;                      /* bytes of a rank */
	int64_t messages, buckets;          /* messages: one after the other */
};

void nr_scaling_at(const struct nr_scaling *, int64_t ranks, struct nr_scaled *);
/* A sum of n bytes alone, summed in place: seconds. */
double nr_scaling_sum(const struct nr_scaling *, int64_t ranks, double bytes);

#endif
