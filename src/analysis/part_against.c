/* Two models on the same pictures: linear CKA between every layer of one and every layer of the other, for [CLS] and for one patch
 * token of each picture. Kornblith et al. 2019 (arXiv:1905.00414). */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/cka.h"
#include "base/table.h"
#include "draw/heatmap.h"

enum { CLS, TOKENS, KINDS };
static const char *const kind_name[KINDS] = { "cls", "tokens" };

/* (layers) of (count,C), NULL: none; (layers,layers of the other) */
struct against { real **own[KINDS], **other[KINDS]; double *cka[KINDS]; };

static bool keep_room(struct nr_analysis *a, const struct nr_taps *t, int k, real ***rows)
{
	bool whole = (*rows = nr_arena_alloc(a->arena, (size_t)t->layers * sizeof **rows)) != NULL;
	for (int64_t l = 0; whole && l < t->layers; l++) {
		const struct nr_layer_tap *v = &t->layer[l];
		if (k == CLS ? !v->cls : v->x->d[1] <= v->special) continue;
		(*rows)[l] = nr_arena_alloc(a->arena, (size_t)(a->count * v->x->d[2]) * sizeof(real));
		whole = (*rows)[l] != NULL;
	}
	return whole;
}

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct against *s = own;
	bool whole = true;
	for (int k = 0; a->other && k < KINDS; k++) {
		const size_t cells = (size_t)(a->taps.layers * a->other_taps.layers);
		s->cka[k] = nr_arena_alloc(a->arena, cells * sizeof *s->cka[k]);
		whole = whole && s->cka[k] && keep_room(a, &a->taps, k, &s->own[k]) && keep_room(a, &a->other_taps, k, &s->other[k]);
	}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot compare with", a->other_name, "out of memory");
}

static void keep(const struct nr_taps *t, int k, real **rows, int64_t samples, int64_t first)
{
	for (int64_t l = 0; l < t->layers; l++) {
		const struct nr_layer_tap *v = &t->layer[l];
		const int64_t C = v->x->d[2];
		for (int64_t i = 0; rows[l] && i < samples; i++) {
			const real *row = k == CLS ? nr_taps_cls(t, v->x, i, true) : nr_taps_token(t, v->x, v->special, i, first + i);
			memcpy(rows[l] + (first + i) * C, row, (size_t)C * sizeof *row);
		}
	}
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct against *s = own;
	(void)err;
	for (int k = 0; a->other && k < KINDS; k++) {
		keep(&a->taps, k, s->own[k], b->samples, first);
		keep(&a->other_taps, k, s->other[k], b->samples, first);
	}
	return NR_OK;
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct against *s = own;
	const int64_t rows = a->taps.layers, cols = a->other_taps.layers;
	for (int64_t i = 0; a->other && i < KINDS * rows * cols; i++) {
		const int64_t k = i / (rows * cols), r = i / cols % rows, c = i % cols;
		const real *x = s->own[k][r], *y = s->other[k][c];
		double v = NAN;
		struct nr_error why = { 0 };
		const int code = x && y ? nr_cka(a->count, a->taps.layer[r].x->d[2], x, a->other_taps.layer[c].x->d[2], y, &v, &why) : 0;
		if (code && code != NR_EVALUE) {        /* that one: rows that are all the same, as in part_similarity.c */
			*err = why;
			return code;
		}
		s->cka[k][r * cols + c] = code ? NAN : v;
	}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static bool any(const struct nr_analysis *a, const struct against *s, int k)
{
	for (int64_t i = 0; i < a->taps.layers * a->other_taps.layers; i++)
		if (isfinite(s->cka[k][i])) return true;
	return false;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct against *s = own;
	const int64_t cols = a->other_taps.layers;
	if (!a->other) return NULL;
	json_t *all = json_pack("{s:s}", "file", a->other_name);
	for (int k = 0; k < KINDS; k++) {
		if (!any(a, s, k)) continue;
		json_t *rows = json_array();
		for (int64_t r = 0; r < a->taps.layers; r++) json_array_append_new(rows, nr_json_numbers(cols, s->cka[k] + r * cols));
		json_object_set_new(all, kind_name[k], rows);
	}
	return all;
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct against *s, int k)
{
	const int64_t cols = a->other_taps.layers;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "layer", NR_LEFT);
	for (int64_t c = 0; c < cols; c++) nr_table_column(t, a->other_taps.layer[c].name, NR_RIGHT);
	for (int64_t i = 0; i < a->taps.layers * cols; i++) {
		if (i % cols == 0) nr_table_cell(t, "%s", a->taps.layer[i / cols].name);
		nr_cell_number(t, 'f', 3, s->cka[k][i], "");
	}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	enum { WIDE = 14 };                             /* more layers than a terminal has room for: see the picture */
	for (int k = 0; a->other && k < KINDS && a->other_taps.layers <= WIDE; k++) {
		if (!any(a, own, k)) continue;
		nr_str_printf(text, "\nlinear CKA with the layers of %s (columns), %s\n", a->other_name,
			nr_say(a, k == CLS ? "[CLS]" : "patch tokens"));
		nr_table_show(table_of(a, own, k), text);
	}
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct against *s = own;
	struct nr_sheet sheet = { 0 };
	if (!a->other) return NR_OK;
	const int64_t rows = a->taps.layers, cols = a->other_taps.layers;
	const char **name = nr_arena_alloc(a->arena, (size_t)(rows + cols) * sizeof *name);
	if (!name) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	for (int64_t l = 0; l < rows; l++) name[l] = a->taps.layer[l].name;
	for (int64_t l = 0; l < cols; l++) name[rows + l] = a->other_taps.layer[l].name;
	for (int k = 0; k < KINDS; k++) {
		if (!any(a, s, k)) continue;
		if (nr_table_save(table_of(a, s, k), dir, k == CLS ? "against_cls.csv" : "against_tokens.csv", err)) break;
		nr_sheet_put(&sheet, nr_say(a, k == CLS ? "[CLS]" : "patch tokens"), nr_svg_heatmap(&sheet.panel, &(struct nr_heatmap){
			.name = nr_say(a, k == CLS ? "CKA with the other model, [CLS]" : "CKA with the other model, patch tokens"),
				.y_label = "this model",
			.x_label = "the other model", .rows = rows, .cols = cols, .value = s->cka[k], .row_label = name,
			.col_label = name + rows, .high = 1 }));
	}
	if (!err->code && sheet.body.len)
		return nr_sheet_save(&sheet, dir, "against.svg", "Layers of two models: linear CKA",
			"1: the layers are equal up to a rotation. A bright diagonal means that both models do the "
			"same things in the same order; a bright column, that one layer of the other model holds "
			"what many layers of this one do; dark, that they differ.",
			err);
	nr_sheet_release(&sheet);
	return err->code;
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "CKA", "the same between the layers of this model (rows) and those of `--against`", "" },
	{ .name = NULL },
};

const struct nr_part nr_part_against = {
	.name = "against", .title = "comparison with another model (--against)", .size = sizeof(struct against),
		.graphs = true, .begin = begin,
		.take = take, .end = end, .json = json, .show = show, .write = write,
	.told = { .about = "similarity of layers to those of --against (CKA)",
		.numbers = numbers },
};
