/* See mark.h. */
#include "picture/mark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture.h"

enum { LETTER_W = 5, LETTER_H = 7, FIRST = ' ', LAST = '~', COLOURS = 12, LEAST_SIDE = 384, MOST_ZOOM = 16 };
#define TINT 0.45                               /* of a mask */

/* Letters of 5 x 7 pixels, 5 bits for each row, the upper one first. */
static const uint64_t letters[LAST - FIRST + 1] = {
	0x0, 0x3a2111004, 0x3a2111004, 0x3a2111004, 0x3a2111004, 0x672222273, 0x32544564d, 0x318440000, 0x88842082, 0x208210888,
	0x3a2111004, 0x84f9080, 0x3088, 0xf8000, 0x18c, 0x42222210, 0x3a33ae62e, 0x11842108e, 0x3a211111f, 0x7c441062e, 0x8ca97c42,
	0x7e1e0862e, 0x1910f462e, 0x7c2221084, 0x3a317462e, 0x3a317844c, 0x18c03180, 0x3a2111004, 0x3a2111004, 0x3a2111004,
	0x3a2111004, 0x3a2111004, 0x3a2111004, 0x3a31fc631, 0x7a31f463e, 0x3a308422e, 0x7a318c63e, 0x7e10f421f, 0x7e10f4210,
	0x3a30bc62f, 0x4631fc631, 0x38842108e, 0x1c4210a4c, 0x4654c5251, 0x42108421f, 0x4775ac631, 0x4735ace31, 0x3a318c62e,
	0x7a31f4210, 0x3a318d64d, 0x7a31f5251, 0x3e107043e, 0x7c8421084, 0x46318c62e, 0x46318c544, 0x4631ad771, 0x462a22a31,
	0x462a21084, 0x7c222221f, 0x3a2111004, 0x3a2111004, 0x3a2111004, 0x3a2111004, 0x1f, 0x3a2111004, 0xe0be2f, 0x4216cc63e,
	0xe8422e, 0x42d9c62f, 0xe8fe0e, 0x1928e2108, 0xf8bc2e, 0x4216cc631, 0x100c2108e, 0x80610a4c, 0x4212a6292, 0x30842108e,
	0x1aad631, 0x16cc631, 0xe8c62e, 0x1e8fa10, 0xf8bc21, 0x16cc210, 0xe8383e, 0x211c42126, 0x118c66d, 0x118c544, 0x118d6aa,
	0x1151151, 0x118bc2e, 0x1f1111f, 0x3a2111004, 0x3a2111004, 0x3a2111004, 0x3a2111004,
};
static const uint8_t palette[COLOURS][3] = { { 230, 57, 53 }, { 30, 136, 229 }, { 67, 160, 71 }, { 251, 192, 45 }, { 142, 36, 170 },
	{ 0, 172, 193 }, { 244, 81, 30 }, { 216, 27, 96 }, { 124, 179, 66 }, { 57, 73, 171 }, { 0, 137, 123 }, { 109, 76, 65 } };

struct brush { struct nr_picture *p; const uint8_t *colour; int32_t wide; };   /* wide: pixels of a line */

static void dot(const struct nr_picture *p, int64_t x, int64_t y, const uint8_t colour[3])
{
	if (x >= 0 && y >= 0 && x < p->w && y < p->h) memcpy(p->pixels + (y * p->w + x) * 3, colour, 3);
}

static void fill(const struct nr_picture *p, int64_t x0, int64_t y0, int64_t w, int64_t h, const uint8_t colour[3])
{
	for (int64_t y = y0 > 0 ? y0 : 0; y < y0 + h && y < p->h; y++)
		for (int64_t x = x0 > 0 ? x0 : 0; x < x0 + w && x < p->w; x++) dot(p, x, y, colour);
}

static int64_t clamped(double x, int64_t most) { return x < 0 || isnan(x) ? 0 : x > (double)most ? most : (int64_t)(x + .5); }

/* Along the inner edge, dotted or not. */
static void frame(const struct brush *b, int64_t x0, int64_t y0, int64_t x1, int64_t y1, bool dotted)
{
	const int64_t period = 4 * b->wide;
	for (int64_t y = y0; y < y1; y++)
		for (int64_t x = x0; x < x1; x++) {
			const bool flat = y < y0 + b->wide || y >= y1 - b->wide, steep = x < x0 + b->wide || x >= x1 - b->wide;
			if (!flat && !steep) {
				x = x1 - b->wide - 1 > x ? x1 - b->wide - 1 : x;
				continue;
			}
			if (!dotted || ((flat ? x - x0 : y - y0) % period) * 2 < period) dot(b->p, x, y, b->colour);
		}
}

