/* Words and tables of a study: see study_tables.h. */
#include "report/study_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "draw/html.h"
#include "draw/scale.h"
#include "draw/svg.h"
#include "report/seeds.h"
#include "study/results.h"

static const double LEVEL = NR_STUDY_LEVEL;

static const json_t *against(const struct nr_study_read *s, int metric, int arm)
{
	return json_object_get(nr_study_cell(s, metric, arm), "difference");
}

static double mean_of(const struct nr_study_read *s, int metric, int arm) { return nr_json_at(nr_study_cell(s, metric, arm), "mean"); }

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

static const char *p_text(double p, char *buf, size_t size)
{
	if (isnan(p)) return snprintf(buf, size, "–"), buf;
	if (p < 0.0001) return snprintf(buf, size, "< 0.0001"), buf;
	return snprintf(buf, size, p < 0.01 ? "%.4f" : "%.3f", p), buf;
}

/* ---- the verdict -------------------------------------------------------------------------------------------------------- */

struct nr_study_count nr_study_count(const struct nr_study_read *s)
{
	struct nr_study_count c = { 0 };
	for (int a = 0; a < s->arms; a++) {
		const json_t *runs = json_object_get(json_array_get(s->arm, (size_t)a), "runs");
		for (size_t i = 0; i < json_array_size(runs); i++) {
			const char *status = text_of(json_array_get(runs, i), "status");
			c.done += !strcmp(status, "done");
			c.running += !strcmp(status, "running");
			c.waiting += !strcmp(status, "waiting");
			c.failed += !strcmp(status, "failed");
			c.spared += !strcmp(status, "spared");
		}
	}
	return c;
}

static int best_of(const struct nr_study_read *s, int metric)
{
	const double sign = nr_metric_falls(nr_study_metric(s, metric)) ? -1 : 1;
	int best = -1;
	for (int a = 0; a < s->arms; a++) {
		const double v = mean_of(s, metric, a);
		if (isfinite(v) && (best < 0 || sign * v > sign * mean_of(s, metric, best))) best = a;
	}
	return best;
}

static void add_name(struct nr_str *s, const char *name) { nr_html_element(s, "strong", "plan", name); }

static void add_mean(struct nr_str *s, const struct nr_study_read *v, int k, const json_t *cell, bool sign)
{
	char mean[64], half[64];
	const char *metric = nr_study_metric(v, k);
	const double h = nr_json_at(cell, "half_width_95"), most = nr_study_most(v, k);
	nr_html_printf(s, "%s", nr_metric_text(metric, nr_json_at(cell, "mean"), most, sign, mean, sizeof mean));
	if (isfinite(h)) nr_html_printf(s, " ± %s", nr_metric_text(metric, h, most, false, half, sizeof half));
}

/* Arms that differ from their baseline, for better or for worse. */
static void add_shown(struct nr_str *s, const struct nr_study_read *v, bool better)
{
	const char *metric = nr_study_metric(v, 0);
	const double sign = nr_metric_falls(metric) == better ? -1 : 1;
	char p[32];
	int count = 0;
	for (int a = 0; a < v->arms; a++) {
		const json_t *d = against(v, 0, a);
		const double by = nr_json_at(d, "mean"), holm = nr_json_at(d, "p_t_holm");
		if (!(holm < LEVEL) || !(sign * by > 0)) continue;
		nr_str_add(s, count++ ? ", " : "");
		add_name(s, v->name[a]);
		nr_str_add(s, " (");
		add_mean(s, v, 0, d, true);
		nr_html_printf(s, ", p = %s)", p_text(holm, p, sizeof p));
	}
	if (count) nr_html_printf(s, " %s %s than the baseline. ", count > 1 ? "are" : "is", better ? "better" : "worse");
}

/* The comparison that comes nearest. */
static void add_nearest(struct nr_str *s, const struct nr_study_read *v)
{
	int nearest = -1;
	bool any = false;
	char p[32];
	for (int a = 0; a < v->arms; a++) {
		const double holm = nr_json_at(against(v, 0, a), "p_t_holm");
		any |= holm < LEVEL;
		if (isfinite(holm) && (nearest < 0 || holm < nr_json_at(against(v, 0, nearest), "p_t_holm"))) nearest = a;
	}
	if (any) return;
	if (nearest < 0) {
		nr_str_add(s, "There are too few seeds for a test. ");
		return;
	}
	const json_t *d = against(v, 0, nearest);
	const double needed = nr_json_at(d, "seeds_still_needed");
	nr_str_add(s, "No arm was shown to differ from its baseline; the closest is ");
	add_name(s, v->name[nearest]);
	nr_str_add(s, " with ");
	add_mean(s, v, 0, d, true);
	nr_html_printf(s, " (p = %s)", p_text(nr_json_at(d, "p_t_holm"), p, sizeof p));
	if (needed > 0) nr_str_printf(s, "; about %.0f more seed%s would settle it", needed, needed == 1 ? "" : "s");
	nr_str_add(s, ". ");
}

