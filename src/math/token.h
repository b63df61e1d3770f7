/* Rows of tokens normalised with blended statistics: the elementwise half of DTN (Shao et al. 2022, Eq. 4 and 5), one head
 * of one sample at a time. What mixes tokens is in token_mix.h.
 *
 *   z = x / rms                          rms: 1, or that of the token's channels in this head
 *   u = z - centre                       centre: of each channel; it takes the offset away, nothing depends on it
 *   m, q = rows of P u and P u^2         made outside; v = max(q - m^2, 0)
 *   mu - centre = a (mean - centre) + (1 - a) m;  var' = b var + (1 - b) v      a, b: lam_mean, lam_var
 *   y = weight (u - (mu - centre)) / sqrt(var' + eps) + bias
 */
#ifndef NR_TOKEN_H
#define NR_TOKEN_H

#include "math/chunk.h"
#include "math/isa.h"

struct nr_token_unit {
	int64_t n, d;                   /* tokens, channels of the head */
	const real *x; int64_t ldx;     /* (n,d) */
	const real *rms; int64_t ldr;   /* (n), ldr apart; NULL: 1 */
	const real *mean, *var;         /* (n) of the whole token */
	const real *centre;             /* (d) */
	const real *mq; int64_t ldmq;   /* rows of m (d), q (d) */
	const int32_t *at;              /* (n) row of mq that serves the token; NULL: its own */
	real lam_mean, lam_var, eps;
	const real *weight, *bias;      /* (d), or NULL */

	real *y; int64_t ldy;           /* (n,d): normalize */

	const real *dy; int64_t lddy;   /* gradients: */
	real *dz; int64_t lddz;         /* what reaches z directly */
	/* rows like mq, gradients of u's two products: put, or added when `at`; NULL: nobody asks */
	real *dmq;
	real *dmean, *dvar; int64_t ldd; /* (n), ldd apart: of the token's own statistics, from this head */
	real *dweight, *dbias;          /* (d) added to; NULL: not wanted */
	real *dlam;                     /* (2) added to: of lam_mean, lam_var; NULL: not wanted */
};

struct nr_token_kernels {
	/* out: `rows` rows of u (d), u^2 (d); with `at`, u is the mean of the tokens of a row, share = 1 / their number */
	void (*gather)(const struct nr_token_unit *, int64_t rows, real share, real *out);
	void (*normalize)(const struct nr_token_unit *);
	void (*gradients)(const struct nr_token_unit *);
	/* dz += share (g + 2 u gq): rows of u (2d) as gather made them, rows of g, gq as dmq came back through P */
	void (*scatter)(const struct nr_token_unit *, real share, const real *u, const real *g);
	/* A row of heads * d: dz += dmean + dvar (z - mean), then through z = x / rms (heads; NULL: 1) into dx, put or
	 * added. */
	void (*spread)(int64_t heads, int64_t d, const real *x, const real *rms, real mean, real dmean, real dvar,
		const real *dz, real *dx, int add);
	/* s_j = a0 (dx^2 + dy^2) + a1 dx + a2 dy, (dx,dy) = (px_j - x, py_j - y) */
	void (*scores)(int64_t n, const real *px, const real *py, real x, real y, const real *a, real *s);
	/* da (3) += sum_j ds_j (dx^2 + dy^2, dx, dy) */
	void (*score_sums)(int64_t n, const real *px, const real *py, real x, real y, const real *ds,
		double *da);
};
NR_FAMILY_DECLARE(token);

#endif
