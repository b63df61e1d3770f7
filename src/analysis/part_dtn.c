/* Dynamic Token Normalization: lambda of each head and layer (how much of the statistics is a token's own: 1 is layer, 0 instance
 * normalization) and P^h, the neighbourhood that the rest is taken from (DTN, Fig. 6 and 7), seen from a token in the middle. At the
 * norms of --site also |x - mean| / |x| of patch tokens (DTN, Fig. 3b, with lengths, see part_layers.c) for DTN's own mean, for the
 * token's and for the picture's: with P, before variant=official scales the heads, and without pooling. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/table.h"
#include "draw/heatmap.h"
#include "norms/dtn.h"

enum { MOST_TOKENS = 1024 };                    /* P is (n,n) for a moment */
enum { OWN, OF_TOKEN, OF_PICTURE, MEANS };      /* means that a token's distance is measured from */
static const char *const mean_name[MEANS] = { "dtn", "layer", "instance" };

struct one {
	const char *name;
	int64_t heads, h, w;
	double *lam_mean, *lam_var;         /* (heads) */
	double *p;                          /* (heads,h,w): a row of P; NULL: too large, or the tokens are a part of the grid */
	const nr_t *before;                 /* what the norm reads; NULL: its variation is not measured */
	double *whole;                      /* (heads,n,n): P, if it is */
	double variation[MEANS], tokens;    /* sums over patch tokens; how many */
};
struct dtn { struct one *of; double *part, *centre; };  /* part (batch,MEANS + 1), centre (batch,C): one picture each */

static double lambda(const struct nr_node *k, const struct nr_dtn *c, int input, int64_t h)
{
	return c->learn ? 1 / (1 + exp(-(double)nr_value(k->in[input]->entry)[h])) : (double)c->lam;
}

/* The kernel's own product with the unit matrix gives P; at: the row that is kept. */
static int neighbourhood(const struct nr_node *k, const struct nr_dtn *c, struct one *v, int64_t at, struct nr_error *err)
{
	const int64_t n = v->h * v->w;
	struct nr_token_mix mix = { .kind = c->mix, .n = n, .h = v->h, .w = v->w, .c = n, .valid = n, .reach = c->reach };
	real *unit = calloc((size_t)(n * n), sizeof *unit), *p = calloc((size_t)(n * n), sizeof *p), a[3];
	mix.work = calloc(nr_token_mix_work(&mix, 0) + 1, sizeof *mix.work);
	const bool whole = unit && p && mix.work;
	for (int64_t i = 0; whole && i < n; i++) unit[i * n + i] = 1;
	for (int64_t h = 0; whole && h < v->heads; h++) {
		const real *matrix = c->matrix ? nr_value(k->in[c->matrix]->entry) : NULL;
		for (int i = 0; c->mix == NR_MIX_POS && i < 3; i++) a[i] = matrix[h * 3 + i] * (i && c->official ? -1 : 1);
		mix.a = a;
		mix.logit = c->mix == NR_MIX_FREE ? matrix + h * n * n : NULL;
		nr_token_mix_forward(&mix, unit, p);
		for (int64_t j = 0; j < n; j++) v->p[h * n + j] = (double)p[at * n + j];
		for (int64_t j = 0; v->whole && j < n * n; j++) v->whole[h * n * n + j] = (double)p[j];
	}
	free(unit);
	free(p);
	free(mix.work);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot look at DTN", v->name, "out of memory");
}

