/* How much outputs depend on the company that a sample has.
 *
 *   batch    the same pictures with batch statistics in batches of 2, 4, 8, ...: mean of |y - y'| / |y'| and of the cosine between the
 *            pooled output y and the one with running statistics y'; for models with a norm over the batch
 *   lengths  each norm of --site alone, on what goes into it: ragged.h. Tokens are cut off down to 3/4, 1/2 and 1/4 */
#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/ragged.h"
#include "base/table.h"
#include "graph/net.h"
#include "infer/features.h"

enum { SIZES = 8, LEAST = 3, MOST_SAMPLES = 32 };
static const double least[LEAST] = { .75, .5, .25 };

struct size { int64_t batch, samples; double change, cosine; };
struct site { const char *norm; double change[LEAST]; };        /* norm NULL: not tried */
struct sensitivity { struct size size[SIZES]; int sizes; struct site *site; };

static bool over_the_batch(const struct nr_net *n)
{
	for (int32_t i = 0; i < n->n_node; i++)
		if (n->node[i]->op->flags & NR_BATCHWISE) return true;
	return false;
}

static int begin(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct sensitivity *s = own;
	s->site = nr_arena_alloc(a->arena, (size_t)(a->taps.sites + 1) * sizeof *s->site);
	if (!s->site) return nr_fail(err, NR_EMEMORY, "cannot measure the sensitivity", NULL, "out of memory");
	if (!over_the_batch(a->taps.net)) return NR_OK;
	const int64_t most = a->view.form && a->batch < a->count ? nr_mol_batch(a->count, a->view.nodes) : a->count;
	for (int64_t b = 2; s->sizes < SIZES && b <= most; b *= 2) s->size[s->sizes++].batch = b;
	return NR_OK;
}

static int64_t steps(const struct nr_analysis *a) { return over_the_batch(a->taps.net) ? SIZES + 1 : 0; }

static const char *norm_at(const struct nr_net *n, const char *site)
{
	int64_t count;
	const struct nr_site *all = nr_sites(n, &count);
	for (int64_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, site)) return all[i].norm;
	return NULL;
}

/* The first batch alone: a norm by itself is cheap, but its input is not kept longer. */
static int take(struct nr_analysis *a, void *own, const struct nr_batch *b, int64_t first, struct nr_error *err)
{
	struct sensitivity *s = own;
	if (first || a->view.form) return NR_OK;        /* graphs have different lengths as they are */
	for (int64_t i = 0; i < a->taps.sites; i++) {
		const nr_t *x = a->taps.site[i].before;
		const int64_t B = b->samples < MOST_SAMPLES ? b->samples : MOST_SAMPLES;
		const char *norm = norm_at(a->taps.net, a->taps.site[i].name);
		if (!norm || !x->tok || x->d[1] <= x->tok->special) continue;
		s->site[i].norm = norm;
		for (int k = 0; k < LEAST; k++) {
			struct nr_error why = { 0 };
			if (!nr_ragged_change(a->w, a->taps.site[i].name, norm, x->tok, B, x->d[1], x->d[2],
				nr_plan_data(a->taps.plan, x), least[k], &s->site[i].change[k], &why))
				continue;
			if (why.code == NR_EMEMORY) {
				*err = why;
				return err->code;
			}
			s->site[i].norm = NULL;         /* a norm that needs every token of the grid */
			break;
		}
	}
	return NR_OK;
}

/* ---- batches -------------------------------------------------------------------------------------------------------------- */

struct pooled { real *rows; int64_t width; };

static void keep(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	const struct pooled *p = out;
	memcpy(p->rows + first * p->width, nr_plan_data(r->plan, r->pooled), (size_t)(b->samples * p->width) * sizeof *p->rows);
}

/* Batches that are not full keep what was there before. */
static int run_graphs(struct nr_analysis *a, int64_t batch, enum nr_stats stats, struct pooled *p, struct nr_error *err)
{
	struct nr_taps t;
	if (nr_taps_open_graphs(&t, a->w, &a->view, batch, 0, "", err)) return err->code;
	p->width = t.pooled->d[t.pooled->nd - 1];
	if (!p->rows) p->rows = calloc((size_t)(a->count * p->width), sizeof *p->rows);
	for (int64_t first = 0; p->rows && first < a->count; first += batch) {
		const int64_t n = a->count - first < batch ? a->count - first : batch;
		if (n < batch && stats == NR_STATS_BATCH) break;
		nr_taps_run_graphs(&t, first, n, stats == NR_STATS_BATCH);
		memcpy(p->rows + first * p->width, nr_plan_data(t.plan, t.pooled), (size_t)(n * p->width) * sizeof *p->rows);
	}
	nr_taps_close(&t);
	return p->rows ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure the sensitivity", NULL, "out of memory");
}

