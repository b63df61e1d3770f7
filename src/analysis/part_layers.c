/* Layer by layer: how [CLS] and the patch tokens fill the space.
 *
 *   uniformity        log mean exp(-2 |u - v|^2) of unit vectors (SepNorm, Eq. 4); mean cosine; effective rank of centred values
 *   norm              length of a token: mean, deviation and maximum over all tokens of all pictures
 *   variation         |x - mean| / |x|, averaged over patch tokens, for the mean that layer normalization takes off (over the
 *                     channels of a token) and for the one of instance normalization (over the patch tokens of a picture): after
 *                     DTN, Fig. 3b, with lengths instead of a quotient for each value, which is undefined where x is 0
 *   outlier channels  root mean square over OUTLIER times the median channel's */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/uniformity.h"
#include "base/table.h"

enum { CLS, TOKENS, KINDS };
static const char *const kind_name[KINDS] = { "cls", "tokens" };
static const double OUTLIER = 6;
enum { AT_ONCE = 4 };                           /* layers measured between two steps of the bar */

struct moments { double n, sum, square, most, over_channels, over_tokens; };
struct seen {                               /* one kind of tokens of one layer */
	real *rows;                         /* (count,C): one token of each picture */
	double *channel;                    /* (C) sums of squares */
	struct moments m;
	double uniformity, cosine, rank, norm, norm_sd, ratio;
	int64_t outliers, top;              /* channels; the largest one */
	bool there;
};
struct layers { struct seen (*of)[KINDS]; double *part; struct moments (*each)[KINDS]; };

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct layers *s = own;
	int64_t widest = 0;
	s->of = nr_arena_alloc(a->arena, (size_t)a->taps.layers * sizeof *s->of);
	bool whole = s->of;
	for (int64_t l = 0; whole && l < a->taps.layers; l++) {
		const struct nr_layer_tap *t = &a->taps.layer[l];
		const int64_t C = t->x->d[2];
		for (int k = 0; k < KINDS; k++) {
			struct seen *v = &s->of[l][k];
			v->there = k == CLS ? t->cls : t->x->d[1] > t->special;
			v->rows = nr_arena_alloc(a->arena, (size_t)(a->count * C) * sizeof *v->rows);
			v->channel = nr_arena_alloc(a->arena, (size_t)C * sizeof *v->channel);
			whole = whole && v->rows && v->channel;
		}
		if (C > widest) widest = C;
	}
	s->part = nr_arena_alloc(a->arena, (size_t)(a->batch * KINDS * widest) * sizeof *s->part);
	s->each = nr_arena_alloc(a->arena, (size_t)a->batch * sizeof *s->each);
	return whole && s->part && s->each ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure layers", NULL, "out of memory");
}

static void add_token(int64_t C, const real *x, const double *centre, struct moments *m, double *channel)
{
	double square = 0, sum = 0, apart = 0;
	for (int64_t c = 0; c < C; c++) {
		const double v = (double)x[c], d = centre ? v - centre[c] : 0;
		square += v * v;
		sum += v;
		apart += d * d;
		channel[c] += v * v;
	}
	const double length = sqrt(square), about = square - sum * sum / (double)C;
	m->n += 1;
	m->sum += length;
	m->square += square;
	m->most = fmax(m->most, length);
	if (!centre || !(length > 0)) return;
	m->over_channels += sqrt(about > 0 ? about : 0) / length;
	m->over_tokens += sqrt(apart) / length;
}

/* One picture of one layer, of T tokens; part: room for (KINDS,C). centre is made in the place of the class token's sums, which
 * come last. */
static void look_at(const struct nr_layer_tap *t, int64_t T, const real *x, struct moments *m, double *part)
{
	const int64_t C = t->x->d[2], S = t->special;
	double *centre = part + CLS * C;
	memset(part, 0, (size_t)(KINDS * C) * sizeof *part);
	m[CLS] = m[TOKENS] = (struct moments){ 0 };
	for (int64_t i = S; i < T; i++)
		for (int64_t c = 0; c < C; c++) centre[c] += (double)x[i * C + c] / (double)(T - S);
	for (int64_t i = S; i < T; i++) add_token(C, x + i * C, centre, &m[TOKENS], part + TOKENS * C);
	memset(centre, 0, (size_t)C * sizeof *centre);
	if (t->cls) add_token(C, x, NULL, &m[CLS], part + CLS * C);
}

