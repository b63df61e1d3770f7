/* What a norm does to the first 50 dimensions: their quantiles before and after it, for [CLS] and for one patch token of each
 * picture. SepNorm, Fig. 2, draws these for the last norm. */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/table.h"
#include "draw/scatter.h"

enum { DIMS = 50, QUANTILES = 5 };
static const double quantile[QUANTILES] = { .05, .25, .5, .75, .95 };
static const char *const quantile_name[QUANTILES] = { "q05", "q25", "q50", "q75", "q95" };
enum { BEFORE, AFTER, SIDES };
enum { CLS, TOKENS, KINDS };
static const char *const side_name[SIDES] = { "before", "after" }, *const kind_name[KINDS] = { "cls", "tokens" };

struct dimension { double mean, sd, q[QUANTILES]; };
struct seen { double *value; struct dimension of[DIMS]; bool there; int64_t dims; };   /* value (dims,count) */
struct site { const char *name; int64_t special; bool cls; struct seen side[SIDES][KINDS]; };
struct distributions { struct site *site; };

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct distributions *s = own;
	s->site = nr_arena_alloc(a->arena, (size_t)(a->taps.sites + 1) * sizeof *s->site);
	bool whole = s->site;
	for (int64_t i = 0; whole && i < a->taps.sites; i++) {
		const struct nr_site_tap *t = &a->taps.site[i];
		struct site *v = &s->site[i];
		v->name = t->name;
		v->cls = nr_taps_has_cls(a->w, t->before);
		v->special = t->before->tok ? t->before->tok->special : 0;
		for (int k = 0; k < SIDES * KINDS; k++) {
			struct seen *x = &v->side[k / KINDS][k % KINDS];
			const int64_t C = nr_cols(k / KINDS == BEFORE ? t->before : t->after);
			x->dims = C < DIMS ? C : DIMS;
			x->there = k % KINDS == CLS ? v->cls : t->before->d[1] > v->special;
			x->value = nr_arena_alloc(a->arena, (size_t)(x->dims * a->count) * sizeof *x->value);
			whole = whole && x->value;
		}
	}
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot keep the distributions", NULL, "out of memory");
}

static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct distributions *s = own;
	(void)err;
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; k < SIDES * KINDS; k++) {
			const struct site *v = &s->site[l];
			const struct seen *x = &v->side[k / KINDS][k % KINDS];
			const nr_t *t = k / KINDS == BEFORE ? a->taps.site[l].before : a->taps.site[l].after;
			for (int64_t i = 0; x->there && i < b->samples; i++) {
				const real *row = k % KINDS == CLS ? nr_taps_cls(&a->taps, t, i, true)
								   : nr_taps_token(&a->taps, t, v->special, i, first + i);
				for (int64_t d = 0; d < x->dims; d++) x->value[d * a->count + first + i] = (double)row[d];
			}
		}
	return NR_OK;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts v; between two values quantiles are interpolated. */
static struct dimension describe(int64_t n, double *v)
{
	struct dimension d = { 0 };
	for (int64_t i = 0; i < n; i++) d.mean += v[i] / (double)n;
	for (int64_t i = 0; i < n; i++) d.sd += (v[i] - d.mean) * (v[i] - d.mean) / (double)n;
	d.sd = sqrt(d.sd);
	qsort(v, (size_t)n, sizeof *v, by_size);
	for (int q = 0; q < QUANTILES; q++) {
		const double at = quantile[q] * (double)(n - 1);
		const int64_t i = (int64_t)at, next = i + 1 < n ? i + 1 : i;
		d.q[q] = v[i] + (at - (double)i) * (v[next] - v[i]);
	}
	return d;
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct distributions *s = own;
	(void)err;
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; k < SIDES * KINDS; k++) {
			struct seen *x = &s->site[l].side[k / KINDS][k % KINDS];
			for (int64_t d = 0; x->there && d < x->dims; d++) x->of[d] = describe(a->count, x->value + d * a->count);
		}
	return NR_OK;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct distributions *s = own;
	json_t *all = json_array();
	for (int64_t l = 0; l < a->taps.sites; l++) {
		json_t *site = json_pack("{s:s}", "site", s->site[l].name);
		for (int k = 0; k < SIDES * KINDS; k++) {
			const struct seen *x = &s->site[l].side[k / KINDS][k % KINDS];
			char key[32];
			json_t *dims = json_array();
			for (int64_t d = 0; x->there && d < x->dims; d++) {
				json_t *one = json_pack("[o, o]", nr_json_number(x->of[d].mean), nr_json_number(x->of[d].sd));
				for (int q = 0; q < QUANTILES; q++) json_array_append_new(one, nr_json_number(x->of[d].q[q]));
				json_array_append_new(dims, one);
			}
			snprintf(key, sizeof key, "%s_%s", side_name[k / KINDS], kind_name[k % KINDS]);
			json_object_set_new(site, key, dims);
		}
		json_array_append_new(all, site);
	}
	return json_pack("{s:[s,s,s,s,s,s,s], s:o}", "columns", "mean", "sd", quantile_name[0], quantile_name[1], quantile_name[2],
		quantile_name[3], quantile_name[4], "sites", all);
}

