/* The report: see report.h. */
#include "report/report.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/save.h"
#include "norma/version.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "report/analysis_figures.h"
#include "report/arms.h"
#include "report/citations.h"
#include "report/class_figures.h"
#include "report/figure_files.h"
#include "report/molecules.h"
#include "report/object_figures.h"
#include "report/page.h"
#include "report/report_runs.h"
#include "report/sections.h"
#include "report/seeds.h"
#include "report/study_page.h"
#include "report/study_read.h"
#include "report/verdict.h"

/* ---- the head ---------------------------------------------------------------------------------------------------------- */

/* What the first run says; runs that differ in it are several arms, and the verdict says so. */
static const char *fact(const struct nr_arms *a, const char *key)
{
	const char *text = nr_config_find(&a->run[0].settings, key);    /* as it was asked for: shorter than what came of it */
	return text && *text ? text : nr_runfolder_env(&a->run[0], key);
}

static void add_title(struct nr_str *s, const struct nr_arms *a, const char *asked)
{
	const char *data = fact(a, "data");
	if (*asked) nr_str_add(s, asked);
	else nr_str_add(s, a->count > 1 ? "Normalizations compared" : "What one norm plan learned");
	if (!*asked && data) nr_str_printf(s, " on %s", data);
}

static void add_question(struct nr_str *s, const struct nr_arms *a)
{
	const char *model = fact(a, "model"), *data = fact(a, "data"), *kind = nr_runfolder_env(&a->run[0], "kind");
	const bool pretrain = kind && !strcmp(kind, "pretrain");
	if (!data) data = "its data";
	nr_str_add(s, "<p class=\"question\">");
	if (a->count > 1) nr_html_printf(s, "Which of %d norm plans %s ", a->count, pretrain ? "gives" : "lets");
	else nr_html_printf(s, "What happened to %s ", pretrain ? "pre-training" : "training");
	nr_html_element(s, "span", "plan", model ? model : "the model");
	if (a->count > 1) nr_html_printf(s, pretrain ? " the best features, pre-trained on %s?" : " learn %s best?", data);
	else nr_html_printf(s, " on %s?", data);
	nr_str_add(s, "</p>\n");
}

static void add_head(struct nr_str *s, const struct nr_arms *a, const struct nr_report *o, const char *title)
{
	char made[32];
	nr_str_add(s, "<header>\n");
	nr_html_element(s, "h1", NULL, title);
	add_question(s, a);
	nr_verdict(s, a);
	nr_str_add(s, "<p class=\"meta\">");
	nr_html_printf(s, "Made on %s from %d run%s by norma %s: ", nr_time_text(o->made, made, sizeof made), a->runs,
		a->runs == 1 ? "" : "s", NR_VERSION);
	nr_html_element(s, "code", NULL, o->command);
	nr_str_add(s, ". The commands of the runs stand <a href=\"#runs\">at the end</a>.</p>\n</header>\n");
}

/* ---- the table of arms -------------------------------------------------------------------------------------------------- */

static bool measured(const struct nr_arms *a, const struct nr_measure *m)
{
	for (int i = 0; i < a->count; i++)
		if (isfinite(nr_arm_estimate(a, i, m).mean)) return true;
	return false;
}

/* Whether a value is to be marked: it looks like the best one, and not all look alike. */
static bool is_best(const struct nr_arms *a, const struct nr_measure *m, const char *text)
{
	char best[64], other[64];
	const int first = nr_best_arm(a, m, -1);
	bool alike = true;
	if (first < 0) return false;
	nr_measure_text(m, nr_arm_estimate(a, first, m).mean, false, best, sizeof best);
	for (int i = 0; i < a->count && alike; i++)
		alike = !strcmp(best, nr_measure_text(m, nr_arm_estimate(a, i, m).mean, false, other, sizeof other));
	return !alike && !strcmp(best, text);
}

static void add_value(struct nr_html_table *t, const struct nr_arms *a, int arm, const struct nr_measure *m)
{
	char mean[64], lo[64], hi[64];
	const struct nr_estimate e = nr_arm_estimate(a, arm, m);
	nr_measure_text(m, e.mean, false, mean, sizeof mean);
	nr_html_cell_open(t, "number");
	nr_html_element(t->s, "span", is_best(a, m, mean) ? "best" : NULL, mean);
	if (e.over == NR_NO_INTERVAL || m->cost) return;
	nr_str_add(t->s, "<small>");
	nr_html_printf(t->s, "%s – %s", nr_measure_text(m, e.lo, false, lo, sizeof lo), nr_measure_text(m, e.hi, false, hi, sizeof hi));
	nr_str_add(t->s, "</small>");
}

static void add_arm_row(struct nr_html_table *t, const struct nr_arms *a, int i)
{
	const struct nr_arm *m = &a->arm[i];
	nr_html_row(t);
	nr_html_cell_open(t, "arm");
	nr_svg_sample(t->s, i);
	nr_html_printf(t->s, " %s ", m->letter);
	nr_html_element(t->s, "span", "plan", m->name);
	if (*m->also && !strstr(m->name, m->also)) nr_html_element(t->s, "small", NULL, m->also);
	nr_html_cell_open(t, "number");
	nr_str_printf(t->s, "%d", m->distinct);
	for (const struct nr_measure *v = nr_measures; v->title; v++)
		if (measured(a, v)) add_value(t, a, i, v);
}

