/* How alike layers are: linear CKA between every two of them, for [CLS] and for one patch token of each picture. */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/cka.h"
#include "base/table.h"
#include "draw/heatmap.h"

enum { CLS, TOKENS, KINDS };
static const char *const kind_name[KINDS] = { "cls", "tokens" };

struct similarity { real **rows[KINDS]; double *cka[KINDS]; };  /* (layers) of (count,C), NULL: none; (layers,layers) */

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct similarity *s = own;
	const int64_t L = a->taps.layers;
	bool whole = true;
	for (int k = 0; k < KINDS; k++) {
		s->rows[k] = nr_arena_alloc(a->arena, (size_t)L * sizeof *s->rows[k]);
		s->cka[k] = nr_arena_alloc(a->arena, (size_t)(L * L) * sizeof *s->cka[k]);
		whole = whole && s->rows[k] && s->cka[k];
		for (int64_t l = 0; whole && l < L; l++) {
			const struct nr_layer_tap *t = &a->taps.layer[l];
			if (k == CLS ? !t->cls : t->x->d[1] <= t->special) continue;
			s->rows[k][l] = nr_arena_alloc(a->arena, (size_t)(a->count * t->x->d[2]) * sizeof(real));
			whole = s->rows[k][l] != NULL;
		}
	}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot compare layers", NULL, "out of memory");
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct similarity *s = own;
	(void)err;
	for (int64_t l = 0; l < a->taps.layers; l++) {
		const struct nr_layer_tap *t = &a->taps.layer[l];
		const int64_t C = t->x->d[2];
		for (int64_t i = 0; i < b->samples; i++) {
			const real *row[KINDS] = { nr_taps_cls(&a->taps, t->x, i, t->cls),
				nr_taps_token(&a->taps, t->x, t->special, i, first + i) };
			for (int k = 0; k < KINDS; k++)
				if (row[k] && s->rows[k][l]) memcpy(s->rows[k][l] + (first + i) * C, row[k], (size_t)C * sizeof(real));
		}
	}
	return NR_OK;
}

/* A layer whose rows are all the same (the class token before it has seen anything) is like no other: no value. */
static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct similarity *s = own;
	const int64_t L = a->taps.layers;
	for (int k = 0; k < KINDS; k++)
		for (int64_t i = 0; i < L; i++)
			for (int64_t j = 0; j <= i; j++) {
				double v = NAN;
				struct nr_error why = { 0 };
				const real *x = s->rows[k][i], *y = s->rows[k][j];
				const int64_t Cx = a->taps.layer[i].x->d[2], Cy = a->taps.layer[j].x->d[2];
				const int code = x && y ? nr_cka(a->count, Cx, x, Cy, y, &v, &why) : 0;
				if (code && code != NR_EVALUE) {
					*err = why;
					return code;
				}
				s->cka[k][i * L + j] = s->cka[k][j * L + i] = code ? NAN : v;
			}
	return NR_OK;
}