/* How far the dimensions' means are from 0, and how wide they are: means over the dimensions. */
static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct distributions *s = own;
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "site", "side", "", "|mean|", "sd", "q05", "q95" };
	if (!a->taps.sites) {
		nr_table_free(t);
		return;
	}
	for (int i = 0; i < 7; i++) nr_table_column(t, titles[i], i < 3 ? NR_LEFT : NR_RIGHT);
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; k < SIDES * KINDS; k++) {
			const struct seen *x = &s->site[l].side[k / KINDS][k % KINDS];
			double sum[4] = { 0 };
			if (!x->there) continue;
			for (int64_t d = 0; d < x->dims; d++) {
				sum[0] += fabs(x->of[d].mean) / (double)x->dims;
				sum[1] += x->of[d].sd / (double)x->dims;
				sum[2] += x->of[d].q[0] / (double)x->dims;
				sum[3] += x->of[d].q[QUANTILES - 1] / (double)x->dims;
			}
			nr_table_cell(t, "%s", s->site[l].name);
			nr_table_cell(t, "%s", side_name[k / KINDS]);
			nr_table_cell(t, "%s", nr_say(a, k % KINDS == CLS ? "[CLS]" : "tokens"));
			for (int i = 0; i < 4; i++) nr_table_cell(t, "%.3g", sum[i]);
		}
	nr_str_printf(text, "\ndistributions of the first %d dimensions, averaged over them\n", DIMS);
	nr_table_show(t, text);
}

static struct nr_table *table_of(const struct nr_analysis *a, const struct distributions *s)
{
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "site", "side", "kind", "dimension", "mean", "sd" };
	for (int i = 0; i < 6; i++) nr_table_column(t, titles[i], NR_LEFT);
	for (int q = 0; q < QUANTILES; q++) nr_table_column(t, quantile_name[q], NR_RIGHT);
	for (int64_t l = 0; l < a->taps.sites; l++)
		for (int k = 0; k < SIDES * KINDS; k++) {
			const struct seen *x = &s->site[l].side[k / KINDS][k % KINDS];
			for (int64_t d = 0; x->there && d < x->dims; d++) {
				nr_table_cell(t, "%s", s->site[l].name);
				nr_table_cell(t, "%s", side_name[k / KINDS]);
				nr_table_cell(t, "%s", kind_name[k % KINDS]);
				nr_table_cell(t, "%lld", (long long)d);
				nr_table_cell(t, "%.9g", x->of[d].mean);
				nr_table_cell(t, "%.9g", x->of[d].sd);
				for (int q = 0; q < QUANTILES; q++) nr_table_cell(t, "%.9g", x->of[d].q[q]);
			}
		}
	return t;
}

static int draw(const struct nr_analysis *a, const struct site *v, const char *name, const char *dir, struct nr_error *err)
{
	static const char *const title[SIDES] = { "before the norm", "after the norm" };
	const char *const label[KINDS] = { nr_say(a, "[CLS]"), nr_say(a, "patches") };
	struct nr_sheet sheet = { 0 };
	double q[KINDS][DIMS * QUANTILES];
	for (int side = 0; side < SIDES; side++) {
		struct nr_bands_of of[KINDS];
		for (int k = 0; k < KINDS; k++) {
			const struct seen *x = &v->side[side][k];
			for (int64_t d = 0; d < x->dims; d++) memcpy(q[k] + d * QUANTILES, x->of[d].q, sizeof x->of[d].q);
			of[k] = (struct nr_bands_of){ label[k], x->there ? q[k] : NULL };
		}
		nr_sheet_row(&sheet);
		nr_sheet_put(&sheet, title[side], nr_svg_bands(&sheet.panel, &(struct nr_bands){ .name = title[side],
			.x_label = "dimension", .y_label = "value", .n = v->side[side][0].dims, .of = of, .count = KINDS }));
	}
	char head[160];
	snprintf(head, sizeof head, "The first dimensions before and after the norm at %.100s", v->name);
	return nr_sheet_save(&sheet, dir, name, head, nr_say(a,
		"Pale bars cover 5 to 95 % of the samples, full ones the middle half; the gap is the median. Before "
		"the norm, [CLS] and patches may lie apart; a norm that both share can bring only one of them to "
		"mean 0 and an even width. A separate norm does so for both."), err);
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct distributions *s = own;
	if (!a->taps.sites) return NR_OK;
	int code = nr_table_save(table_of(a, s), dir, "distributions.csv", err);
	for (int64_t l = 0; !code && l < a->taps.sites; l++) {
		const char *name = nr_arena_printf(a->arena, "distributions-%s.svg", s->site[l].name);
		code = name ? draw(a, &s->site[l], name, dir, err) : nr_fail(err, NR_EMEMORY, "cannot write", dir, "out of memory");
	}
	return code;
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "quantiles",
		"5, 25, 50, 75 and 95 % of the first 50 dimensions, before and after each norm of `--site`",
		"SepNorm, Fig. 2" },
	{ .name = NULL },
};

const struct nr_part nr_part_distributions = {
	.name = "distributions", .title = "distributions", .size = sizeof(struct distributions),
	.texts = true, .graphs = true, .taps = NR_TAPS_SITES, .begin = begin,
	.take = take, .end = end, .json = json, .show = show, .write = write,
	.told = { .about = "quantiles of the first 50 dimensions before and after the norms of --site",
		.numbers = numbers },
};
