/* Alignment beside uniformity (Wang & Isola 2020): two random views of each picture, crops of half its area and more and mirror
 * images, go through the model. Measured after each layer for [CLS] and for the mean of the patch tokens:
 *
 *   alignment   mean |u - v|^2 of the unit vectors u, v of two views: 0 when chance leaves no trace
 *   relative    the same over the mean for views of different pictures: a collapse makes alignment small, but not this
 *   uniformity  of the first views */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/uniformity.h"
#include "base/table.h"

enum { CLS, MEAN, KINDS, VIEWS = 2 };
static const char *const kind_name[KINDS] = { "cls", "mean" };

struct seen { real *rows[VIEWS]; double alignment, relative, uniformity; };     /* (count,C); NULL: there is none */
struct views { struct seen (*of)[KINDS]; };

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct views *s = own;
	bool whole = (s->of = nr_arena_alloc(a->arena, (size_t)a->taps.layers * sizeof *s->of)) != NULL;
	for (int64_t l = 0; whole && l < a->taps.layers; l++)
		for (int i = 0; i < KINDS * VIEWS; i++) {
			const struct nr_layer_tap *t = &a->taps.layer[l];
			if (i / VIEWS == CLS ? !t->cls : t->x->d[1] <= t->special) continue;
			real *rows = nr_arena_alloc(a->arena, (size_t)(a->count * t->x->d[2]) * sizeof *rows);
			s->of[l][i / VIEWS].rows[i % VIEWS] = rows;
			whole = whole && rows;
		}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot keep the views", NULL, "out of memory");
}

static void keep_row(const struct nr_layer_tap *t, const real *x, int k, real *to)
{
	const int64_t T = t->x->d[1], C = t->x->d[2], S = t->special;
	if (k == CLS) {
		memcpy(to, x, (size_t)C * sizeof *to);
		return;
	}
	for (int64_t c = 0; c < C; c++) {
		double sum = 0;
		for (int64_t i = S; i < T; i++) sum += (double)x[i * C + c];
		to[c] = (real)(sum / (double)(T - S));
	}
}

static void keep(struct nr_analysis *a, struct views *s, int view, int64_t samples, int64_t first)
{
	for (int64_t l = 0; l < a->taps.layers; l++) {
		const struct nr_layer_tap *t = &a->taps.layer[l];
		const int64_t C = t->x->d[2], each = t->x->d[1] * C;
		const real *x = nr_plan_data(a->taps.plan, t->x);
		for (int k = 0; k < KINDS; k++) {
			real *rows = s->of[l][k].rows[view];
			if (!rows) continue;
#pragma omp parallel for schedule(static)
			for (int64_t i = 0; i < samples; i++) keep_row(t, x + i * each, k, rows + (first + i) * C);
		}
	}
}

static int run(struct nr_analysis *a, struct views *s, int view, struct nr_error *err)
{
	const struct nr_evaluation *e = &a->what;
	struct nr_augment chance = e->augment;
	chance.crop = NR_CROP_RANDOM_RESIZED;
	chance.scale_min = .5, chance.scale_max = 1;
	chance.ratio_min = .75, chance.ratio_max = 4. / 3;
	chance.flip = .5;
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &chance, .batch = a->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .seed = 1 + (uint64_t)view };
	struct nr_loader *loader = NULL;
	int code = nr_loader_open(&loader, &config, err);
	for (int64_t first = 0; !code && first < a->count; first += a->batch) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		nr_taps_run(&a->taps, b->image);
		keep(a, s, view, b->samples, first);
		nr_loader_give_back(loader, b);
		code = nr_analysis_tick(a, err);
	}
	nr_loader_close(loader);
	return code;
}

