/* Pooling over windows and tokens. One task is a row of the output (backward: of the input). */
#include "math/pool.h"

#include <string.h>

#include "math/row.h"

#define SMALL 16384

static void clear(int64_t n, real *x) { memset(x, 0, (size_t)n * sizeof(real)); }

/* Part of a window inside the picture. */
struct span { int64_t from, to; };

static struct span inside(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t size)
{
	const int64_t at = o * stride - pad;
	return (struct span){ nr_max64(at, 0), nr_min64(at + k, size) };
}

/* Windows that cover pixel i. */
static struct span covering(int64_t i, int64_t k, int64_t stride, int64_t pad, int64_t count)
{
	const int64_t low = i + pad - k + 1;
	return (struct span){ low > 0 ? (low + stride - 1) / stride : 0, nr_min64((i + pad) / stride + 1, count) };
}

/* torch counts zeros inside the padding, not what lies beyond it; floor sizes never reach beyond. */
static real share(const struct nr_window *w, int include_pad, struct span y, struct span x)
{
	const int64_t n = include_pad ? w->kh * w->kw : (y.to - y.from) * (x.to - x.from);
	return n > 0 ? (real)1 / (real)n : 0;
}

void nr_pool_mean_forward(const struct nr_window *w, int include_pad, const real *x, real *y)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
#pragma omp parallel for schedule(static) if (nr_window_rows(w) * nr_window_cols(w) > SMALL)
	for (int64_t r = 0; r < w->B * Ho; r++) {
		const struct span sy = inside(r % Ho, w->kh, w->sh, w->ph, w->H);
		for (int64_t ox = 0; ox < Wo; ox++) {
			const struct span sx = inside(ox, w->kw, w->sw, w->pw, w->W);
			real *o = y + (r * Wo + ox) * C;
			clear(C, o);
			for (int64_t iy = sy.from; iy < sy.to; iy++)
				for (int64_t ix = sx.from; ix < sx.to; ix++)
					nr_row_add(C, o, x + ((r / Ho * w->H + iy) * w->W + ix) * C, o);
			nr_row_scale(C, share(w, include_pad, sy, sx), o, o);
		}
	}
}

void nr_pool_mean_backward(const struct nr_window *w, int include_pad, const real *dy, real *dx, int add)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
#pragma omp parallel for schedule(static) if (nr_window_rows(w) * nr_window_cols(w) > SMALL)
	for (int64_t r = 0; r < w->B * w->H; r++) {
		const struct span cy = covering(r % w->H, w->kh, w->sh, w->ph, Ho);
		for (int64_t ix = 0; ix < w->W; ix++) {
			const struct span cx = covering(ix, w->kw, w->sw, w->pw, Wo);
			real *d = dx + (r * w->W + ix) * C;
			if (!add) clear(C, d);
			for (int64_t oy = cy.from; oy < cy.to; oy++)
				for (int64_t ox = cx.from; ox < cx.to; ox++) {
					const real s = share(w, include_pad, inside(oy, w->kh, w->sh, w->ph, w->H),
						inside(ox, w->kw, w->sw, w->pw, w->W));
					nr_row_axpy(C, s, dy + ((r / w->H * Ho + oy) * Wo + ox) * C, d);
				}
		}
	}
}

void nr_pool_max_forward(const struct nr_window *w, const real *x, real *y, int32_t *arg)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
#pragma omp parallel for schedule(static) if (nr_window_rows(w) * nr_window_cols(w) > SMALL)
	for (int64_t r = 0; r < w->B * Ho; r++) {
		const struct span sy = inside(r % Ho, w->kh, w->sh, w->ph, w->H);
		for (int64_t ox = 0; ox < Wo; ox++) {
			const struct span sx = inside(ox, w->kw, w->sw, w->pw, w->W);
			real *o = y + (r * Wo + ox) * C;
			int32_t *a = arg ? arg + (r * Wo + ox) * C : NULL;
			for (int64_t c = 0; c < C; c++) {
				o[c] = -(real)INFINITY;
				if (a) a[c] = -1;
			}
			for (int64_t iy = sy.from; iy < sy.to; iy++)
				for (int64_t ix = sx.from; ix < sx.to; ix++) {
					const real *v = x + ((r / Ho * w->H + iy) * w->W + ix) * C;
					const int32_t place = (int32_t)(iy * w->W + ix);
					for (int64_t c = 0; c < C; c++) {
						const int take = v[c] > o[c] || v[c] != v[c] || (a && a[c] < 0);   /* NaN wins */
						o[c] = take ? v[c] : o[c];
						if (a && take) a[c] = place;
					}
				}
		}
	}
}