static void add_state(struct nr_str *s, const struct nr_study_read *v)
{
	const struct nr_study_count c = nr_study_count(v);
	const int all = c.done + c.running + c.waiting + c.failed + c.spared;
	nr_str_add(s, "<ul class=\"basis\">");
	if (c.running || c.waiting || c.failed)
		nr_str_printf(s, "<li><b>The study is not finished: %d of %d runs are done</b>, %d begun, %d waiting, %d failed.</li>",
			c.done, all, c.running, c.waiting, c.failed);
	if (c.spared) nr_str_printf(s, "<li>%d runs were spared: their comparison was decided.</li>", c.spared);
	nr_str_printf(s,
		"<li>± is the half width of a 95 %% t interval over seeds. Differences are paired by seed; p is of a paired t test, "
		"corrected by Holm over all comparisons.</li></ul>\n");
}

void nr_study_verdict(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const char *metric = nr_study_metric(v, 0);
	const int best = best_of(v, 0);
	nr_str_add(s, "<p class=\"verdict\">");
	if (best < 0) {
		nr_str_add(s, "No run has a result yet: nothing can be compared.");
	} else {
		add_name(s, v->name[best]);
		nr_html_printf(s, " has the %s %s: ", nr_metric_falls(metric) ? "lowest" : "highest", nr_metric_title(metric, arena));
		add_mean(s, v, 0, nr_study_cell(v, 0, best), false);
		nr_html_printf(s, "%s%s. ", *nr_metric_unit(metric) ? "\u00a0" : "", nr_metric_unit(metric));
		add_shown(s, v, true);
		add_shown(s, v, false);
		add_nearest(s, v);
	}
	nr_str_add(s, "</p>\n");
	add_state(s, v);
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

static void add_arm(struct nr_html_table *t, const struct nr_study_read *v, int arm)
{
	nr_html_row(t);
	nr_html_cell_open(t, "arm");
	nr_svg_sample(t->s, arm);
	nr_str_add(t->s, " ");
	const struct nr_arm *m = &v->stage[0].arms.arm[arm];
	if (strcmp(m->label, m->name)) nr_html_printf(t->s, "%s ", m->letter);
	nr_html_element(t->s, "span", "plan", v->name[arm]);
}

static void add_metric_head(struct nr_html_table *t, const char *metric, struct nr_arena *arena)
{
	nr_str_add(t->s, "<th class=\"number\">");
	nr_html_text(t->s, nr_metric_title(metric, arena));
	if (*nr_metric_unit(metric)) nr_html_printf(t->s, ", %s", nr_metric_unit(metric));
	if (nr_metric_title(metric, arena) != metric) nr_html_element(t->s, "small", "plan", metric);
	nr_str_add(t->s, "</th>");
}

static void add_mean_cell(struct nr_html_table *t, const struct nr_study_read *v, int metric, int arm, bool best)
{
	nr_html_cell_open(t, "number");
	nr_str_add(t->s, best ? "<span class=\"best\">" : "<span>");
	add_mean(t->s, v, metric, nr_study_cell(v, metric, arm), false);
	nr_str_add(t->s, "</span>");
}

static double flop_unit(const struct nr_study_read *v, const char **name)
{
	static const char *const names[] = { "GFLOP", "TFLOP", "PFLOP", "EFLOP" };
	double most = 0, unit = 1e9;
	int i = 0;
	for (int a = 0; a < v->arms; a++) most = fmax(most, nr_json_at(json_array_get(v->arm, (size_t)a), "flops"));
	for (; i < 3 && most >= 1000 * unit; i++) unit *= 1000;
	*name = most > 0 ? names[i] : NULL;
	return unit;
}

static bool has_decisions(const struct nr_study_read *v)
{
	for (int a = 0; a < v->arms; a++)
		if (json_object_get(json_array_get(v->arm, (size_t)a), "decision")) return true;
	return false;
}

static void add_tests(struct nr_html_table *t, const struct nr_study_read *v, int arm)
{
	const json_t *d = against(v, 0, arm);
	const double needed = nr_json_at(d, "seeds_still_needed");
	char text[32];
	nr_html_cell_open(t, "number");
	if (d) add_mean(t->s, v, 0, d, true);
	nr_html_cell(t, "number", d ? p_text(nr_json_at(d, "p_t_holm"), text, sizeof text) : "");
	nr_html_cell(t, "number", d ? p_text(nr_json_at(d, "p_wilcoxon_holm"), text, sizeof text) : "");
	snprintf(text, sizeof text, "%.0f", needed);
	nr_html_cell(t, "number", !d ? "" : isnan(nr_json_at(d, "p_t")) ? "–" : isnan(needed) ? "> 1000" : text);
	if (!has_decisions(v)) return;
	const json_t *decision = json_object_get(json_array_get(v->arm, (size_t)arm), "decision");
	nr_html_cell(t, NULL, !decision ? "" : json_is_true(json_object_get(decision, "differs")) ? "differs" : "not shown");
}

static void add_cost(struct nr_html_table *t, const struct nr_study_read *v, int arm)
{
	const json_t *a = json_array_get(v->arm, (size_t)arm);
	const char *name;
	const double unit = flop_unit(v, &name), flops = nr_json_at(a, "flops");
	char text[64];
	nr_html_cell(t, "number", nr_duration_text(nr_json_at(a, "seconds"), text, sizeof text));
	if (name) nr_html_cell(t, "number", nr_short_text(flops / unit, text, sizeof text));
}

static void add_main_table(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	struct nr_html_table t = { .s = s,
		.caption = "▸ marks the best mean. Difference: from the baseline, paired by seed. p: two-sided, with "
			   "Holm's correction. Seeds needed: until a paired t test has a power of 0.8, assuming the "
			   "difference and spread seen so far. Time and FLOP cover all runs of an arm." };
	static const char *const tests[] = { "difference", "p (t)", "p (Wilcoxon)", "seeds needed", NULL };
	const char *metric = nr_study_metric(v, 0), *flop;
	const int best = best_of(v, 0);
	nr_html_table_open(&t, "arms");
	nr_html_head(&t, NULL, "arm");
	nr_html_head(&t, "number", "seeds");
	add_metric_head(&t, metric, arena);
	for (int i = 0; tests[i]; i++) nr_html_head(&t, "number", tests[i]);
	if (has_decisions(v)) nr_html_head(&t, NULL, "decision");
	nr_html_head(&t, "number", "time");
	flop_unit(v, &flop);
	if (flop) nr_html_head(&t, "number", flop);
	for (int a = 0; a < v->arms; a++) {
		add_arm(&t, v, a);
		nr_html_cell_open(&t, "number");
		const double n = nr_json_at(nr_study_cell(v, 0, a), "n");
		nr_str_printf(s, "%.0f", isnan(n) ? 0 : n);
		add_mean_cell(&t, v, 0, a, a == best);
		add_tests(&t, v, a);
		add_cost(&t, v, a);
	}
	nr_html_table_close(&t);
}

/* The further metrics: mean, and below it the difference with its p. */
static void add_further(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	struct nr_html_table t = { .s = s, .caption = "Below each mean: its difference from the baseline, and p (t, "
		"Holm)." };
	if (!nr_study_metric(v, 1)) return;
	nr_str_add(s, "<h3>Further measures</h3>\n");
	nr_html_table_open(&t, "arms");
	nr_html_head(&t, NULL, "arm");
	for (int k = 1; nr_study_metric(v, k); k++) add_metric_head(&t, nr_study_metric(v, k), arena);
	for (int a = 0; a < v->arms; a++) {
		add_arm(&t, v, a);
		for (int k = 1; nr_study_metric(v, k); k++) {
			const json_t *d = against(v, k, a);
			char p[32];
			add_mean_cell(&t, v, k, a, a == best_of(v, k));
			if (!d || isnan(nr_json_at(d, "mean"))) continue;
			nr_str_add(s, "<small>");
			add_mean(s, v, k, d, true);
			const double holm = nr_json_at(d, "p_t_holm");
			if (isfinite(holm)) nr_html_printf(s, ", p %s%s", holm < 0.0001 ? "" : "= ", p_text(holm, p, sizeof p));
			nr_str_add(s, "</small>");
		}
	}
	nr_html_table_close(&t);
}

void nr_study_notes(struct nr_str *s, const json_t *notes)
{
	bool open = false;
	if (!json_array_size(notes)) return;
	nr_str_add(s, "<h3>To know</h3>\n<ul class=\"notes\">");
	for (size_t i = 0; i < json_array_size(notes); i++) {
		const char *text = json_string_value(json_array_get(notes, i));
		if (!text || !*text) continue;
		if (open) nr_str_add(s, *text == ' ' ? "<br/>" : "</li><li>");      /* an indented line goes on with the one before */
		else nr_str_add(s, "<li>");
		nr_html_text(s, text + strspn(text, " "));
		open = true;
	}
	nr_str_add(s, open ? "</li></ul>\n" : "</ul>\n");
}

void nr_study_results(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const char *baseline = text_of(v->table, "baseline");
	nr_str_add(s, "<section id=\"arms\"><h2>Results</h2>\n");
	if (*baseline) {
		nr_str_add(s, "<p>The baseline is ");
		nr_html_element(s, "span", "plan", baseline);
		nr_str_add(s, ".</p>\n");
	}
	add_main_table(s, v, arena);
	nr_seeds_of_study(s, v, arena);
	add_further(s, v, arena);
	nr_study_notes(s, json_object_get(v->table, "notes"));
	nr_str_add(s, "</section>\n");
}

/* ---- published ---------------------------------------------------------------------------------------------------------- */

static const json_t *printed(const struct nr_study_read *v, int metric, int arm)
{
	return json_object_get(nr_study_cell(v, metric, arm), "published");
}

static bool is_published(const struct nr_study_read *v, int metric)
{
	for (int a = 0; a < v->arms; a++)
		if (printed(v, metric, a)) return true;
	return false;
}

static void add_printed(struct nr_html_table *t, const json_t *cell)
{
	const double ci = nr_json_at(cell, "ci95");
	nr_html_cell_open(t, "number");
	if (!cell) {
		nr_str_add(t->s, "–");
		return;
	}
	if (strstr(text_of(cell, "metric"), "delta")) nr_str_add(t->s, "Δ ");
	nr_html_text(t->s, text_of(cell, "text"));
	if (isfinite(ci)) nr_html_printf(t->s, " ± %g", ci);
	if (json_object_get(cell, "unsure")) nr_str_add(t->s, " ?");
}

/* The places of two lists of arms: how many pairs stand in the same order. */
static void add_order(struct nr_str *s, const struct nr_study_read *v, int metric, struct nr_arena *arena)
{
	int same = 0, pairs = 0;
	for (int a = 0; a < v->arms; a++)
		for (int b = 0; b < a; b++) {
			const double ours = mean_of(v, metric, a) - mean_of(v, metric, b);
			const double theirs = nr_json_at(printed(v, metric, a), "value") - nr_json_at(printed(v, metric, b), "value");
			if (!isfinite(ours) || !isfinite(theirs) || theirs == 0) continue;
			pairs++;
			same += ours * theirs > 0;
		}
	if (pairs)
		nr_html_printf(s, "%s: %d of %d pairs of arms are in the published order. ",
			nr_metric_title(nr_study_metric(v, metric), arena), same, pairs);
}

static void add_sentences(struct nr_str *s, const char *title, const json_t *list)
{
	if (!json_array_size(list)) return;
	nr_html_element(s, "h3", NULL, title);
	nr_str_add(s, "<ul class=\"notes\">");
	for (size_t i = 0; i < json_array_size(list); i++) nr_html_element(s, "li", NULL, json_string_value(json_array_get(list, i)));
	nr_str_add(s, "</ul>\n");
}

void nr_study_published(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const json_t *about = json_object_get(v->table, "published");
	struct nr_html_table t = { .s = s, .caption = "Published digits are as printed; ? marks uncertain cells, Δ "
		"differences." };
	bool any = false;
	for (int k = 0; nr_study_metric(v, k); k++) any |= is_published(v, k);
	if (!any) return;
	nr_str_add(s, "<section id=\"published\"><h2>Beside the published numbers</h2>\n<p>");
	for (int k = 0; nr_study_metric(v, k); k++)
		if (is_published(v, k)) add_order(s, v, k, arena);
	nr_str_add(s, "The scale differs, so compare order and sign, not digits.</p>\n"
		"<dl>");
	nr_html_element(s, "dt", NULL, "Published");
	nr_html_element(s, "dd", NULL, text_of(about, "label"));
	nr_html_element(s, "dt", NULL, "Their scale");
	nr_html_element(s, "dd", NULL, text_of(about, "theirs"));
	nr_html_element(s, "dt", NULL, "Ours");
	nr_html_element(s, "dd", NULL, text_of(about, "ours"));
	nr_str_add(s, "</dl>\n");
	nr_html_table_open(&t, "arms");
	nr_html_head(&t, NULL, "arm");
	for (int k = 0; nr_study_metric(v, k); k++) {
		if (!is_published(v, k)) continue;
		add_metric_head(&t, nr_study_metric(v, k), arena);
		nr_html_head(&t, "number", "published");
	}
	for (int a = 0; a < v->arms; a++) {
		add_arm(&t, v, a);
		for (int k = 0; nr_study_metric(v, k); k++) {
			if (!is_published(v, k)) continue;
			add_mean_cell(&t, v, k, a, false);
			add_printed(&t, printed(v, k, a));
		}
	}
	nr_html_table_close(&t);
	add_sentences(s, "Where the paper contradicts itself", json_object_get(about, "conflicts"));
	add_sentences(s, "What it claims in words", json_object_get(about, "claims"));
	nr_str_add(s, "</section>\n");
}