/* Pixels of the mask take on the colour; those at its edge get it whole. */
static int tint(const struct brush *b, const struct nr_rle *mask, int32_t zoom, struct nr_error *err)
{
	const int64_t h = mask->h, w = mask->w;
	uint8_t *in = malloc((size_t)(h * w));
	if (!in) return nr_fail(err, NR_EMEMORY, "cannot draw a mask", NULL, "out of memory");
	nr_rle_to_mask(mask, in);
	for (int64_t y = 0; y < h * zoom; y++)
		for (int64_t x = 0; x < w * zoom; x++) {
			const int64_t my = y / zoom, mx = x / zoom;
			if (!in[my * w + mx]) continue;
			const bool edge = (y % zoom == 0 && (my == 0 || !in[(my - 1) * w + mx])) ||
				(x % zoom == 0 && (mx == 0 || !in[my * w + mx - 1])) ||
				(y % zoom == zoom - 1 && (my == h - 1 || !in[(my + 1) * w + mx])) ||
				(x % zoom == zoom - 1 && (mx == w - 1 || !in[my * w + mx + 1]));
			uint8_t *p = b->p->pixels + (y * b->p->w + x) * 3;
			for (int k = 0; k < 3; k++)
				p[k] = edge ? b->colour[k] : (uint8_t)(p[k] + TINT * (b->colour[k] - p[k]));
		}
	free(in);
	return NR_OK;
}

/* Above the box if there is room, else inside; never beyond the picture's edges if it fits. */
static void name(const struct brush *b, const char *text, int64_t x, int64_t y)
{
	static const uint8_t black[3] = { 0, 0, 0 }, white[3] = { 255, 255, 255 };
	const int64_t size = b->wide, high = (LETTER_H + 2) * size;
	int64_t count = 0;
	for (const char *c = text; *c; c++) count += (*c & 0xC0) != 0x80;       /* UTF-8: not what follows a first byte */
	const int64_t wide = (count * (LETTER_W + 1) + 1) * size;
	y = y >= high ? y - high : y;
	x = x + wide > b->p->w ? b->p->w - wide : x;
	x = x < 0 ? 0 : x;
	fill(b->p, x, y, wide, high, b->colour);
	const uint8_t *ink = nr_luma(b->colour) > 140 ? black : white;
	for (x += size; *text; text++) {
		if ((*text & 0xC0) == 0x80) continue;
		const uint64_t bits = letters[(*text >= FIRST && *text <= LAST ? *text : '?') - FIRST];
		for (int row = 0; row < LETTER_H; row++)
			for (int k = 0; k < LETTER_W; k++)
				if (bits >> (LETTER_W * (LETTER_H - 1 - row) + LETTER_W - 1 - k) & 1)
					fill(b->p, x + k * size, y + (row + 1) * size, size, size, ink);
		x += (LETTER_W + 1) * size;
	}
}

static int enlarge(const struct nr_picture *from, int32_t zoom, struct nr_picture *to, struct nr_error *err)
{
	if ((int64_t)from->h * zoom > NR_PICTURE_SIDE || (int64_t)from->w * zoom > NR_PICTURE_SIDE)
		return nr_fail(err, NR_ELIMIT, "cannot draw objects", NULL, "a picture of %d x %d pixels cannot be made %d times as large",
			from->w, from->h, zoom);
	if (nr_picture_resize(to, from->h * zoom, from->w * zoom, 3, err)) return err ? (int)err->code : NR_EMEMORY;
	for (int64_t y = 0; y < to->h; y++)
		for (int64_t x = 0; x < to->w; x++)
			for (int k = 0; k < 3; k++)
				to->pixels[(y * to->w + x) * 3 + k] =
					from->pixels[((y / zoom) * from->w + x / zoom) * from->channels + (from->channels == 3 ? k : 0)];
	return NR_OK;
}

int nr_picture_mark(const struct nr_picture *from, const struct nr_mark_of *mark, int64_t n, int32_t zoom, struct nr_picture *to,
	struct nr_error *err)
{
	const int32_t longer = from->h > from->w ? from->h : from->w;
	if (zoom < 1) zoom = longer < 1 ? 1 : (LEAST_SIDE + longer - 1) / longer;
	if (zoom > MOST_ZOOM) zoom = MOST_ZOOM;
	int code = enlarge(from, zoom, to, err);
	struct brush b = { .p = to, .wide = longer * zoom / 512 + 1 };
	for (int turn = 0; turn < 3 && !code; turn++)           /* masks below boxes below names */
		for (int64_t i = 0; i < n && !code; i++) {
			const struct nr_mark_of *m = &mark[i];
			const double *q = m->xywh;
			const int64_t x0 = clamped(q[0] * zoom, to->w), y0 = clamped(q[1] * zoom, to->h);
			const int64_t x1 = clamped((q[0] + q[2]) * zoom, to->w), y1 = clamped((q[1] + q[3]) * zoom, to->h);
			b.colour = palette[(uint32_t)m->label % COLOURS];
			if (turn == 0 && m->mask && m->mask->h == from->h && m->mask->w == from->w) code = tint(&b, m->mask, zoom, err);
			if (turn == 1) frame(&b, x0, y0, x1, y1, m->faint);
			if (turn == 2 && m->text && *m->text) name(&b, m->text, x0, y0);
		}
	return code;
}
