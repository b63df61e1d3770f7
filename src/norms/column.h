/* The norms whose statistics run down the tokens, per channel or group of channels: batch, instance and group
 * share one engine and differ in what its attributes say. Its functions are an op's own. */
#ifndef NR_NORMS_COLUMN_H
#define NR_NORMS_COLUMN_H

#include "norms/norms.h"

struct nr_column_attr {
	float eps, momentum;
	int64_t groups;                     /* of channels that share statistics; as many as channels: none do */
	int8_t batch;                       /* 1: over all samples, with running statistics; 0: each by itself */
	int8_t frozen;                      /* with running statistics: they hold in training too, and no parameter learns */
	int8_t sync;                        /* 1: over the shards of all ranks, too */
	int8_t unbiased;                    /* variance by n - 1 */
	int8_t weight, eta, running, valid, steps;      /* place among the inputs; 0: none. bias and running_var follow theirs */
	int64_t warm;                       /* while steps is less, the running statistics stand still */
};

#define NR_COLUMN_KEEPS (NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_X(4) | NR_KEEP_X(5) | NR_KEEP_X(6))
#define NR_COLUMN_BATCH_OP                                                                                                      \
	.shape = nr_column_shape, .forward = nr_column_forward, .backward = nr_column_backward, .rebuild = nr_column_rebuild,   \
	.commit = nr_column_commit, .share = nr_column_share, .part = nr_column_part, .cost = nr_column_cost,                   \
	.keeps = NR_COLUMN_KEEPS, .cheap = 1, .rebuild_keeps = NR_COLUMN_KEEPS,                                                 \
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_BATCHWISE | NR_SHARES_MOMENTS

/* Makes the parameters (and buffers) and applies the op; fills in the places of the inputs. eta: one number, the share of x that is added
 * (affine only), or NULL; steps: see `warm`, or NULL. */
nr_t *nr_column_apply(struct nr_net *, const struct nr_op *, nr_t *x, struct nr_column_attr, int affine, nr_t *eta, nr_t *steps);
int nr_column_shape(struct nr_node *);
void nr_column_forward(const struct nr_call *);
void nr_column_backward(const struct nr_call *);
void nr_column_rebuild(const struct nr_call *);
void nr_column_commit(const struct nr_call *);
int64_t nr_column_share(const struct nr_node *, int backward);
void nr_column_part(const struct nr_call *, int backward, double *mine);
/* Of every norm with mean, variance and an affine part: 7 flops per value forward, 11 backward. */
void nr_column_cost(const struct nr_node *, double *forward, double *backward);

#endif
