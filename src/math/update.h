/* Parameter updates in one pass over memory, and the sums of squares that clipping and trust ratios need.
 *
 * The optimizers of src/optim are two kernels with different coefficients; both begin with
 * g' = scale g + l2 p:
 *   adam:  m = beta1 m + rest1 g';  v = beta2 v + rest2 g'^2;  p = keep p - step m / (root sqrt(v) + eps)
 *   sgd:   m = keep_m m + add_m g';  p = p - (rate_g g' + rate_m m)
 * Adam's bias correction sits in step = lr / (1 - beta1^t) and root = 1 / sqrt(1 - beta2^t). AdamW has l2 = 0
 * and keep = 1 - lr wd; Adam with L2 has keep = 1. LARS is sgd with scale and l2 times the trust ratio. */
#ifndef NR_UPDATE_H
#define NR_UPDATE_H

#include <stdint.h>

#include "math/isa.h"
#include "base/real.h"

#define NR_UPDATE_CHUNK 8192 /* values; sums are made per chunk and folded in order */

struct nr_adam_coef { real scale, l2, beta1, rest1, beta2, rest2, step, root, eps, keep; };
struct nr_sgd_coef { real scale, l2, keep_m, add_m, rate_g, rate_m; };

NR_FAMILY_DECLARE(update);

/* Serial. Arrays of n values that do not overlap. */
struct nr_update_kernels {
	void (*adam)(int64_t n, real *p, const real *g, real *m, real *v, const struct nr_adam_coef *);
	/* m NULL: no momentum */
	void (*sgd)(int64_t n, real *p, const real *g, real *m, const struct nr_sgd_coef *);
	void (*ema)(int64_t n, real *e, const real *p, real keep); /* e = keep e + (1-keep) p */
	double (*sum_sq)(int64_t n, const real *x);                /* in double */
	/* sum (a x + b y)^2 */
	double (*sum_sq_mix)(int64_t n, double a, const real *x, double b, const real *y);
};

/* Rows, or columns, of a matrix divided by their length; what is all zeros stays so. */
void nr_rows_to_unit(int64_t rows, int64_t columns, real *x);
void nr_columns_to_unit(int64_t rows, int64_t columns, real *x);
/* Threaded over chunks. */
void nr_update_ema(int64_t n, real *e, const real *p, double keep);

#endif
