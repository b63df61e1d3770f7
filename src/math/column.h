/* Columns of rows: moments, the normalization and its gradient where statistics run down the rows (batch, instance,
 * group, power, switch norm); the `column` family.
 *
 * All serial: a caller gives chunks of rows to threads and merges what they find in chunk order. ld* is the distance
 * between rows in values; vectors hold C values. Lengths may be 0; pointers need no alignment. */
#ifndef NR_COLUMN_H
#define NR_COLUMN_H

#include "math/chunk.h"
#include "math/isa.h"

/* y = (x - mean) scale + bias; mean, bias may be NULL, y may be x. */
typedef void nr_column_normalize(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *mean, const real *scale,
	const real *bias, real *y, int64_t ldy);
/* dx = a dy + b (x - mean) + c + eta dy, or adds that; mean may be NULL, dx may be dy. The product a dy is rounded before c is added,
 * so that c = -a dy leaves nothing but eta dy; without a mean eta is 0. */
typedef void nr_column_grad(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy, const real *mean,
	const real *a, const real *b, const real *c, real eta, real *dx, int64_t lddx, int add);

struct nr_column_kernels {
	/* mean and m2 = sum (x - mean)^2 of these rows, overwritten (0 without rows); an offset costs no digits. */
	void (*moments)(int64_t rows, int64_t C, const real *x, int64_t ldx, real *mean, real *m2);
	/* out += the sums of x^2 */
	void (*sum_sq)(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out);
	/* stream: stores go past the caches (see stream.h), for which y or dx should begin a cache line in every row */
	nr_column_normalize *normalize, *normalize_stream;
	/* sum += the sums of dy, dot += those of dy (x - mean); mean may be NULL. */
	void (*grad_sums)(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy,
		const real *mean, real *sum, real *dot);
	nr_column_grad *grad_apply, *grad_apply_stream;
};
NR_FAMILY_DECLARE(column);

/* Adds the moments of n more rows to those of *count rows (Chan, Golub & LeVeque 1979), which grows by n. Begin
 * with zeros; in double, so that many merges cost nothing. */
void nr_column_merge(int64_t C, int64_t *count, double *mean, double *m2, int64_t n, const real *other_mean,
	const real *other_m2);

#endif
