/* Singular values of embeddings (SepNorm, Fig. 4 b and c): [CLS] of every picture, and one of its patch tokens, drawn at random, after the
 * last layer. Values are raw: neither centred nor divided by the largest, for their size is what is compared. */
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/uniformity.h"
#include "base/rng.h"
#include "base/table.h"
#include "draw/svg.h"
#include "graph/streams.h"

enum { CLS, TOKEN, KINDS };
static const char *const kind_name[KINDS] = { "cls", "token" };

struct spectrum {
	real *x[KINDS];                     /* (count,width); NULL: the model has no [CLS] */
	double *value[KINDS];               /* (n) */
	int64_t n;
};

static const struct nr_layer_tap *last_layer(const struct nr_analysis *a) { return &a->taps.layer[a->taps.layers - 1]; }

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct spectrum *s = own;
	const int64_t C = last_layer(a)->x->d[2];
	s->n = a->count < C ? a->count : C;
	for (int k = 0; k < KINDS; k++) {
		if (k == CLS && !last_layer(a)->cls) continue;
		s->x[k] = nr_arena_alloc(a->arena, (size_t)(a->count * C) * sizeof *s->x[k]);
		s->value[k] = nr_arena_alloc(a->arena, (size_t)s->n * sizeof *s->value[k]);
		if (!s->x[k] || !s->value[k]) return nr_fail(err, NR_EMEMORY, "cannot keep embeddings", NULL, "out of memory");
	}
	return NR_OK;
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct spectrum *s = own;
	const struct nr_layer_tap *l = last_layer(a);
	const int64_t C = l->x->d[2];
	const struct nr_rng rng = nr_rng_make(0, NR_STREAM_SUBSET, 1);
	(void)err;
	for (int64_t i = 0; i < b->samples; i++) {
		const int64_t number = (int64_t)(nr_rng_uniform(rng, (uint64_t)(first + i)) * 1e9);
		const real *row[KINDS] = { nr_taps_cls(&a->taps, l->x, i, l->cls), nr_taps_token(&a->taps, l->x, l->special, i, number) };
		for (int k = 0; k < KINDS; k++)
			for (int64_t c = 0; s->x[k] && c < C; c++) s->x[k][(first + i) * C + c] = row[k] ? row[k][c] : (real)0;
	}
	return NR_OK;
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct spectrum *s = own;
	for (int k = 0; k < KINDS; k++)
		if (s->x[k] && nr_spectrum(a->count, last_layer(a)->x->d[2], s->x[k], 0, s->value[k], err)) return err->code;
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct spectrum *s = own;
	json_t *values = json_array();
	for (int64_t i = 0; i < s->n; i++) {
		json_t *row = json_object();
		for (int k = 0; k < KINDS; k++)
			if (s->x[k]) json_object_set_new(row, kind_name[k], nr_json_number(s->value[k][i]));
		json_array_append_new(values, row);
	}
	return json_pack("{s:I, s:o}", "embeddings", (json_int_t)a->count, "values", values);
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct spectrum *s, bool all)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "index", NR_RIGHT);
	if (s->x[CLS]) nr_table_column(t, all ? "cls" : nr_say(a, "[CLS]"), NR_RIGHT);
	nr_table_column(t, all ? "token" : nr_say(a, "patch tokens"), NR_RIGHT);
	for (int64_t i = 0; i < s->n; i = all || !i ? i + 1 : 2 * i) {
		nr_table_cell(t, "%lld", (long long)i + 1);
		for (int k = 0; k < KINDS; k++)
			if (s->x[k]) nr_cell_number(t, 'g', all ? 9 : 4, s->value[k][i], "");
	}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	nr_str_printf(text, "\nsingular values of %lld embeddings after the last layer\n", (long long)a->count);
	nr_table_show(table_of(a, own, false), text);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	return nr_table_save(table_of(a, own, true), dir, "singular_values.csv", err);
}

static const struct nr_part_number numbers[] = {
	{ "values[].cls, .token", "singular values, raw, of one [CLS] and of one randomly drawn patch token of each picture, after the last layer",
		"SepNorm, Fig. 4 (b, c)" },
	{ .name = NULL },
};
static const struct nr_part_curve curves[] = {
	{ "Singular values of [CLS]", "singular value", "Large values far to the right are many directions in use.", "values[].cls", NR_LOG,
		"index" },
	{ "Singular values of the tokens", "singular value", "Large values far to the right are many directions in use.", "values[].token",
		NR_LOG, "index" },
	{ .title = NULL },
};

const struct nr_part nr_part_spectrum = {
	.name = "spectrum", .title = "singular values", .size = sizeof(struct spectrum), .texts = true, .graphs = true, .begin = begin,
	.take = take, .end = end, .json = json, .show = show, .write = write,
	.told = { .about = "singular values of [CLS] and of tokens after the last layer", .numbers = numbers, .curves = curves },
};
