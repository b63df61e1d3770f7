/* Rows scaled by a gain that each row makes for itself: the `seed` family, behind seednorm.
 *
 *   r = 1 / sqrt(mean x^2 + eps), p_h = tanh(x_h . beta_h), y = (p alpha + weight) x r
 *
 * h: heads, C / heads neighbouring channels each. All serial: a caller gives chunks of rows to threads and folds what they leave in chunk
 * order. ld* is the distance between rows in values. Lengths may be 0; pointers need no alignment. */
#ifndef NR_SEED_H
#define NR_SEED_H

#include "math/chunk.h"
#include "math/isa.h"

enum { NR_SEED_HEADS = 256 };            /* at most */
struct nr_seed { int64_t C, heads; const real *weight, *alpha, *beta; real eps; int stream; };       /* vectors of C; math/stream.h */

struct nr_seed_kernels {
	/* rstd (rows) and gate (rows,heads) are r and p. y may be x. */
	void (*forward)(const struct nr_seed *, int64_t rows, const real *x, int64_t ldx, real *y, int64_t ldy, real *rstd, real *gate);
	/* dx = the gradient, or adds it; dx may be dy. dweight, dalpha and dbeta (C) get the sums over rows added. */
	void (*backward)(const struct nr_seed *, int64_t rows, const real *x, int64_t ldx, const real *dy, int64_t lddy, const real *rstd,
		const real *gate, real *dx, int64_t lddx, int add, real *dweight, real *dalpha, real *dbeta);
};
NR_FAMILY_DECLARE(seed);

#endif
