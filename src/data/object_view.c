/* See object_view.h. */
#include "data/object_view.h"

#include <math.h>
#include <stdlib.h>

#include "base/draws.h"
#include "picture/augment.h"
#include "picture/rle.h"

static int read_sides(struct nr_object_view *v, const char *text, struct nr_error *err)
{
	for (char *end; *text; text = end) {
		const long side = strtol(text, &end, 10);
		if (end == text || side < 1 || side > v->size || (*end && *end != ' ') || v->sides == NR_OBJECT_SIDES) {
			nr_fail(err, NR_EVALUE, "cannot resize pictures", text, "not a list of up to %d sides from 1 to %d",
				NR_OBJECT_SIDES, v->size);
			return nr_hint(err, "use --short-sides \"480 512\"; the longer side is the model's option image");
		}
		v->side[v->sides++] = (int32_t)side;
		end += *end == ' ';
	}
	return NR_OK;
}

int nr_object_view_init(struct nr_object_view *v, const struct nr_augment *a, const struct nr_pixel_stats *stats, const char *sides,
	struct nr_error *err)
{
	*v = (struct nr_object_view){ .size = (int32_t)a->size, .channels = a->channels, .filter = a->filter, .flip = a->flip };
	if (read_sides(v, sides, err)) return err->code;
	return nr_augment_table(a, stats, v->channels, v->table, err);
}

size_t nr_object_bytes(const struct nr_object_view *v)
{
	const size_t mask = ((size_t)v->size * (size_t)v->size + 7) / 8;
	const size_t all =
		sizeof(struct nr_object_sample) + (size_t)v->objects * (4 * sizeof(float) + sizeof(int32_t) + (v->masks ? mask : 0));
	return (all + 15) / 16 * 16;
}
const float *nr_object_boxes(const struct nr_object_view *v, const void *extra)
{
	(void)v;
	return (const float *)((const char *)extra + sizeof(struct nr_object_sample));
}
const int32_t *nr_object_labels(const struct nr_object_view *v, const void *extra)
{
	return (const int32_t *)(nr_object_boxes(v, extra) + 4 * v->objects);
}
const uint8_t *nr_object_masks(const struct nr_object_view *v, const void *extra)
{
	return (const uint8_t *)(nr_object_labels(v, extra) + v->objects);
}

/* ---- the picture ------------------------------------------------------------------------------------------------------------ */

/* The size that a picture gets: the shorter side as wanted if the longer one fits. */
static void fit(const struct nr_object_view *v, const struct nr_picture *p, int32_t side, int32_t *h, int32_t *w)
{
	const double shorter = p->h < p->w ? p->h : p->w, longer = p->h < p->w ? p->w : p->h;
	const double scale = side ? fmin(side / shorter, v->size / longer) : v->size / longer;
	*h = (int32_t)fmin(fmax(floor(p->h * scale + .5), 1), v->size);
	*w = (int32_t)fmin(fmax(floor(p->w * scale + .5), 1), v->size);
}

static int place(const struct nr_object_view *v, const struct nr_picture *p, int32_t side, bool mirrored, float *image,
	struct nr_object_sample *s, struct nr_augment_scratch *scratch, struct nr_error *err)
{
	struct nr_picture *small;
	struct nr_resize_scratch *room;
	int32_t h, w;
	nr_augment_room(scratch, &small, &room);
	fit(v, p, side, &h, &w);
	*s = (struct nr_object_sample){ .h = (float)h, .w = (float)w, .y = (float)p->h / (float)h, .x = (float)p->w / (float)w };
	const bool same = h == p->h && w == p->w;
	if (p->channels != v->channels)
		return nr_fail(
			err, NR_ESHAPE, "cannot use a picture", NULL, "it has %d channels, the model takes %d", p->channels, v->channels);
	if (!same && nr_resize(p, NULL, h, w, (enum nr_filter)v->filter, small, room, err)) return err->code;
	const uint8_t *from = same ? p->pixels : small->pixels;
	for (int32_t c = 0; c < v->channels; c++)
		for (int32_t y = 0; y < v->size; y++) {
			float *to = image + ((int64_t)c * v->size + y) * v->size;
			const uint8_t *row = from + (int64_t)y * w * v->channels + c;
			for (int32_t x = 0; x < v->size; x++)
				to[x] = y < h && x < w ? v->table[c][row[(int64_t)(mirrored ? w - 1 - x : x) * v->channels]] : 0;
		}
	return NR_OK;
}

