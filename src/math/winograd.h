/* Minimal filtering F(2x2,3x3) of wide convolutions (Lavin & Gray 2016, arXiv:1509.09308): 16 products for four outputs of a 3 x 3
 * filter with stride 1, where the definition takes 36.
 *   y = A' ((G g G') * (B' d B)) A      d: 4 x 4 pixels, g: the filter, y: 2 x 2 outputs, *: by element and summed over channels
 * The sums over channels are 16 products of matrices. The gradient of the data is the same with the filter turned round, the gradient
 * of the weight its adjoint. All constants are 0, 1 and 1/2: at 256 channels the rounding error is 1.7 times that of the definition
 * summed by the same products, and .6 of what one float sum after the other leaves.
 * Bits depend neither on threads nor on the rest of the batch: a tile's place follows from its picture alone. */
#ifndef NR_WINOGRAD_H
#define NR_WINOGRAD_H

#include <stddef.h>

#include "math/conv.h"
#include "math/isa.h"

/* Is it a convolution that this way suits? The others go through conv.c, which calls these. */
int nr_winograd_fits(const struct nr_conv *);
void nr_winograd_forward(const struct nr_conv *, const real *x, const real *weight, const real *bias, real *y, void *scratch);
void nr_winograd_backward_data(const struct nr_conv *, const real *dy, const real *weight, real *dx, int add, void *scratch);
void nr_winograd_backward_weight(const struct nr_conv *, const real *x, const real *dy, real *dweight, int add, void *scratch);
size_t nr_winograd_scratch(const struct nr_conv *);

/* The maps for n channels; the 16 points of a tile or filter are `step` values apart. */
struct nr_winograd_kernels {
	void (*input)(int64_t n, const real *const d[16], real *v, int64_t step);           /* v = B' d B */
	/* y = A' m A + bias, or y +=; y[] NULL: not wanted, bias NULL: 0 */
	void (*output)(int64_t n, const real *m, int64_t step, const real *bias, real *const y[4], int add);
	void (*gradient)(int64_t n, const real *const dy[4], real *z, int64_t step);        /* z = A dy A' */
	/* u = G g G' of n filters of 9 values, ldg apart; turned: from the last value on */
	void (*weight)(int64_t n, const real *g, int64_t ldg, int turned, real *u, int64_t step);
	/* dg = G' u G of n filters side by side, or dg += */
	void (*weight_gradient)(int64_t n, const real *u, int64_t step, real *dg, int add);
};
NR_FAMILY_DECLARE(winograd);

#endif
