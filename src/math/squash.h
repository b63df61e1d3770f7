/* S-shaped curves over rows of channels, value and gradient: the `squash` family, behind dyt and derf.
 *
 * All serial: a caller gives chunks of rows to threads and folds what they leave in chunk order. ld* is the distance between
 * rows in values; vectors hold C values. Lengths may be 0; pointers need no alignment. */
#ifndef NR_SQUASH_H
#define NR_SQUASH_H

#include "math/chunk.h"
#include "math/isa.h"

enum nr_squash_curve { NR_CURVE_TANH, NR_CURVE_ERF };

struct nr_squash {                      /* y = weight curve(u) + bias, u = alpha x + shift */
	enum nr_squash_curve curve;
	real alpha, shift;
	const real *weight, *bias;      /* NULL together: 1, 0 */
	int stream;                     /* what is written may go past the caches, see stream.h */
};
struct nr_squash_sums { real alpha, shift; };   /* over s x and s, with s = dy weight curve'(u) */

struct nr_squash_kernels {
	/* y may be x. */
	void (*forward)(const struct nr_squash *, int64_t rows, int64_t C, const real *x, int64_t ldx, real *y, int64_t ldy);
	/* dx = alpha s, or adds that; dx may be dy. dweight += the sums of dy curve(u), dbias += those of dy, neither without weight. */
	struct nr_squash_sums (*backward)(const struct nr_squash *, int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy,
		int64_t lddy, real *dx, int64_t lddx, int add, real *dweight, real *dbias);
};
NR_FAMILY_DECLARE(squash);

#endif
