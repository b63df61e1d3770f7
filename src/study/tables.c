/* Tables of a study: terminal, Markdown and LaTeX from the same cells. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "base/table.h"
#include "study/job.h"
#include "study/published.h"
#include "study/results.h"

enum { FURTHER = 20, TEXT = 96 };           /* metrics beside the main one */
struct cells { int64_t rows, columns; char (*text)[TEXT]; };    /* row 0: titles; column 0 is to the left, the others to the right */

static char *at(const struct cells *c, int64_t row, int64_t column) { return c->text[row * c->columns + column]; }

__attribute__((format(printf, 4, 5)))
static void put(const struct cells *c, int64_t row, int64_t *column, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(at(c, row, (*column)++), TEXT, fmt, ap);
	va_end(ap);
}

double nr_metric_scale(const char *metric) { return nr_metric_is_share(metric) ? 100 : 1; }

static int digits_of(const char *metric) { return nr_metric_scale(metric) > 1 ? 2 : 4; }

static void put_mean(const struct cells *c, int64_t row, int64_t *column, const struct nr_sample *s, const char *metric, bool sign)
{
	const double k = nr_metric_scale(metric);
	const int d = digits_of(metric);
	if (isnan(s->mean)) put(c, row, column, "-");
	else if (isnan(s->half)) put(c, row, column, sign ? "%+.*f" : "%.*f", d, k * s->mean);
	else put(c, row, column, sign ? "%+.*f ± %.*f" : "%.*f ± %.*f", d, k * s->mean, d, k * s->half);
}

static void put_p(const struct cells *c, int64_t row, int64_t *column, double p)
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

static void put_published(const struct nr_summary *m, const struct cells *c, int64_t row, int64_t *column, int64_t metric, int64_t arm)
{
	const struct nr_published_cell *cell = nr_published_cell(m->study, metric, arm);
	char text[TEXT] = "-";
	if (!published(m, metric)) return;
	if (cell) nr_published_text(cell, text, sizeof text);
	put(c, row, column, "%s", text);
}

static void put_titles(const struct nr_summary *m, const struct cells *c)
{
	int64_t k = 0;
	double unit;
	put(c, 0, &k, "arm");
	put(c, 0, &k, "n");
	put(c, 0, &k, "%s%s", m->metric[0], nr_metric_scale(m->metric[0]) > 1 ? " %" : "");
	if (published(m, 0)) put(c, 0, &k, "published");
	put(c, 0, &k, "difference");
	put(c, 0, &k, "p (t)");
	put(c, 0, &k, "p (Wilcoxon)");
	put(c, 0, &k, "seeds needed");
	if (m->looks.count) put(c, 0, &k, "decision");
	for (int64_t i = 1; i <= further(m); i++) {
		put(c, 0, &k, "%s%s", m->metric[i], nr_metric_scale(m->metric[i]) > 1 ? " %" : "");
		if (published(m, i)) put(c, 0, &k, "published");
	}
	put(c, 0, &k, "time");
	put(c, 0, &k, "%s", flop_unit(m, &unit));
}

static void put_decision(const struct nr_summary *m, const struct cells *c, int64_t row, int64_t *column, int64_t arm)
{
	const struct nr_decision *d = &m->decision[arm];
	if (m->study->arm[arm].against == arm) put(c, row, column, "%s", "");
	else if (d->seeds) put(c, row, column, "differs (%lld seeds)", (long long)d->seeds);
	else put(c, row, column, d->looked == m->looks.count ? "not shown" : "open");
}

static void put_arm(const struct nr_summary *m, const struct cells *c, int64_t a)
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

static bool make_cells(const struct nr_summary *m, struct cells *c)
{
	*c = (struct cells){ .rows = m->study->arms + 1, .columns = 9 + (m->looks.count > 0) };
	for (int64_t i = 0; i <= further(m); i++) c->columns += (i > 0) + published(m, i);
	c->text = calloc((size_t)(c->rows * c->columns), sizeof *c->text);
	if (!c->text) return false;
	put_titles(m, c);
	for (int64_t a = 0; a < m->study->arms; a++) put_arm(m, c, a);
	return true;
}

/* How the table is to be read; one sentence a line. */
static void legend(const struct nr_summary *m, struct nr_str *s, const char *bullet)
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

