/* Norms that see one token at a time (layer, rms, scale), alone and after a residual sum: shapes, blocks, folds and costs.
 * A norm's file says which row kernel it is, what its parameters are called and how they start. */
#ifndef NR_NORMS_ROW_H
#define NR_NORMS_ROW_H

#include "math/row.h"
#include "norma/graph.h"

/* Attribute of the op: y = times ((offset + weight) xhat + bias). times is 1 unless deeper blocks speak more softly. */
struct nr_row_norm { enum nr_norm_kind kind; real eps, offset, times; };
/* Choices of an option `scale` for `times`: 1, or 1 / sqrt(l) in block l, counted from 1 in its stack. LayerNorm Scaling, arXiv:2502.05795.
 * Outside a stack of blocks it is 1. */
extern const char *const nr_row_scales[];       /* "none", "depth"; ends with NULL */
real nr_row_times(const struct nr_net *, int32_t scale);

/* Inputs: x, then no parameter, a gain, or a gain and a bias. Per channel, but the gain may be one value for all. */
int nr_row_norm_shape(struct nr_node *);
void nr_row_norm_forward(const struct nr_call *);
void nr_row_norm_backward(const struct nr_call *);
void nr_row_norm_cost(const struct nr_node *, double *forward, double *backward);

/* Inputs a, b, then as above. y[0] = a + b, y[1] = norm(y[0]), in one pass. */
int nr_add_row_norm_shape(struct nr_node *);
void nr_add_row_norm_forward(const struct nr_call *);
void nr_add_row_norm_backward(const struct nr_call *);
void nr_add_row_norm_rebuild(const struct nr_call *);
void nr_add_row_norm_cost(const struct nr_node *, double *forward, double *backward);

#define NR_ROW_NORM_OP                                                                                                 \
	.shape = nr_row_norm_shape, .forward = nr_row_norm_forward, .backward = nr_row_norm_backward,                  \
	.cost = nr_row_norm_cost, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_NARROW, \
	.tokenwise = 1
#define NR_ADD_ROW_NORM_OP                                                                                             \
	.shape = nr_add_row_norm_shape, .forward = nr_add_row_norm_forward, .backward = nr_add_row_norm_backward,      \
	.rebuild = nr_add_row_norm_rebuild, .cost = nr_add_row_norm_cost, .keeps = NR_KEEP_Y(0) | NR_KEEP_X(2),        \
	.cheap = 1 << 1, .rebuild_keeps = NR_KEEP_Y(0) | NR_KEEP_X(2) | NR_KEEP_X(3), .flags = NR_SUM | NR_STRIDED

#endif
