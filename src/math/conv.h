/* Convolution, channels last: x (B,H,W,I), y (B,Ho,Wo,O); the weight stays as checkpoints store it, [O,I,kh,kw].
 * w.C is I. No dilation.
 *   y(b,oy,ox,o) = bias(o) + sum over ky,kx,i of x(b, oy sh - ph + ky, ox sw - pw + kx, i) weight(o,i,ky,kx)
 * Dense: windows are unfolded a tile at a time and multiplied (math/gemm.h); wide 3 x 3 filters with stride 1 go by minimal filtering
 * (math/winograd.h). Same bits at any thread count. */
#ifndef NR_CONV_H
#define NR_CONV_H

#include <stddef.h>

#include "math/patch.h"

struct nr_conv {
	struct nr_window w;
	int64_t O;             /* outputs */
	int threads;           /* that scratch is sized for; a larger team is cut to it; 0: 1 */
};

/* scratch: nr_conv_scratch bytes for any of the three. bias and dbias may be NULL. */
void nr_conv_forward(const struct nr_conv *, const real *x, const real *weight, const real *bias, real *y, void *scratch);
void nr_conv_backward_data(const struct nr_conv *, const real *dy, const real *weight, real *dx, int add, void *scratch);
void nr_conv_backward_weight(const struct nr_conv *, const real *x, const real *dy, real *dweight, int add, real *dbias,
	int add_bias, void *scratch);
size_t nr_conv_scratch(const struct nr_conv *);

#endif
