/* norma data show: a sheet of pictures, ordered by class; of texts and graphs see data_text.c and data_graphs.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "data.h"
#include "data/dataset.h"
#include "data/measure.h"
#include "picture/mark.h"

enum { GAP = 2, SHEET_STREAM = 0x53484554 };    /* "SHET": which pictures */

struct choice { int64_t i; int32_t label; };

static int by_label(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	return x->label != y->label ? (x->label < y->label ? -1 : 1) : (x->i > y->i) - (x->i < y->i);
}

/* The largest share of each class that does not exceed `want` in all, plus one. */
static int64_t quota(const int64_t *count, int64_t classes, int64_t want)
{
	for (int64_t q = 1;; q++) {
		int64_t sum = 0;
		for (int64_t i = 0; i < classes; i++) sum += count[i] < q ? count[i] : q;
		if (sum >= want) return q;
	}
}

/* The same number of each class, as far as there are, at random; then ordered by class. count, taken: (classes
 * + 1), the first
 * for pictures without a label. */
static int64_t choose(const struct nr_source *s, const struct data *o, struct choice *out, int64_t *count, int64_t *taken)
{
	const enum nr_split split = (enum nr_split)o->split;
	const int64_t n = s->count[split], want = o->count < n ? o->count : n;
	const struct nr_rng rng = nr_rng_make((uint64_t)o->seed, SHEET_STREAM, (uint32_t)split);
	count[0] = nr_source_histogram(s, split, count + 1);
	const int64_t each = quota(count, s->classes + 1, want);
	int64_t got = 0;
	for (int64_t k = 0; k < n && got < want; k++) {
		const int64_t i = (int64_t)nr_rng_permute(rng, (uint64_t)k, (uint64_t)n);
		const int32_t label = nr_source_label(s, split, i);
		if (taken[label + 1]++ < each) out[got++] = (struct choice){ i, label };
	}
	qsort(out, (size_t)got, sizeof *out, by_label);
	return got;
}

/* Centred in its cell, at the largest size that fits. */
static int draw(struct nr_picture *sheet, const struct nr_picture *p, int64_t cell, int64_t at, int64_t columns,
	struct nr_picture *small,
	struct nr_resize_scratch *scratch, struct nr_error *err)
{
	const int32_t longer = p->h > p->w ? p->h : p->w;
	int32_t h = (int32_t)(((int64_t)p->h * cell + longer / 2) / longer),
		w = (int32_t)(((int64_t)p->w * cell + longer / 2) / longer);
	h = h < 1 ? 1 : h;
	w = w < 1 ? 1 : w;
	const enum nr_filter filter = cell % longer ? NR_FILTER_BICUBIC : NR_FILTER_NEAREST;
	if (nr_resize(p, NULL, h, w, filter, small, scratch, err)) return err->code;
	const int64_t y0 = GAP + (at / columns) * (cell + GAP) + (cell - h) / 2, x0 = GAP +
		(at % columns) * (cell + GAP) + (cell - w) / 2;
	for (int64_t y = 0; y < h; y++)
		for (int64_t x = 0; x < w; x++)
			for (int32_t k = 0; k < 3; k++)
				sheet->pixels[((y0 + y) * sheet->w + x0 + x) * 3 + k] = small->pixels[(y * w +
					x) * small->channels + (small->channels == 3 ? k : 0)];
	return NR_OK;
}

/* Its objects drawn onto it. */
static int mark(const struct nr_source *s, enum nr_split split, int64_t i, struct nr_picture *p, struct nr_picture *spare,
	struct nr_error *err)
{
	const struct nr_objects *o = nr_source_objects(s, split, i);
	struct nr_mark_of *m = calloc((size_t)o->count + 1, sizeof *m);
	if (!m) return nr_fail(err, NR_EMEMORY, "cannot draw", s->of->name, "out of memory");
	for (int32_t k = 0; k < o->count; k++) {
		const struct nr_object *x = &o->object[k];
		m[k] = (struct nr_mark_of){ .mask = x->mask, .label = x->label, .text = s->class_name[x->label], .faint = x->crowd };
		memcpy(m[k].xywh, x->xywh, sizeof m[k].xywh);
	}
	const int code = nr_picture_mark(p, m, o->count, 0, spare, err);
	free(m);
	if (code) return code;
	const struct nr_picture swap = *p;
	*p = *spare, *spare = swap;
	return NR_OK;
}

struct augmented { struct nr_augment conf; struct nr_augment_scratch *scratch; float *out; };

/* What the network gets, [-1,1], as bytes again. */
static int augment(const struct augmented *a, const struct nr_source *s, struct nr_picture *p,
	const struct data *o, int64_t i, struct nr_error *err)
{
	const int32_t size = (int32_t)a->conf.size, channels = a->conf.channels ? a->conf.channels : s->channels;
	const struct nr_pixel_stats stats = nr_source_pixel_stats(s);
	if (nr_augment_run(&a->conf, &stats, p, (uint64_t)o->seed, 0, i, a->out, a->scratch, err) ||
		nr_picture_resize(p, size, size, channels, err))
		return err->code;
	const int64_t plane = (int64_t)size * size;
	for (int64_t k = 0; k < plane * channels; k++) {
		const float v = (a->out[(k % channels) * plane + k / channels] + 1) * 127.5f;
		p->pixels[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + .5f);
	}
	return NR_OK;
}

