/* RoIAlign. See roi.h. Places and weights are computed in double, so that float and double read the same pixels; in backward a thread
 * owns 16 channels of a picture and walks its boxes in order, so that sums do not depend on threads or on other pictures. */
#include "math/roi.h"

#include <math.h>
#include <omp.h>

#include "math/row.h"

enum { BAND = 16 };                     /* channels that backward adds up at a time */

int nr_roi_level(const struct nr_roi_pick *p, int levels, const real box[4])
{
	const double area = ((double)box[2] - box[0]) * ((double)box[3] - box[1]);
	const double s = (area > 0 ? sqrt(area) : 0) / p->side;
	const double at = floor(p->at + (p->inside ? log2(s + 1e-6) : log2(s) + 1e-6));
	return at > 0 ? (int)fmin(at, levels - 1) : 0;
}

/* ---- places of a box ------------------------------------------------------------------------------------------------------- */

struct places { double x0, y0, dx, dy, weight; int64_t nx, ny; };       /* corner, size of a place, samples in it */
/* The order of these sums is torchvision's, so that what is exactly a half there is so here. */

static struct places places_of(const struct nr_roi *o, const real box[4], double scale)
{
	const double shift = o->aligned ? .5 : 0;
	struct places p = { .x0 = box[0] * scale - shift, .y0 = box[1] * scale - shift };
	double w = box[2] * scale - shift - p.x0, h = box[3] * scale - shift - p.y0;
	if (!o->aligned) w = fmax(w, 1), h = fmax(h, 1);
	p.dx = w / (double)o->w, p.dy = h / (double)o->h;
	p.nx = o->samples ? o->samples : (int64_t)ceil(p.dx);
	p.ny = o->samples ? o->samples : (int64_t)ceil(p.dy);
	p.weight = p.nx > 0 && p.ny > 0 ? 1 / (double)(p.nx * p.ny) : 0;
	return p;
}

struct taps { int64_t at[4]; double k[4]; };                            /* four pixels and their weights */

/* Bilinear at (y,x); false: more than a pixel outside. */
static int taps_of(int64_t h, int64_t w, double y, double x, double weight, struct taps *t)
{
	if (y < -1 || y > (double)h || x < -1 || x > (double)w) return 0;
	y = y > 0 ? y : 0;
	x = x > 0 ? x : 0;
	int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
	if (y0 >= h - 1) y0 = y1 = h - 1, y = (double)y0;
	if (x0 >= w - 1) x0 = x1 = w - 1, x = (double)x0;
	const double b = y - (double)y0, a = x - (double)x0;
	*t = (struct taps){ { y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1 },
		{ weight * (1 - b) * (1 - a), weight * (1 - b) * a, weight * b * (1 - a), weight * b * a } };
	return 1;
}

/* Sample s of place i. */
static int sample(const struct nr_roi *o, const struct places *p, int64_t h, int64_t w, int64_t i, int64_t s, struct taps *t)
{
	const double y = p->y0 + (double)(i / o->w) * p->dy + ((double)(s / p->nx) + .5) * p->dy / (double)p->ny;
	const double x = p->x0 + (double)(i % o->w) * p->dx + ((double)(s % p->nx) + .5) * p->dx / (double)p->nx;
	return taps_of(h, w, y, x, p->weight, t);
}

/* ---- forward --------------------------------------------------------------------------------------------------------------- */

void nr_roi_one(const struct nr_roi *o, int64_t h, int64_t w, int64_t C, const real *map, const real box[4], double scale, real *out)
{
	const struct places p = places_of(o, box, scale);
	struct taps t;
	for (int64_t i = 0; i < o->h * o->w; i++, out += C) {
		for (int64_t c = 0; c < C; c++) out[c] = 0;
		for (int64_t s = 0; s < p.nx * p.ny; s++) {
			if (!sample(o, &p, h, w, i, s, &t)) continue;
			const real *a = map + t.at[0] * C, *b = map + t.at[1] * C, *d = map + t.at[2] * C, *e = map + t.at[3] * C;
			const real ka = (real)t.k[0], kb = (real)t.k[1], kd = (real)t.k[2], ke = (real)t.k[3];
			for (int64_t c = 0; c < C; c++) out[c] += ka * a[c] + kb * b[c] + kd * d[c] + ke * e[c];
		}
	}
}

