/* Colour operations with Pillow's arithmetic: blends in float and truncated, tables by channel, 8-bit HSV. */
#include "picture/augment.h"

#include <math.h>
#include <string.h>

static size_t bytes_of(const struct nr_picture *p) { return (size_t)p->h * (size_t)p->w * (size_t)p->channels; }

/* Image.blend: a + t (b - a), cut to 0..255 and truncated. Between 0 and 1 nothing needs to be cut. */
static inline uint8_t blend(int a, int b, float t)
{
	const float v = (float)a + t * (float)(b - a);
	return (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v);
}

/* A fixed grey level blended with each byte is a table. */
static void apply(struct nr_picture *p, const uint8_t table[256])
{
	const size_t n = bytes_of(p);
	for (size_t i = 0; i < n; i++) p->pixels[i] = table[p->pixels[i]];
}

static void blend_level(struct nr_picture *p, int level, float factor)
{
	uint8_t table[256];
	if (factor == 1) return;
	for (int v = 0; v < 256; v++) table[v] = blend(level, v, factor);
	apply(p, table);
}

void nr_brighten(struct nr_picture *p, float factor) { blend_level(p, 0, factor); }

void nr_contrast(struct nr_picture *p, float factor)
{
	const size_t n = (size_t)p->h * (size_t)p->w;
	uint64_t sum = 0;
	if (p->channels == 1)
		for (size_t i = 0; i < n; i++) sum += p->pixels[i];
	else
		for (size_t i = 0; i < n; i++) sum += nr_luma(p->pixels + 3 * i);
	blend_level(p, (int)((double)sum / (double)n + 0.5), factor);
}

void nr_saturate(struct nr_picture *p, float factor)
{
	if (p->channels == 1 || factor == 1) return;
	const size_t n = (size_t)p->h * (size_t)p->w;
	for (size_t i = 0; i < n; i++) {
		uint8_t *v = p->pixels + 3 * i;
		const int grey = nr_luma(v);
		for (int c = 0; c < 3; c++) v[c] = blend(grey, v[c], factor);
	}
}

/* ---- hue ---- */

static void to_hsv(const uint8_t rgb[3], uint8_t hsv[3])
{
	const int r = rgb[0], g = rgb[1], b = rgb[2];
	const int high = r > g ? (r > b ? r : b) : (g > b ? g : b), low = r < g ? (r < b ? r : b) : (g < b ? g : b);
	hsv[0] = hsv[1] = 0;
	hsv[2] = (uint8_t)high;
	if (high == low) return;
	const float range = (float)(high - low), s = range / (float)high;
	const float rc = (float)(high - r) / range, gc = (float)(high - g) / range, bc = (float)(high - b) / range;
	float h = r == high ? bc - gc : (float)(g == high ? 2.0 + (double)rc - (double)bc : 4.0 + (double)gc - (double)rc);
	const double turns = (double)h / 6.0 + 1.0;
	h = (float)(turns >= 1 ? turns - 1 : turns);    /* fmod(turns, 1): turns is in [5/6, 11/6] */
	hsv[0] = (uint8_t)(int)((double)h * 255.0);
	hsv[1] = (uint8_t)(int)((double)s * 255.0);
}

static void to_rgb(const uint8_t hsv[3], uint8_t rgb[3])
{
	const int v = hsv[2];
	const double at = hsv[0] * 6.0 / 255.0;
	const int sector = (int)at;
	const float f = (float)(at - sector), s = (float)(hsv[1] / 255.0);
	const int p = (int)round(v * (1.0 - (double)s)), q = (int)round(v * (1.0 - (double)(s * f)));
	const int t = (int)round(v * (1.0 - (double)s * (1.0 - (double)f)));
	const int all[6][3] = { { v, t, p }, { q, v, p }, { p, v, t }, { p, q, v }, { t, p, v }, { v, p, q } };
	for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(hsv[1] ? all[sector % 6][c] : v);
}

void nr_shift_hue(struct nr_picture *p, double turn)
{
	if (p->channels == 1) return;
	const size_t n = (size_t)p->h * (size_t)p->w;
	const uint8_t shift = (uint8_t)(int)(turn * 255);       /* wraps */
	for (size_t i = 0; i < n; i++) {
		uint8_t hsv[3];
		to_hsv(p->pixels + 3 * i, hsv);
		hsv[0] = (uint8_t)(hsv[0] + shift);
		to_rgb(hsv, p->pixels + 3 * i);
	}
}