static int look_at(struct nr_analysis *a, const struct nr_node *k, struct one *v, struct nr_error *err)
{
	const struct nr_dtn *c = k->attr;
	*v = (struct one){ .name = k->where.scope, .heads = c->heads, .h = c->h / c->pool, .w = c->w / c->pool };
	const int64_t n = v->h * v->w;
	v->lam_mean = nr_arena_alloc(a->arena, (size_t)v->heads * sizeof *v->lam_mean);
	v->lam_var = nr_arena_alloc(a->arena, (size_t)v->heads * sizeof *v->lam_var);
	if (n && n <= MOST_TOKENS && !c->place) v->p = nr_arena_alloc(a->arena, (size_t)(v->heads * n) * sizeof *v->p);
	for (int64_t i = 0; v->p && c->pool == 1 && !c->official && i < a->taps.sites; i++)
		if (a->taps.site[i].before == k->in[0]) v->before = k->in[0];
	if (v->before) v->whole = nr_arena_alloc(a->arena, (size_t)(v->heads * n * n) * sizeof *v->whole);
	if (!v->lam_mean || !v->lam_var || (v->before && !v->whole))
		return nr_fail(err, NR_EMEMORY, "cannot look at DTN", v->name, "out of memory");
	for (int64_t h = 0; h < v->heads; h++) {
		v->lam_mean[h] = c->only_var ? 1 : lambda(k, c, c->mean_logit, h);
		v->lam_var[h] = lambda(k, c, c->var_logit ? c->var_logit : c->mean_logit, h);
	}
	return v->p ? neighbourhood(k, c, v, (v->h - 1) / 2 * v->w + v->w / 2, err) : NR_OK;
}

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct dtn *s = own;
	s->of = nr_arena_alloc(a->arena, (size_t)(a->taps.dtns + 1) * sizeof *s->of);
	if (!s->of) return nr_fail(err, NR_EMEMORY, "cannot look at DTN", NULL, "out of memory");
	int64_t widest = 0;
	for (int64_t i = 0; i < a->taps.dtns; i++) {
		if (look_at(a, a->taps.dtn[i], &s->of[i], err)) return err->code;
		if (s->of[i].before) widest = nr_max64(widest, nr_cols(s->of[i].before));
	}
	s->part = nr_arena_alloc(a->arena, (size_t)(a->batch * (MEANS + 1)) * sizeof *s->part);
	s->centre = nr_arena_alloc(a->arena, (size_t)(a->batch * widest + 1) * sizeof *s->centre);
	return s->part && s->centre ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot look at DTN", NULL, "out of memory");
}

/* Squared distances of token i from the three means; x: the patch tokens of a picture (n,C). */
static void distances(const struct one *v, int64_t C, const real *x, const double *centre, int64_t i, double *out)
{
	const int64_t n = v->h * v->w, d = C / v->heads;
	double mean = 0;
	for (int64_t c = 0; c < C; c++) mean += (double)x[i * C + c] / (double)C;
	for (int64_t c = 0; c < C; c++) {
		const double *p = v->whole + (c / d * n + i) * n, share = v->lam_mean[c / d], at = (double)x[i * C + c];
		double around = 0;
		for (int64_t j = 0; j < n; j++) around += p[j] * (double)x[j * C + c];
		const double from[MEANS] = { share * mean + (1 - share) * around, mean, centre[c] };
		for (int k = 0; k < MEANS; k++) out[k] += (at - from[k]) * (at - from[k]);
	}
}

/* Of one picture: sums of |x - mean| / |x| over its patch tokens, and how many these are. */
static void vary(const struct one *v, int64_t C, const real *x, double *centre, double *part)
{
	const int64_t n = v->h * v->w;
	for (int64_t c = 0; c < C; c++) centre[c] = 0;
	for (int64_t i = 0; i < n * C; i++) centre[i % C] += (double)x[i] / (double)n;
	for (int k = 0; k <= MEANS; k++) part[k] = 0;
	for (int64_t i = 0; i < n; i++) {
		double square = 0, apart[MEANS] = { 0 };
		for (int64_t c = 0; c < C; c++) square += (double)x[i * C + c] * (double)x[i * C + c];
		if (!(square > 0)) continue;
		distances(v, C, x, centre, i, apart);
		for (int k = 0; k < MEANS; k++) part[k] += sqrt(apart[k] / square);
		part[MEANS]++;
	}
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct dtn *s = own;
	(void)first, (void)err;
	for (int64_t l = 0; l < a->taps.dtns; l++) {
		struct one *v = &s->of[l];
		if (!v->before) continue;
		const int64_t C = v->before->d[2], T = v->before->d[1], special = T - v->h * v->w;
		const real *x = nr_plan_data(a->taps.plan, v->before);
#pragma omp parallel for schedule(static)
		for (int64_t i = 0; i < b->samples; i++)
			vary(v, C, x + (i * T + special) * C, s->centre + i * C, s->part + i * (MEANS + 1));
		for (int64_t i = 0; i < b->samples; i++) {
			for (int k = 0; k < MEANS; k++) v->variation[k] += s->part[i * (MEANS + 1) + k];
			v->tokens += s->part[i * (MEANS + 1) + MEANS];
		}
	}
	return NR_OK;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct dtn *s = own;
	if (!a->taps.dtns) return NULL;
	json_t *all = json_array();
	for (int64_t i = 0; i < a->taps.dtns; i++) {
		const struct one *v = &s->of[i];
		json_t *one = json_pack("{s:s, s:I, s:I}", "site", v->name, "h", (json_int_t)v->h, "w", (json_int_t)v->w);
		json_object_set_new(one, "lambda_mean", nr_json_numbers(v->heads, v->lam_mean));
		json_object_set_new(one, "lambda_var", nr_json_numbers(v->heads, v->lam_var));
		json_t *variation = v->before && v->tokens > 0 ? json_object() : NULL;
		for (int k = 0; variation && k < MEANS; k++)
			json_object_set_new(variation, mean_name[k], nr_json_number(v->variation[k] / v->tokens));
		if (variation) json_object_set_new(one, "variation", variation);
		json_object_set_new(one, "p", nr_json_numbers(v->p ? v->heads * v->h * v->w : 0, v->p));
		json_array_append_new(all, one);
	}
	return all;
}