size_t nr_roi_scratch(const struct nr_roi_maps *m)
{
	return m->channels_first ? (size_t)(m->threads * m->roi.h * m->roi.w * m->C) * sizeof(real) : 0;
}

void nr_roi_forward(const struct nr_roi_maps *m, const real *const *map, const real *box, real *out, void *scratch)
{
	const int64_t P = m->roi.h * m->roi.w, C = m->C;
#pragma omp parallel for schedule(static) if (m->B * m->S > 1)
	for (int64_t r = 0; r < m->B * m->S; r++) {
		const int l = nr_roi_level(&m->pick, m->levels, box + 4 * r);
		const int64_t h = m->level[l].h, w = m->level[l].w;
		real *own = m->channels_first ? (real *)scratch + omp_get_thread_num() * P * C : out + r * P * C;
		nr_roi_one(&m->roi, h, w, C, map[l] + r / m->S * h * w * C, box + 4 * r, m->level[l].scale, own);
		for (int64_t i = 0; m->channels_first && i < P; i++)
			for (int64_t c = 0; c < C; c++) out[(r * C + c) * P + i] = own[i * C + c];
	}
}

/* ---- backward -------------------------------------------------------------------------------------------------------------- */

/* d (h,w,C) += the gradient g (BAND values of each place) spread over its taps, channels from .. from + n - 1. */
static void spread(const struct nr_roi_maps *m, const real *box, int l, const real *dout, int64_t from, int64_t n, real *d)
{
	const int64_t P = m->roi.h * m->roi.w, C = m->C, h = m->level[l].h, w = m->level[l].w;
	const struct places p = places_of(&m->roi, box, m->level[l].scale);
	struct taps t;
	for (int64_t i = 0; i < P; i++) {
		real g[BAND];
		int any = 0;
		for (int64_t c = 0; c < n; c++) {
			g[c] = m->channels_first ? dout[(from + c) * P + i] : dout[i * C + from + c];
			any |= g[c] != 0;
		}
		for (int64_t s = 0; any && s < p.nx * p.ny; s++) {
			if (!sample(&m->roi, &p, h, w, i, s, &t)) continue;
			for (int k = 0; k < 4; k++) {
				const real weight = (real)t.k[k];
				real *to = d + t.at[k] * C + from;
				for (int64_t c = 0; c < n; c++) to[c] += weight * g[c];
			}
		}
	}
}

void nr_roi_backward(const struct nr_roi_maps *m, const real *box, const real *dout, real *const *dmap, const uint8_t *add)
{
	const int64_t P = m->roi.h * m->roi.w, C = m->C, bands = (C + BAND - 1) / BAND;
#pragma omp parallel for schedule(static) if (m->B * bands > 1)
	for (int64_t q = 0; q < m->B * bands; q++) {
		const int64_t b = q / bands, from = q % bands * BAND, n = nr_min64(BAND, C - from);
		for (int l = 0; l < m->levels; l++)
			for (int64_t i = 0; dmap[l] && !add[l] && i < m->level[l].h * m->level[l].w; i++)
				for (int64_t c = 0; c < n; c++) dmap[l][(b * m->level[l].h * m->level[l].w + i) * C + from + c] = 0;
		for (int64_t r = b * m->S; r < (b + 1) * m->S; r++) {
			const int l = nr_roi_level(&m->pick, m->levels, box + 4 * r);
			if (dmap[l])
				spread(m, box + 4 * r, l, dout + r * P * C, from, n, dmap[l] + b * m->level[l].h * m->level[l].w * C);
		}
	}
}

/* ---- masks ----------------------------------------------------------------------------------------------------------------- */

void nr_roi_mask(const struct nr_roi *o, int64_t h, int64_t w, const uint8_t *bits, const real box[4], int threshold, real *out)
{
	struct places p = places_of(o, box, 1);
	const double count = p.nx > 0 && p.ny > 0 ? (double)(p.nx * p.ny) : 1;
	struct taps t;
	p.weight = 1;
	for (int64_t i = 0; i < o->h * o->w; i++) {
		double sum = 0;
		for (int64_t s = 0; s < p.nx * p.ny; s++) {
			double one = 0;
			if (!sample(o, &p, h, w, i, s, &t)) continue;
			for (int k = 0; k < 4; k++) one += bits[t.at[k] / 8] >> t.at[k] % 8 & 1 ? t.k[k] : 0;
			sum += one;
		}
		out[i] = threshold ? sum / count >= .5 : (real)(sum / count);
	}
}