/* ---- tables ---- */

void nr_invert(struct nr_picture *p) { nr_solarize(p, 0); }

void nr_posterize(struct nr_picture *p, int bits)
{
	uint8_t table[256];
	for (int v = 0; v < 256; v++) table[v] = (uint8_t)(v & ~((1 << (8 - bits)) - 1));
	apply(p, table);
}

void nr_solarize(struct nr_picture *p, int threshold)
{
	uint8_t table[256];
	for (int v = 0; v < 256; v++) table[v] = (uint8_t)(v < threshold ? v : 255 - v);
	apply(p, table);
}

void nr_solarize_add(struct nr_picture *p, int add)
{
	uint8_t table[256];
	for (int v = 0; v < 256; v++) table[v] = (uint8_t)(v >= 128 ? v : v + add > 255 ? 255 : v + add);
	apply(p, table);
}

/* One table per channel, made from the channel's histogram. */
static void by_histogram(struct nr_picture *p, void (*make)(const int64_t histogram[256], uint8_t table[256]))
{
	const size_t n = bytes_of(p), C = (size_t)p->channels;
	int64_t histogram[3][256] = { 0 };
	uint8_t table[3][256];
	for (size_t i = 0; i < n; i += C)
		for (size_t c = 0; c < C; c++) histogram[c][p->pixels[i + c]]++;
	for (size_t c = 0; c < C; c++) make(histogram[c], table[c]);
	for (size_t i = 0; i < n; i += C)
		for (size_t c = 0; c < C; c++) p->pixels[i + c] = table[c][p->pixels[i + c]];
}

/* From the darkest to the lightest level that occurs, stretched to 0..255. */
static void stretch(const int64_t histogram[256], uint8_t table[256])
{
	int low = 0, high = 255;
	while (low < 255 && !histogram[low]) low++;
	while (high > 0 && !histogram[high]) high--;
	const double scale = high > low ? 255.0 / (high - low) : 1, offset = high > low ? -low * scale : 0;
	for (int v = 0; v < 256; v++) {
		const int t = (int)(v * scale + offset);
		table[v] = (uint8_t)(t < 0 ? 0 : t > 255 ? 255 : t);
	}
}

void nr_autocontrast(struct nr_picture *p) { by_histogram(p, stretch); }

/* Each level moves to its rank, in steps of 1/255 of the pixels below the lightest level. */
static void flatten(const int64_t histogram[256], uint8_t table[256])
{
	int64_t all = 0, last = 0;
	for (int v = 0; v < 256; v++) {
		all += histogram[v];
		if (histogram[v]) last = histogram[v];
	}
	const int64_t step = (all - last) / 255;
	int64_t n = step / 2;
	for (int v = 0; v < 256; n += histogram[v++]) {
		const int64_t t = step ? n / step : v;
		table[v] = (uint8_t)(t > 255 ? 255 : t);
	}
}

void nr_equalize(struct nr_picture *p) { by_histogram(p, flatten); }

/* ---- sharpness: a blend with ImageFilter.SMOOTH, weights 1 and 5 in the middle over 13, whose border is the picture's ---- */

void nr_sharpen(const struct nr_picture *from, float factor, struct nr_picture *to)
{
	const int32_t h = from->h, w = from->w, C = from->channels;
	const ptrdiff_t line = (ptrdiff_t)w * C;
	const float side = 1.0f / 13.0f, middle = 5.0f / 13.0f;
	memcpy(to->pixels, from->pixels, bytes_of(from));
	if (factor == 1) return;
	for (int32_t y = 1; y < h - 1; y++)
		for (ptrdiff_t x = C; x < line - C; x++) {
			const uint8_t *p = from->pixels + y * line + x, *above = p - line, *below = p + line;
			float sum = 0.5f;
			sum += below[-C] * side + below[0] * side + below[C] * side;
			sum += p[-C] * side + p[0] * middle + p[C] * side;
			sum += above[-C] * side + above[0] * side + above[C] * side;
			const int smooth = sum >= 255 ? 255 : (int)sum;
			to->pixels[y * line + x] = blend(smooth, p[0], factor);
		}
}
