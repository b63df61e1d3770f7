/* The norms that squash each value along a curve, dyt and derf: shapes, blocks, folds. A norm's file says which curve it is and how its
 * parameters start. */
#ifndef NR_NORMS_SQUASH_H
#define NR_NORMS_SQUASH_H

#include "math/squash.h"
#include "norma/graph.h"

/* Attribute of the op. Inputs: x, alpha (1), shift (1) of the erf, then a weight and a bias per channel or neither. */
struct nr_squash_attr { enum nr_squash_curve curve; };
int nr_squash_shape(struct nr_node *);
void nr_squash_forward(const struct nr_call *);
void nr_squash_backward(const struct nr_call *);

/* The learned numbers that all share, and the op on x. shift is read by the erf alone. */
struct nr_squash_start { enum nr_squash_curve curve; double alpha, shift; int affine; };
nr_t *nr_squash_apply(struct nr_net *, const struct nr_op *, nr_t *x, struct nr_squash_start);

#define NR_SQUASH_OP                                                                                                            \
	.shape = nr_squash_shape, .forward = nr_squash_forward, .backward = nr_squash_backward,                                 \
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_X(4),                                      \
	.flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1

#endif
