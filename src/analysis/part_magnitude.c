/* Token magnitude by head (DTN, Fig. 1): the length of each head's part of a patch token, over the grid, before and after the norms
 * of --site. Layer normalization makes all lengths alike; a norm over tokens leaves them different. Measured for each head: the mean
 * length, and its variation over the patches of a picture (deviation over mean), averaged over pictures. */
#include <math.h>

#include "analysis/analysis.h"
#include "base/table.h"
#include "draw/heatmap.h"

enum { BEFORE, AFTER, SIDES };
static const char *const side_name[SIDES] = { "before", "after" };

struct seen { double *mean, *first, *variation, *length; };     /* (H,N) over all pictures, of the first one; (H); (H) */
struct site { int64_t special, h, w, N; bool there, grid; struct seen side[SIDES]; };    /* N: tokens,
	some of them padding without a grid */
struct magnitude { struct site *site; double *part; };          /* (batch,H,N) */

static double *room(const struct nr_analysis *a, int64_t n) { return nr_arena_alloc(a->arena, (size_t)n * sizeof(double)); }

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct magnitude *s = own;
	const int64_t H = a->taps.heads;
	int64_t most = 0;
	bool whole = (s->site = nr_arena_alloc(a->arena, (size_t)(a->taps.sites + 1) * sizeof *s->site)) != NULL;
	for (int64_t i = 0; whole && i < a->taps.sites; i++) {
		const nr_t *x = a->taps.site[i].before;
		struct site *v = &s->site[i];
		const struct nr_tokens none = { 0 }, *tok = x->tok ? x->tok : &none;
		*v = (struct site){ .special = tok->special, .h = tok->h, .w = tok->w };
		const int64_t N = v->N = x->d[1] - v->special;
		v->grid = v->h * v->w == N;
		v->there = N > 0 && (v->grid || a->view.form) && x->d[2] % H == 0 && nr_cols(a->taps.site[i].after) == x->d[2];
		most = v->there && N > most ? N : most;
		for (int k = 0; k < SIDES; k++) {
			v->side[k] = (struct seen){ room(a, H * N + 1), room(a, H * N + 1), room(a, H), room(a, H) };
			whole = whole && v->side[k].mean && v->side[k].first && v->side[k].variation && v->side[k].length;
		}
	}
	s->part = room(a, a->batch * H * most + 1);
	return whole && s->part ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot keep magnitudes", NULL, "out of memory");
}

/* Lengths of the heads' parts of the N patch tokens of one picture; x (T,C), out (H,N). */
static void lengths(const struct site *v, int64_t N, int64_t H, int64_t C, const real *x, double *out)
{
	const int64_t d = C / H;
	for (int64_t i = 0; i < N; i++)
		for (int64_t h = 0; h < H; h++) {
			double square = 0;
			for (int64_t c = 0; c < d; c++) {
				const double e = (double)x[(v->special + i) * C + h * d + c];
				square += e * e;
			}
			out[h * N + i] = sqrt(square);
		}
}

