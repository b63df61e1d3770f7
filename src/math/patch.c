/* Patches are permuted copies; unfold copies runs of kw * C values where the window is inside; fold gathers, for each
 * input pixel, from the windows that cover it: one writer per pixel, so the order of the sum is fixed. */
#include "math/patch.h"

#include <string.h>

#include "math/row.h"

#define SMALL 16384

enum { MOST_LINES = 16 };       /* of a window whose pointers are held; windows of more lines go one by one */

const struct nr_patch_kernels *nr_patch_active = &nr_patch_plain;

static void plain_unfold(int64_t n, int64_t kh, int64_t run, int64_t step, const real *const *line, real *out)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t ky = 0; ky < kh; ky++, out += run) {
			if (line[ky]) memcpy(out, line[ky] + i * step, (size_t)run * sizeof(real));
			else memset(out, 0, (size_t)run * sizeof(real));
		}
}

const struct nr_patch_kernels nr_patch_plain = { plain_unfold };

static void unfold_row(const struct nr_window *w, enum nr_patch_order order, const real *x, int64_t oy, int64_t ox, real *out)
{
	const int64_t C = w->C, y0 = oy * w->sh - w->ph, x0 = ox * w->sw - w->pw, kk = w->kh * w->kw;
	for (int64_t ky = 0; ky < w->kh; ky++) {
		const int64_t y = y0 + ky;
		const int row_in = y >= 0 && y < w->H;
		if (order == NR_PATCH_ROW_COL_CHANNEL) {
			real *o = out + ky * w->kw * C;
			const int64_t l = nr_min64(nr_max64(-x0, 0), w->kw), r = nr_max64(nr_min64(w->W - x0, w->kw), l);
			if (!row_in || r == l) {
				memset(o, 0, (size_t)(w->kw * C) * sizeof(real));
				continue;
			}
			if (l) memset(o, 0, (size_t)(l * C) * sizeof(real));
			memcpy(o + l * C, x + (y * w->W + x0 + l) * C, (size_t)((r - l) * C) * sizeof(real));
			if (r < w->kw) memset(o + r * C, 0, (size_t)((w->kw - r) * C) * sizeof(real));
		} else {
			const int by_channel = order == NR_PATCH_CHANNEL_ROW_COL;
			for (int64_t kx = 0; kx < w->kw; kx++) {
				const int in = row_in && x0 + kx >= 0 && x0 + kx < w->W;
				const real *s = in ? x + (y * w->W + x0 + kx) * C : NULL;
				real *o = by_channel ? out + ky * w->kw + kx : out + (kx * w->kh + ky) * C;
				if (!by_channel && s) memcpy(o, s, (size_t)C * sizeof(real));
				else if (!by_channel) memset(o, 0, (size_t)C * sizeof(real));
				for (int64_t c = 0; by_channel && c < C; c++) o[c * kk] = s ? s[c] : 0;
			}
		}
	}
}

/* Windows ox.. to before `end` of output row oy, sample x. */
static void unfold_line(const struct nr_window *w, enum nr_patch_order order, const real *x, int64_t oy, int64_t ox, int64_t end, real *out)
{
	const int64_t cols = nr_window_cols(w), room = w->W + w->pw - w->kw;
	const int64_t inside = nr_max64((w->pw + w->sw - 1) / w->sw, ox), outside = room < 0 ? inside : nr_min64(room / w->sw + 1, end);
	if (order != NR_PATCH_ROW_COL_CHANNEL || w->kh > MOST_LINES || inside >= outside) {
		for (; ox < end; ox++, out += cols) unfold_row(w, order, x, oy, ox, out);
		return;
	}
	const real *line[MOST_LINES];
	for (int64_t ky = 0; ky < w->kh; ky++) {
		const int64_t y = oy * w->sh - w->ph + ky;
		line[ky] = y >= 0 && y < w->H ? x + (y * w->W + inside * w->sw - w->pw) * w->C : NULL;
	}
	for (; ox < inside; ox++, out += cols) unfold_row(w, order, x, oy, ox, out);
	nr_patch_active->unfold(outside - inside, w->kh, w->kw * w->C, w->sw * w->C, line, out);
	out += (outside - inside) * cols;
	for (ox = outside; ox < end; ox++, out += cols) unfold_row(w, order, x, oy, ox, out);
}