static void cell(struct nr_table *t, int64_t n, const double *v)
{
	double low = INFINITY, mean = 0, high = -INFINITY;
	for (int64_t i = 0; i < n; i++) {
		low = fmin(low, v[i]);
		high = fmax(high, v[i]);
		mean += v[i] / (double)n;
	}
	nr_table_cell(t, "%.3f", mean);
	nr_table_cell(t, "%.3f to %.3f", low, high);
}

static void show_variation(const struct nr_analysis *a, const struct dtn *s, struct nr_str *text)
{
	static const char *const titles[] = { "site", "DTN's mean", "the token's", "the picture's" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 4; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t i = 0; i < a->taps.dtns; i++) {
		if (!s->of[i].before || !(s->of[i].tokens > 0)) continue;
		nr_table_cell(t, "%s", s->of[i].name);
		for (int k = 0; k < MEANS; k++) nr_table_cell(t, "%.3f", s->of[i].variation[k] / s->of[i].tokens);
	}
	if (!nr_table_rows(t)) {
		nr_table_free(t);
		return;
	}
	nr_str_printf(text, "\nhow far a token is from the mean that is subtracted, as a share of its length\n");
	nr_table_show(t, text);
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct dtn *s = own;
	static const char *const titles[] = { "site", "of the mean", "of heads", "of the variance", "of heads" };
	if (!a->taps.dtns) return;
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t i = 0; i < a->taps.dtns; i++) {
		nr_table_cell(t, "%s", s->of[i].name);
		cell(t, s->of[i].heads, s->of[i].lam_mean);
		cell(t, s->of[i].heads, s->of[i].lam_var);
	}
	nr_str_printf(text, "\nDTN's lambda: 1 is layer, 0 (local) instance normalization\n");
	nr_table_show(t, text);
	show_variation(a, s, text);
}

/* Lambda by site and head; sites of other head counts leave blanks. */
static void draw_lambda(const struct nr_analysis *a, const struct dtn *s, const char *const *label, int64_t heads, double *room,
	struct nr_sheet *sheet)
{
	static const char *const title[] = { "lambda of the mean", "lambda of the variance" };
	for (int k = 0; k < 2; k++) {
		for (int64_t i = 0; i < a->taps.dtns * heads; i++) {
			const struct one *v = &s->of[i / heads];
			room[i] = i % heads >= v->heads ? NAN : (k ? v->lam_var : v->lam_mean)[i % heads];
		}
		nr_sheet_put(sheet, title[k], nr_svg_heatmap(&sheet->panel, &(struct nr_heatmap){ .name = title[k], .x_label = "head",
			.rows = a->taps.dtns, .cols = heads, .value = room, .row_label = label, .high = 1 }));
	}
}