/* Only on a grid is token i of one picture in the place of token i of another. */
static void fold(struct seen *k, int64_t H, int64_t N, const double *part, double count, bool first, bool grid)
{
	for (int64_t h = 0; h < H; h++) {
		double sum = 0, square = 0;
		for (int64_t i = 0; i < N; i++) {
			const double v = part[h * N + i];
			sum += v / (double)N;
			square += v * v / (double)N;
			if (grid) k->mean[h * N + i] += v / count;
			if (grid && first) k->first[h * N + i] = v;
		}
		k->length[h] += sum / count;
		k->variation[h] += sum > 0 ? sqrt(fmax(0, square - sum * sum)) / sum / count : 0;
	}
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct magnitude *s = own;
	const int64_t H = a->taps.heads;
	(void)err;
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; s->site[l].there && k < SIDES; k++) {
			const struct site *v = &s->site[l];
			const nr_t *t = k == BEFORE ? a->taps.site[l].before : a->taps.site[l].after;
			const int64_t C = t->d[2], N = v->N;
			const real *x = nr_plan_data(a->taps.plan, t);
#pragma omp parallel for schedule(static)
			for (int64_t i = 0; i < b->samples; i++)
				lengths(v, nr_taps_count(&a->taps, t, v->special, i) - v->special, H, C, x + i * t->d[1] * C,
					s->part + i * H * N);
			for (int64_t i = 0; i < b->samples; i++)
				fold(&s->site[l].side[k], H, nr_taps_count(&a->taps, t, v->special, i) - v->special, s->part + i * H * N,
					(double)a->count, first + i == 0, v->grid);
		}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct magnitude *s = own;
	const int64_t H = a->taps.heads;
	json_t *all = json_array();
	for (int64_t l = 0; l < a->taps.sites; l++) {
		const struct site *v = &s->site[l];
		if (!v->there) continue;
		json_t *site = json_pack("{s:s, s:I, s:I}", "site", a->taps.site[l].name, "h", (json_int_t)v->h, "w", (json_int_t)v->w);
		for (int k = 0; k < SIDES; k++) {
			json_t *side = json_pack("{s:o, s:o}", "length", nr_json_numbers(H, v->side[k].length), "variation",
				nr_json_numbers(H, v->side[k].variation));
			if (v->grid) json_object_set_new(side, "mean", nr_json_numbers(H * v->N, v->side[k].mean));
			json_object_set_new(site, side_name[k], side);
		}
		json_array_append_new(all, site);
	}
	if (json_array_size(all)) return all;
	json_decref(all);
	return NULL;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct magnitude *s = own;
	const int64_t H = a->taps.heads;
	static const char *const titles[] = { "site", "side", "length", "variation", "of heads" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i < 2 ? NR_LEFT : NR_RIGHT);
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; s->site[l].there && k < SIDES; k++) {
			const struct seen *v = &s->site[l].side[k];
			double length = 0, mean = 0, low = INFINITY, high = -INFINITY;
			for (int64_t h = 0; h < H; h++) {
				length += v->length[h] / (double)H;
				mean += v->variation[h] / (double)H;
				low = fmin(low, v->variation[h]);
				high = fmax(high, v->variation[h]);
			}
			nr_table_cell(t, "%s", a->taps.site[l].name);
			nr_table_cell(t, "%s", side_name[k]);
			nr_table_cell(t, "%.3g", length);
			nr_table_cell(t, "%.3f", mean);
			nr_table_cell(t, "%.3f to %.3f", low, high);
		}
	if (!nr_table_rows(t)) {
		nr_table_free(t);
		return;
	}
	nr_str_printf(text, "\n%s\n", nr_say(a, "magnitude of a head's part of a patch token; variation over the patches of a picture"));
	nr_table_show(t, text);
}

/* As shares of the tile's mean, so that all tiles can have the same colours. */
static bool add_tile(const struct nr_analysis *a, const struct site *v, const double *from, struct nr_tile *to)
{
	const int64_t N = v->N;
	double *value = room(a, N), mean = 0;
	for (int64_t i = 0; value && i < N; i++) mean += from[i] / (double)N;
	for (int64_t i = 0; value && i < N; i++) value[i] = from[i] / mean;
	*to = (struct nr_tile){ .h = v->h, .w = v->w, .value = value };
	return value;
}

