/* Blurs. */
#include <math.h>
#include <string.h>

#include "picture/corrupt_inner.h"

int32_t nr_border(int32_t i, int32_t n, enum nr_border kind)
{
	if (kind == NR_BORDER_EDGE || n == 1) return i < 0 ? 0 : i < n ? i : n - 1;
	const int32_t inside = kind == NR_BORDER_MIRROR_INSIDE, period = 2 * (n - inside);
	i = (i % period + period) % period;
	return i < n ? i : period - 1 + inside - i;
}

/* ---- Gaussian ---- */

int64_t nr_smooth_room(const struct nr_field *x)
{
	const int64_t side = x->h > x->w ? x->h : x->w;
	return side * side + nr_field_len(x);
}

/* weight (n,n): what each place takes from each, the border folded in; *reach: how far from the diagonal that is. */
static void fold_gaussian(int32_t n, double sigma, int32_t radius, enum nr_border border, double *weight)
{
	double sum = 0;
	for (int32_t d = -radius; d <= radius; d++) sum += exp(-0.5 * d * d / (sigma * sigma));
	memset(weight, 0, (size_t)n * (size_t)n * sizeof *weight);
	for (int32_t d = -radius; d <= radius; d++) {
		const double w = exp(-0.5 * d * d / (sigma * sigma)) / sum;
		for (int32_t i = 0; i < n; i++) weight[(int64_t)i * n + nr_border(i + d, n, border)] += w;
	}
}

/* Of (outer,n,inner) each i becomes the weighted sum over its neighbours. */
static void mix(int64_t outer, int32_t n, int64_t inner, int32_t radius, const double *weight, const double *x, double *y)
{
	for (int64_t o = 0; o < outer; o++)
		for (int32_t i = 0; i < n; i++) {
			double *out = y + (o * n + i) * inner;
			const int32_t from = i > radius ? i - radius : 0, to = i < n - 1 - radius ? i + radius : n - 1;
			memset(out, 0, (size_t)inner * sizeof *out);
			for (int32_t j = from; j <= to; j++) {
				const double w = weight[(int64_t)i * n + j], *in = x + (o * n + j) * inner;
				for (int64_t q = 0; q < inner; q++) out[q] += w * in[q];
			}
		}
}

void nr_smooth(struct nr_field *x, double sigma, double truncate, enum nr_border border, double *room)
{
	const int32_t radius = (int32_t)(truncate * sigma + 0.5);
	double *other = room + (x->h > x->w ? (int64_t)x->h * x->h : (int64_t)x->w * x->w);
	if (radius < 1) return;
	fold_gaussian(x->h, sigma, radius, border, room);
	mix(1, x->h, (int64_t)x->w * x->c, radius, room, x->v, other);
	fold_gaussian(x->w, sigma, radius, border, room);
	mix(x->h, x->w, x->c, radius, room, other, x->v);
}

/* ---- defocus ---- */

int32_t nr_disk(double radius, double sigma, double *kernel)
{
	const int32_t reach = radius <= 8 ? 8 : (int32_t)radius, side = 2 * reach + 1, edge = radius <= 8 ? 1 : 2;
	if (!kernel) return side;
	double disk[64 * 64], soft[5] = { 0 }, count = 0, sum = 0;
	for (int32_t i = 0; i < side * side; i++) {
		const int32_t y = i / side - reach, x = i % side - reach;
		disk[i] = x * x + y * y <= radius * radius;
		count += disk[i];
	}
	for (int32_t d = -edge; d <= edge; d++) sum += soft[d + edge] = exp(-0.5 * d * d / (sigma * sigma));
	for (int32_t i = 0; i < side * side; i++) {
		kernel[i] = 0;
		for (int32_t a = -edge; a <= edge; a++)
			for (int32_t b = -edge; b <= edge; b++) {
				const int32_t y = nr_border(i / side + a, side, NR_BORDER_MIRROR_INSIDE);
				const int32_t x = nr_border(i % side + b, side, NR_BORDER_MIRROR_INSIDE);
				kernel[i] += soft[a + edge] * soft[b + edge] / (sum * sum) * disk[y * side + x] / count;
			}
	}
	return side;
}

