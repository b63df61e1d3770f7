/* Rows normalised with a mean and a variance that are sums of a channel's and a token's part (switchable normalization); the
 * `blend` family. With M = mean_c + row_mean_r, V = var_c + row_var_r:
 *
 *   r = 1 / sqrt(V + eps), h = (x - M) r, y = gain h + bias
 *
 * All serial: a caller gives rows to threads. ld* is the distance between rows in values. */
#ifndef NR_BLEND_H
#define NR_BLEND_H

#include "math/chunk.h"
#include "math/isa.h"

struct nr_blend {
	int64_t rows, C;
	const real *x;
	int64_t ldx;
	const real *mean, *var;                 /* (C) */
	const real *row_mean, *row_var;         /* (rows), or both NULL: 0 */
	const real *gain, *bias;                /* (C) */
	real eps;
};
struct nr_blend_sums {                          /* g = dy gain; all are added to but those of rows, which are overwritten */
	real *gain, *bias;                      /* (C): dy h, dy */
	real *mean, *var;                       /* (C): dM = -g r, dV = -g h r^2 / 2 */
	real *row_mean, *row_var;               /* (rows): the same, summed over a row; or both NULL: not wanted */
};
struct nr_blend_grad {                          /* dx = g r + shift_c + slope_c (x - center_c) + the same of the row */
	const real *center, *shift, *slope;             /* (C), or all NULL: 0 */
	const real *row_center, *row_shift, *row_slope; /* (rows), or all NULL: 0 */
};

struct nr_blend_kernels {
	void (*forward)(const struct nr_blend *, real *y, int64_t ldy);
	void (*sums)(const struct nr_blend *, const real *dy, int64_t lddy, const struct nr_blend_sums *);
	/* dx overwritten, or added to; may be dy */
	void (*apply)(const struct nr_blend *, const real *dy, int64_t lddy, const struct nr_blend_grad *, real *dx, int64_t lddx,
		int add);
};
NR_FAMILY_DECLARE(blend);

#endif