void nr_unfold_serial(const struct nr_window *w, enum nr_patch_order order, const real *x, int64_t row, int64_t rows, real *out)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), cols = nr_window_cols(w), sample = w->H * w->W * w->C;
	for (const int64_t all = row + rows; row < all;) {
		const int64_t line = row / Wo, ox = row % Wo, n = nr_min64(Wo - ox, all - row);
		unfold_line(w, order, x + line / Ho * sample, line % Ho, ox, ox + n, out);
		out += n * cols;
		row += n;
	}
}

void nr_unfold(const struct nr_window *w, enum nr_patch_order order, const real *x, int64_t row, int64_t rows, real *out)
{
	const int64_t cols = nr_window_cols(w), part = 64;
#pragma omp parallel for schedule(static) if (rows * cols > SMALL)
	for (int64_t i = 0; i < rows; i += part) nr_unfold_serial(w, order, x, row + i, nr_min64(part, rows - i), out + i * cols);
}

/* First and last window along a side that cover pixel i. */
static void cover(int64_t i, int64_t k, int64_t stride, int64_t pad, int64_t count, int64_t *first, int64_t *last)
{
	const int64_t low = i + pad - k + 1;
	*first = low > 0 ? (low + stride - 1) / stride : 0;
	*last = nr_min64((i + pad) / stride, count - 1);
}

static void fold_pixel(const struct nr_window *w, enum nr_patch_order order, const real *cols, int64_t y, int64_t x, real *d)
{
	const int64_t Ho = nr_window_h(w), Wo = nr_window_w(w), C = w->C, kk = w->kh * w->kw;
	int64_t y0, y1, x0, x1;
	cover(y, w->kh, w->sh, w->ph, Ho, &y0, &y1);
	cover(x, w->kw, w->sw, w->pw, Wo, &x0, &x1);
	for (int64_t oy = y0; oy <= y1; oy++)
		for (int64_t ox = x0; ox <= x1; ox++) {
			const int64_t ky = y + w->ph - oy * w->sh, kx = x + w->pw - ox * w->sw;
			const int64_t tap = order == NR_PATCH_COL_ROW_CHANNEL ? kx * w->kh + ky : ky * w->kw + kx;
			const real *s = cols + (oy * Wo + ox) * kk * C;
			if (order != NR_PATCH_CHANNEL_ROW_COL)
				nr_row_add(C, d, s + tap * C, d);
			else
				for (int64_t c = 0; c < C; c++) d[c] += s[c * kk + tap];
		}
}

/* Line y of a sample where windows lie apart: what is under it comes in whole runs. d holds zeros, or what is added to. */
static void fold_apart(const struct nr_window *w, const real *cols, int64_t y, real *d)
{
	const int64_t Wo = nr_window_w(w), C = w->C, run = w->kw * C, oy = (y + w->ph) / w->sh, ky = (y + w->ph) % w->sh;
	if (ky >= w->kh || oy >= nr_window_h(w)) return;
	for (int64_t ox = 0; ox < Wo; ox++) {
		const int64_t x0 = ox * w->sw - w->pw, left = nr_max64(-x0, 0), right = nr_min64(w->W - x0, w->kw);
		const real *s = cols + (oy * Wo + ox) * w->kh * run + ky * run;
		if (left < right) nr_row_add((right - left) * C, d + (x0 + left) * C, s + left * C, d + (x0 + left) * C);
	}
}