/* Taps that are zero, most of the small disks', cost nothing. */
void nr_correlate(const struct nr_field *x, const double *kernel, int32_t side, struct nr_field *to)
{
	const int32_t reach = side / 2, C = x->c;
	memset(to->v, 0, (size_t)nr_field_len(to) * sizeof *to->v);
	for (int32_t i = 0; i < side * side; i++) {
		const int32_t dy = i / side - reach, dx = i % side - reach;
		const double w = kernel[i];
		if (w < 1e-12) continue;
		for (int32_t y = 0; y < x->h; y++) {
			const double *in = x->v + (int64_t)nr_border(y + dy, x->h, NR_BORDER_MIRROR_INSIDE) * x->w * C;
			double *out = to->v + (int64_t)y * x->w * C;
			const int32_t from = dx < 0 ? -dx : 0, end = dx > 0 ? x->w - dx : x->w;
			for (int32_t q = 0; q < x->w; q++) {
				if (q >= from && q < end) continue;
				const double *p = in + nr_border(q + dx, x->w, NR_BORDER_MIRROR_INSIDE) * C;
				for (int32_t c = 0; c < C; c++) out[q * C + c] += w * p[c];
			}
			for (int32_t q = from * C; q < end * C; q++) out[q] += w * in[q + dx * C];
		}
	}
}

int nr_defocus_blur(struct nr_corrupting *k)
{
	struct nr_field y = k->x;
	const int32_t side = nr_disk(k->c[0], k->c[1], NULL);
	double *kernel = nr_corrupt_room(k, 2, side * side);
	if (!kernel || !(y.v = nr_corrupt_room(k, 1, nr_field_len(&y)))) return k->err->code;
	nr_disk(k->c[0], k->c[1], kernel);
	nr_correlate(&k->x, kernel, side, &y);
	nr_corrupt_put(k->p, &y);
	return NR_OK;
}

/* ---- glass: as published, pixels are copied where the text says that they are swapped ---- */

static void copy_about(struct nr_field *b, int32_t shift, int32_t rounds, const int32_t *dx, const int32_t *dy)
{
	const int32_t C = b->c;
	for (int32_t r = 0; r < rounds; r++)
		for (int32_t y = b->h - shift; y > shift; y--)
			for (int32_t x = b->w - shift; x > shift; x--) {
				const int64_t at = ((int64_t)r * b->h + y) * b->w + x;
				const double *from = b->v + ((int64_t)(y + dy[at]) * b->w + x + dx[at]) * C;
				memmove(b->v + ((int64_t)y * b->w + x) * C, from, (size_t)C * sizeof *from);
			}
}

void nr_glass(struct nr_field *x, double sigma, int32_t shift, int32_t rounds, const int32_t *dx, const int32_t *dy, double *room)
{
	const int64_t n = nr_field_len(x);
	nr_smooth(x, sigma, 4, NR_BORDER_EDGE, room);
	for (int64_t i = 0; i < n; i++) x->v[i] = floor(x->v[i] * 255) / 255;
	copy_about(x, shift, rounds, dx, dy);
	nr_smooth(x, sigma, 4, NR_BORDER_EDGE, room);
}

