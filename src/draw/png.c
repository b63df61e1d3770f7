/* PNG: see png.h. One IDAT chunk, no filter; the sizes are those of tiles and small pictures. */
#include "draw/png.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "draw/html.h"

static void put32(unsigned char *to, uint32_t v)
{
	for (int i = 0; i < 4; i++) to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void add_chunk(struct nr_str *s, const char *type, const unsigned char *bytes, size_t size)
{
	unsigned char word[4];
	put32(word, (uint32_t)size);
	nr_str_add_n(s, (const char *)word, 4);
	nr_str_add_n(s, type, 4);
	if (size) nr_str_add_n(s, (const char *)bytes, size);
	uLong sum = crc32(0, (const unsigned char *)type, 4);
	if (size) sum = crc32(sum, bytes, (uInt)size);
	put32(word, (uint32_t)sum);
	nr_str_add_n(s, (const char *)word, 4);
}

/* Rows of zoomed pixels, each with the filter's number before it. */
static void spread(const struct nr_raster *r, int64_t zoom, unsigned char *to)
{
	const int64_t row = 1 + 3 * r->w * zoom;
	for (int64_t y = 0; y < r->h; y++) {
		unsigned char *first = to + y * zoom * row, *p = first;
		*p++ = 0;
		for (int64_t x = 0; x < r->w; x++)
			for (int64_t k = 0; k < zoom; k++, p += 3) memcpy(p, r->rgb + (y * r->w + x) * 3, 3);
		for (int64_t k = 1; k < zoom; k++) memcpy(first + k * row, first, (size_t)row);
	}
}

void nr_png_add(struct nr_str *s, const struct nr_raster *r, int64_t zoom)
{
	const size_t size = (size_t)((1 + 3 * r->w * zoom) * r->h * zoom);
	uLongf packed = compressBound((uLong)size);
	unsigned char *rows = malloc(size + 1), *idat = malloc(packed), head[13] = { 0 };
	if (rows && idat) spread(r, zoom, rows);
	if (!rows || !idat || compress2(idat, &packed, rows, (uLong)size, 6) != Z_OK) {
		s->failed = true;
	} else {
		put32(head, (uint32_t)(r->w * zoom));
		put32(head + 4, (uint32_t)(r->h * zoom));
		head[8] = 8;                            /* bits */
		head[9] = 2;                            /* RGB */
		nr_str_add_n(s, "\x89PNG\r\n\x1a\n", 8);
		add_chunk(s, "IHDR", head, sizeof head);
		add_chunk(s, "IDAT", idat, (size_t)packed);
		add_chunk(s, "IEND", NULL, 0);
	}
	free(rows);
	free(idat);
}

void nr_svg_image(struct nr_str *s, const struct nr_raster *r, double x, double y, double side_w, double side_h)
{
	if (r->w < 1 || r->h < 1) return;
	struct nr_str file = { 0 };
	nr_png_add(&file, r, (int64_t)fmax(1, round(2 * side_w / (double)r->w)));
	nr_str_printf(s, "<image x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" preserveAspectRatio=\"none\" ", x, y, side_w, side_h);
	nr_str_add(s, "href=\"data:image/png;base64,");
	nr_base64(s, file.text, file.len);
	nr_str_add(s, "\"/>");
	s->failed = s->failed || file.failed;
	nr_str_release(&file);
}
