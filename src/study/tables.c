/* Tables of a study: terminal and Markdown from the same cells; files. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "base/table.h"
#include "base/wrap.h"
#include "study/cells.h"
#include "study/job.h"
#include "study/published.h"
#include "study/results.h"

enum { FURTHER = 20, TEXT = NR_CELL_TEXT };        /* metrics beside the main one */

const char *nr_cell_at(const struct nr_study_cells *c, int64_t row, int64_t column) { return c->text[row * c->columns + column]; }

__attribute__((format(printf, 4, 5)))
static void put(const struct nr_study_cells *c, int64_t row, int64_t *column, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(c->text[row * c->columns + (*column)++], TEXT, fmt, ap);
	va_end(ap);
}

double nr_metric_scale(const char *metric) { return nr_metric_is_share(metric) ? 100 : 1; }

static int digits_of(const char *metric) { return nr_metric_scale(metric) > 1 ? 2 : 4; }

static void put_mean(const struct nr_study_cells *c, int64_t row, int64_t *column, const struct nr_sample *s, const char *metric, bool sign)
{
	const double k = nr_metric_scale(metric);
	const int d = digits_of(metric);
	if (isnan(s->mean)) put(c, row, column, "-");
	else if (isnan(s->half)) put(c, row, column, sign ? "%+.*f" : "%.*f", d, k * s->mean);
	else put(c, row, column, sign ? "%+.*f ± %.*f" : "%.*f ± %.*f", d, k * s->mean, d, k * s->half);
}

static void put_p(const struct nr_study_cells *c, int64_t row, int64_t *column, double p)
{
	if (isnan(p)) put(c, row, column, "-");
	else if (p < 0.0001) put(c, row, column, "< 0.0001");
	else put(c, row, column, p < 0.01 ? "%.4f" : "%.3f", p);
}

/* So that the largest arm has one to three digits before the point. */
static const char *flop_unit(const struct nr_summary *m, double *unit)
{
	static const char *const names[] = { "GFLOP", "TFLOP", "PFLOP", "EFLOP" };
	double most = 0;
	int i = 0;
	for (int64_t a = 0; a < m->study->arms; a++) most = fmax(most, m->cost[a].flops);
	for (*unit = 1e9; i < 3 && most >= 1000 * *unit; i++) *unit *= 1000;
	return names[i];
}

/* Whether a paper printed something for this metric. */
static bool published(const struct nr_summary *m, int64_t metric)
{
	for (int64_t a = 0; a < m->study->arms; a++)
		if (nr_published_cell(m->study, metric, a)) return true;
	return false;
}

static int64_t further(const struct nr_summary *m) { return m->metrics - 1 < FURTHER ? m->metrics - 1 : FURTHER; }

static void put_published(const struct nr_summary *m, const struct nr_study_cells *c, int64_t row, int64_t *column,
	int64_t metric, int64_t arm)
{
	const struct nr_published_cell *cell = nr_published_cell(m->study, metric, arm);
	char text[TEXT] = "-";
	if (!published(m, metric)) return;
	if (cell) nr_published_text(cell, text, sizeof text);
	put(c, row, column, "%s", text);
}

/* A column's key, for those who choose, and its title. */
__attribute__((format(printf, 4, 5)))
static void title(const struct nr_study_cells *c, int64_t *column, const char *key, const char *fmt, ...)
{
	va_list ap;
	c->key[*column] = key;
	va_start(ap, fmt);
	vsnprintf(c->text[(*column)++], TEXT, fmt, ap);
	va_end(ap);
}

static void put_titles(const struct nr_summary *m, const struct nr_study_cells *c)
{
	int64_t k = 0;
	double unit;
	title(c, &k, "arm", "arm");
	title(c, &k, "n", "n");
	title(c, &k, "metric", "%s%s", m->metric[0], nr_metric_scale(m->metric[0]) > 1 ? " %" : "");
	if (published(m, 0)) title(c, &k, "published", "published");
	title(c, &k, "difference", "difference");
	title(c, &k, "p", "p (t)");
	title(c, &k, "wilcoxon", "p (Wilcoxon)");
	title(c, &k, "needed", "seeds needed");
	if (m->looks.count) title(c, &k, "decision", "decision");
	for (int64_t i = 1; i <= further(m); i++) {
		title(c, &k, m->metric[i], "%s%s", m->metric[i], nr_metric_scale(m->metric[i]) > 1 ? " %" : "");
		if (published(m, i)) title(c, &k, "published", "published");
	}
	title(c, &k, "time", "time");
	title(c, &k, "flops", "%s", flop_unit(m, &unit));
}

