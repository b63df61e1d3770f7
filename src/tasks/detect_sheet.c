/* See detect_sheet.h. */
#include "tasks/detect_sheet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/mark.h"

enum { PICTURES = 6, CELL = 288, GAP = 2, ROWS = 2 };
#define LEAST 0.5                               /* score of what is drawn */

struct sheet {
	const struct nr_source *source;
	const struct nr_detector_found *found;
	struct nr_picture all, picture, marked, small;
	struct nr_resize_scratch scratch;
	struct nr_mark_of *mark;
	char (*text)[64];
};

/* In the middle of its cell, as large as fits. */
static int put(struct sheet *s, int64_t row, int64_t column, int64_t marks, struct nr_error *err)
{
	const struct nr_picture *p = &s->picture;
	const int32_t longer = p->h > p->w ? p->h : p->w, zoom = CELL / longer > 1 ? CELL / longer : 1;
	if (nr_picture_mark(p, s->mark, marks, zoom, &s->marked, err)) return err->code;
	const int64_t most = s->marked.h > s->marked.w ? s->marked.h : s->marked.w, side = most > CELL ? CELL : most;
	const int32_t h = (int32_t)(s->marked.h * side / most), w = (int32_t)(s->marked.w * side / most);
	if (nr_resize(&s->marked, NULL, h > 0 ? h : 1, w > 0 ? w : 1, NR_FILTER_BILINEAR, &s->small, &s->scratch, err)) return err->code;
	const int64_t y0 = GAP + row * (CELL + GAP) + (CELL - s->small.h) / 2, x0 = GAP + column * (CELL + GAP) + (CELL - s->small.w) / 2;
	for (int64_t y = 0; y < s->small.h; y++)
		memcpy(s->all.pixels + ((y0 + y) * s->all.w + x0) * 3, s->small.pixels + y * s->small.w * 3, (size_t)s->small.w * 3);
	return NR_OK;
}

static int draw_one(struct sheet *s, int64_t i, struct nr_error *err)
{
	const struct nr_objects *o = s->found->truth[i];
	char *const *name = s->source->class_name;
	for (int32_t k = 0; k < o->count; k++) {
		const struct nr_object *x = &o->object[k];
		s->mark[k] = (struct nr_mark_of){ .mask = x->mask, .label = x->label, .text = name ? name[x->label] : NULL,
			.faint = x->crowd };
		memcpy(s->mark[k].xywh, x->xywh, sizeof x->xywh);
	}
	if (put(s, 0, i, o->count, err)) return err->code;
	int64_t n = 0;
	for (int64_t k = s->found->count - 1; k >= 0; k--) {        /* the surest come first, so they are drawn last */
		const struct nr_detection *d = &s->found->item[k];
		if (d->image_id != o->image_id || d->score < LEAST) continue;
		snprintf(s->text[n], sizeof *s->text, "%.50s %.0f", name ? name[d->label] : "", 100 * d->score);
		s->mark[n] = (struct nr_mark_of){ .mask = d->mask, .label = d->label, .text = s->text[n] };
		memcpy(s->mark[n++].xywh, d->xywh, sizeof d->xywh);
	}
	return put(s, 1, i, n, err);
}

int nr_detect_sheet_draw(const struct nr_source *source, enum nr_split split, const int32_t *index, const struct nr_detector_found *found,
	const char *path, struct nr_error *err)
{
	const int64_t n = found->images < PICTURES ? found->images : PICTURES;
	if (!n) return NR_OK;
	int64_t most = found->count;
	for (int64_t i = 0; i < n; i++) most = found->truth[i]->count > most ? found->truth[i]->count : most;
	struct sheet s = { .source = source, .found = found, .mark = malloc((size_t)(most + 1) * sizeof *s.mark),
		.text = malloc((size_t)(most + 1) * sizeof *s.text) };
	int code = s.mark && s.text ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot draw", path, "out of memory");
	if (!code) code = nr_picture_resize(&s.all, ROWS * (CELL + GAP) + GAP, (int32_t)n * (CELL + GAP) + GAP, 3, err);
	if (!code) memset(s.all.pixels, 255, (size_t)s.all.h * (size_t)s.all.w * 3);
	for (int64_t i = 0; i < n && !code; i++) {
		code = nr_source_get(source, split, index ? index[i] : i, &s.picture, NULL, err);
		if (!code) code = draw_one(&s, i, err);
	}
	if (!code) code = nr_picture_write_png(&s.all, path, err);
	nr_resize_scratch_release(&s.scratch);
	nr_picture_release(&s.all);
	nr_picture_release(&s.picture);
	nr_picture_release(&s.marked);
	nr_picture_release(&s.small);
	free(s.mark);
	free(s.text);
	return code;
}
