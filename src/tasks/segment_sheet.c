/* See segment_sheet.h. */
#include "tasks/segment_sheet.h"

#include <string.h>

enum { GAP = 2, LONG = 320, CELLS = 3 };
#define SHARE 0.65                              /* of a class's colour in a pixel */

void nr_segment_sheet_begin(struct nr_segment_sheet *s, int32_t classes, const uint8_t (*colour)[3])
{
	s->classes = classes;
	s->colour = colour;
	s->rows = 0;
}

void nr_segment_sheet_release(struct nr_segment_sheet *s)
{
	for (int i = 0; i < NR_SEGMENT_ROWS; i++) nr_picture_release(&s->row[i]);
}

/* A picture of `from` at a place of `to`. */
static void put(struct nr_picture *to, const struct nr_picture *from, int32_t y, int32_t x)
{
	for (int32_t i = 0; i < from->h; i++)
		memcpy(to->pixels + ((size_t)(y + i) * (size_t)to->w + (size_t)x) * 3, from->pixels + (size_t)i * (size_t)from->w * 3,
			(size_t)from->w * 3);
}

int nr_segment_sheet_see(void *sheet, int64_t i, const struct nr_picture *p, const struct nr_picture *truth, const struct nr_picture *map,
	struct nr_error *err)
{
	struct nr_segment_sheet *s = sheet;
	if (i >= NR_SEGMENT_ROWS) return NR_OK;
	const int32_t most = p->h > p->w ? p->h : p->w;
	const int32_t h = most > LONG ? (int32_t)((int64_t)p->h * LONG / most) : p->h,
		w = most > LONG ? (int32_t)((int64_t)p->w * LONG / most) : p->w;
	struct nr_picture small = { 0 }, cell = { 0 }, *row = &s->row[i];
	struct nr_resize_scratch scratch = { 0 };
	int code = nr_resize(p, NULL, h > 0 ? h : 1, w > 0 ? w : 1, NR_FILTER_BILINEAR, &small, &scratch, err);
	if (!code) code = nr_picture_resize(row, small.h, CELLS * (small.w + GAP) - GAP, 3, err);
	if (!code) memset(row->pixels, 255, (size_t)row->h * (size_t)row->w * 3);
	const struct nr_picture *of[CELLS] = { truth, truth, map };
	for (int k = 0; k < CELLS && !code; k++) {
		code = nr_overlay(&small, of[k], s->colour, k ? s->classes : 0, SHARE, &cell, err);
		if (!code) put(row, &cell, 0, k * (small.w + GAP));
	}
	s->rows = code ? s->rows : i + 1;
	nr_resize_scratch_release(&scratch);
	nr_picture_release(&small);
	nr_picture_release(&cell);
	return code;
}

int nr_segment_sheet_draw(const struct nr_segment_sheet *s, const char *path, struct nr_error *err)
{
	struct nr_picture sheet = { 0 };
	int32_t h = GAP, w = 0;
	for (int64_t i = 0; i < s->rows; i++) {
		h += s->row[i].h + GAP;
		w = s->row[i].w > w ? s->row[i].w : w;
	}
	if (!s->rows) return NR_OK;
	int code = nr_picture_resize(&sheet, h, w + 2 * GAP, 3, err);
	if (!code) memset(sheet.pixels, 255, (size_t)sheet.h * (size_t)sheet.w * 3);
	for (int64_t i = 0, y = GAP; i < s->rows && !code; y += s->row[i++].h + GAP) put(&sheet, &s->row[i], (int32_t)y, GAP);
	if (!code) code = nr_picture_write_png(&sheet, path, err);
	nr_picture_release(&sheet);
	return code;
}
