/* Pooling, channels last: average, maximum, adaptive average, mean over tokens.
 * Backward functions gather (one writer per input value), so bits do not depend on the number of threads. */
#ifndef NR_POOL_H
#define NR_POOL_H

#include "math/patch.h"

/* x (B,H,W,C) to y (B,Ho,Wo,C). include_pad: zeros around count in the mean (torch's default). */
void nr_pool_mean_forward(const struct nr_window *, int include_pad, const real *x, real *y);
void nr_pool_mean_backward(const struct nr_window *, int include_pad, const real *dy, real *dx, int add);
/* arg (B,Ho,Wo,C): y * W + x of the first largest value, -1 if the window lies in the padding; may be NULL in the forward. */
void nr_pool_max_forward(const struct nr_window *, const real *x, real *y, int32_t *arg);
void nr_pool_max_backward(const struct nr_window *, const real *dy, const int32_t *arg, real *dx, int add);

/* To h x w; bin i covers floor(i H / h) .. ceil((i + 1) H / h) - 1, as in torch. */
struct nr_bins { int64_t B, H, W, C, h, w; };
void nr_pool_adaptive_forward(const struct nr_bins *, const real *x, real *y);
void nr_pool_adaptive_backward(const struct nr_bins *, const real *dy, real *dx, int add);

/* y (B,C): mean of the rows first..valid[b]-1 of x (B,T,C); valid counts the leading special tokens too, NULL means T.
 * A sample without such rows gives 0. */
void nr_pool_tokens_forward(int64_t B, int64_t T, int64_t C, int64_t first, const int32_t *valid, const real *x, real *y);
void nr_pool_tokens_backward(int64_t B, int64_t T, int64_t C, int64_t first, const int32_t *valid, const real *dy, real *dx,
	int add);

#endif
