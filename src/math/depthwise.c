/* The plain reference and the drivers: see depthwise.h. The weight [C,1,kh,kw] is turned to (kh*kw,C) once per call. The gradient of the
 * data is the same convolution of dy with the filter turned round, where the stride is 1. Chunks of output rows give partial weight
 * gradients, folded in order. */
#include "math/depthwise.h"

#include <string.h>

#include "math/row.h"
#include "math/transpose.h"

enum { CHUNKS = 32 };          /* at most, of the output rows (b,oy) */
#define SMALL 16384

const struct nr_depthwise_kernels *nr_depthwise_active = &nr_depthwise_plain;

static void plain_forward(const struct nr_depthwise_row *r, const real *f, const real *bias, real *y, int add)
{
	for (int64_t ox = 0; ox < r->Wo; ox++) {
		real *o = y + ox * r->C;
		int64_t first, end;
		nr_depthwise_taps(r, ox, &first, &end);
		for (int64_t c = 0; c < r->C; c++) {
			real sum = bias ? bias[c] : 0;
			for (int64_t ky = 0; ky < r->kh; ky++)
				for (int64_t kx = first; kx < end; kx++)
					sum += r->x[(ky * r->W + ox * r->sw - r->pw + kx) * r->C + c] * f[(ky * r->kw + kx) * r->C + c];
			o[c] = add ? o[c] + sum : sum;
		}
	}
}

static void plain_weight(const struct nr_depthwise_row *r, const real *dy, real *df)
{
	for (int64_t ox = 0; ox < r->Wo; ox++) {
		int64_t first, end;
		nr_depthwise_taps(r, ox, &first, &end);
		for (int64_t ky = 0; ky < r->kh; ky++)
			for (int64_t kx = first; kx < end; kx++) {
				const real *x = r->x + (ky * r->W + ox * r->sw - r->pw + kx) * r->C, *d = dy + ox * r->C;
				for (int64_t c = 0; c < r->C; c++) df[(ky * r->kw + kx) * r->C + c] += x[c] * d[c];
			}
	}
}

const struct nr_depthwise_kernels nr_depthwise_plain = { plain_forward, plain_weight };

/* ---- drivers ---- */

static int64_t taps(const struct nr_window *w) { return w->kh * w->kw; }
static int64_t work(const struct nr_window *w) { return nr_window_rows(w) * nr_window_cols(w); }
static int64_t chunk_rows(const struct nr_window *w) { return nr_max64((w->B * nr_window_h(w) + CHUNKS - 1) / CHUNKS, 1); }

size_t nr_depthwise_scratch(const struct nr_window *w)
{
	return (size_t)((taps(w) + 1) * w->C * (CHUNKS + 1)) * sizeof(real);
}

/* Row r (b,oy) of the outputs; *from: the first row of the filter that lies on the picture. */
static struct nr_depthwise_row row_of(const struct nr_window *w, const real *x, int64_t r, int64_t *from)
{
	const int64_t Ho = nr_window_h(w), b = r / Ho, y = r % Ho * w->sh - w->ph;
	const int64_t first = nr_min64(nr_max64(-y, 0), w->kh), end = nr_max64(nr_min64(w->H - y, w->kh), first);
	*from = first;
	return (struct nr_depthwise_row){ .C = w->C, .W = w->W, .Wo = nr_window_w(w), .kh = end - first, .kw = w->kw, .sw = w->sw,
		.pw = w->pw, .x = x + (b * w->H + nr_min64(y + first, w->H)) * w->W * w->C };
}

static void filter_rows(const struct nr_window *w, const real *x, const real *f, const real *bias, real *y, int add)
{
	const int64_t rows = w->B * nr_window_h(w), length = nr_window_w(w) * w->C;
#pragma omp parallel for schedule(static) if (work(w) > SMALL)
	for (int64_t r = 0; r < rows; r++) {
		int64_t from;
		const struct nr_depthwise_row row = row_of(w, x, r, &from);
		nr_depthwise_active->forward(&row, f + from * w->kw * w->C, bias, y + r * length, add);
	}
}

void nr_depthwise_forward(const struct nr_window *w, const real *x, const real *weight, const real *bias, real *y,
	void *scratch)
{
	nr_matrix_transpose(w->C, taps(w), weight, taps(w), scratch, w->C, 0);
	filter_rows(w, x, scratch, bias, y, 0);
}

/* Any stride: each pixel gathers from the windows that cover it. */
static void gather(const struct nr_window *w, const real *dy, const real *f, real *dx, int add)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
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

void nr_depthwise_backward_data(const struct nr_window *w, const real *dy, const real *weight, real *dx, int add,
	void *scratch)
{
	const int64_t n = taps(w), C = w->C;
	real *f = scratch, *turned = f + n * C;
	nr_matrix_transpose(C, n, weight, n, f, C, 0);
	if (w->sh != 1 || w->sw != 1 || w->ph >= w->kh || w->pw >= w->kw || !nr_window_rows(w)) {
		gather(w, dy, f, dx, add);
		return;
	}
	for (int64_t k = 0; k < n; k++) memcpy(turned + k * C, f + (n - 1 - k) * C, (size_t)C * sizeof(real));
	struct nr_window back = *w;
	back.H = nr_window_h(w);
	back.W = nr_window_w(w);
	back.ph = w->kh - 1 - w->ph;
	back.pw = w->kw - 1 - w->pw;
	filter_rows(&back, dy, turned, NULL, dx, add);
}

/* Output rows r0..r1-1: p (taps,C) gets the products, p[taps] the sums of dy. */
static void chunk(const struct nr_window *w, const real *x, const real *dy, int64_t r0, int64_t r1, real *p)
{
	const int64_t Wo = nr_window_w(w), C = w->C;
	memset(p, 0, (size_t)((taps(w) + 1) * C) * sizeof(real));
	for (int64_t r = r0; r < r1; r++) {
		int64_t from;
		const struct nr_depthwise_row row = row_of(w, x, r, &from);
		nr_depthwise_active->weight(&row, dy + r * Wo * C, p + from * w->kw * C);
		nr_row_active->col_sum(Wo, C, dy + r * Wo * C, C, p + taps(w) * C);
	}
}

void nr_depthwise_backward_weight(const struct nr_window *w, const real *x, const real *dy, real *dweight, int add,
	real *dbias, int add_bias, void *scratch)
{
	const int64_t rows = w->B * nr_window_h(w), per = chunk_rows(w), n = (rows + per - 1) / per;
	const int64_t len = (taps(w) + 1) * w->C;
	real *part = scratch, *sum = part + CHUNKS * len;
#pragma omp parallel for schedule(dynamic, 1) if (work(w) > SMALL)
	for (int64_t q = 0; q < n; q++) chunk(w, x, dy, q * per, nr_min64(q * per + per, rows), part + q * len);
	nr_fold(n, len, part, sum, 0);
	nr_matrix_transpose(taps(w), w->C, sum, w->C, dweight, taps(w), add);
	if (dbias) nr_row_put(w->C, sum + taps(w) * w->C, dbias, add_bias);
}
