/* Directions of tokens by head (DTN, Fig. 9): each head's part of one patch token of every picture, divided by its length, before and
 * after the norms of --site. Told: the length of the mean direction (1: all point the same way, 0: no common direction), the share of
 * the variance that the first two principal components hold, and where the directions lie on these. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/pca.h"
#include "base/table.h"
#include "draw/scatter.h"

enum { BEFORE, AFTER, SIDES, SHOWN = 6 };       /* heads drawn */
static const char *const side_name[SIDES] = { "before", "after" };

struct seen { real *rows; double *at; double *common, *share; };        /* (H,count,d), (H,count,2), (H), (H) */
struct site { int64_t special; bool there; struct seen side[SIDES]; };
struct directions { struct site *site; int32_t *label; };

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct directions *s = own;
	const int64_t H = a->taps.heads;
	s->site = nr_arena_alloc(a->arena, (size_t)(a->taps.sites + 1) * sizeof *s->site);
	s->label = nr_arena_alloc(a->arena, (size_t)a->count * sizeof *s->label);
	bool whole = s->site && s->label;
	for (int64_t i = 0; whole && i < a->taps.sites; i++) {
		const nr_t *x = a->taps.site[i].before;
		struct site *v = &s->site[i];
		v->special = x->tok ? x->tok->special : 0;
		v->there = x->d[1] > v->special && x->d[2] % H == 0 && x->d[2] / H >= 2 && nr_cols(a->taps.site[i].after) == x->d[2];
		for (int k = 0; v->there && k < SIDES; k++) {
			struct seen *e = &v->side[k];
			e->rows = nr_arena_alloc(a->arena, (size_t)(a->count * x->d[2]) * sizeof *e->rows);
			e->at = nr_arena_alloc(a->arena, (size_t)(2 * H * a->count) * sizeof *e->at);
			e->common = nr_arena_alloc(a->arena, (size_t)H * sizeof *e->common);
			e->share = nr_arena_alloc(a->arena, (size_t)H * sizeof *e->share);
			whole = whole && e->rows && e->at && e->common && e->share;
		}
	}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot keep directions", NULL, "out of memory");
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct directions *s = own;
	const int64_t H = a->taps.heads;
	(void)err;
	for (int64_t i = 0; i < b->samples; i++) s->label[first + i] = b->label[i];
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; s->site[l].there && k < SIDES; k++) {
			const nr_t *t = k == BEFORE ? a->taps.site[l].before : a->taps.site[l].after;
			const int64_t d = t->d[2] / H;
			for (int64_t i = 0; i < b->samples * H; i++) {
				const int64_t n = i / H, h = i % H;
				const real *x = nr_taps_token(&a->taps, t, s->site[l].special, n, first + n) + h * d;
				real *to = s->site[l].side[k].rows + (h * a->count + first + n) * d;
				double square = 0;
				for (int64_t c = 0; c < d; c++) square += (double)x[c] * (double)x[c];
				for (int64_t c = 0; c < d; c++) to[c] = (real)(square > 0 ? (double)x[c] / sqrt(square) : 0);
			}
		}
	return NR_OK;
}