int nr_glass_blur(struct nr_corrupting *k)
{
	const int32_t shift = (int32_t)k->c[1], rounds = (int32_t)k->c[2];
	const int64_t each = (int64_t)rounds * k->x.h * k->x.w;
	double *room = nr_corrupt_room(k, 1, nr_smooth_room(&k->x));
	int32_t *dx = (int32_t *)(void *)nr_corrupt_room(k, 2, each), *dy = dx ? dx + each : NULL;
	if (!room || !dx) return k->err->code;
	for (int64_t i = 0; i < 2 * each; i++) dx[i] = (int32_t)nr_rng_below(k->draws.rng, (uint64_t)i, (uint64_t)(2 * shift)) - shift;
	nr_glass(&k->x, k->c[0], shift, rounds, dx, dy, room);
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- motion: ImageMagick's, half a Gaussian along a line ---- */

void nr_motion_blur(const struct nr_field *x, double radius, double sigma, double degrees, struct nr_field *to)
{
	const int32_t taps = 2 * (int32_t)ceil(radius) + 1, C = x->c;
	const double angle = degrees * M_PI / 180;
	double sum = 0;
	for (int32_t i = 0; i < taps; i++) sum += exp(-0.5 * i * i / (sigma * sigma));
	memset(to->v, 0, (size_t)nr_field_len(to) * sizeof *to->v);
	for (int32_t i = 0; i < taps; i++) {
		const double w = exp(-0.5 * i * i / (sigma * sigma)) / sum;
		const int32_t dx = (int32_t)ceil(i * cos(angle) - 0.5), dy = (int32_t)ceil(i * sin(angle) - 0.5);
		for (int32_t y = 0; y < x->h; y++) {
			const double *in = x->v + (int64_t)nr_border(y + dy, x->h, NR_BORDER_EDGE) * x->w * C;
			double *out = to->v + (int64_t)y * x->w * C;
			for (int32_t q = 0; q < x->w; q++) {
				const double *p = in + nr_border(q + dx, x->w, NR_BORDER_EDGE) * C;
				for (int32_t c = 0; c < C; c++) out[q * C + c] += w * p[c];
			}
		}
	}
}

int nr_motion_blurred(struct nr_corrupting *k)
{
	struct nr_field y = k->x;
	const int64_t n = nr_field_len(&y);
	if (!(y.v = nr_corrupt_room(k, 1, n))) return k->err->code;
	nr_motion_blur(&k->x, k->c[0], k->c[1], nr_draw_between(&k->draws, -45, 45), &y);
	for (int64_t i = 0; i < n; i++) k->p->pixels[i] = (uint8_t)(y.v[i] * 255 + 0.5);   /* ImageMagick rounds */
	return NR_OK;
}

/* ---- zoom ---- */

int32_t nr_zoom_count(double stop, double step) { return (int32_t)ceil((stop - 1) / step); }
double nr_zoom_factor(int32_t i, double step) { return 1 + i * ((1 + step) - 1); }

/* Where scipy's zoom puts place i of n, among `of` places; -1: rounding moved it behind the last one, which gives 0. */
static double place(int32_t i, int32_t n, int32_t of)
{
	const double at = n > 1 ? i * ((double)(of - 1) / (n - 1)) : 0;
	return at > of - 1 ? -1 : at;
}

struct line { int32_t cut, big, first, trim; };                 /* the part that is enlarged, to which size, what of it is kept */

static struct line line_of(int32_t n, double zoom)
{
	const int32_t cut = (int32_t)ceil(n / zoom), big = (int32_t)rint(cut * zoom);
	return (struct line){ cut, big, (n - cut) / 2, (big - n) / 2 };
}

void nr_add_zoomed(const struct nr_field *x, double zoom, bool single, struct nr_field *to)
{
	const struct line v = line_of(x->h, zoom), u = line_of(x->w, zoom);
	const int32_t C = x->c;
	for (int32_t y = 0; y < x->h; y++)
		for (int32_t q = 0; q < x->w; q++) {
			const double py = place(y + v.trim, v.big, v.cut), px = place(q + u.trim, u.big, u.cut);
			if (py < 0 || px < 0) continue;
			const int32_t y0 = (int32_t)py, x0 = (int32_t)px;
			const int32_t y1 = y0 + 1 < v.cut ? y0 + 1 : y0, x1 = x0 + 1 < u.cut ? x0 + 1 : x0;
			const double fy = py - y0, fx = px - x0;
			const double *a = x->v + ((int64_t)(v.first + y0) * x->w + u.first) * C;
			const double *b = x->v + ((int64_t)(v.first + y1) * x->w + u.first) * C;
			double *out = to->v + ((int64_t)y * x->w + q) * C;
			for (int32_t c = 0; c < C; c++) {
				const double sum = (1 - fy) * ((1 - fx) * a[x0 * C + c] + fx * a[x1 * C + c]) +
					fy * ((1 - fx) * b[x0 * C + c] + fx * b[x1 * C + c]);
				out[c] = single ? (double)((float)out[c] + (float)sum) : out[c] + sum;
			}
		}
}

int nr_zoom_blur(struct nr_corrupting *k)
{
	const int32_t count = nr_zoom_count(k->c[0], k->c[1]);
	const int64_t n = nr_field_len(&k->x);
	struct nr_field y = k->x;
	if (!(y.v = nr_corrupt_room(k, 1, n))) return k->err->code;
	for (int64_t i = 0; i < n; i++) k->x.v[i] = (double)((float)k->p->pixels[i] / 255.0f);
	memset(y.v, 0, (size_t)n * sizeof *y.v);
	for (int32_t i = 0; i < count; i++) nr_add_zoomed(&k->x, nr_zoom_factor(i, k->c[1]), true, &y);
	for (int64_t i = 0; i < n; i++) {
		const float v = ((float)k->x.v[i] + (float)y.v[i]) / (float)(count + 1);
		k->p->pixels[i] = (uint8_t)((v < 0 ? 0 : v > 1 ? 1 : v) * 255);
	}
	return NR_OK;
}
