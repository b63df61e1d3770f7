/* Affine warps with Pillow's interpolation: centres of pixels at .5, neighbours outside repeat the border, sums in double. */
#include "picture/augment.h"

#include <math.h>

static int32_t inside(int32_t v, int32_t n) { return v < 0 ? 0 : v < n ? v : n - 1; }
static int32_t below(double v) { return v >= 0 ? (int32_t)v : (int32_t)floor(v); }

static double cubic(double a, double b, double c, double d, double t)
{
	const double p2 = -a + c, p3 = 2 * (a - b) + c - d, p4 = -a + b - c + d;
	return b + t * (p2 + t * (p3 + t * p4));
}

/* Column of taps: row y of the source, or the tap before where y is outside. */
static void bilinear(const struct nr_picture *p, double x, double y, uint8_t *out)
{
	const int32_t C = p->channels, ix = below(x), iy = below(y);
	const double dx = x - ix, dy = y - iy;
	const int32_t x0 = inside(ix, p->w) * C, x1 = inside(ix + 1, p->w) * C;
	const ptrdiff_t line = (ptrdiff_t)p->w * C;
	const uint8_t *top = p->pixels + inside(iy, p->h) * line, *next = iy + 1 >= 0 && iy + 1 < p->h ? p->pixels + (iy + 1) * line : NULL;
	for (int32_t c = 0; c < C; c++) {
		const double a = top[x0 + c] + (top[x1 + c] - top[x0 + c]) * dx;
		const double b = next ? next[x0 + c] + (next[x1 + c] - next[x0 + c]) * dx : a;
		out[c] = (uint8_t)(a + (b - a) * dy);
	}
}

static void bicubic(const struct nr_picture *p, double x, double y, uint8_t *out)
{
	const int32_t C = p->channels, ix = below(x), iy = below(y);
	const double dx = x - ix, dy = y - iy;
	const ptrdiff_t line = (ptrdiff_t)p->w * C;
	int32_t at[4];
	for (int i = 0; i < 4; i++) at[i] = inside(ix - 1 + i, p->w) * C;
	for (int32_t c = 0; c < C; c++) {
		double v[4] = { 0 };
		for (int i = 0; i < 4; i++) {
			const int32_t r = iy - 1 + i;
			const uint8_t *row = p->pixels + inside(r, p->h) * line + c;
			v[i] = i && (r < 0 || r >= p->h) ? v[i - 1] : cubic(row[at[0]], row[at[1]], row[at[2]], row[at[3]], dx);
		}
		const double s = cubic(v[0], v[1], v[2], v[3], dy);
		out[c] = (uint8_t)(s <= 0 ? 0 : s >= 255 ? 255 : s);
	}
}

void nr_warp(const struct nr_picture *from, const double m[6], enum nr_filter filter, const uint8_t fill[3], struct nr_picture *to)
{
	const int32_t h = from->h, w = from->w, C = from->channels;
	uint8_t *out = to->pixels;
	for (int32_t y = 0; y < h; y++)
		for (int32_t x = 0; x < w; x++, out += C) {
			const double px = x + 0.5, py = y + 0.5;
			const double sx = m[0] * px + m[1] * py + m[2], sy = m[3] * px + m[4] * py + m[5];
			if (!(sx >= 0 && sx < w && sy >= 0 && sy < h))
				for (int32_t c = 0; c < C; c++) out[c] = fill[c];
			else if (filter == NR_FILTER_BICUBIC)
				bicubic(from, sx - 0.5, sy - 0.5, out);
			else
				bilinear(from, sx - 0.5, sy - 0.5, out);
		}
}

/* To 15 decimals, as Python's round: the product's rounding error is taken into account. */
static double round15(double v)
{
	const double p = v * 1e15, rest = fma(v, 1e15, -p);
	double r = rint(p);
	const double d = (p - r) + rest;
	if (d > 0.5) r += 1;
	if (d < -0.5) r -= 1;
	return r / 1e15;
}

void nr_rotation(int32_t h, int32_t w, double degrees, double m[6])
{
	const double turn = degrees - 360 * floor(degrees / 360), angle = -(turn * (M_PI / 180.0));
	const double c = round15(cos(angle)), s = round15(sin(angle)), cx = w / 2.0, cy = h / 2.0;
	m[0] = c, m[1] = s, m[3] = round15(-sin(angle)), m[4] = c;
	m[2] = m[0] * -cx + m[1] * -cy + 0.0 + cx;
	m[5] = m[3] * -cx + m[4] * -cy + 0.0 + cy;
}