static int run(struct nr_analysis *a, int64_t batch, enum nr_stats stats, struct pooled *p, struct nr_error *err)
{
	if (a->view.form) return run_graphs(a, batch, stats, p, err);
	struct nr_evaluation e = a->what;
	struct nr_runner r;
	e.watch = NULL;
	e.stats = stats;
	e.confusion = NULL;
	if (nr_runner_open_encoder(&r, a->w, batch, err)) return err->code;
	p->width = r.width;
	if (!p->rows) p->rows = calloc((size_t)(a->count * r.width), sizeof *p->rows);
	const int code = p->rows ? nr_run_over(&r, &e, keep, p, err)
				 : nr_fail(err, NR_EMEMORY, "cannot measure the sensitivity", NULL, "out of memory");
	nr_runner_close(&r);
	return code;
}

static void compare(struct size *s, const struct pooled *x, const struct pooled *y)
{
	for (int64_t i = 0; i < s->samples; i++) {
		const real *u = x->rows + i * x->width, *v = y->rows + i * y->width;
		double a = 0, b = 0, dot = 0, apart = 0;
		for (int64_t c = 0; c < x->width; c++) {
			const double p = (double)u[c], q = (double)v[c];
			a += p * p;
			b += q * q;
			dot += p * q;
			apart += (p - q) * (p - q);
		}
		s->change += sqrt(apart / b) / (double)s->samples;
		s->cosine += dot / sqrt(a * b) / (double)s->samples;
	}
}

static int end(struct nr_analysis *a, void *own, struct nr_error *err)
{
	struct sensitivity *s = own;
	struct pooled running = { 0 }, batch = { 0 };
	int code = s->sizes ? run(a, a->batch, NR_STATS_RUNNING, &running, err) : NR_OK;
	if (!code && s->sizes) code = nr_analysis_tick(a, err);
	for (int i = 0; !code && i < s->sizes; i++) {
		struct size *v = &s->size[i];
		v->samples = a->count / v->batch * v->batch;
		if (!(code = run(a, v->batch, NR_STATS_BATCH, &batch, err))) compare(v, &batch, &running);
		if (!code) code = nr_analysis_tick(a, err);
	}
	free(running.rows);
	free(batch.rows);
	return code;
}

/* ---- what is told --------------------------------------------------------------------------------------------------------- */

static bool any_site(const struct nr_analysis *a, const struct sensitivity *s)
{
	for (int64_t i = 0; i < a->taps.sites; i++)
		if (s->site[i].norm) return true;
	return false;
}

static json_t *json(const struct nr_analysis *a, const void *own)
{
	const struct sensitivity *s = own;
	if (!s->sizes && !any_site(a, s)) return NULL;
	json_t *sizes = json_array(), *sites = json_array();
	for (int i = 0; i < s->sizes; i++)
		json_array_append_new(sizes, json_pack("{s:I, s:I, s:o, s:o}", "batch", (json_int_t)s->size[i].batch, "samples",
			(json_int_t)s->size[i].samples, "change", nr_json_number(s->size[i].change), "cosine",
				nr_json_number(s->size[i].cosine)));
	for (int64_t i = 0; i < a->taps.sites; i++)
		if (s->site[i].norm)
			json_array_append_new(sites, json_pack("{s:s, s:s, s:o}", "site", a->taps.site[i].name, "norm",
				s->site[i].norm, "change", nr_json_numbers(LEAST, s->site[i].change)));
	return json_pack("{s:o, s:o, s:o}", "batches", sizes, "least", nr_json_numbers(LEAST, least), "lengths", sites);
}

static struct nr_table *size_table(const struct sensitivity *s, bool csv)
{
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "batch", NR_RIGHT);
	nr_table_column(t, "change", NR_RIGHT);
	nr_table_column(t, "cosine", NR_RIGHT);
	for (int i = 0; i < s->sizes; i++) {
		nr_table_cell(t, "%lld", (long long)s->size[i].batch);
		nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 1, (csv ? 1 : 100) * s->size[i].change, csv ? "" : " %");
		nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 4, s->size[i].cosine, "");
	}
	return t;
}

