/* Where samples lie: the last layer's [CLS] and patch tokens in the plane, by the two leading principal components and by t-SNE
 * (perplexity 30 or what the number of samples allows), coloured by class, with how far the layout can be trusted. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/canvas.h"
#include "analysis/pca.h"
#include "analysis/trustworthiness.h"
#include "analysis/tsne.h"
#include "base/table.h"

enum { CLS, TOKENS, KINDS, TRUST = 12, SIDE = 420, MARGIN = 24, COLOURS = 10 };
static const char *const kind_name[KINDS] = { "cls", "tokens" };
static const uint32_t colour[COLOURS] = { 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x222222, 0x999999, 0x8c510a,
	0x6a3d9a };

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
	for (int k = 0; k < KINDS; k++)
		if (s->of[k].there && (place(a, &s->of[k], last(a)->x->d[2], err) || nr_analysis_tick(a, err))) return err->code;
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct map *s = own;
	json_t *all = json_object();
	(void)a;
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
	(void)a;
	nr_table_column(t, "", NR_LEFT);
	static const char *const titles[] = { "first component", "second", "perplexity", "KL", "trustworthiness" };
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) nr_table_column(t, titles[i], NR_RIGHT);
	for (int k = 0; k < KINDS; k++) {
		const struct seen *v = &s->of[k];
		if (!v->there) continue;
		nr_table_cell(t, "%s", k == CLS ? "[CLS]" : kind_name[k]);
		for (int i = 0; i < 2; i++) nr_cell_number(t, 'f', 1, 100 * v->explained[i], " %");
		nr_cell_number(t, 'g', 3, v->result.perplexity, "");
		nr_cell_number(t, 'f', 3, v->result.kl, "");
		nr_cell_number(t, 'f', 3, v->trust.value, "");
	}
	nr_str_printf(text, "\nmap: principal components of the last layer, share of the variance; t-SNE and how far to trust it\n");
	nr_table_show(t, text);
}

/* Points in a square; the same scale on both axes. */
static void scatter(struct nr_picture *p, int64_t x0, const struct map *s, int64_t n, const double *at, const char *title)
{
	double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
	for (int64_t i = 0; i < 2 * n; i++) low[i % 2] = fmin(low[i % 2], at[i]), high[i % 2] = fmax(high[i % 2], at[i]);
	const double span = fmax(fmax(high[0] - low[0], high[1] - low[1]), 1e-30), scale = (SIDE - 8) / span;
	nr_canvas_fill(p, x0, MARGIN, SIDE, SIDE, NR_PALE, .35);
	nr_canvas_text(p, x0, 8, NR_BLACK, "%s", title);
	for (int64_t i = 0; i < n; i++) {
		const double x = (at[2 * i] - (low[0] + high[0]) / 2) * scale, y = (at[2 * i + 1] - (low[1] + high[1]) / 2) * scale;
		const uint32_t rgb = s->label[i] < 0 ? NR_GREY : colour[s->label[i] % COLOURS];
		nr_canvas_fill(p, x0 + SIDE / 2 + (int64_t)lround(x) - 1, MARGIN + SIDE / 2 - (int64_t)lround(y) - 1, 3, 3, rgb, .8);
	}
}

static int draw(const struct nr_analysis *a, const struct map *s, int k, const char *path, struct nr_error *err)
{
	struct nr_picture p = { 0 };
	if (!path) return nr_fail(err, NR_EMEMORY, "cannot draw", "map", "out of memory");
	if (nr_canvas_open(&p, 2 * SIDE + 3 * MARGIN, SIDE + 2 * MARGIN, err)) return err->code;
	scatter(&p, MARGIN, s, a->count, s->of[k].pca, "PRINCIPAL COMPONENTS 1 AND 2");
	scatter(&p, SIDE + 2 * MARGIN, s, a->count, s->of[k].tsne, "T-SNE");
	const int code = nr_picture_write_png(&p, path, err);
	nr_picture_release(&p);
	return code;
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
			nr_table_cell(t, "%d", s->label[i]);
			for (int c = 0; c < 2; c++) nr_cell_number(t, 'g', 6, v->pca[2 * i + c], "");
			for (int c = 0; c < 2; c++) nr_cell_number(t, 'g', 6, v->tsne[2 * i + c], "");
		}
		if (v->there && !code) code = draw(a, s, k, nr_arena_printf(a->arena, "%s/map_%s.png", dir, kind_name[k]), err);
	}
	const int saved = nr_table_save(t, dir, "map.csv", err);
	return code ? code : saved;
}

const struct nr_part nr_part_map = {
	.name = "map", .title = "where samples lie", .size = sizeof(struct map), .steps = steps, .begin = begin, .take = take, .end = end,
	.json = json, .show = show, .write = write,
};