static void put_decision(const struct nr_summary *m, const struct nr_study_cells *c, int64_t row, int64_t *column, int64_t arm)
{
	const struct nr_decision *d = &m->decision[arm];
	if (m->study->arm[arm].against == arm) put(c, row, column, "%s", "");
	else if (d->seeds) put(c, row, column, "differs (%lld seeds)", (long long)d->seeds);
	else put(c, row, column, d->looked == m->looks.count ? "not shown" : "open");
}

static void put_arm(const struct nr_summary *m, const struct nr_study_cells *c, int64_t a)
{
	const struct nr_arm_metric *main = &m->cell[a];
	const struct nr_comparison *v = &main->against;
	char time[32];
	int64_t k = 0, row = a + 1;
	double unit;
	flop_unit(m, &unit);
	put(c, row, &k, "%s", m->study->arm[a].name);
	put(c, row, &k, "%lld", (long long)main->all.n);
	put_mean(c, row, &k, &main->all, m->metric[0], false);
	put_published(m, c, row, &k, 0, a);
	if (m->study->arm[a].against == a) {
		put(c, row, &k, "baseline");
		put(c, row, &k, "%s", "");
		put(c, row, &k, "%s", "");
		put(c, row, &k, "%s", "");
	} else {
		put_mean(c, row, &k, &v->difference, m->metric[0], true);
		put_p(c, row, &k, v->p_t_holm);
		put_p(c, row, &k, v->p_wilcoxon_holm);
		if (v->needed < 0) put(c, row, &k, "%s", v->difference.n < 2 || v->difference.mean == 0 ? "-" : "> 1000");
		else put(c, row, &k, v->needed ? "%lld more" : "enough", (long long)v->needed);
	}
	if (m->looks.count) put_decision(m, c, row, &k, a);
	for (int64_t i = 1; i <= further(m); i++) {
		put_mean(c, row, &k, &m->cell[i * m->study->arms + a].all, m->metric[i], false);
		put_published(m, c, row, &k, i, a);
	}
	put(c, row, &k, "%s", m->cost[a].seconds > 0 ? nr_duration_text(m->cost[a].seconds, time, sizeof time) : "-");
	if (isnan(m->cost[a].flops)) put(c, row, &k, "-");
	else put(c, row, &k, "%.3g", m->cost[a].flops / unit);
}

void nr_cells_release(struct nr_study_cells *c)
{
	free(c->text);
	free(c->key);
	*c = (struct nr_study_cells){ 0 };
}

bool nr_cells_make(struct nr_study_cells *c, const struct nr_summary *m)
{
	*c = (struct nr_study_cells){ .rows = m->study->arms + 1, .columns = 9 + (m->looks.count > 0) };
	for (int64_t i = 0; i <= further(m); i++) c->columns += (i > 0) + published(m, i);
	c->text = calloc((size_t)(c->rows * c->columns), sizeof *c->text);
	c->key = calloc((size_t)c->columns, sizeof *c->key);
	if (!c->text || !c->key) return nr_cells_release(c), false;
	put_titles(m, c);
	for (int64_t a = 0; a < m->study->arms; a++) put_arm(m, c, a);
	return true;
}

