/* Softmax, log-softmax and cross entropies over rows; threaded over fixed chunks of rows (the kernels are in the row
 * family). Outputs may be inputs of the same shape.
 *
 * -inf masks: such an entry gets probability exactly 0, and a row that is masked whole gives zeros in softmax (and -inf
 * in log-softmax), never NaN. NaN and +inf make their row NaN. */
#ifndef NR_SOFTMAX_H
#define NR_SOFTMAX_H

#include "math/row.h"

/* y = softmax(scale x + mask). mask: NULL, or rows of C, ldm apart; ldm = 0: one row for all. */
void nr_softmax_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask, int64_t ldm,
	real *y, int64_t ldy);
/* dx = scale y (dy - sum y dy), or +=; y is the output of forward. */
void nr_softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy, real scale,
	real *dx, int64_t lddx, int add);
/* y = log softmax(scale x + mask) */
void nr_log_softmax_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, real scale, const real *mask,
	int64_t ldm, real *y, int64_t ldy);
/* dx = scale (dy - e^y sum dy), or += */
void nr_log_softmax_backward(int64_t rows, int64_t C, const real *y, int64_t ldy, const real *dy, int64_t lddy,
	real scale, real *dx, int64_t lddx, int add);

/* Cross entropies: loss (rows) gets each row's own loss, dx (rows,C) the gradient times scale, overwritten or added to;
 * either may be NULL; dx may be x but not target. One pass makes both. The mean is nr_sum(rows, loss) / count with
 * scale = 1 / count. */

/* loss = sum_c t_c (log sum e^x - x_c), t = smoothing/C everywhere and 1 - smoothing + smoothing/C at the label. Rows
 * whose label is `ignore` have loss 0 and gradient 0; a label outside [0,C) gives NaN: check labels where they are read. */
void nr_xent_labels(int64_t rows, int64_t C, const real *x, int64_t ldx, const int32_t *label, int32_t ignore,
	real smoothing, real scale, real *loss, real *dx, int64_t lddx, int add);
int64_t nr_xent_count(int64_t rows, const int32_t *label, int32_t ignore); /* rows that are not ignored */
/* Soft labels: the same with t = target (rows,C), which need not sum to 1. */
void nr_xent_soft(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt, real scale,
	real *loss, real *dx, int64_t lddx, int add);
/* Sigmoid form: loss = sum_c log(1 + e^x) - x t. For the mean over all elements: count = rows C; for big_vision's mean
 * over rows: count = rows. */
void nr_xent_sigmoid(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *target, int64_t ldt, real scale,
	real *loss, real *dx, int64_t lddx, int add);

#endif
