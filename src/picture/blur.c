/* Gaussian blur as Pillow makes it: three box blurs along the rows, then three along the columns, each rounded to bytes. The box has a
 * fractional radius (Gwosdek et al. 2011, Eq. 7, 11 and 14): its two outermost pixels count in part. */
#include <math.h>
#include <string.h>

#include "picture/augment.h"

enum { PASSES = 3, ONE = 1 << 24 };

/* In single precision where Pillow is. */
static float box_radius(float radius)
{
	const float variance = radius * radius / PASSES, length = (float)sqrt(12.0 * (double)variance + 1.0);
	const float whole = (float)floor(((double)length - 1.0) / 2.0);
	float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
	part /= 6 * (variance - (whole + 1) * (whole + 1));
	return whole + part;
}

struct box { int32_t radius; uint32_t inner, outer; };  /* weights of the pixels inside and of the two outermost, of ONE */

static int32_t within(int32_t i, int32_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* n values, `step` apart; line: room for them. */
static void blur_line(uint8_t *x, int32_t n, ptrdiff_t step, const struct box *b, uint8_t *line)
{
	uint32_t sum = 0;
	for (int32_t i = 0; i < n; i++) line[i] = x[i * step];
	for (int32_t i = -b->radius; i <= b->radius; i++) sum += line[within(i, n)];
	for (int32_t i = 0; i < n; i++) {
		const uint32_t before = line[within(i - b->radius - 1, n)], after = line[within(i + b->radius + 1, n)];
		x[i * step] = (uint8_t)((sum * b->inner + (before + after) * b->outer + ONE / 2) / ONE);
		sum += after - line[within(i - b->radius, n)];
	}
}

int nr_blur(struct nr_picture *p, double radius, struct nr_picture *room, struct nr_error *err)
{
	const float r = box_radius((float)radius);
	struct box b = { .radius = (int32_t)r, .inner = (uint32_t)((float)ONE / (r * 2 + 1)) };
	b.outer = (ONE - (2 * (uint32_t)b.radius + 1) * b.inner) / 2;
	if (!(radius > 0)) return NR_OK;
	if (nr_picture_resize(room, 1, p->h > p->w ? p->h : p->w, 1, err)) return err->code;
	const ptrdiff_t C = p->channels, row = C * p->w;
	for (int32_t y = 0; y < p->h; y++)
		for (int32_t i = 0; i < C * PASSES; i++) blur_line(p->pixels + y * row + i % C, p->w, C, &b, room->pixels);
	for (ptrdiff_t x = 0; x < row; x++)
		for (int i = 0; i < PASSES; i++) blur_line(p->pixels + x, p->h, row, &b, room->pixels);
	return NR_OK;
}
