/* The report: see report.h. */
#include "report/report.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/save.h"
#include "norma_build.h"
#include "report/arms.h"
#include "report/curves.h"
#include "draw/html.h"
#include "report/microscope.h"
#include "report/page.h"
#include "report/report_runs.h"
#include "draw/svg.h"
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
	else nr_html_printf(s, "What came of %s ", pretrain ? "pre-training" : "training");
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

static void add_arms(struct nr_str *s, const struct nr_arms *a)
{
	struct nr_html_table t = { .s = s, .caption = "An arm is a set of runs that differ in nothing but the seed. Below a value "
		"stands its 95 % interval; ▸ marks the best value of a column. Uniformity and rank are those of norma probe if it was "
		"run, else of the last evaluation. Wall time and speed are means." };
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
	nr_str_add(s, "</section>\n");
}

/* ---- figures ----------------------------------------------------------------------------------------------------------- */

static void add_charts(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	nr_str_add(s, "<section id=\"curves\"><h2>Curves</h2>\n");
	nr_str_add(s, "<p>Where an arm has several seeds, thin lines are the seeds and the bold one is their mean. Where a curve is "
		      "called smoothed, the bold line is a moving mean and the thin ones are as recorded.</p>\n");
	nr_legend(s, a);
	nr_str_add(s, "<div class=\"charts\">\n");
	const int curves = nr_curves(s, a, arena);
	nr_str_add(s, "</div>\n");
	if (!curves) nr_str_add(s, "<p class=\"notes\">No run has records in metrics.csv.</p>\n");
	nr_str_add(s, "</section>\n<section id=\"spectra\"><h2>Spectra of the features</h2>\n");
	nr_str_add(s, "<p>Singular values of the features, as parts of the largest. A line that stays high uses many directions; one that "
		      "falls at once has collapsed onto a few.</p>\n");
	nr_legend(s, a);
	nr_str_add(s, "<div class=\"charts\">\n");
	const int spectra = nr_spectra(s, a, arena);
	nr_str_add(s, "</div>\n");
	if (!spectra) nr_str_add(s, "<p class=\"notes\">No run has a spectrum.csv; norma probe writes it.</p>\n");
	nr_str_add(s, "</section>\n");
}

/* One for each arm: that of its first run which has one. */
static void add_pictures(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	int count = 0;
	nr_str_add(s, "<section id=\"pictures\"><h2>Reconstructions</h2>\n<div class=\"pictures\">\n");
	for (int m = 0; m < a->count; m++) {
		const struct nr_runfolder *r = NULL;
		for (int i = 0; i < a->arm[m].runs && !r; i++)
			if (a->run[a->arm[m].run[i]].reconstruction.size) r = &a->run[a->arm[m].run[i]];
		if (!r) continue;
		const char *title = nr_arena_printf(arena, "%s %s", a->arm[m].letter, a->arm[m].name);
		const char *note = nr_arena_printf(arena, "seed %lld; original, masked, reconstructed", (long long)r->seed);
		const char *alt = nr_arena_printf(arena, "Held-out pictures: original, masked, and reconstructed with %s", a->arm[m].name);
		if (!title || !note || !alt) s->failed = true;
		nr_html_figure_open(s, "picture", title, note);
		nr_html_png(s, r->reconstruction.bytes, r->reconstruction.size, r->reconstruction.width, r->reconstruction.height, alt);
		nr_html_figure_close(s);
		count++;
	}
	nr_str_add(s, "</div>\n");
	if (!count) nr_str_add(s, "<p class=\"notes\">No run has a reconstruction.png.</p>\n");
	nr_str_add(s, "</section>\n");
}

/* ---- writing ------------------------------------------------------------------------------------------------------------ */

static int add_page(const struct nr_report *o, const struct nr_arms *a, struct nr_str *s, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_str title = { 0 };
	add_title(&title, a, o->title);
	nr_page_open(s, nr_str_text(&title));
	add_head(s, a, o, nr_str_text(&title));
	add_arms(s, a);
	add_charts(s, a, arena);
	nr_microscope_section(s, a, arena);
	add_pictures(s, a, arena);
	nr_report_runs(s, a, arena);
	nr_page_close(s);
	const bool failed = s->failed || title.failed;
	nr_str_release(&title);
	return failed ? nr_fail(err, NR_EMEMORY, "cannot make the report", NULL, "out of memory") : NR_OK;
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
			code = nr_hint(err, "name each run folder once");
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

static int read_and_add(const struct nr_report *o, struct nr_str *page, struct nr_arena *arena, struct nr_error *err)
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
	if (!code) code = add_page(o, &arms, page, arena, err);
	for (int i = 0; i < read; i++) nr_runfolder_release(&run[i]);
	return code;
}

int nr_report_page(const struct nr_report *o, struct nr_str *page, struct nr_error *err)
{
	if (o->runs.count < 1 || o->runs.count > INT_MAX / 4)
		return nr_fail(err, NR_EVALUE, "cannot make the report", NULL, "there is no run to report on");
	struct nr_arena *arena = nr_arena_make();
	if (!arena) return nr_fail(err, NR_EMEMORY, "cannot make the report", NULL, "out of memory");
	const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;  /* points in numbers */
	const int code = read_and_add(o, page, arena, err);
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	nr_arena_free(arena);
	return code;
}

int nr_report_write(const struct nr_report *o, const char *path, struct nr_error *err)
{
	struct nr_str page = { 0 };
	int code = nr_report_page(o, &page, err);
	if (!code) code = nr_save_file(path, page.text, page.len, err);
	nr_str_release(&page);
	return code;
}