static int draw(const struct nr_analysis *a, const struct dtn *s, const char *dir, struct nr_error *err)
{
	const int64_t N = a->taps.dtns;
	int64_t heads = 1, maps = 0;
	for (int64_t i = 0; i < N; i++) heads = s->of[i].heads > heads ? s->of[i].heads : heads;
	struct nr_tile *tile = nr_arena_alloc(a->arena, (size_t)(N * heads) * sizeof *tile);
	const char **label = nr_arena_alloc(a->arena, (size_t)N * sizeof *label);
	double *room = nr_arena_alloc(a->arena, (size_t)(N * heads) * sizeof *room);
	struct nr_sheet sheet = { 0 };
	if (!tile || !label || !room) return nr_fail(err, NR_EMEMORY, "cannot draw", dir, "out of memory");
	for (int64_t i = 0; i < N; i++) {
		const struct one *v = &s->of[i];
		label[i] = v->name;
		for (int64_t h = 0; v->p && h < v->heads; h++, maps++)
			tile[i * heads + h] = (struct nr_tile){ .h = v->h, .w = v->w, .value = v->p + h * v->h * v->w };
	}
	draw_lambda(a, s, label, heads, room, &sheet);
	nr_sheet_row(&sheet);
	if (maps)
		nr_sheet_put(&sheet, "P of each head, from a token in the middle", nr_svg_tiles(&sheet.panel, &(struct nr_tiles){
			.name = "neighbourhoods by site and head", .rows = N, .cols = heads, .tile = tile, .row_label = label }));
	return nr_sheet_save(&sheet, dir, "dtn.svg", "Dynamic Token Normalization: lambda and neighbourhoods",
		"Lambda 1: the head normalises a token by its own statistics, like layer normalization; 0: by those "
		"of the tokens weighted by P, like instance normalization over a neighbourhood. A bright spot in P "
		"is a small neighbourhood, an even map the whole picture.", err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct dtn *s = own;
	if (!a->taps.dtns) return NR_OK;
	static const char *const titles[] = { "site", "head", "lambda_mean", "lambda_var" };
	struct nr_table *t = nr_table_make();
	for (int i = 0; i < 4; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int64_t i = 0; i < a->taps.dtns; i++)
		for (int64_t h = 0; h < s->of[i].heads; h++) {
			nr_table_cell(t, "%s", s->of[i].name);
			nr_table_cell(t, "%lld", (long long)h);
			nr_table_cell(t, "%.9g", s->of[i].lam_mean[h]);
			nr_table_cell(t, "%.9g", s->of[i].lam_var[h]);
		}
	const int code = nr_table_save(t, dir, "dtn.csv", err);
	return code ? code : draw(a, s, dir, err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "lambda",
		"weight of a token's own statistics, by head: 1 is layer normalization, 0 instance normalization "
		"over the neighbourhood",
		"" },
	{ "P", "the neighbourhood of a central token, by head and layer", "DTN, Fig. 6 and 7" },
	{ "variation", "mean of |x - mean| / |x| over patch tokens at the norms of --site: from DTN's own mean, from the token's and from the "
		"picture's", "after DTN, Fig. 3b" },
	{ .name = NULL },
};

static struct nr_part_matrix lambdas(const json_t *analysis, struct nr_arena *arena)
{
	return nr_part_matrix_rows(json_object_get(analysis, "dtn"), "site", "lambda_mean", NULL, arena);
}
static struct nr_part_matrix lambdas_var(const json_t *analysis, struct nr_arena *arena)
{
	return nr_part_matrix_rows(json_object_get(analysis, "dtn"), "site", "lambda_var", NULL, arena);
}
static const struct nr_part_curve curves[] = {
	{ "Distance from DTN's own mean", "share of the token's length", "Low: the norm subtracts nearly the whole token.",
		"[].variation.dtn", NR_LINEAR, "norms with DTN, from input to output" },
	{ .title = NULL },
};
static const struct nr_part_heat heats[] = {
	{ "λ of dynamic token normalization, of the mean", "site", "head",
		"1 takes the mean within a token, like LN; 0 that over tokens, like IN.", 0, 1,
		lambdas },
	{ "λ of dynamic token normalization, of the variance", "site", "head",
		"1 takes the variance within a token, like LN; 0 that over tokens, like IN.", 0, 1,
		lambdas_var },
	{ .title = NULL },
};

const struct nr_part nr_part_dtn = {
	.name = "dtn", .title = "DTN", .size = sizeof(struct dtn),
	.texts = true, .taps = NR_TAPS_SITES, .begin = begin, .take = take, .json = json, .show = show, .write = write,
	.told = { .about = "lambda and neighbourhoods of DTN, and how far tokens are from its mean",
		.numbers = numbers, .curves = curves, .heats = heats },
};