int nr_object_view_picture(const struct nr_object_view *v, const struct nr_picture *p, float *image, struct nr_object_sample *s,
	struct nr_augment_scratch *scratch, struct nr_error *err)
{
	return place(v, p, v->sides ? v->side[v->sides - 1] : 0, false, image, s, scratch, err);
}

/* ---- its objects ------------------------------------------------------------------------------------------------------------ */

/* The nearest pixels of a mask, whose runs go down the columns: column by column of the picture in the square. */
static void scale_mask(const struct nr_rle *m, const struct nr_object_sample *s, int32_t size, bool mirrored, uint8_t *bits)
{
	const int32_t h = (int32_t)s->h, w = (int32_t)s->w;
	int64_t run = 0, end = m->runs ? m->run[0] : 0;         /* the run at the top of a column, and where it ends */
	for (int32_t x = 0; x < w; x++) {
		const int64_t column = (int64_t)(((double)x + .5) * m->w / w), top = column * m->h;
		while (run < m->runs && end <= top) end += ++run < m->runs ? m->run[run] : 0;
		int64_t here = run, until = end;
		for (int32_t y = 0; y < h; y++) {
			const int64_t at = top + (int64_t)(((double)y + .5) * m->h / h);
			while (here < m->runs && until <= at) until += ++here < m->runs ? m->run[here] : 0;
			const int64_t pixel = (int64_t)y * size + (mirrored ? w - 1 - x : x);
			if (here < m->runs && here % 2) bits[pixel / 8] |= (uint8_t)(1u << pixel % 8);
		}
	}
}

static void place_objects(const struct nr_object_view *v, const struct nr_objects *o, bool mirrored, struct nr_object_sample *s)
{
	float *box = (float *)((char *)s + sizeof *s);
	int32_t *label = (int32_t *)(box + 4 * v->objects);
	uint8_t *mask = (uint8_t *)(label + v->objects);
	const size_t bytes = ((size_t)v->size * (size_t)v->size + 7) / 8;
	for (int64_t i = 0; i < v->objects; i++) label[i] = -1;
	for (int32_t i = 0; o && i < o->count && s->count < v->objects; i++) {
		const struct nr_object *one = &o->object[i];
		const double x0 = fmax(one->xywh[0] / (double)s->x, 0),
			     x1 = fmin((one->xywh[0] + one->xywh[2]) / (double)s->x, (double)s->w);
		const double y0 = fmax(one->xywh[1] / (double)s->y, 0),
			     y1 = fmin((one->xywh[1] + one->xywh[3]) / (double)s->y, (double)s->h);
		if (one->crowd || !(x1 - x0 > .01 && y1 - y0 > .01)) continue;
		float *to = box + 4 * s->count;
		to[0] = (float)(mirrored ? (double)s->w - x1 : x0), to[1] = (float)y0;
		to[2] = (float)(mirrored ? (double)s->w - x0 : x1), to[3] = (float)y1;
		if (v->masks && one->mask) scale_mask(one->mask, s, v->size, mirrored, mask + (size_t)s->count * bytes);
		label[s->count++] = one->label;
	}
}

int nr_object_view_make(const void *maker, const struct nr_picture *p, const struct nr_draw_of *of, float *image, void *extra,
	struct nr_error *err)
{
	const struct nr_object_view *v = maker;
	struct nr_object_sample *s = extra;
	struct nr_draws draws = nr_draws_of(of->seed, NR_STREAM_SAMPLE, of->epoch, (uint64_t)of->number << 16);
	int32_t side = v->sides ? v->side[v->sides - 1] : 0;
	bool mirrored = false;
	if (v->chance && v->sides > 1) side = v->side[nr_draw_below(&draws, v->sides)];
	if (v->chance && v->flip > 0) mirrored = nr_draw(&draws) < v->flip;
	if (place(v, p, side, mirrored, image, s, of->scratch, err)) return err->code;
	place_objects(v, nr_source_objects(of->source, of->split, of->sample), mirrored, s);
	return NR_OK;
}
