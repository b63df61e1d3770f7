/* The S-shaped curve of dynamic tanh over rows of channels, value and gradient: the `squash` family.
 *
 * All serial: a caller gives chunks of rows to threads and folds what they leave in chunk order. ld* is the distance between
 * rows in values; vectors hold C values. Lengths may be 0; pointers need no alignment. */
#ifndef NR_SQUASH_H
#define NR_SQUASH_H

#include "math/chunk.h"
#include "math/isa.h"

struct nr_squash_kernels {
	/* y = weight tanh(alpha x) + bias; weight and bias may be NULL together (1, 0); y may be x. */
	void (*forward)(int64_t rows, int64_t C, const real *x, int64_t ldx, real alpha, const real *weight, const real *bias,
		real *y, int64_t ldy);
	/* dx = alpha s with s = dy weight (1 - tanh(alpha x)^2), or adds that; dx may be dy. dweight += the sums of dy tanh(alpha x),
	 * dbias += those of dy, neither without weight. Returns the sum of s x. */
	real (*backward)(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy, real alpha,
		const real *weight, real *dx, int64_t lddx, int add, real *dweight, real *dbias);
};
NR_FAMILY_DECLARE(squash);

#endif