static struct nr_table *site_table(const struct nr_analysis *a, const struct sensitivity *s, bool csv)
{
	struct nr_table *t = nr_table_make();
	static const char *const titles[] = { "site", "norm", "down to 3/4", "to 1/2", "to 1/4" }, *const names[] = { "site",
		"norm", "least_75",
		"least_50", "least_25" };
	for (int i = 0; i < 5; i++) nr_table_column(t, csv ? names[i] : titles[i], i < 2 ? NR_LEFT : NR_RIGHT);
	for (int64_t i = 0; i < a->taps.sites; i++) {
		if (!s->site[i].norm) continue;
		nr_table_cell(t, "%s", a->taps.site[i].name);
		nr_table_cell(t, "%s", s->site[i].norm);
		for (int k = 0; k < LEAST; k++)
			nr_cell_number(t, csv ? 'g' : 'f', csv ? 9 : 1, (csv ? 1 : 100) * s->site[i].change[k], csv ? "" : " %");
	}
	return t;
}

static void show(const struct nr_analysis *a, const void *own, struct nr_str *text)
{
	const struct sensitivity *s = own;
	if (s->sizes) {
		nr_str_printf(text, "\nsensitivity to the batch: outputs with batch statistics against running ones\n");
		nr_table_show(size_table(s, false), text);
	}
	if (any_site(a, s)) {
		nr_str_printf(text, "\n"
			"sensitivity to lengths: change of a norm's output at the remaining tokens when others are "
			"cut off\n");
		nr_table_show(site_table(a, s, false), text);
	}
}

static int write(const struct nr_analysis *a, const void *own, const char *dir, struct nr_error *err)
{
	const struct sensitivity *s = own;
	struct nr_sheet sheet = { 0 };
	if (any_site(a, s) && nr_table_save(site_table(a, s, true), dir, "sensitivity_lengths.csv", err)) return err->code;
	if (!s->sizes) return NR_OK;
	if (nr_table_save(size_table(s, true), dir, "sensitivity_batch.csv", err)) return err->code;
	double x[SIZES], change[SIZES], cosine[SIZES];
	for (int i = 0; i < s->sizes; i++) x[i] = i + 1, change[i] = 100 * s->size[i].change, cosine[i] = s->size[i].cosine;
	const struct nr_series of[] = { { .x = x, .y = change, .n = s->sizes, .weight = NR_BOLD },
		{ .x = x, .y = cosine, .n = s->sizes, .arm = 1, .weight = NR_BOLD } };
	static const char *const title[] = { "relative change of the output", "cosine with the output of running statistics" };
	for (int i = 0; i < 2; i++)
		nr_sheet_put(&sheet, title[i], nr_svg_chart(&sheet.panel, &(struct nr_chart){ .name = title[i],
			.x_label = "log2 of the batch size",
			.y_label = i ? "cosine" : "%", .x_whole = true, .series = &of[i], .count = 1 }));
	return nr_sheet_save(&sheet, dir, "sensitivity.svg", "How the batch size changes outputs", nr_say(a,
		"The same pictures with the statistics of small batches. A curve that falls late means that training "
		"in small batches, or evaluation with batch statistics, sees a different model; what remains at "
		"large batches is the error of the running statistics."), err);
}

/* ---- what is told of it ----------------------------------------------------------------------------------------------------- */

static const struct nr_part_number numbers[] = {
	{ "batches",
		"the pooled output with the statistics of batches of 2, 4, 8, ...: mean relative change and cosine, "
		"compared with running statistics",
		"" },
	{ "lengths",
		"a single norm on its real input: relative change of its output at the remaining tokens when "
		"samples are cut to different lengths, down to 3/4, 1/2, 1/4",
		"" },
	{ .name = NULL },
};

const struct nr_part nr_part_sensitivity = {
	.name = "sensitivity", .title = "sensitivity to batch and lengths", .size = sizeof(struct sensitivity),
		.graphs = true, .taps = NR_TAPS_SITES,
	.steps = steps, .begin = begin, .take = take, .end = end, .json = json, .show = show, .write = write,
	.told = { .about = "how batch size and sample length change the output",
		.numbers = numbers },
};