void nr_pool_max_backward(const struct nr_window *w, const real *dy, const int32_t *arg, real *dx, int add)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C;
#pragma omp parallel for schedule(static) if (nr_window_rows(w) * nr_window_cols(w) > SMALL)
	for (int64_t r = 0; r < w->B * w->H; r++) {
		const struct span cy = covering(r % w->H, w->kh, w->sh, w->ph, Ho);
		for (int64_t ix = 0; ix < w->W; ix++) {
			const struct span cx = covering(ix, w->kw, w->sw, w->pw, Wo);
			const int32_t me = (int32_t)(r % w->H * w->W + ix);
			real *d = dx + (r * w->W + ix) * C;
			if (!add) clear(C, d);
			for (int64_t oy = cy.from; oy < cy.to; oy++)
				for (int64_t ox = cx.from; ox < cx.to; ox++) {
					const int64_t at = ((r / w->H * Ho + oy) * Wo + ox) * C;
					for (int64_t c = 0; c < C; c++) d[c] += arg[at + c] == me ? dy[at + c] : 0;
				}
		}
	}
}

static struct span bin(int64_t o, int64_t in, int64_t out)
{
	return (struct span){ o * in / out, ((o + 1) * in + out - 1) / out };
}

/* Bins that hold pixel i: a little more than needed, the caller checks. */
static struct span bins(int64_t i, int64_t in, int64_t out)
{
	return (struct span){ nr_max64(i * out / in - 1, 0), nr_min64((i + 1) * out / in + 2, out) };
}

static int holds(struct span s, int64_t i) { return i >= s.from && i < s.to; }

void nr_pool_adaptive_forward(const struct nr_bins *s, const real *x, real *y)
{
	const int64_t C = s->C;
#pragma omp parallel for schedule(static) if (s->B * s->H * s->W * C > SMALL)
	for (int64_t r = 0; r < s->B * s->h; r++) {
		const struct span by = bin(r % s->h, s->H, s->h);
		for (int64_t ox = 0; ox < s->w; ox++) {
			const struct span bx = bin(ox, s->W, s->w);
			real *o = y + (r * s->w + ox) * C;
			clear(C, o);
			for (int64_t iy = by.from; iy < by.to; iy++)
				for (int64_t ix = bx.from; ix < bx.to; ix++)
					nr_row_add(C, o, x + ((r / s->h * s->H + iy) * s->W + ix) * C, o);
			nr_row_scale(C, (real)1 / (real)((by.to - by.from) * (bx.to - bx.from)), o, o);
		}
	}
}

void nr_pool_adaptive_backward(const struct nr_bins *s, const real *dy, real *dx, int add)
{
	const int64_t C = s->C;
#pragma omp parallel for schedule(static) if (s->B * s->H * s->W * C > SMALL)
	for (int64_t r = 0; r < s->B * s->H; r++) {
		const struct span cy = bins(r % s->H, s->H, s->h);
		for (int64_t ix = 0; ix < s->W; ix++) {
			const struct span cx = bins(ix, s->W, s->w);
			real *d = dx + (r * s->W + ix) * C;
			if (!add) clear(C, d);
			for (int64_t oy = cy.from; oy < cy.to; oy++)
				for (int64_t ox = cx.from; ox < cx.to; ox++) {
					const struct span by = bin(oy, s->H, s->h), bx = bin(ox, s->W, s->w);
					if (!holds(by, r % s->H) || !holds(bx, ix)) continue;
					nr_row_axpy(C, (real)1 / (real)((by.to - by.from) * (bx.to - bx.from)),
						dy + ((r / s->H * s->h + oy) * s->w + ox) * C, d);
				}
		}
	}
}

static int64_t end_of(int64_t T, const int32_t *valid, int64_t b)
{
	return valid ? nr_min64(valid[b], T) : T;
}

void nr_pool_tokens_forward(int64_t B, int64_t T, int64_t C, int64_t first, const int32_t *valid, const real *x, real *y)
{
#pragma omp parallel for schedule(static) if (B * T * C > SMALL)
	for (int64_t b = 0; b < B; b++) {
		const int64_t end = end_of(T, valid, b);
		clear(C, y + b * C);
		if (end <= first) continue;
		nr_row_active->col_sum(end - first, C, x + (b * T + first) * C, C, y + b * C);
		nr_row_scale(C, (real)1 / (real)(end - first), y + b * C, y + b * C);
	}
}

void nr_pool_tokens_backward(int64_t B, int64_t T, int64_t C, int64_t first, const int32_t *valid, const real *dy, real *dx,
	int add)
{
#pragma omp parallel for schedule(static) if (B * T * C > SMALL)
	for (int64_t b = 0; b < B; b++) {
		const int64_t end = end_of(T, valid, b);
		for (int64_t t = 0; t < T; t++) {
			real *d = dx + (b * T + t) * C;
			if (!add) clear(C, d);
			if (t >= first && t < end) nr_row_axpy(C, (real)1 / (real)(end - first), dy + b * C, d);
		}
	}
}
