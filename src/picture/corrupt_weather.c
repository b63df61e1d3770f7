/* Weather and light. */
#include <math.h>
#include <string.h>

#include "picture/corrupt_inner.h"
#include "picture/picture.h"

static double luma(const double *p, int32_t channels)
{
	return channels == 3 ? 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] : *p;
}

/* ---- snow: bright flakes of noise, enlarged, moved in the wind; the picture itself gets paler ---- */

static void fall(struct nr_corrupting *k, const struct nr_field *flakes, struct nr_field *room)
{
	const int64_t n = nr_field_len(flakes);
	for (int64_t i = 0; i < n; i++) {
		const double v = flakes->v[i] < k->c[3] ? 0 : flakes->v[i];
		flakes->v[i] = (uint8_t)((v > 1 ? 1 : v) * 255) / 255.0;
	}
	nr_motion_blur(flakes, k->c[4], k->c[5], nr_draw_between(&k->draws, -135, -45), room);
	for (int64_t i = 0; i < n; i++) flakes->v[i] = (uint8_t)floor(room->v[i] * 255 + 0.5) / 255.0;
}

int nr_snow(struct nr_corrupting *k)
{
	const int32_t C = k->x.c;
	const int64_t n = (int64_t)k->x.h * k->x.w;
	struct nr_field small = { k->x.h, k->x.w, 1, nr_corrupt_room(k, 1, n) }, flakes = { k->x.h, k->x.w, 1, nr_corrupt_room(k, 2, n) };
	if (!small.v || !flakes.v) return k->err->code;
	for (int64_t i = 0; i < n; i++) small.v[i] = k->c[0] + k->c[1] * nr_rng_normal(k->draws.rng, (uint64_t)i);
	memset(flakes.v, 0, (size_t)n * sizeof *flakes.v);
	nr_add_zoomed(&small, k->c[2], false, &flakes);
	fall(k, &flakes, &small);
	for (int64_t i = 0; i < n; i++) {
		double *p = k->x.v + i * C;
		const double pale = luma(p, C) * 1.5 + 0.5, snow = flakes.v[i] + flakes.v[n - 1 - i];
		for (int32_t c = 0; c < C; c++) p[c] = k->c[6] * p[c] + (1 - k->c[6]) * (p[c] > pale ? p[c] : pale) + snow;
	}
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- fog: a plasma fractal by diamonds and squares on a torus ---- */

static double *at(double *map, int32_t side, int32_t y, int32_t x)
{
	return map + (int64_t)((y + side) % side) * side + (x + side) % side;
}

void nr_plasma(struct nr_rng rng, double decay, int32_t side, double *map)
{
	uint64_t draws = 0;
	double wibble = 100, low, high;
	map[0] = 0;
	for (int32_t step = side; step >= 2; step /= 2, wibble /= decay) {
		const int32_t half = step / 2;
		const double amount = wibble * wibble;
		for (int32_t y = 0; y < side; y += step)
			for (int32_t x = 0; x < side; x += step)
				*at(map, side, y + half, x + half) = (*at(map, side, y, x) + *at(map, side, y + step, x) +
					*at(map, side, y, x + step) + *at(map, side, y + step, x + step)) / 4 +
					amount * (2 * (double)nr_rng_uniform(rng, draws++) - 1);
		for (int32_t y = 0; y < side; y += half)
			for (int32_t x = y / half % 2 ? 0 : half; x < side; x += step)
				*at(map, side, y, x) = (*at(map, side, y - half, x) + *at(map, side, y + half, x) +
					*at(map, side, y, x - half) + *at(map, side, y, x + half)) / 4 +
					amount * (2 * (double)nr_rng_uniform(rng, draws++) - 1);
	}
	low = high = map[0];
	for (int64_t i = 0; i < (int64_t)side * side; i++) low = fmin(low, map[i]), high = fmax(high, map[i]);
	for (int64_t i = 0; i < (int64_t)side * side; i++) map[i] = high > low ? (map[i] - low) / (high - low) : 0;
}

void nr_add_fog(struct nr_field *x, const double *map, int32_t side, double amount)
{
	const int64_t n = nr_field_len(x);
	double most = 0;
	for (int64_t i = 0; i < n; i++) most = fmax(most, x->v[i]);
	for (int64_t i = 0; i < n; i++) {
		const int64_t p = i / x->c;
		x->v[i] = (x->v[i] + amount * map[p / x->w * side + p % x->w]) * most / (most + amount);
	}
}

/* A power of two that covers the picture. */
static int32_t map_side(const struct nr_corrupting *k)
{
	int32_t side = k->how->setting == NR_CORRUPT_32 ? 32 : 256;
	while (side < k->x.h || side < k->x.w) side *= 2;
	return side;
}

int nr_fog(struct nr_corrupting *k)
{
	const int32_t side = map_side(k);
	double *map = nr_corrupt_room(k, 1, (int64_t)side * side);
	if (!map) return k->err->code;
	nr_plasma(k->draws.rng, k->c[1], side, map);
	nr_add_fog(&k->x, map, side, k->c[0]);
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- frost ---- */

void nr_add_frost(struct nr_field *x, const struct nr_field *frost, double share, double of_frost)
{
	const int64_t n = nr_field_len(x);
	for (int64_t i = 0; i < n; i++) x->v[i] = share * x->v[i] + of_frost * frost->v[i];
}

/* A random part of a random photograph; at 32 px photographs are a fifth as large, by every fifth pixel. */
static int cut_frost(struct nr_corrupting *k, struct nr_field *frost)
{
	enum { DRAWN = 5 };                                     /* the published code has six and draws from five */
	const struct nr_frost *f = k->how->frost;
	const struct nr_picture *photo = &f->photo[nr_draw_below(&k->draws, f->count < DRAWN ? f->count : DRAWN)];
	const int32_t step = k->how->setting == NR_CORRUPT_32 ? 5 : 1, h = photo->h / step, w = photo->w / step, C = frost->c;
	if (h <= frost->h || w <= frost->w)
		return nr_fail(k->err, NR_ESHAPE, "cannot use a photograph of frost", NULL,
			"%d x %d pixels are too few for pictures of %d x %d", (int)photo->w, (int)photo->h, (int)frost->w, (int)frost->h);
	const int32_t top = nr_draw_below(&k->draws, h - frost->h), left = nr_draw_below(&k->draws, w - frost->w);
	for (int32_t y = 0; y < frost->h; y++)
		for (int32_t x = 0; x < frost->w; x++) {
			const int64_t row = (top + y) * step + step / 2, column = (left + x) * step + step / 2;
			const uint8_t *p = photo->pixels + 3 * (row * photo->w + column);
			double *to = frost->v + ((int64_t)y * frost->w + x) * C;
			for (int32_t c = 0; c < C; c++) to[c] = (C == 3 ? p[c] : nr_luma(p)) / 255.0;
		}
	return NR_OK;
}

/* Ours: bluish plasma with bright needles in three directions. No photograph, so that its figures compare with no one's. */
static int grow_frost(struct nr_corrupting *k, struct nr_field *frost)
{
	static const double tint[3] = { 0.86, 0.95, 1 }, angles[3] = { 20, 80, 140 };
	const int32_t side = map_side(k), C = frost->c, h = frost->h, w = frost->w;
	const double radius = k->how->setting == NR_CORRUPT_32 ? 4 : 20;
	const int64_t n = (int64_t)h * w;
	double *map = nr_corrupt_room(k, 2, (int64_t)side * side);
	struct nr_field seeds = { h, w, 1, nr_corrupt_room(k, 3, n) }, grown = { h, w, 1, nr_corrupt_room(k, 4, n) };
	if (!map || !seeds.v || !grown.v) return k->err->code;
	nr_plasma(k->draws.rng, 1.7, side, map);
	for (int64_t i = 0; i < n * C; i++) {
		const int64_t p = i / C;
		frost->v[i] = (0.25 + 0.55 * map[p / w * side + p % w]) * (C == 3 ? tint[i % C] : 1);
	}
	for (uint64_t a = 0; a < 3; a++) {
		for (int64_t i = 0; i < n; i++)
			seeds.v[i] = nr_rng_uniform(k->draws.rng, ((a + 1) << 36) + (uint64_t)i) < 0.04f ? 3 : 0;
		nr_motion_blur(&seeds, radius, radius, angles[a] + nr_draw_between(&k->draws, -15, 15), &grown);
		for (int64_t i = 0; i < n * C; i++) frost->v[i] += 0.6 * grown.v[i / C];
	}
	for (int64_t i = 0; i < n * C; i++) frost->v[i] = fmin(frost->v[i], 1);
	return NR_OK;
}

int nr_frosted(struct nr_corrupting *k)
{
	struct nr_field frost = k->x;
	if (!(frost.v = nr_corrupt_room(k, 1, nr_field_len(&frost)))) return k->err->code;
	const int code = k->how->frost ? cut_frost(k, &frost) : grow_frost(k, &frost);
	if (code) return code;
	nr_add_frost(&k->x, &frost, k->c[0], k->c[1]);
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}

/* ---- brightness: more of the value of HSV, by scikit-image's formulas ---- */

static void brighten(double *p, double by)
{
	const double most = fmax(p[0], fmax(p[1], p[2])), least = fmin(p[0], fmin(p[1], p[2])), range = most - least;
	double hue = 0;
	if (p[0] == most) hue = (p[1] - p[2]) / range;
	if (p[1] == most) hue = 2 + (p[2] - p[0]) / range;
	if (p[2] == most) hue = 4 + (p[0] - p[1]) / range;
	hue = range > 0 ? hue / 6 - floor(hue / 6) : 0;
	const double s = range > 0 ? range / most : 0, v = fmin(most + by, 1), whole = floor(hue * 6), f = hue * 6 - whole;
	const double low = v * (1 - s), down = v * (1 - f * s), up = v * (1 - (1 - f) * s);
	const double all[6][3] = { { v, up, low }, { down, v, low }, { low, v, up }, { low, down, v }, { up, low, v }, { v, low, down } };
	memcpy(p, all[(int)whole % 6], 3 * sizeof *p);
}

int nr_brightness(struct nr_corrupting *k)
{
	const int64_t n = (int64_t)k->x.h * k->x.w;
	for (int64_t i = 0; i < n; i++)
		if (k->x.c == 3) brighten(k->x.v + 3 * i, k->c[0]);
		else k->x.v[i] += k->c[0];
	nr_corrupt_put(k->p, &k->x);
	return NR_OK;
}
