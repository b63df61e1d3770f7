/* What [CLS] looks at, as pictures: see dino_eval.h. A row for each picture; first the picture, then its map in each head of the last
 * block, from none of its attention (dark) to the most that a patch gets (yellow). */
#include <math.h>
#include <stdlib.h>

#include "analysis/attention_stats.h"
#include "analysis/taps.h"
#include "draw/heatmap.h"
#include "tasks/dino_eval.h"

enum { GAP = 2, CELL = 64 };

int nr_dino_maps_open(struct nr_dino_maps *d, const struct nr_task_run *r, const struct nr_evaluation *e, int64_t count,
	struct nr_error *err)
{
	const struct nr_augment *a = &e->augment;
	*d = (struct nr_dino_maps){ .channels = nr_model_int(&r->w->model, "channels"), .size = nr_model_int(&r->w->model, "image") };
	for (int k = 0; k < 3; k++) {
		const bool own = a->std[k] > 0, known = own || r->source->std[k] > 0;
		d->mean[k] = !a->normalize || !known ? .5 : own ? a->mean[k] : (double)r->source->mean[k];
		d->std[k] = !a->normalize || !known ? .5 : own ? a->std[k] : (double)r->source->std[k];
	}
	const int64_t there = e->count ? e->count : e->source->count[e->split];
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment,
		.batch = count < there ? count : there, .index = e->index, .count = e->count, .threads = 1, .stop = 1 };
	struct nr_loader *loader;
	struct nr_batch *b;
	if (nr_loader_open(&loader, &config, err)) return err->code;
	int code = nr_loader_next(loader, &b, err);
	if (!code && b) {
		const size_t values = (size_t)(b->samples * d->channels * d->size * d->size);
		d->image = malloc(values * sizeof *d->image);
		if (d->image) memcpy(d->image, b->image, values * sizeof *d->image);
		else code = nr_fail(err, NR_EMEMORY, "cannot draw", "attention", "out of memory");
		d->count = b->samples;
	}
	nr_loader_close(loader);
	return code;
}

void nr_dino_maps_close(struct nr_dino_maps *d)
{
	free(d->image);
	*d = (struct nr_dino_maps){ 0 };
}

static uint8_t level(double v) { return (uint8_t)(v <= 0 ? 0 : v >= 1 ? 255 : v * 255 + .5); }

struct sheet { struct nr_picture *p; int64_t cell; };

static void fill(const struct sheet *s, int64_t row, int64_t column, void (*at)(const void *, double y, double x, uint8_t *),
	const void *of)
{
	for (int64_t y = 0; y < s->cell; y++)
		for (int64_t x = 0; x < s->cell; x++) {
			const int64_t py = GAP + row * (s->cell + GAP) + y, px = GAP + column * (s->cell + GAP) + x;
			at(of, (double)y / (double)s->cell, (double)x / (double)s->cell, s->p->pixels + (py * s->p->w + px) * 3);
		}
}

struct shown { const struct nr_dino_maps *d; const float *image; };
static void of_picture(const void *of, double y, double x, uint8_t *pixel)
{
	const struct shown *s = of;
	const int64_t n = s->d->size, place = (int64_t)(y * (double)n) * n + (int64_t)(x * (double)n);
	for (int k = 0; k < 3; k++) {
		const int from = s->d->channels == 3 ? k : 0;
		pixel[k] = level((double)s->image[from * n * n + place] * s->d->std[from] + s->d->mean[from]);
	}
}

struct map { const double *weight; int64_t h, w; double most; };
static void of_map(const void *of, double y, double x, uint8_t *pixel)
{
	const struct map *m = of;
	const double weight = m->weight[(int64_t)(y * (double)m->h) * m->w + (int64_t)(x * (double)m->w)];
	const uint32_t colour = nr_heat(m->most > 0 ? weight / m->most : 0);
	for (int k = 0; k < 3; k++) pixel[k] = (uint8_t)(colour >> (16 - 8 * k));
}

/* The maps of one picture. */
static void draw_heads(const struct sheet *s, const struct nr_attention_shape *v, const struct nr_taps *t, int64_t i, double *weight)
{
	const struct nr_attention_tap *last = &t->attention[t->attentions - 1];
	const real *qkv = (const real *)nr_plan_data(t->plan, last->qkv) + i * v->T * 3 * v->H * v->d;
	for (int64_t h = 0; h < v->H; h++) {
		nr_attention_weights(v, qkv, last->bias ? nr_plan_data(t->plan, last->bias) : NULL, h, 0, weight);
		struct map m = { weight + v->special, v->h, v->w, 0 };
		for (int64_t k = 0; k < v->h * v->w; k++) m.most = fmax(m.most, m.weight[k]);
		fill(s, i, h + 1, of_map, &m);
	}
}

static int draw(const struct nr_dino_maps *d, const struct nr_attention_shape *v, struct nr_taps *t, const char *path, struct nr_error *err)
{
	const int64_t cell = (CELL + d->size - 1) / d->size * d->size;
	const int64_t h = d->count * (cell + GAP) + GAP, w = (v->H + 1) * (cell + GAP) + GAP;
	struct nr_picture p = { 0 };
	double *weight = malloc((size_t)v->T * sizeof *weight);
	int code = weight ? nr_picture_resize(&p, (int32_t)h, (int32_t)w, 3, err)
			  : nr_fail(err, NR_EMEMORY, "cannot draw", path, "out of memory");
	if (!code) {
		const struct sheet sheet = { &p, cell };
		memset(p.pixels, 255, (size_t)(h * w * 3));
		nr_taps_run(t, d->image);
		for (int64_t i = 0; i < d->count; i++) {
			const struct shown shown = { d, d->image + i * d->channels * d->size * d->size };
			fill(&sheet, i, 0, of_picture, &shown);
			draw_heads(&sheet, v, t, i, weight);
		}
		code = nr_picture_write_png(&p, path, err);
	}
	nr_picture_release(&p);
	free(weight);
	return code;
}

int nr_dino_maps_draw(const struct nr_dino_maps *d, const struct nr_weights *w, const char *path, struct nr_error *err)
{
	struct nr_taps t;
	if (!d->count) return NR_OK;
	if (nr_taps_open(&t, w, d->count, NR_TAPS_ATTENTION, NULL, err)) return err->code;
	const nr_t *qkv = t.attentions ? t.attention[t.attentions - 1].qkv : NULL;
	const struct nr_tokens *tok = qkv ? qkv->tok : NULL;
	int code = NR_OK;
	if (tok && nr_taps_has_cls(w, qkv) && tok->h * tok->w > 0 && tok->h * tok->w == qkv->d[1] - tok->special) {
		const struct nr_attention_shape v = { .H = t.heads, .T = qkv->d[1], .d = qkv->d[2] / (3 * t.heads), .special = tok->special,
			.h = tok->h, .w = tok->w, .cls = 1 };
		code = draw(d, &v, &t, path, err);
	}
	nr_taps_close(&t);
	return code;
}