static void fold(struct seen *v, int64_t C, const struct moments *m, const double *channel)
{
	v->m.n += m->n;
	v->m.sum += m->sum;
	v->m.square += m->square;
	v->m.most = fmax(v->m.most, m->most);
	v->m.over_channels += m->over_channels;
	v->m.over_tokens += m->over_tokens;
	for (int64_t c = 0; c < C; c++) v->channel[c] += channel[c];
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct layers *s = own;
	(void)err;
	for (int64_t l = 0; l < a->taps.layers; l++) {
		const struct nr_layer_tap *t = &a->taps.layer[l];
		const int64_t C = t->x->d[2], each = t->x->d[1] * C;
		const real *x = nr_plan_data(a->taps.plan, t->x);
#pragma omp parallel for schedule(static)
		for (int64_t i = 0; i < b->samples; i++)
			look_at(t, nr_taps_count(&a->taps, t->x, t->special, i), x + i * each, s->each[i], s->part + i * KINDS * C);
		for (int64_t i = 0; i < b->samples; i++)
			for (int k = 0; k < KINDS; k++) {
				const real *row = k == CLS ? nr_taps_cls(&a->taps, t->x, i, t->cls)
							   : nr_taps_token(&a->taps, t->x, t->special, i, first + i);
				fold(&s->of[l][k], C, &s->each[i][k], s->part + (i * KINDS + k) * C);
				if (row) memcpy(s->of[l][k].rows + (first + i) * C, row, (size_t)C * sizeof *row);
			}
	}
	return NR_OK;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void find_outliers(struct seen *v, int64_t C, double *room)
{
	for (int64_t c = 0; c < C; c++) {
		v->channel[c] = sqrt(v->channel[c] / v->m.n);
		room[c] = v->channel[c];
		if (v->channel[c] > v->channel[v->top]) v->top = c;
	}
	qsort(room, (size_t)C, sizeof *room, by_size);
	const double median = (room[(C - 1) / 2] + room[C / 2]) / 2;
	v->ratio = v->channel[v->top] / median;
	for (int64_t c = 0; c < C; c++) v->outliers += v->channel[c] > OUTLIER * median;
}

/* False: out of memory. */
static bool measure(const struct nr_analysis *a, struct seen *v, int64_t C)
{
	struct nr_spread spread;
	double *room = malloc((size_t)C * sizeof *room);
	if (!room || nr_spread(a->count, C, v->rows, room, &spread, NULL)) {
		free(room);
		return false;
	}
	v->uniformity = spread.uniformity;
	v->cosine = spread.mean_cos;
	v->rank = spread.rank;
	v->norm = v->m.sum / v->m.n;
	v->norm_sd = sqrt(fmax(0, v->m.square / v->m.n - v->norm * v->norm));
	find_outliers(v, C, room);
	free(room);
	return true;
}

static int64_t steps(const struct nr_analysis *a) { return (a->taps.layers + AT_ONCE - 1) / AT_ONCE; }

/* Spectra take the most time and one thread each. */
static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct layers *s = own;
	for (int64_t first = 0; first < a->taps.layers; first += AT_ONCE) {
		bool done[AT_ONCE][KINDS];
#pragma omp parallel for schedule(dynamic, 1)
		for (int i = 0; i < AT_ONCE * KINDS; i++) {
			const int64_t l = first + i / KINDS;
			struct seen *v = l < a->taps.layers ? &s->of[l][i % KINDS] : NULL;
			done[i / KINDS][i % KINDS] = !v || !v->there || measure(a, v, a->taps.layer[l].x->d[2]);
		}
		for (int i = 0; i < AT_ONCE * KINDS; i++)
			if (!done[i / KINDS][i % KINDS]) return nr_fail(err, NR_EMEMORY, "cannot measure layers", NULL, "out of memory");
		if (nr_analysis_tick(a, err)) return err->code;
	}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

struct column { const char *name, *title; char form; int digits; };
static const struct column columns[] = { { "uniformity", "uniformity", 'f', 3 }, { "mean_cosine", "cosine", 'f', 3 },
	{ "effective_rank", "rank", 'f', 1 }, { "norm_mean", "norm", 'g', 3 }, { "norm_sd", "sd", 'g', 3 }, { "norm_max", "max", 'g', 3 },
	{ "variation_channels", "var. LN", 'f', 3 }, { "variation_tokens", "var. IN", 'f', 3 }, { "outlier_channels", "outliers", 'f', 0 },
	{ "largest_channel", "channel", 'f', 0 }, { "largest_ratio", "ratio", 'f', 1 } };
enum { COLUMNS = sizeof columns / sizeof *columns };

static void values_of(const struct seen *v, bool patches, double *out)
{
	const double all[COLUMNS] = { v->uniformity, v->cosine, v->rank, v->norm, v->norm_sd, v->m.most,
		patches ? v->m.over_channels / v->m.n : NAN, patches ? v->m.over_tokens / v->m.n : NAN, (double)v->outliers, (double)v->top,
		v->ratio };
	memcpy(out, all, sizeof all);
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct layers *s, bool csv)
{
	struct nr_table *t = nr_table_make();
	double v[COLUMNS];
	nr_table_column(t, "layer", NR_LEFT);
	nr_table_column(t, csv ? "kind" : "", NR_LEFT);
	for (int i = 0; i < COLUMNS; i++) nr_table_column(t, csv ? columns[i].name : columns[i].title, NR_RIGHT);
	for (int64_t l = 0; l < a->taps.layers; l++)
		for (int k = 0; k < KINDS; k++) {
			if (!s->of[l][k].there) continue;
			values_of(&s->of[l][k], k == TOKENS, v);
			nr_table_cell(t, "%s", a->taps.layer[l].name);
			nr_table_cell(t, "%s", csv ? kind_name[k] : nr_say(a, k == CLS ? "[CLS]" : "tokens"));
			for (int i = 0; i < COLUMNS; i++)
				nr_cell_number(t, csv ? 'g' : columns[i].form, csv ? 9 : columns[i].digits, v[i], "");
		}
	return t;
}

/* Column i of kind k over the layers. */
static void curve_of(const struct nr_analysis *a, const struct layers *s, int k, int i, double *out)
{
	double v[COLUMNS];
	for (int64_t l = 0; l < a->taps.layers; l++) {
		values_of(&s->of[l][k], k == TOKENS, v);
		out[l] = s->of[l][k].there ? v[i] : NAN;
	}
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct layers *s = own;
	json_t *all = json_array();
	double v[COLUMNS];
	for (int64_t l = 0; l < a->taps.layers; l++) {
		json_t *layer = json_pack("{s:s}", "name", a->taps.layer[l].name);
		for (int k = 0; k < KINDS; k++) {
			if (!s->of[l][k].there) continue;
			json_t *j = json_object();
			values_of(&s->of[l][k], k == TOKENS, v);
			for (int i = 0; i < COLUMNS; i++)
				if (isfinite(v[i])) json_object_set_new(j, columns[i].name, json_real(v[i]));
			json_object_set_new(layer, kind_name[k], j);
		}
		json_array_append_new(all, layer);
	}
	return all;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	double *y = malloc((size_t)a->taps.layers * sizeof *y);
	nr_str_printf(text, "\n%s\n", nr_say(a, "layers: one patch token of each picture; norms, variation and channels of all of them"));
	nr_table_show(table_of(a, own, false), text);
	for (int k = 0; y && k < KINDS; k++) {
		curve_of(a, own, k, 0, y);
		bool any = false;
		for (int64_t l = 0; l < a->taps.layers; l++) any = any || isfinite(y[l]);
		if (any)
			nr_show_curve(text, nr_say(a, k == CLS ? "uniformity of [CLS] by layer" : "uniformity of patch tokens by layer"),
				a->taps.layers, y);
	}
	free(y);
}

static int draw(const struct nr_analysis *a, const struct layers *s, const char *dir, struct nr_error *err)
{
	static const int shown[] = { 0, 1, 2, 3, 10, 6, 7 };
	enum { SHOWN = sizeof shown / sizeof *shown };
	static const char *const title[SHOWN] = { "uniformity", "mean cosine of pairs", "effective rank", "length of a token",
		"largest channel over the median one", "variation about the mean of layer normalization",
		"variation about the mean of instance normalization" };
	const char *const label[KINDS] = { nr_say(a, "[CLS]"), nr_say(a, "patches") };
	struct nr_sheet sheet = { 0 };
	double *y = malloc((size_t)(KINDS * a->taps.layers) * sizeof *y);
	if (!y) return nr_fail(err, NR_EMEMORY, "cannot draw", "layers.svg", "out of memory");
	for (int i = 0; i < SHOWN; i++) {
		for (int k = 0; k < KINDS; k++) curve_of(a, s, k, shown[i], y + k * a->taps.layers);
		if (i && i % 2 == 0) nr_sheet_row(&sheet);
		const char *name = nr_say(a, title[i]);
		nr_sheet_put(&sheet, name, nr_draw_curves(&sheet.panel, &(struct nr_curves){ .name = name, .x_label =
			"layer: 0 embedding, then blocks, last the final norm", .y_label = columns[shown[i]].title, .n = a->taps.layers,
			.count = KINDS, .y = y, .label = label }));
	}
	free(y);
	return nr_sheet_save(&sheet, dir, "layers.svg", nr_say(a, "[CLS] and patch tokens, layer by layer"), nr_say(a,
		"Uniformity near 0, a mean cosine near 1 and a low rank mean that samples have collapsed onto few "
		"directions; -4 and 0 mean that they fill the sphere. Where [CLS] and patches diverge, one shared "
		"norm serves two distributions. A ratio of channels far above 1 is an outlier channel. Low "
		"variation: the norm subtracts nearly the whole token."), err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const int code = nr_table_save(table_of(a, own, true), dir, "layers.csv", err);
	return code ? code : draw(a, own, dir, err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "uniformity",
		"log mean exp(-2 d^2) over pairs of unit vectors: 0 when all are equal, about -4 when spread evenly",
		"SepNorm, Eq. 4 and Table 6" },
	{ "cosine, rank", "mean cosine of pairs; exp of the entropy of the centred singular values: number of directions in use", "" },
	{ "norm, sd, max", "length of a token, over all tokens of all pictures", "DTN, Fig. 1" },
	{ "var. LN, var. IN",
		"mean of |x - mean| / |x|: how far a patch token is from the mean that layer or instance "
		"normalization subtracts",
		"after DTN, Fig. 3b" },
	{ "outliers, ratio",
		"channels whose root mean square exceeds 6 times the median channel's; ratio of the largest one",
		"" },
	{ .name = NULL },
};

static const struct nr_part_curve curves[] = {
	{ "Uniformity of [CLS] by layer", "lower is more even", "The lowest spreads [CLS] most.", "[].cls.uniformity", NR_LINEAR },
	{ "Uniformity of tokens by layer", "lower is more even", "The lowest spreads patches most.", "[].tokens.uniformity", NR_LINEAR },
	{ "Effective rank of [CLS] by layer", "directions",
		"A drop means a collapse onto few directions.", "[].cls.effective_rank",
		NR_LINEAR },
	{ "Effective rank of tokens by layer", "directions",
		"A drop means a collapse onto few directions.", "[].tokens.effective_rank",
		NR_LINEAR },
	{ "Mean cosine of [CLS] by layer", "cosine", "Near 1: every picture has nearly the same [CLS].", "[].cls.mean_cosine", NR_LINEAR },
	{ "Length of tokens by layer", "2-norm", "The residual stream grows where nothing normalizes it.", "[].tokens.norm_mean",
		NR_LOG_IF_WIDE },
	{ .title = NULL },
};

const struct nr_part nr_part_layers = {
	.name = "layers", .title = "layers", .size = sizeof(struct layers),
	.texts = true, .graphs = true, .steps = steps, .begin = begin, .take = take, .end = end,
	.json = json, .show = show, .write = write,
	.told = { .about = "uniformity, mean cosine, effective rank, lengths and outlier channels after each block",
		.numbers = numbers, .curves = curves },
};