/* How the table is to be read; one sentence a line. */
void nr_summary_legend(const struct nr_summary *m, struct nr_str *s, const char *bullet)
{
	const struct nr_study *study = m->study;
	const long long others = (long long)m->comparisons;
	nr_str_printf(s, "%s± is the half width of a 95 %% t interval over seeds; n: runs with a result.\n", bullet);
	if (others > 0) {
		nr_str_printf(s, "%sDifferences from %s are paired by seed; p is two-sided, with Holm's correction "
			"over %lld comparison%s.\n",
			bullet, study->baseline ? study->baseline : study->arm[study->first].name, others, others > 1 ? "s" : "");
		nr_str_printf(s, "%sSeeds needed: for a power of 0.8 at level %.3g, assuming the difference and "
			"spread seen so far.\n",
			bullet, m->level);
	}
	if (m->looks.count) {
		nr_str_printf(s, "%sDecision: paired t test at a level of", bullet);
		for (int64_t k = 0; k < m->looks.count; k++)
			nr_str_printf(s, "%s %.2g after %lld", k ? "," : "", m->looks.level[k], (long long)m->looks.at[k]);
		nr_str_add(s, " seeds: if nothing differs, all looks at all arms together err with a probability of "
			"at most 0.05.\n");
		nr_str_printf(s, "%sThe p-values are not corrected for looks; the decision is.\n", bullet);
	}
	if (m->study->published) {
		nr_str_printf(s,
			"%sPublished: %s, as printed; ?: the source text is damaged or unclear there.\n", bullet,
			m->study->published->label);
		nr_str_printf(s, "%sScale. Theirs: %s. Ours: %s.\n", bullet, m->study->published->theirs, m->ours);
	}
	for (int64_t i = 0; i < m->notes.count; i++) {
		const char *text = m->notes.item[i], *words = text + strspn(text, " ");   /* a note of a note is set in */
		nr_str_printf(s, "%.*s%s%s\n", *bullet == '-' ? (int)(words - text) : 0, "    ", bullet, *bullet == '-' ? words : text);
	}
}

/* The arms, and the columns from `from` on, before `to`. */
static struct nr_table *table_of(const struct nr_study_cells *c, int64_t from, int64_t to)
{
	struct nr_table *t = nr_table_make();
	for (int64_t row = 0; row < c->rows; row++)
		for (int64_t k = 0; k < to; k = k ? k + 1 : from) {
			if (!row) nr_table_column(t, nr_cell_at(c, 0, k), k ? NR_RIGHT : NR_LEFT);
			else nr_table_cell(t, "%s", nr_cell_at(c, row, k));
		}
	return t;
}

static size_t width_of(const struct nr_study_cells *c, int64_t column)
{
	size_t most = 0;
	for (int64_t row = 0; row < c->rows; row++) {
		const size_t n = nr_utf8_width(nr_cell_at(c, row, column));
		most = n > most ? n : most;
	}
	return most;
}

/* As many columns as there is room for, then the arms again with those that are left. */
static void add_text(struct nr_str *s, const struct nr_study_cells *c)
{
	enum { WIDE = 80, GAP = 2 };
	for (int64_t from = 1, to; from < c->columns; from = to) {
		size_t wide = width_of(c, 0);
		for (to = from; to < c->columns; to++) {
			wide += GAP + width_of(c, to);
			if (wide > WIDE && to > from) break;
		}
		struct nr_table *t = table_of(c, from, to);
		if (from > 1) nr_str_add(s, "\n");
		nr_table_text(t, s);
		nr_table_free(t);
	}
}

static void heading(const struct nr_summary *m, struct nr_str *s, const char *before, const char *between)
{
	if (*m->study->title) nr_str_printf(s, "%s%s\n%s", before, m->study->title, between);
	if (*m->study->question) nr_str_printf(s, "%s\n%s", m->study->question, between);
}

void nr_summary_text(const struct nr_summary *m, struct nr_str *s)
{
	struct nr_study_cells c;
	if (!nr_cells_make(&c, m)) {
		s->failed = true;
		return;
	}
	heading(m, s, "", "");
	add_text(s, &c);
	struct nr_str legend = { 0 };
	nr_summary_legend(m, &legend, "");
	for (const char *line = nr_str_text(&legend); *line;) {         /* each a sentence of its own */
		const size_t n = strcspn(line, "\n"), indent = strspn(line, " ");
		char *one = strndup(line, n);
		nr_str_fill(s, ' ', indent);
		nr_wrap(s, one ? one : "", indent ? indent + 2 : 2, NR_TERMINAL);
		nr_str_add(s, "\n");
		s->failed |= !one;
		free(one);
		line += n + (line[n] == '\n');
	}
	s->failed |= legend.failed;
	nr_str_release(&legend);
	nr_cells_release(&c);
}