void nr_fold_windows(const struct nr_window *w, enum nr_patch_order order, const real *cols, int64_t b, int64_t n, real *dx,
	int add)
{
	const int64_t per = nr_window_h(w) * nr_window_w(w) * nr_window_cols(w);
	const int apart = order == NR_PATCH_ROW_COL_CHANNEL && w->kh <= w->sh && w->kw <= w->sw;
#pragma omp parallel for schedule(static) if (n * per > SMALL)
	for (int64_t i = 0; i < n * w->H; i++) {
		const int64_t s = i / w->H, y = i % w->H;
		real *d = dx + ((b + s) * w->H + y) * w->W * w->C;
		if (!add) memset(d, 0, (size_t)(w->W * w->C) * sizeof(real));
		if (apart) fold_apart(w, cols + s * per, y, d);
		for (int64_t x = 0; !apart && x < w->W; x++) fold_pixel(w, order, cols + s * per, y, x, d + x * w->C);
	}
}

void nr_fold_rows(const struct nr_window *w, const real *cols, int64_t b, int64_t oy, int64_t n, real *dx)
{
	const int64_t Wo = nr_window_w(w), C = w->C;
	for (int64_t r = 0; r < n * Wo; r++) {
		const int64_t y0 = (oy + r / Wo) * w->sh - w->ph, x0 = r % Wo * w->sw - w->pw;
		const int64_t left = nr_min64(nr_max64(-x0, 0), w->kw), right = nr_max64(nr_min64(w->W - x0, w->kw), left);
		for (int64_t ky = 0; ky < w->kh; ky++) {
			if (y0 + ky < 0 || y0 + ky >= w->H || left == right) continue;
			real *d = dx + ((b * w->H + y0 + ky) * w->W + x0 + left) * C;
			nr_row_add((right - left) * C, d, cols + ((r * w->kh + ky) * w->kw + left) * C, d);
		}
	}
}

/* Both directions walk (sample, row of patches, column of patches); the pixel runs of p values are contiguous in the image. */
static void split_one(int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order order, const real *x, real *out, int add)
{
	for (int64_t c = 0; c < C; c++)
		for (int64_t ky = 0; ky < p; ky++) {
			const real *s = x + (c * H + ky) * W;
			if (order == NR_PATCH_CHANNEL_ROW_COL)
				nr_row_put(p, s, out + (c * p + ky) * p, add);
			else
				for (int64_t kx = 0; kx < p; kx++) nr_put(out + (ky * p + kx) * C + c, s[kx], add);
		}
}

static void merge_one(int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order order, const real *in, real *x, int add)
{
	for (int64_t c = 0; c < C; c++)
		for (int64_t ky = 0; ky < p; ky++) {
			real *d = x + (c * H + ky) * W;
			if (order == NR_PATCH_CHANNEL_ROW_COL)
				nr_row_put(p, in + (c * p + ky) * p, d, add);
			else
				for (int64_t kx = 0; kx < p; kx++) nr_put(d + kx, in[(ky * p + kx) * C + c], add);
		}
}

void nr_patch_split(int64_t B, int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order order, const real *image,
	real *out, int add)
{
	const int64_t h = H / p, w = W / p;
#pragma omp parallel for schedule(static) if (B * C * H * W > SMALL)
	for (int64_t t = 0; t < B * h * w; t++) {
		const int64_t b = t / (h * w), y = t / w % h * p, x = t % w * p;
		split_one(C, H, W, p, order, image + (b * C * H + y) * W + x, out + t * p * p * C, add);
	}
}

void nr_patch_merge(int64_t B, int64_t C, int64_t H, int64_t W, int64_t p, enum nr_patch_order order, const real *patches,
	real *image, int add)
{
	const int64_t h = H / p, w = W / p;
	if (!add && (h * p < H || w * p < W)) nr_array_fill(B * C * H * W, 0, image);
#pragma omp parallel for schedule(static) if (B * C * H * W > SMALL)
	for (int64_t t = 0; t < B * h * w; t++) {
		const int64_t b = t / (h * w), y = t / w % h * p, x = t % w * p;
		merge_one(C, H, W, p, order, patches + t * p * p * C, image + (b * C * H + y) * W + x, add);
	}
}