static struct nr_table *table_of(const struct cells *c)
{
	struct nr_table *t = nr_table_make();
	for (int64_t k = 0; k < c->columns; k++) nr_table_column(t, at(c, 0, k), k ? NR_RIGHT : NR_LEFT);
	for (int64_t i = c->columns; i < c->rows * c->columns; i++) nr_table_cell(t, "%s", c->text[i]);
	return t;
}

static void heading(const struct nr_summary *m, struct nr_str *s, const char *before, const char *between)
{
	if (*m->study->title) nr_str_printf(s, "%s%s\n%s", before, m->study->title, between);
	if (*m->study->question) nr_str_printf(s, "%s\n%s", m->study->question, between);
}

void nr_summary_text(const struct nr_summary *m, struct nr_str *s)
{
	struct cells c;
	if (!make_cells(m, &c)) return;
	struct nr_table *t = table_of(&c);
	heading(m, s, "", "");
	nr_table_text(t, s);
	legend(m, s, "");
	nr_table_free(t);
	free(c.text);
}

void nr_summary_markdown(const struct nr_summary *m, struct nr_str *s)
{
	struct cells c;
	if (!make_cells(m, &c)) return;
	struct nr_table *t = table_of(&c);
	heading(m, s, "# ", "\n");
	nr_table_markdown(t, s);
	nr_str_add(s, "\n");
	legend(m, s, "- ");
	nr_table_free(t);
	free(c.text);
}

/* Plain text for TeX. */
static void add_tex(struct nr_str *s, const char *text)
{
	for (; *text; text++) {
		if (!strncmp(text, "±", 2)) nr_str_add(s, "$\\pm$"), text++;
		else if (!strncmp(text, "Δ", 2)) nr_str_add(s, "$\\Delta$"), text++;
		else if (strchr("&%$#_{}", *text)) nr_str_printf(s, "\\%c", *text);
		else if (*text == '\\') nr_str_add(s, "\\textbackslash{}");
		else if (*text == '~') nr_str_add(s, "\\textasciitilde{}");
		else if (*text == '^') nr_str_add(s, "\\textasciicircum{}");
		else if (*text == '<' || *text == '>') nr_str_printf(s, "$%c$", *text);
		else nr_str_add_n(s, text, 1);
	}
}

void nr_summary_latex(const struct nr_summary *m, struct nr_str *s)
{
	struct cells c;
	if (!make_cells(m, &c)) return;
	nr_str_add(s, "% needs \\usepackage{booktabs}\n\\begin{tabular}{l");
	nr_str_fill(s, 'r', (size_t)c.columns - 1);
	nr_str_add(s, "}\n\\toprule\n");
	for (int64_t i = 0; i < c.rows; i++) {
		for (int64_t k = 0; k < c.columns; k++) {
			if (k) nr_str_add(s, " & ");
			add_tex(s, at(&c, i, k));
		}
		nr_str_add(s, i ? " \\\\\n" : " \\\\\n\\midrule\n");
	}
	nr_str_add(s, "\\bottomrule\n\\end{tabular}\n");
	struct nr_str words = { 0 };
	legend(m, &words, "% ");
	nr_str_add(s, nr_str_text(&words));
	nr_str_release(&words);
	free(c.text);
}

static void summary_csv(const struct nr_summary *m, struct nr_str *s)
{
	struct cells c;
	if (!make_cells(m, &c)) return;
	struct nr_table *t = table_of(&c);
	nr_table_csv(t, s);
	nr_table_free(t);
	free(c.text);
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
	summary_csv(m, &table);
	nr_summary_markdown(m, &markdown);
	nr_summary_latex(m, &latex);
	char *dump = NULL;
	json_t *o = nr_summary_json(m, run, runs);
	if (o) dump = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(o);
	if (dump) nr_str_printf(&json, "%s\n", dump);
	else json.failed = true;
	free(dump);
	int code = write_csv(m, &csv, err);
	code = save(m, "results.csv", &csv, err) || code;
	code = save(m, "table.csv", &table, err) || code;
	code = save(m, "table.md", &markdown, err) || code;
	code = save(m, "table.tex", &latex, err) || code;
	code = save(m, "table.json", &json, err) || code;
	return code ? (int)err->code : NR_OK;
}