void nr_summary_markdown(const struct nr_summary *m, struct nr_str *s)
{
	struct nr_study_cells c;
	if (!nr_cells_make(&c, m)) {
		s->failed = true;
		return;
	}
	struct nr_table *t = table_of(&c, 1, c.columns);
	heading(m, s, "# ", "\n");
	nr_table_markdown(t, s);
	nr_str_add(s, "\n");
	nr_summary_legend(m, s, "- ");
	nr_table_free(t);
	nr_cells_release(&c);
}

static void summary_csv(const struct nr_summary *m, struct nr_str *s)
{
	struct nr_study_cells c;
	if (!nr_cells_make(&c, m)) {
		s->failed = true;
		return;
	}
	struct nr_table *t = table_of(&c, 1, c.columns);
	nr_table_csv(t, s);
	nr_table_free(t);
	nr_cells_release(&c);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------- */

struct csv { struct nr_table *t; const struct nr_study *s; int64_t arm, seed, stage; };

static void csv_row(void *context, const char *path, double value)
{
	const struct csv *c = context;
	char number[40];
	nr_table_cell(c->t, "%s", c->s->arm[c->arm].name);
	nr_table_cell(c->t, "%lld", (long long)c->s->seed[c->seed]);
	nr_table_cell(c->t, "%s.%s", c->s->stage[c->stage].name, path);
	nr_table_cell(c->t, "%s", nr_double_text(value, false, number, sizeof number));
}

/* Every number of every result, not only the metrics of the table. */
static int write_csv(const struct nr_summary *m, struct nr_str *text, struct nr_error *err)
{
	struct csv c = { .t = nr_table_make(), .s = m->study };
	static const char *const titles[] = { "arm", "seed", "metric", "value", NULL };
	for (int i = 0; titles[i]; i++) nr_table_column(c.t, titles[i], NR_LEFT);
	for (c.arm = 0; c.arm < c.s->arms; c.arm++)
		for (c.seed = 0; c.seed < c.s->seeds; c.seed++)
			for (c.stage = 0; c.stage < c.s->stages; c.stage++) {
				struct nr_job j;
				struct nr_stage_mark mark;
				if (nr_job_make(&j, c.s, c.arm, c.seed, c.stage, m->arena, err)) break;
				if (nr_mark_read(&j, &mark, m->arena, err)) break;
				if (mark.status != NR_MARK_DONE || strcmp(mark.settings, j.settings)) continue;
				json_t *o = nr_json_load(j.json, err);
				nr_result_each(o, csv_row, &c);
				json_decref(o);
			}
	nr_table_csv(c.t, text);
	nr_table_free(c.t);
	return err->code;
}

static int save(const struct nr_summary *m, const char *name, struct nr_str *text, struct nr_error *err)
{
	char *path = nr_arena_printf(m->arena, "%s/%s", m->study->out, name);
	const int code = path && !text->failed ? nr_save_file(path, nr_str_text(text), text->len, err)
					       : nr_fail(err, NR_EMEMORY, "cannot write", name, "out of memory");
	nr_str_release(text);
	return code;
}

int nr_summary_write(const struct nr_summary *m, const struct nr_study_run *run, int64_t runs, struct nr_error *err)
{
	struct nr_str csv = { 0 }, table = { 0 }, markdown = { 0 }, latex = { 0 }, json = { 0 };
	const int64_t failures = nr_memory_failures();
	summary_csv(m, &table);
	nr_summary_markdown(m, &markdown);
	nr_summary_latex(m, &latex);
	char *dump = NULL;
	json_t *o = nr_summary_json(m, run, runs);
	if (o) dump = nr_json_dump(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(o);
	if (dump) nr_str_printf(&json, "%s\n", dump);
	else json.failed = true;
	free(dump);
	int code = write_csv(m, &csv, err);
	if (nr_memory_since(failures, "cannot sum up the study", NULL, err)) json.failed = true;         /* a setting would be missing */
	code = save(m, "results.csv", &csv, err) || code;
	code = save(m, "table.csv", &table, err) || code;
	code = save(m, "table.md", &markdown, err) || code;
	code = save(m, "table.tex", &latex, err) || code;
	code = save(m, "table.json", &json, err) || code;
	return code ? (int)err->code : NR_OK;
}
