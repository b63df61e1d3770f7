/* Where samples lie: the last layer's [CLS] and patch tokens in the plane, by the two leading principal components and by t-SNE
 * (perplexity 30 or what the number of samples allows), coloured by class, with how far the layout can be trusted. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/pca.h"
#include "analysis/trustworthiness.h"
#include "analysis/tsne.h"
#include "base/table.h"
#include "draw/scatter.h"

enum { CLS, TOKENS, KINDS, TRUST = 12 };
static const char *const kind_name[KINDS] = { "cls", "tokens" };

struct map {
	int32_t *label;
	struct seen {
		bool there;
		real *rows;                         /* (count,C) */
		double *pca, *tsne;                 /* (count,2) */
		double explained[2];                /* shares of the variance */
		struct nr_tsne_result result;
		struct nr_trustworthiness trust;
	} of[KINDS];
};

static const struct nr_layer_tap *last(const struct nr_analysis *a) { return &a->taps.layer[a->taps.layers - 1]; }

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct map *s = own;
	const struct nr_layer_tap *t = last(a);
	bool whole = (s->label = nr_arena_alloc(a->arena, (size_t)a->count * sizeof *s->label)) != NULL;
	for (int k = 0; k < KINDS; k++) {
		struct seen *v = &s->of[k];
		v->there = k == CLS ? t->cls : t->x->d[1] > t->special;
		v->rows = nr_arena_alloc(a->arena, (size_t)(a->count * t->x->d[2]) * sizeof *v->rows);
		v->pca = nr_arena_alloc(a->arena, (size_t)(2 * a->count) * sizeof *v->pca);
		v->tsne = nr_arena_alloc(a->arena, (size_t)(2 * a->count) * sizeof *v->tsne);
		whole = whole && v->rows && v->pca && v->tsne;
	}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot draw a map", NULL, "out of memory");
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct map *s = own;
	const struct nr_layer_tap *t = last(a);
	const int64_t C = t->x->d[2];
	(void)err;
	for (int64_t i = 0; i < b->samples; i++) {
		s->label[first + i] = b->label[i];
		for (int k = 0; k < KINDS; k++) {
			const real *row = k == CLS ? nr_taps_cls(&a->taps, t->x, i, t->cls)
						   : nr_taps_token(&a->taps, t->x, t->special, i, first + i);
			if (row) memcpy(s->of[k].rows + (first + i) * C, row, (size_t)C * sizeof *row);
		}
	}
	return NR_OK;
}

static int place(struct nr_analysis *a, struct seen *v, int64_t C, struct nr_error *err)
{
	const struct nr_tsne settings = NR_TSNE_DEFAULTS;
	const int64_t N = a->count, K = N < 2 || C < 2 ? 1 : 2;
	struct nr_pca pca;
	int code = nr_pca_init(&pca, N, C, v->rows, K, err);
	if (!code) {
		nr_pca_project(&pca, N, v->rows, v->pca);
		for (int64_t i = N - 1; K == 1 && i >= 0; i--) v->pca[2 * i] = v->pca[i], v->pca[2 * i + 1] = 0;
		for (int64_t k = 0; k < K; k++) v->explained[k] = pca.total > 0 ? pca.variance[k] / pca.total : 0;
	}
	nr_pca_release(&pca);
	if (!code) code = nr_tsne_run(&settings, N, C, v->rows, v->tsne, &v->result, err);
	return code ? code : nr_trustworthiness(N, C, v->rows, 2, v->tsne, TRUST, &v->trust, err);
}

static int64_t steps(const struct nr_analysis *a) { return (last(a)->cls != 0) + (last(a)->x->d[1] > last(a)->special); }

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct map *s = own;
	if (nr_analysis_spread(a, s->label, sizeof *s->label, err)) return err->code;
	const size_t row = (size_t)last(a)->x->d[2] * sizeof(real);
	for (int k = 0; k < KINDS; k++)
		if (s->of[k].there && nr_analysis_spread(a, s->of[k].rows, row, err)) return err->code;
	for (int k = 0; k < KINDS; k++)
		if (s->of[k].there && (place(a, &s->of[k], last(a)->x->d[2], err) || nr_analysis_tick(a, err))) return err->code;
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

enum { MOST_NAMES = 100 };               /* of classes, for the report's legends */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct map *s = own;
	json_t *all = json_pack("{s:s}", "colours", a->target ? "target" : "class"), *names = json_array();
	struct nr_scatter c = { 0 };
	nr_colour_samples(a, NULL, &c);
	for (int32_t i = 0; c.group_name && !a->target && i < c.groups && i < MOST_NAMES; i++)
		json_array_append_new(names, json_string(c.group_name[i] ? c.group_name[i] : ""));
	if (json_array_size(names)) json_object_set(all, "classes", names);
	json_decref(names);
	for (int k = 0; k < KINDS; k++) {
		const struct seen *v = &s->of[k];
		if (!v->there) continue;
		json_object_set_new(all, kind_name[k], json_pack("{s:[o,o], s:o, s:o, s:I, s:o, s:I}", "explained",
			nr_json_number(v->explained[0]), nr_json_number(v->explained[1]), "perplexity",
			nr_json_number(v->result.perplexity), "kl", nr_json_number(v->result.kl), "steps", (json_int_t)v->result.steps,
			"trustworthiness", nr_json_number(v->trust.value), "neighbours", (json_int_t)v->trust.k));
	}
	return all;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct map *s = own;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "", NR_LEFT);
	static const char *const titles[] = { "first component", "second", "perplexity", "KL", "trustworthiness" };
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) nr_table_column(t, titles[i], NR_RIGHT);
	for (int k = 0; k < KINDS; k++) {
		const struct seen *v = &s->of[k];
		if (!v->there) continue;
		nr_table_cell(t, "%s", nr_say(a, k == CLS ? "[CLS]" : "tokens"));
		for (int i = 0; i < 2; i++) nr_cell_number(t, 'f', 1, 100 * v->explained[i], " %");
		nr_cell_number(t, 'g', 3, v->result.perplexity, "");
		nr_cell_number(t, 'f', 3, v->result.kl, "");
		nr_cell_number(t, 'f', 3, v->trust.value, "");
	}
	nr_str_printf(text, "\nmap: principal components of the last layer, share of the variance; t-SNE and how far to trust it\n");
	nr_table_show(t, text);
}