static bool any(const struct nr_analysis *a, const struct similarity *s, int k)
{
	for (int64_t i = 0; i < a->taps.layers * a->taps.layers; i++)
		if (isfinite(s->cka[k][i])) return true;
	return false;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct similarity *s = own;
	const int64_t L = a->taps.layers;
	json_t *all = json_object();
	for (int k = 0; k < KINDS; k++) {
		if (!any(a, s, k)) continue;
		json_t *rows = json_array();
		for (int64_t i = 0; i < L; i++) json_array_append_new(rows, nr_json_numbers(L, s->cka[k] + i * L));
		json_object_set_new(all, kind_name[k], rows);
	}
	return all;
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct similarity *s, int k)
{
	const int64_t L = a->taps.layers;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "layer", NR_LEFT);
	for (int64_t j = 0; j < L; j++) nr_table_column(t, a->taps.layer[j].name, NR_RIGHT);
	for (int64_t i = 0; i < L; i++) {
		nr_table_cell(t, "%s", a->taps.layer[i].name);
		for (int64_t j = 0; j < L; j++) nr_cell_number(t, 'f', 3, s->cka[k][i * L + j], "");
	}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	enum { WIDE = 14 };                             /* more layers than a terminal has room for: see the picture */
	for (int k = 0; k < KINDS && a->taps.layers <= WIDE; k++) {
		if (!any(a, own, k)) continue;
		nr_str_printf(text, "\nsimilarity of layers (linear CKA), %s\n", nr_say(a, k == CLS ? "[CLS]" : "patch tokens"));
		nr_table_show(table_of(a, own, k), text);
	}
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct similarity *s = own;
	const int64_t L = a->taps.layers;
	struct nr_sheet sheet = { 0 };
	const char **name = nr_arena_alloc(a->arena, (size_t)L * sizeof *name);
	if (!name) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	for (int64_t l = 0; l < L; l++) name[l] = a->taps.layer[l].name;
	for (int k = 0; k < KINDS; k++) {
		if (!any(a, s, k)) continue;
		if (nr_table_save(table_of(a, s, k), dir, k == CLS ? "similarity_cls.csv" : "similarity_tokens.csv", err)) break;
		nr_sheet_put(&sheet, nr_say(a, k == CLS ? "[CLS]" : "patch tokens"), nr_svg_heatmap(&sheet.panel, &(struct nr_heatmap){
			.name = nr_say(a, k == CLS ? "CKA of layers, [CLS]" : "CKA of layers, patch tokens"), .rows = L,
				.cols = L, .value = s->cka[k],
			.row_label = name, .col_label = name, .high = 1 }));
	}
	if (!err->code && sheet.body.len)
		return nr_sheet_save(&sheet, dir, "similarity.svg", "Similarity of layers: linear CKA",
			"1: one layer is a rotation of the other. Bright blocks around the diagonal are stages in "
			"which little changes; a dark row is a layer that transforms its input.", err);
	nr_sheet_release(&sheet);
	return err->code;
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "CKA", "linear CKA between every two layers: 1 when one is a rotation of the other", "" },
	{ .name = NULL },
};

static struct nr_part_matrix matrix(const json_t *analysis, struct nr_arena *arena)
{
	const json_t *all = json_object_get(analysis, "similarity"), *rows = json_object_get(all, "cls"),
		     *layers = json_object_get(analysis, "layers");
	if (!rows) rows = json_object_get(all, "tokens");
	/* Before the first block [CLS] is the same for every picture, and nothing can be said of it. */
	const size_t all_layers = json_array_size(rows), skip = all_layers && !json_is_number(json_array_get(json_array_get(rows, 0), 0));
	const size_t n = all_layers - skip;
	struct nr_part_matrix m = nr_part_matrix_make(n, n, arena);
	for (size_t i = 0; i < (size_t)m.rows; i++) {
		const char *name = json_string_value(json_object_get(json_array_get(layers, i + skip), "name"));
		m.row[i] = name && *name ? nr_part_short_name(name, arena) : nr_arena_printf(arena, "%zu", i + skip);
		for (size_t k = 0; k < n; k++)
			m.value[i * n + k] = nr_part_number_at(json_array_get(json_array_get(rows, i + skip), k + skip), "");
	}
	m.col = m.row;
	return m;
}
static const struct nr_part_heat heats[] = {
	{ "Similarity of layers (CKA)", "layer", "layer",
		"Bright: two layers hold the same information; a dark corner: the last layers differ from the first.", 0, 1, matrix },
	{ .title = NULL },
};

const struct nr_part nr_part_similarity = {
	.name = "similarity", .title = "similarity of layers", .size = sizeof(struct similarity),
	.texts = true, .graphs = true, .begin = begin, .take = take, .end = end,
	.json = json, .show = show, .write = write,
	.told = { .about = "similarity of layers to each other (CKA)",
		.numbers = numbers, .heats = heats, .measure = "CKA", .cite = "arXiv:1905.00414" },
};