static void add_arms(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_html_table t = { .s = s, .caption = "An arm is a set of runs that differ only in their seed. The "
		"95 % interval is below each value; ▸ marks the best value of a column. Uniformity and rank come "
		"from norma probe if it was run, otherwise from the last evaluation. Wall time and speed are means." };
	nr_str_add(s, "<section id=\"arms\"><h2>The arms</h2>\n");
	nr_html_table_open(&t, "arms");
	nr_html_head(&t, NULL, "norm plan");
	nr_html_head(&t, "number", "seeds");
	for (const struct nr_measure *v = nr_measures; v->title; v++) {
		if (!measured(a, v)) continue;
		nr_str_add(s, "<th class=\"number\">");
		nr_html_text(s, v->title);
		nr_html_element(s, "small", NULL, v->unit);
		nr_str_add(s, "</th>");
	}
	for (int i = 0; i < a->count; i++) add_arm_row(&t, a, i);
	nr_html_table_close(&t);
	nr_seeds_of_runs(s, a, arena);
	nr_str_add(s, "</section>\n");
}

/* ---- the page ----------------------------------------------------------------------------------------------------------- */

/* Spectra and reconstructions are of pictures: of texts, molecules and detectors nothing is missed. */
static bool of_pictures(const struct nr_arms *a)
{
	const char *sample = a->runs ? nr_runfolder_env(&a->run[0], "sample") : NULL;
	return (!sample || !strcmp(sample, "picture")) && !(a->runs && a->run[0].objects);
}

static void add_page(struct nr_str *s, const struct nr_report *o, const struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_str title = { 0 };
	add_title(&title, a, o->title);
	nr_page_open(s, nr_str_text(&title));
	add_head(s, a, o, nr_str_text(&title));
	add_arms(s, a, arena);
	nr_section_curves(s, a, "curves", "Curves", arena);
	nr_section_classes(s, a, arena);
	nr_section_objects(s, a, arena);
	nr_section_molecules(s, a, arena);
	nr_section_spectra(s, a, of_pictures(a), arena);
	nr_analysis_figures(s, a, arena);
	nr_section_pictures(s, a, of_pictures(a), arena);
	nr_report_runs(s, a, arena);
	nr_citations(s, &a, 1);
	nr_page_close(s);
	if (title.failed) s->failed = true;
	nr_str_release(&title);
}

/* The same folder twice would count as two seeds. */
static int check_twice(const struct nr_list *runs, int64_t i, struct nr_error *err)
{
	char *one = realpath(runs->item[i], NULL);
	int code = NR_OK;
	for (int64_t k = 0; k < i && one && !code; k++) {
		char *other = realpath(runs->item[k], NULL);
		if (other && !strcmp(one, other)) {
			nr_fail(err, NR_EVALUE, "cannot report on", runs->item[i], "it is given twice");
			code = nr_hint(err, "give each run folder once");
		}
		free(other);
	}
	free(one);
	return code;
}

/* In a study every run folder has the same last part: then the whole path tells them apart. */
static void tell_apart(struct nr_runfolder *run, int count)
{
	bool alike = false;
	for (int i = 1; i < count && !alike; i++)
		for (int k = 0; k < i && !alike; k++) alike = !strcmp(run[i].name, run[k].name);
	for (int i = 0; i < count && alike; i++) run[i].name = run[i].dir;
}

static int runs_page(const struct nr_report *o, struct nr_str *s, struct nr_arena *arena, struct nr_error *err)
{
	const int count = (int)o->runs.count;
	struct nr_runfolder *run = nr_arena_alloc(arena, ((size_t)count + 1) * sizeof *run);
	struct nr_arms arms;
	int code = run ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot make the report", NULL, "out of memory"), read = 0;
	for (; read < count && !code; read++) {
		code = check_twice(&o->runs, read, err);
		if (!code) code = nr_runfolder_read(&run[read], o->runs.item[read], arena, err);
	}
	if (!code) tell_apart(run, count);
	if (!code) code = nr_arms_group(&arms, run, count, arena, err);
	if (!code) add_page(s, o, &arms, arena);
	for (int i = 0; i < read; i++) nr_runfolder_release(&run[i]);
	return code;
}

/* A study stands for all of its runs. */
static int check_studies(const struct nr_report *o, struct nr_error *err)
{
	for (int64_t i = 0; i < o->runs.count; i++) {
		if (o->runs.count == 1 || !nr_study_is_here(o->runs.item[i])) continue;
		nr_fail(err, NR_EVALUE, "cannot report on", o->runs.item[i],
			"it is a study, but other folders were given, too");
		return nr_hint(err, "give one study, or only run folders, e.g. %s/*/seed-*/*/", o->runs.item[i]);
	}
	return NR_OK;
}

int nr_report_page(const struct nr_report *o, struct nr_str *s, struct nr_error *err)
{
	if (o->runs.count < 1 || o->runs.count > INT_MAX / 4)
		return nr_fail(err, NR_EVALUE, "cannot make the report", NULL, "there is no run to report on");
	const int64_t failures = nr_memory_failures();
	struct nr_arena *arena = nr_arena_make();
	if (!arena) return nr_fail(err, NR_EMEMORY, "cannot make the report", NULL, "out of memory");
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;  /* points in numbers */
	int code = check_studies(o, err);
	if (!code) code = nr_study_is_here(o->runs.item[0]) ? nr_study_page(o, s, arena, err) : runs_page(o, s, arena, err);
	if (!code && s->failed) code = nr_fail(err, NR_EMEMORY, "cannot make the report", NULL, "out of memory");
	if (!code) code = nr_memory_since(failures, "cannot make the report", NULL, err);  /* a number would be missing */
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	nr_arena_free(arena);
	return code;
}

int nr_report_write(const struct nr_report *o, const char *path, int *figures, struct nr_error *err)
{
	*figures = 0;
	struct nr_str s = { 0 };
	int code = nr_report_page(o, &s, err);
	if (!code) code = nr_save_file(path, s.text, s.len, err);
	if (!code && o->figures) code = nr_figure_files(s.text, o->figures, o->format, figures, err);
	nr_str_release(&s);
	return code;
}