/* Without a grid there are no maps: how much lengths vary, by site and head. */
static int write_variation(const struct nr_analysis *a, const struct magnitude *s, const char *dir, struct nr_error *err)
{
	const int64_t H = a->taps.heads, most = a->taps.sites * SIDES;
	double *value = room(a, most * H + 1);
	const char **label = nr_arena_alloc(a->arena, (size_t)(most + 1) * sizeof *label);
	struct nr_sheet sheet = { 0 };
	int64_t rows = 0;
	bool whole = value && label;
	for (int64_t i = 0; whole && i < most; i++) {
		const struct site *v = &s->site[i / SIDES];
		if (!v->there) continue;
		label[rows] = nr_arena_printf(a->arena, "%s, %s", a->taps.site[i / SIDES].name, side_name[i % SIDES]);
		whole = label[rows] != NULL;
		memcpy(value + rows++ * H, v->side[i % SIDES].variation, (size_t)H * sizeof *value);
	}
	if (!whole) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	if (!rows) return NR_OK;
	nr_sheet_put(&sheet, NULL, nr_svg_heatmap(&sheet.panel, &(struct nr_heatmap){ .name = "variation of lengths", .x_label = "head",
		.rows = rows, .cols = H, .value = value, .row_label = label }));
	return nr_sheet_save(&sheet, dir, "magnitude.svg", nr_say(a, "Length of patch tokens by head: deviation over mean"), nr_say(a,
		"Over the patches of a picture, averaged. Layer normalization makes all lengths equal (0), so "
		"attention can no longer distinguish tokens by them; norms over tokens keep what stands out."), err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct magnitude *s = own;
	if (a->view.form) return write_variation(a, s, dir, err);
	const int64_t H = a->taps.heads, most = a->taps.sites * SIDES * 2;
	struct nr_tile *tile = nr_arena_alloc(a->arena, (size_t)(most * H + 1) * sizeof *tile);
	const char **label = nr_arena_alloc(a->arena, (size_t)(most + H) * sizeof *label), **head = label + most;
	struct nr_sheet sheet = { 0 };
	int64_t rows = 0;
	bool whole = tile && label;
	for (int64_t h = 0; whole && h < H; h++) whole = (head[h] = nr_arena_printf(a->arena, "head %lld", (long long)h)) != NULL;
	for (int64_t i = 0; whole && i < most; i++) {
		const struct site *v = &s->site[i / (2 * SIDES)];
		const struct seen *side = &v->side[i % SIDES];
		if (!v->there) continue;
		label[rows] = nr_arena_printf(a->arena, "%s, %s, %s", a->taps.site[i / (2 * SIDES)].name, i / SIDES % 2 ? "all" : "one",
			side_name[i % SIDES]);
		whole = label[rows] != NULL;
		for (int64_t h = 0; whole && h < H; h++)
			whole = add_tile(a, v, (i / SIDES % 2 ? side->mean : side->first) + h * v->N,
				&tile[rows * H + h]);
		rows++;
	}
	if (!whole) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	if (!rows) return NR_OK;
	nr_sheet_put(&sheet, NULL, nr_svg_tiles(&sheet.panel, &(struct nr_tiles){ .name = "token magnitude by head", .rows = rows,
		.cols = H, .tile = tile, .row_label = label, .col_label = head, .one_range = true }));
	return nr_sheet_save(&sheet, dir, "magnitude.svg", nr_say(a,
		"Length of patch tokens by head, as a multiple of the map's mean"), nr_say(a,
		"For one picture and as the mean over all. Layer normalization makes the maps even, so attention can "
		"no longer distinguish tokens by their length; norms over tokens (batch, instance, DTN at low "
		"lambda) keep what stands out."), err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "length, variation",
		"of each head's part of a patch token; standard deviation over mean within a picture, averaged: 0 "
		"when all tokens are equally long",
		"DTN, Fig. 1" },
	{ .name = NULL },
};

const struct nr_part nr_part_magnitude = {
	.name = "magnitude", .title = "token magnitude", .size = sizeof(struct magnitude),
	.texts = true, .graphs = true, .taps = NR_TAPS_SITES, .begin = begin,
		.take = take, .json = json, .show = show, .write = write,
	.told = { .about = "lengths of tokens, by head, before and after a norm",
		.numbers = numbers },
};