static int prepare(struct cli *c, const struct data *o, const struct nr_source *s, struct augmented *a)
{
	nr_option_defaults(nr_augment_options, &a->conf);
	if (s->h) a->conf.size = s->h;
	if (nr_option_parse(nr_augment_options, &a->conf, o->augment, c->arena, c->err)) return c->err->code;
	a->conf.normalize = false;
	a->out = malloc((size_t)a->conf.size * (size_t)a->conf.size * 3 * sizeof *a->out);
	if (!a->out) return nr_fail(c->err, NR_EMEMORY, "cannot augment", s->of->name, "out of memory");
	return nr_augment_scratch_make(&a->scratch, c->err);
}

static void report(const struct nr_source *s, const struct choice *pick, int64_t n, int64_t columns, const struct data *o)
{
	const bool classed = n && (pick[0].label >= 0 || pick[n - 1].label >= 0);      /* whole pictures may have none */
	printf("%s: %lld pictures of %s in '%s', %lld in a row%s\n", s->of->name, (long long)n, nr_split_name((enum nr_split)o->split),
		o->output, (long long)columns, classed ? ", by class:" : "");
	for (int64_t i = 0, first = 0; i < n && classed; i++) {
		if (i + 1 < n && pick[i + 1].label == pick[i].label) continue;
		const int32_t label = pick[i].label;
		printf("  row %lld column %lld: %lld of ", (long long)(first / columns + 1),
			(long long)(first % columns + 1), (long long)(i + 1 - first));
		if (label < 0) printf("no label\n");
		else if (s->class_name) printf("%d %s\n", label, s->class_name[label]);
		else printf("class %d\n", label);
		first = i + 1;
	}
}

static int sheet_of(struct cli *c, const struct data *o, const struct nr_source *s, const struct choice *pick,
	int64_t n, int64_t columns,
	const struct augmented *a)
{
	const int64_t side = s->h > s->w ? s->h : s->w, rows = (n + columns - 1) / columns;
	const bool marks = s->of->objects && s->class_name && !a;
	const int64_t cell = o->cell ? o->cell : marks ? 256 : side ? side * ((63 + side) / side) : 96;
	const int64_t h = rows * (cell + GAP) + GAP, w = columns * (cell + GAP) + GAP;
	struct nr_picture sheet = { 0 }, p = { 0 }, small = { 0 };
	struct nr_resize_scratch scratch = { 0 };
	int e = h <= 65000 && w <= 65000 ? nr_picture_resize(&sheet, (int32_t)h, (int32_t)w, 3, c->err) :
		nr_fail(c->err, NR_EVALUE, "cannot draw", s->of->name,
			"a sheet of %lld x %lld pixels is too large", (long long)w, (long long)h);
	if (!e) memset(sheet.pixels, 255, (size_t)(h * w * 3));
	for (int64_t i = 0; i < n && !e; i++) {
		e = nr_source_get(s, (enum nr_split)o->split, pick[i].i, &p, NULL, c->err);
		if (!e && a) e = augment(a, s, &p, o, pick[i].i, c->err);
		if (!e && marks) e = mark(s, (enum nr_split)o->split, pick[i].i, &p, &small, c->err);
		if (!e) e = draw(&sheet, &p, cell, i, columns, &small, &scratch, c->err);
	}
	if (!e) e = nr_picture_write_png(&sheet, o->output, c->err);
	nr_resize_scratch_release(&scratch);
	nr_picture_release(&sheet);
	nr_picture_release(&p);
	nr_picture_release(&small);
	return e;
}

static json_t *record(const struct nr_source *s, const struct data *o, const struct choice *pick, int64_t n,
	int64_t columns)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_pack("[Ii]", (json_int_t)pick[i].i,
		(int)pick[i].label));
	return json_pack("{s:s, s:s, s:s, s:I, s:o}", "name", s->of->name, "output", o->output, "split",
		nr_split_name((enum nr_split)o->split),
		"columns", (json_int_t)columns, "pictures", list);
}

int data_show(struct cli *c, const struct data *o, const char *name)
{
	struct nr_source *s;
	const struct nr_dataset *of = nr_dataset_of(name, NULL);
	const bool texts = of && of->kind == NR_TEXTS, graphs = of && of->kind == NR_MOLECULES;
	if (!*o->output && !texts) {
		cli_usage(c, "data show needs --output FILE.%s", graphs ? "svg" : "png");
		return nr_hint(c->err, "norma data show %s --output sheet.%s", name, graphs ? "svg" : "png");
	}
	if (nr_source_open(&s, name, *o->root ? o->root : NULL, c->err)) return c->err->code;
	struct choice *pick = nr_arena_alloc(c->arena, (size_t)o->count * sizeof *pick);
	int64_t *count = nr_arena_alloc(c->arena, 2 * ((size_t)s->classes + 1) * sizeof *count);
	struct augmented a = { 0 };
	int e = pick && count ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot show", name, "out of memory");
	if (!e && !s->count[o->split])
		e = nr_fail(c->err, NR_EVALUE, "nothing to show in", name, "there is no split %s",
			nr_split_name((enum nr_split)o->split));
	if (!e && !texts && !graphs && *o->augment) e = prepare(c, o, s, &a);
	if (!e && texts) e = data_text_show(c, o, s);
	else if (!e && graphs) e = data_show_graphs(c, o, s);
	else if (!e) {
		const int64_t n = choose(s, o, pick, count, count + s->classes + 1);
		int64_t columns = 1;
		while (columns * columns < n) columns++;
		e = sheet_of(c, o, s, pick, n, columns, *o->augment ? &a : NULL);
		if (!e && o->json) e = nr_json_line(stdout, record(s, o, pick, n, columns), c->err);
		else if (!e) report(s, pick, n, columns, o);
	}
	if (a.scratch) nr_augment_scratch_free(a.scratch);
	free(a.out);
	nr_source_close(s);
	return e;
}