static int64_t steps(const struct nr_analysis *a) { return VIEWS * ((a->count + a->batch - 1) / a->batch); }

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct views *s = own;
	for (int view = 0; view < VIEWS; view++)
		if (run(a, s, view, err)) return err->code;
	for (int64_t l = 0; l < a->taps.layers; l++)
		for (int k = 0; k < KINDS; k++) {
			struct seen *v = &s->of[l][k];
			const int64_t C = a->taps.layer[l].x->d[2];
			struct nr_pairs pairs;
			if (!v->rows[0]) continue;
			if (nr_uniformity(a->count, C, v->rows[0], 2, &pairs, err)) return err->code;
			v->alignment = nr_alignment(a->count, C, v->rows[0], v->rows[1], 2);
			v->relative = v->alignment / (2 - 2 * pairs.mean_cos);
			v->uniformity = pairs.uniformity;
		}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct views *s = own;
	json_t *all = json_array();
	for (int64_t l = 0; l < a->taps.layers; l++) {
		json_t *layer = json_pack("{s:s}", "name", a->taps.layer[l].name);
		for (int k = 0; k < KINDS; k++) {
			const struct seen *v = &s->of[l][k];
			if (!v->rows[0]) continue;
			json_object_set_new(layer, kind_name[k], json_pack("{s:o, s:o, s:o}", "alignment", nr_json_number(v->alignment),
				"relative", nr_json_number(v->relative), "uniformity", nr_json_number(v->uniformity)));
		}
		json_array_append_new(all, layer);
	}
	return all;
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct views *s, bool csv)
{
	static const char *const titles[] = { "layer", "kind", "alignment", "relative", "uniformity" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, i == 1 && !csv ? "" : titles[i], i < 2 ? NR_LEFT : NR_RIGHT);
	for (int64_t l = 0; l < a->taps.layers; l++)
		for (int k = 0; k < KINDS; k++) {
			const struct seen *v = &s->of[l][k];
			if (!v->rows[0]) continue;
			nr_table_cell(t, "%s", a->taps.layer[l].name);
			nr_table_cell(t, "%s", csv || k == MEAN ? kind_name[k] : "[CLS]");
			nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 3, v->alignment, "");
			nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 3, v->relative, "");
			nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 3, v->uniformity, "");
		}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	nr_str_printf(text,
		"\nviews: two random crops of each picture; relative: divided by the mean for different pictures\n");
	nr_table_show(table_of(a, own, false), text);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct views *s = own;
	static const char *const title[] = { "alignment", "alignment over that of different pictures", "uniformity" };
	static const char *const label[KINDS] = { "[CLS]", "mean" };
	const int64_t L = a->taps.layers;
	struct nr_sheet sheet = { 0 };
	double *y = nr_arena_alloc(a->arena, (size_t)(KINDS * L) * sizeof *y);
	if (!y) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	if (nr_table_save(table_of(a, s, true), dir, "views.csv", err)) return err->code;
	for (int i = 0; i < 3; i++) {
		for (int64_t k = 0; k < KINDS * L; k++) {
			const struct seen *v = &s->of[k % L][k / L];
			y[k] = !v->rows[0] ? NAN : i == 0 ? v->alignment : i == 1 ? v->relative : v->uniformity;
		}
		if (i == 2) nr_sheet_row(&sheet);
		nr_sheet_put(&sheet, title[i], nr_draw_curves(&sheet.panel, &(struct nr_curves){ .name = title[i],
			.x_label = "layer: 0 embedding, then blocks, last the final norm", .y_label = title[i], .n = L,
				.count = KINDS, .y = y, .label = label }));
	}
	return nr_sheet_save(&sheet, dir, "views.svg", "Two views of a picture: alignment and uniformity",
		"Good features have both low: views of one picture lie together (alignment near 0) while different "
		"pictures fill the sphere (uniformity near -4). Low alignment alone may be a collapse; then the relative "
		"one stays near 1.", err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "alignment",
		"mean |u - v|^2 of the unit vectors of two random crops of a picture (half its area or more, mirrored "
		"or not): 0 when the crop does not matter; [CLS] and the mean of the patch tokens",
		"after Wang and Isola, like uniformity" },
	{ "relative",
		"alignment divided by the mean for crops of different pictures: near 1 when alignment is low only "
		"because of collapse",
		"" },
	{ .name = NULL },
};

const struct nr_part nr_part_views = {
	.name = "views", .title = "two views of a picture", .size = sizeof(struct views), .steps = steps, .begin = begin, .end = end,
	.json = json, .show = show, .write = write,
	.told = { .about = "alignment of two random crops",
		.numbers = numbers },
};
