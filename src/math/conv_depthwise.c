/* Depthwise convolution, direct: each tap is one multiplication of a row of channels. The weight [C,1,kh,kw] is turned to
 * (kh*kw,C) once per call. Chunks of output rows give partial weight gradients, folded in order. */
#include <string.h>

#include "math/conv.h"
#include "math/row.h"
#include "math/transpose.h"

enum { CHUNKS = 32 };          /* at most, of the output rows (b,oy) */
#define SMALL 16384

static int64_t taps(const struct nr_window *w) { return w->kh * w->kw; }
static int64_t work(const struct nr_window *w) { return nr_window_rows(w) * nr_window_cols(w); }
static int64_t chunk_rows(const struct nr_window *w) { return (w->B * nr_window_h(w) + CHUNKS - 1) / CHUNKS; }

size_t nr_depthwise_scratch(const struct nr_window *w)
{
	return (size_t)((taps(w) + 1) * w->C * (CHUNKS + 1)) * sizeof(real);
}

void nr_depthwise_forward(const struct nr_window *w, const real *x, const real *weight, const real *bias, real *y,
	void *scratch)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
	real *f = scratch;
	nr_matrix_transpose(C, taps(w), weight, taps(w), f, C, 0);
#pragma omp parallel for schedule(static) if (work(w) > SMALL)
	for (int64_t r = 0; r < w->B * Ho; r++) {
		const int64_t b = r / Ho, y0 = r % Ho * w->sh - w->ph;
		for (int64_t ox = 0; ox < Wo; ox++) {
			real *o = y + (r * Wo + ox) * C;
			int add = bias != NULL;
			if (bias) memcpy(o, bias, (size_t)C * sizeof(real));
			for (int64_t ky = 0; ky < w->kh; ky++)
				for (int64_t kx = 0; kx < w->kw; kx++) {
					const int64_t iy = y0 + ky, ix = ox * w->sw - w->pw + kx;
					if (iy < 0 || iy >= w->H || ix < 0 || ix >= w->W) continue;
					nr_row_mul(C, x + ((b * w->H + iy) * w->W + ix) * C, f + (ky * w->kw + kx) * C, o, add);
					add = 1;
				}
			if (!add) memset(o, 0, (size_t)C * sizeof(real));
		}
	}
}

void nr_depthwise_backward_data(const struct nr_window *w, const real *dy, const real *weight, real *dx, int add,
	void *scratch)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
	real *f = scratch;
	nr_matrix_transpose(C, taps(w), weight, taps(w), f, C, 0);
#pragma omp parallel for schedule(static) if (work(w) > SMALL)
	for (int64_t r = 0; r < w->B * w->H; r++) {
		const int64_t b = r / w->H, iy = r % w->H;
		for (int64_t ix = 0; ix < w->W; ix++) {
			real *d = dx + (r * w->W + ix) * C;
			int more = add;
			for (int64_t ky = 0; ky < w->kh; ky++)
				for (int64_t kx = 0; kx < w->kw; kx++) {
					const int64_t py = iy + w->ph - ky, px = ix + w->pw - kx;
					if (py < 0 || px < 0 || py % w->sh || px % w->sw) continue;
					const int64_t oy = py / w->sh, ox = px / w->sw;
					if (oy >= Ho || ox >= Wo) continue;
					nr_row_mul(C, dy + ((b * Ho + oy) * Wo + ox) * C, f + (ky * w->kw + kx) * C, d, more);
					more = 1;
				}
			if (!more) memset(d, 0, (size_t)C * sizeof(real));
		}
	}
}

/* Output rows r0..r1-1: p (taps,C) gets the products, p[taps] the sums of dy. */
static void chunk(const struct nr_window *w, const real *x, const real *dy, int64_t r0, int64_t r1, real *p)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
	memset(p, 0, (size_t)((taps(w) + 1) * C) * sizeof(real));
	for (int64_t r = r0; r < r1; r++) {
		const int64_t b = r / Ho, y0 = r % Ho * w->sh - w->ph;
		for (int64_t ox = 0; ox < Wo; ox++) {
			const real *d = dy + (r * Wo + ox) * C;
			for (int64_t ky = 0; ky < w->kh; ky++)
				for (int64_t kx = 0; kx < w->kw; kx++) {
					const int64_t iy = y0 + ky, ix = ox * w->sw - w->pw + kx;
					if (iy < 0 || iy >= w->H || ix < 0 || ix >= w->W) continue;
					nr_row_mul(C, x + ((b * w->H + iy) * w->W + ix) * C, d, p + (ky * w->kw + kx) * C, 1);
				}
			nr_row_add(C, p + taps(w) * C, d, p + taps(w) * C);
		}
	}
}

void nr_depthwise_backward_weight(const struct nr_window *w, const real *x, const real *dy, real *dweight, int add,
	real *dbias, int add_bias, void *scratch)
{
	const int64_t rows = w->B * nr_window_h(w), per = nr_max64(chunk_rows(w), 1), n = (rows + per - 1) / per;
	const int64_t len = (taps(w) + 1) * w->C;
	real *part = scratch, *sum = part + CHUNKS * len;
#pragma omp parallel for schedule(dynamic, 1) if (work(w) > SMALL)
	for (int64_t q = 0; q < n; q++) chunk(w, x, dy, q * per, nr_min64(q * per + per, rows), part + q * len);
	nr_fold(n, len, part, sum, 0);
	nr_matrix_transpose(taps(w), w->C, sum, w->C, dweight, taps(w), add);
	if (dbias) nr_row_put(w->C, sum + taps(w) * w->C, dbias, add_bias);
}