static int look_at(struct nr_analysis *a, struct seen *v, int64_t h, int64_t d, struct nr_error *err)
{
	struct nr_pca p;
	const real *rows = v->rows + h * a->count * d;
	double square = 0;
	const int code = nr_pca_init(&p, a->count, d, rows, 2, err);
	if (!code) {
		for (int64_t c = 0; c < d; c++) square += p.mean[c] * p.mean[c];
		v->common[h] = sqrt(square);
		v->share[h] = p.total > 0 ? (p.variance[0] + p.variance[1]) / p.total : NAN;
		nr_pca_project(&p, a->count, rows, v->at + 2 * h * a->count);
	}
	nr_pca_release(&p);
	return code;
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct directions *s = own;
	const int64_t H = a->taps.heads;
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int64_t i = 0; s->site[l].there && i < SIDES * H; i++)
			if (look_at(a, &s->site[l].side[i / H], i % H, a->taps.site[l].before->d[2] / H, err)) return err->code;
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct directions *s = own;
	json_t *all = json_array();
	for (int64_t l = 0; l < a->taps.sites; l++) {
		if (!s->site[l].there) continue;
		json_t *site = json_pack("{s:s}", "site", a->taps.site[l].name);
		for (int k = 0; k < SIDES; k++)
			json_object_set_new(site, side_name[k], json_pack("{s:o, s:o}", "common", nr_json_numbers(a->taps.heads,
				s->site[l].side[k].common), "first_two", nr_json_numbers(a->taps.heads, s->site[l].side[k].share)));
		json_array_append_new(all, site);
	}
	if (json_array_size(all)) return all;
	json_decref(all);
	return NULL;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct directions *s = own;
	const int64_t H = a->taps.heads;
	static const char *const titles[] = { "site", "side", "common direction", "of heads", "two components" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i < 2 ? NR_LEFT : NR_RIGHT);
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; s->site[l].there && k < SIDES; k++) {
			const struct seen *v = &s->site[l].side[k];
			double mean = 0, share = 0, low = INFINITY, high = -INFINITY;
			for (int64_t h = 0; h < H; h++) {
				mean += v->common[h] / (double)H;
				share += v->share[h] / (double)H;
				low = fmin(low, v->common[h]);
				high = fmax(high, v->common[h]);
			}
			nr_table_cell(t, "%s", a->taps.site[l].name);
			nr_table_cell(t, "%s", side_name[k]);
			nr_table_cell(t, "%.3f", mean);
			nr_table_cell(t, "%.3f to %.3f", low, high);
			nr_cell_number(t, 'f', 1, 100 * share, " %");
		}
	if (!nr_table_rows(t)) {
		nr_table_free(t);
		return;
	}
	nr_str_printf(text, "\n%s\n", nr_say(a, "directions of the heads' parts of patch tokens; 1: all point the same way"));
	nr_table_show(t, text);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct directions *s = own;
	const int64_t shown = a->taps.heads < SHOWN ? a->taps.heads : SHOWN;
	struct nr_sheet sheet = { 0 };
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int64_t i = 0; s->site[l].there && i < SIDES * shown; i++) {
			const struct seen *v = &s->site[l].side[i / shown];
			const int64_t h = i % shown;
			char title[96];
			snprintf(title, sizeof title, "%.40s%shead %lld", h ? "" : a->taps.site[l].name,
				h ? "" : i / shown ? " after, " : " before, ", (long long)h);
			if (!h) nr_sheet_row(&sheet);
			struct nr_scatter c = { .name = title, .n = a->count, .at = v->at + 2 * h * a->count, .side = 220, .reach = 1.2 };
			nr_colour_samples(a, s->label, &c);
			nr_sheet_put(&sheet, title, nr_svg_scatter(&sheet.panel, &c));
		}
	if (!sheet.body.len) return NR_OK;
	return nr_sheet_save(&sheet, dir, "directions.svg", nr_say(a, "Directions of patch tokens by head, on their first two components"),
		nr_say(a, a->target
			? "Unit vectors, all squares with the same scale: points close together are tokens that "
		"point the same way. After layer normalization only directions distinguish tokens. Colours show the "
		"target, dark where it is low." :
		"Unit vectors, all squares with the same scale: points close together are tokens that point the same "
		"way. DTN lets lengths differ, so directions need not; after layer normalization only directions "
		"distinguish tokens. Colours show classes."), err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "common",
		"length of the mean unit vector of a head's part of the patch tokens: 1 when all point the same way",
		"" },
	{ "two components",
		"share of their variance on the first two principal components, which the drawing shows",
		"DTN, Fig. 9" },
	{ .name = NULL },
};

const struct nr_part nr_part_directions = {
	.name = "directions", .title = "directions of tokens", .size = sizeof(struct directions),
	.texts = true, .graphs = true, .taps = NR_TAPS_SITES, .begin = begin,
	.take = take, .end = end, .json = json, .show = show, .write = write,
	.told = { .about = "directions of tokens, by head, before and after a norm",
		.numbers = numbers },
};
