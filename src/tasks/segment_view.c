/* See segment_view.h. Label maps are read at the nearest place, pictures bilinearly. */
#include "tasks/segment_view.h"

#include <math.h>
#include <string.h>

#include "picture/augment.h"

enum { TRIES = 10 };

struct nr_segment_maker nr_segment_maker_of(const struct nr_augment *a, const struct nr_source *s)
{
	static char none[] = "";
	struct nr_segment_maker m = { .size = (int32_t)a->size, .zoom_min = 1, .zoom_max = 1, .most = 1, .flip = a->flip, .colours = *a,
		.stats = nr_source_pixel_stats(s) };
	m.colours.crop = NR_CROP_NONE;
	m.colours.flip = m.colours.erase = 0;
	m.colours.randaugment = none;
	return m;
}

struct cut { int32_t h, w, y, x, rows, cols; bool mirrored; };      /* of a picture of h x w; rows, cols: of the square that it fills */

static struct cut draw_cut(const struct nr_segment_maker *m, int32_t h, int32_t w, struct nr_draws *d)
{
	struct cut c = { .h = h, .w = w, .rows = h < m->size ? h : m->size, .cols = w < m->size ? w : m->size };
	c.y = nr_draw_below(d, h - c.rows + 1);
	c.x = nr_draw_below(d, w - c.cols + 1);
	return c;
}

/* (size,size) of the map as if it was resized to h x w. */
static void cut_map(const struct nr_segment_maker *m, const struct cut *c, const struct nr_picture *map, uint8_t *out)
{
	memset(out, NR_NO_CLASS, (size_t)m->size * (size_t)m->size);
	for (int32_t i = 0; i < c->rows; i++) {
		const int64_t y = (2 * (int64_t)(c->y + i) + 1) * map->h / (2 * c->h);
		for (int32_t j = 0; j < c->cols; j++) {
			const int64_t x = (2 * (int64_t)(c->x + j) + 1) * map->w / (2 * c->w);
			out[(int64_t)i * m->size + j] = map->pixels[y * map->w + x];
		}
	}
}

/* Does one class have too much of the square? */
static bool dull(const struct nr_segment_maker *m, const uint8_t *map)
{
	int64_t count[NR_NO_CLASS + 1] = { 0 }, all = 0, most = 0;
	for (int64_t i = 0; i < (int64_t)m->size * m->size; i++) count[map[i]]++;
	for (int k = 0; k < NR_NO_CLASS; k++) all += count[k], most = count[k] > most ? count[k] : most;
	return (double)most > m->most * (double)all || !all;
}

static void mirror(uint8_t *p, int32_t size, int32_t channels)
{
	for (int32_t y = 0; y < size; y++, p += size * channels)
		for (int32_t i = 0, j = size - 1; i < j; i++, j--)
			for (int32_t c = 0; c < channels; c++) {
				const uint8_t v = p[i * channels + c];
				p[i * channels + c] = p[j * channels + c];
				p[j * channels + c] = v;
			}
}

/* The square of bytes: the part that was cut, then black. */
static int cut_picture(const struct nr_segment_maker *m, const struct cut *c, const struct nr_picture *p, struct nr_picture *square,
	struct nr_error *err)
{
	struct nr_picture part = { 0 };
	struct nr_resize_scratch scratch = { 0 };
	const struct nr_region region = { c->y, c->x, c->rows, c->cols };
	int code = nr_resize_part(nr_pixels_of(p), NULL, c->h, c->w, region, NR_FILTER_BILINEAR, &part, &scratch, err);
	if (!code) code = nr_picture_resize(square, m->size, m->size, p->channels, err);
	if (!code) memset(square->pixels, 0, (size_t)m->size * (size_t)m->size * (size_t)p->channels);
	for (int32_t y = 0; y < c->rows && !code; y++)
		memcpy(square->pixels + (size_t)y * (size_t)(m->size * p->channels),
			part.pixels + (size_t)y * (size_t)(c->cols * p->channels),
			(size_t)(c->cols * p->channels));
	nr_resize_scratch_release(&scratch);
	nr_picture_release(&part);
	return code;
}

/* Zero, the mean colour, outside of what was cut. */
static void clear_rest(const struct nr_segment_maker *m, const struct cut *c, int32_t channels, float *image)
{
	const int32_t S = m->size;
	for (int32_t k = 0; k < channels; k++)
		for (int32_t y = 0; y < S; y++, image += S)
			for (int32_t x = 0; x < S; x++)
				if (y >= c->rows || (c->mirrored ? S - 1 - x : x) >= c->cols) image[x] = 0;
}

int nr_segment_make(const void *maker, const struct nr_picture *p, const struct nr_draw_of *of, float *image, void *extra,
	struct nr_error *err)
{
	const struct nr_segment_maker *m = maker;
	struct nr_draws d = nr_draws_of(of->seed, NR_STREAM_VIEW, of->epoch, (uint64_t)of->number << 16);
	struct nr_picture map = { 0 }, square = { 0 };
	if (nr_source_map(of->source, of->split, of->sample, p, &map, err)) return err ? (int)err->code : NR_EFORMAT;
	const double side = p->h < p->w ? p->h : p->w, zoom = nr_draw_between(&d, m->zoom_min, m->zoom_max);
	const double scale = zoom * (m->side ? (double)m->side / side : 1);
	const int32_t h = (int32_t)fmax(floor(p->h * scale + .5), 1), w = (int32_t)fmax(floor(p->w * scale + .5), 1);
	struct cut c = draw_cut(m, h, w, &d);
	cut_map(m, &c, &map, extra);
	for (int i = 1; i < TRIES && m->most < 1 && dull(m, extra); i++) {
		c = draw_cut(m, h, w, &d);
		cut_map(m, &c, &map, extra);
	}
	nr_picture_release(&map);
	int code = cut_picture(m, &c, p, &square, err);
	c.mirrored = m->flip > 0 && nr_draw(&d) < m->flip;
	if (!code && c.mirrored) mirror(extra, m->size, 1), mirror(square.pixels, m->size, square.channels);
	if (!code) code = nr_augment_run(&m->colours, &m->stats, &square, of->seed, of->epoch, of->number, image, of->scratch, err);
	if (!code) clear_rest(m, &c, nr_augment_channels(&m->colours, &m->stats), image);
	nr_picture_release(&square);
	return code;
}
