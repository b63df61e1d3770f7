/* Random fills, dropout (Srivastava et al. 2014) and drop path (Huang et al. 2016) from counters.
 *
 * Value i of a call depends only on the generator (seed, stream, step) and on word index0 + i of it
 * (base/rng.h), so any cut into chunks, threads or ranks gives the same bits, and a mask is made again in
 * backward instead of being stored. */
#ifndef NR_RANDOM_H
#define NR_RANDOM_H

#include "base/rng.h"
#include "math/isa.h"
#include "base/real.h"

NR_FAMILY_DECLARE(random);

/* Serial. residual NULL: none; y may be x or residual. A word below `drop` drops its value. */
struct nr_random_kernels {
	void (*uniform)(int64_t n, real *y, real low, real span, struct nr_rng, uint64_t index0);
	void (*dropout)(int64_t n, const real *x, const real *residual, real *y, uint32_t drop, real scale,
		struct nr_rng, uint64_t index0);
	void (*scale)(
		int64_t n, const real *x, const real *residual, real *y, real a); /* y = residual + a x */
};

/* Threaded. */
void nr_fill_uniform(
	int64_t n, real *y, double low, double high, struct nr_rng, uint64_t index0); /* [low,high) */
/* Numbers of nr_rng_normal; computed in double on every instruction set: a seed means the same weights
 * everywhere. */
void nr_fill_normal(int64_t n, real *y, double mean, double std, struct nr_rng, uint64_t index0);
/* Normal, cut off outside [low,high] (absolute, as timm's trunc_normal_), by the inverse distribution. */
void nr_fill_trunc_normal(int64_t n, real *y, double mean, double std, double low, double high, struct nr_rng,
	uint64_t index0);
double nr_erfinv(double); /* of x in (-1,1); relative error < 5e-7 (Giles 2010) */

/* y = x m / (1-p), m = 0 with probability p; plus residual if there is one. Backward: the same call on dy,
 * with residual = dx to add to it. p <= 0 copies; p >= 1 drops all. */
void nr_dropout_forward(
	int64_t n, const real *x, const real *residual, real *y, double p, struct nr_rng, uint64_t index0);
/* One mask bit per row of C values (a row is a sample): y = residual + x m / (1-p). Row r takes word index0 +
 * r. */
void nr_drop_path_forward(int64_t rows, int64_t C, const real *x, const real *residual, real *y, double p,
	struct nr_rng, uint64_t index0);
/* The factor of row r: 0 or 1/(1-p). */
double nr_drop_path_factor(double p, struct nr_rng, uint64_t index);

#endif