static int draw(const struct nr_analysis *a, const struct map *s, int k, const char *dir, struct nr_error *err)
{
	static const char *const title[KINDS] = { "Map of the samples: [CLS] of the last layer",
		"Map of the samples: patch tokens of the last layer" };
	struct nr_sheet sheet = { 0 };
	struct nr_scatter c = { .name = "principal components", .x_label = "first component", .y_label = "second component", .n = a->count,
		.at = s->of[k].pca };
	nr_colour_samples(a, s->label, &c);
	nr_sheet_put(&sheet, "principal components", nr_svg_scatter(&sheet.panel, &c));
	c.name = "t-SNE", c.x_label = c.y_label = NULL, c.at = s->of[k].tsne, c.legend = true;
	nr_sheet_put(&sheet, "t-SNE", nr_svg_scatter(&sheet.panel, &c));
	char caption[512];
	snprintf(caption, sizeof caption,
		"%s The components hold %.0f %% of the variance. The t-SNE map's trustworthiness (%.3f; 1: all) is "
		"how far its neighbours are neighbours in the features; distances between its clusters mean nothing.",
		a->target ? "Colours show the target, dark where it is low: where they change steadily, a linear "
			"model can predict it."
			  : "A linear classifier can separate classes that lie apart.",
		100 * (s->of[k].explained[0] + s->of[k].explained[1]),
		s->of[k].trust.value);
	return nr_sheet_save(&sheet, dir, k == CLS ? "map_cls.svg" : "map_tokens.svg", nr_say(a, title[k]), caption, err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct map *s = own;
	static const char *const columns[] = { "kind", "sample", "label", "pc1", "pc2", "tsne1", "tsne2" };
	struct nr_table *t = nr_table_make();
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) nr_table_column(t, columns[i], i ? NR_RIGHT : NR_LEFT);
	int code = NR_OK;
	for (int k = 0; k < KINDS; k++) {
		const struct seen *v = &s->of[k];
		for (int64_t i = 0; v->there && i < a->count; i++) {
			nr_table_cell(t, "%s", kind_name[k]);
			nr_table_cell(t, "%lld", (long long)i);
			if (a->target) nr_cell_number(t, 'g', 7, a->target[i], "");
			else nr_table_cell(t, "%d", s->label[i]);
			for (int c = 0; c < 2; c++) nr_cell_number(t, 'g', 6, v->pca[2 * i + c], "");
			for (int c = 0; c < 2; c++) nr_cell_number(t, 'g', 6, v->tsne[2 * i + c], "");
		}
		if (v->there && !code) code = draw(a, s, k, dir, err);
	}
	const int saved = nr_table_save(t, dir, "map.csv", err);
	return code ? code : saved;
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "components, t-SNE",
		"the last layer's [CLS] and patch tokens in the plane, coloured by class; trustworthiness: "
		"whether neighbours on the map are neighbours in the data (1: all are)",
		"SepNorm's t-SNE" },
	{ .name = NULL },
};

static double trust(const json_t *of_cls) { return nr_part_number_at(of_cls, "trustworthiness"); }
static double percent(const json_t *of_cls)
{
	const json_t *explained = json_object_get(of_cls, "explained");
	return 100 * (json_number_value(json_array_get(explained, 0)) + json_number_value(json_array_get(explained, 1)));
}
static const struct nr_part_points points[] = {
	{ "t-SNE", "tsne1", "tsne2", NULL, NULL,
		"Trustworthiness #: near 1, neighbours on the map are neighbours in the features. Distances between "
		"clusters mean nothing.", trust },
	{ "PCA", "pc1", "pc2", "first component", "second component", "The two components hold # % of the variance.", percent },
	{ .kind = NULL },
};

const struct nr_part nr_part_map = {
	.name = "map", .title = "maps of the samples", .size = sizeof(struct map),
	.texts = true, .graphs = true, .deals = true, .steps = steps, .begin = begin, .take = take, .end = end,
	.json = json, .show = show, .write = write,
	.told = { .about = "maps of the samples by principal components and t-SNE",
		.numbers = numbers, .points = points,
		.measure = "t-SNE", .cite = "van der Maaten, Hinton 2008; Barnes-Hut: van der Maaten 2014" },
};
