/* Depthwise convolution, channels last: one kh x kw filter for each channel; x (B,H,W,C), y (B,Ho,Wo,C), weight [C,1,kh,kw].
 *   y(b,oy,ox,c) = bias(c) + sum over ky,kx of x(b, oy sh - ph + ky, ox sw - pw + kx, c) weight(c,ky,kx)
 * Direct: a row of outputs is made at a time, from rows of inputs that are in a cache. Same bits at any thread count. */
#ifndef NR_DEPTHWISE_H
#define NR_DEPTHWISE_H

#include <stddef.h>

#include "math/isa.h"
#include "math/patch.h"

/* scratch: nr_depthwise_scratch bytes for any of the three. bias and dbias may be NULL. */
void nr_depthwise_forward(const struct nr_window *, const real *x, const real *weight, const real *bias, real *y,
	void *scratch);
void nr_depthwise_backward_data(const struct nr_window *, const real *dy, const real *weight, real *dx, int add,
	void *scratch);
void nr_depthwise_backward_weight(const struct nr_window *, const real *x, const real *dy, real *dweight, int add,
	real *dbias, int add_bias, void *scratch);
size_t nr_depthwise_scratch(const struct nr_window *);

/* One row of outputs and the rows of inputs under it. */
struct nr_depthwise_row {
	int64_t C, W, Wo, kh, kw, sw, pw;       /* kh: rows of the filter that lie on the picture, perhaps none */
	const real *x;                          /* the first of these rows, (kh,W,C) */
};

struct nr_depthwise_kernels {
	/* y (Wo,C) = bias + x f, or +=; f (kh,kw,C); bias NULL: 0 */
	void (*forward)(const struct nr_depthwise_row *, const real *f, const real *bias, real *y, int add);
	/* df (kh,kw,C) += x dy */
	void (*weight)(const struct nr_depthwise_row *, const real *dy, real *df);
};
NR_FAMILY_DECLARE(depthwise);

/* The taps kx of output ox that lie on the picture: from *first to before *end. */
static inline void nr_depthwise_taps(const struct nr_depthwise_row *r, int64_t ox, int64_t *first, int64_t *end)
{
	const int64_t left = ox * r->sw - r->pw;
	*first = left < 0 ? -left : 0;
	*end = r->W - left < r->kw ? r->W - left : r->kw;
}

#endif
