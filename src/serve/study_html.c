/* The changing part of a study's page: see follow_study.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "draw/html.h"
#include "report/study_read.h"
#include "report/study_tables.h"
#include "serve/follow.h"
#include "serve/follow_study.h"
#include "study/results.h"

/* ---- the grid --------------------------------------------------------------------------------------------------------------- */

/* Told by a word and a sign, not by colour alone. */
static void add_stage(struct nr_str *s, const struct nr_study_view *v, const struct nr_cell_state *c, const char *stage)
{
	const bool running = nr_cell_running(v, c), done = !strcmp(c->status, "done"), begun = !strcmp(c->status, "begun");
	const bool spared = !strcmp(c->status, "spared"), waits = spared || !*c->status;
	const char *kind = done ? "done" : running ? "running" : begun ? "begun" : waits ? "waiting" : "failed";
	const char *sign = done ? "✓" : running ? "▶" : begun ? "‖" : waits ? "·" : "✗";
	char time[32];
	nr_str_printf(s, "<span class=\"stage %s\">%s ", kind, sign);
	if (c->run) {
		nr_str_add(s, "<a href=\"");
		nr_href(s, "/run/", c->run->name);
		nr_str_add(s, "\">");
	}
	nr_html_text(s, stage);
	if (c->run) nr_str_add(s, "</a>");
	if (done) nr_html_printf(s, " %s", nr_duration_text(c->seconds, time, sizeof time));
	else if (running && c->run) {
		nr_str_add(s, " <b data-percent=\"");
		nr_html_text(s, c->run->name);
		nr_str_add(s, "\">");
		if (c->run->status.share >= 0) nr_str_printf(s, "%.0f %%", 100 * c->run->status.share);
		nr_str_add(s, "</b>");
	} else {
		const char *open = running ? "running" : begun ? "started, not finished" : spared ? "not needed" : "waiting";
		nr_html_printf(s, " %s", running || begun || waits ? open : c->status);
	}
	if (c->fault && !done) nr_html_element(s, "small", NULL, c->fault);
	nr_str_add(s, "</span>");
}

static void add_grid(struct nr_str *s, const struct nr_study_view *v)
{
	struct nr_html_table t = { .s = s,
		.caption = "✓ done, with its time; ▶ running; ‖ started but not finished; ✗ failed; · waiting, or "
			"not needed." };
	char seed[32];
	nr_str_add(s, "<section id=\"grid\"><h2>Arms and seeds</h2>\n");
	nr_html_table_open(&t, "grid");
	nr_html_head(&t, NULL, "arm");
	for (int64_t i = 0; i < v->seeds; i++) {
		snprintf(seed, sizeof seed, "seed %lld", (long long)v->seed[i]);
		nr_html_head(&t, NULL, seed);
	}
	for (int64_t a = 0; a < v->arms; a++) {
		nr_html_row(&t);
		nr_html_cell(&t, "plan", v->arm[a].name);
		for (int64_t i = 0; i < v->seeds; i++) {
			nr_html_cell_open(&t, NULL);
			for (int64_t k = 0; k < v->stages; k++) add_stage(s, v, &v->cell[(a * v->seeds + i) * v->stages + k], v->stage[k]);
		}
	}
	nr_html_table_close(&t);
	nr_str_add(s, "</section>\n");
}

/* ---- table.json ------------------------------------------------------------------------------------------------------------- */

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* "80.71 ± 0.70"; – where nothing was measured. */
static void add_mean(struct nr_html_table *t, const json_t *o, double scale, bool sign)
{
	const double mean = scale * number(o, "mean"), half = scale * number(o, "half_width_95");
	const int digits = scale > 1 ? 2 : 4;
	nr_html_cell_open(t, "number");
	if (!isfinite(mean)) nr_str_add(t->s, "–");
	else nr_str_printf(t->s, sign ? "%+.*f" : "%.*f", digits, mean);
	if (isfinite(mean) && isfinite(half)) nr_str_printf(t->s, "<small>± %.*f</small>", digits, half);
}

static void add_p(struct nr_html_table *t, const json_t *difference)
{
	const double p = number(difference, "p_t_holm");
	nr_html_cell_open(t, "number");
	if (!isfinite(p)) nr_str_add(t->s, "–");
	else if (p < 0.0001) nr_str_add(t->s, "&lt; 0.0001");
	else nr_str_printf(t->s, p < 0.01 ? "%.4f" : "%.3f", p);
}

static void add_arm(struct nr_html_table *t, const json_t *arm, const json_t *metrics)
{
	const char *name = json_string_value(json_object_get(arm, "name"));
	const json_t *all = json_object_get(arm, "metrics"), *item;
	size_t i;
	nr_html_row(t);
	nr_html_cell(t, "plan", name ? name : "?");
	json_array_foreach(metrics, i, item) {
		const char *metric = json_string_value(item) ? json_string_value(item) : "?";
		const json_t *o = json_object_get(all, metric), *difference = json_object_get(o, "difference");
		const double scale = nr_metric_scale(metric);
		if (i == 0) {
			nr_html_cell_open(t, "number");
			nr_str_printf(t->s, "%.0f", fmax(0, number(o, "n")));
		}
		add_mean(t, o, scale, false);
		if (i == 0) add_mean(t, difference, scale, true);
		if (i == 0) add_p(t, difference);
	}
}

static void add_table(struct nr_str *s, const json_t *o, struct nr_arena *arena)
{
	const json_t *metrics = json_object_get(o, "metrics"), *arms = json_object_get(o, "arms"), *item;
	struct nr_html_table t = { .s = s,
		.caption = "± is the half width of a 95 % t interval over seeds; differences from the baseline are "
			"paired by seed, with Holm's correction of the t test's p-values." };
	size_t i;
	nr_html_table_open(&t, "results");
	nr_html_head(&t, NULL, "arm");
	nr_html_head(&t, "number", "n");
	json_array_foreach(metrics, i, item) {
		const char *metric = json_string_value(item) ? json_string_value(item) : "?";
		nr_str_add(s, "<th class=\"number\">");
		nr_html_text(s, nr_metric_title(metric, arena));
		nr_html_element(s, "small", NULL, nr_metric_scale(metric) > 1 ? "%" : "");
		nr_str_add(s, "</th>");
		if (i) continue;
		nr_html_head(&t, "number", "difference");
		nr_html_head(&t, "number", "p");
	}
	json_array_foreach(arms, i, item) { add_arm(&t, item, metrics); }
	nr_html_table_close(&t);
	nr_study_notes(s, json_object_get(o, "notes"));
}

/* "held-out top-1 (train) 81.20 ± 0.30 %, sep(bn,ln)": the best mean of the main metric and its arm. */
static void say_best(struct nr_study_view *v, const json_t *o, struct nr_arena *arena)
{
	const char *metric = json_string_value(json_array_get(json_object_get(o, "metrics"), 0)), *best = NULL;
	double mean = NAN, half = NAN;
	const json_t *arm;
	size_t i;
	v->headline[0] = 0;
	if (!metric) return;
	const double scale = nr_metric_scale(metric), sign = nr_metric_falls(metric) ? -1 : 1;
	json_array_foreach(json_object_get(o, "arms"), i, arm) {
		const json_t *cell = json_object_get(json_object_get(arm, "metrics"), metric);
		const double now = scale * number(cell, "mean");
		if (!isfinite(now) || (best && sign * now <= sign * mean)) continue;
		mean = now, half = scale * number(cell, "half_width_95");
		best = json_string_value(json_object_get(arm, "name"));
	}
	if (!best) return;
	const int digits = scale > 1 ? 2 : 4;
	int n = snprintf(v->headline, sizeof v->headline, "%.60s %.*f", nr_metric_title(metric, arena), digits, mean);
	if (isfinite(half)) n += snprintf(v->headline + n, sizeof v->headline - (size_t)n, " ± %.*f", digits, half);
	snprintf(v->headline + n, sizeof v->headline - (size_t)n, "%s, %.40s", scale > 1 ? " %" : "", best);
}

/* What an early stop made needless has no marks. */
static void note_spared(struct nr_study_view *v, const json_t *arm)
{
	const char *name = json_string_value(json_object_get(arm, "name"));
	const json_t *run;
	size_t k;
	json_array_foreach(json_object_get(arm, "runs"), k, run) {
		const char *status = json_string_value(json_object_get(run, "status"));
		const json_int_t seed = json_integer_value(json_object_get(run, "seed"));
		if (!name || !status || strcmp(status, "spared")) continue;
		for (int64_t i = 0; i < v->arms * v->seeds * v->stages; i++) {
			struct nr_cell_state *c = &v->cell[i];
			if (v->seed[i / v->stages % v->seeds] != seed || strcmp(v->arm[i / v->stages / v->seeds].name, name)) continue;
			if (!*c->status) snprintf(c->status, sizeof c->status, "spared");
		}
	}
}

void nr_study_table(struct nr_str *s, const char *path, struct nr_study_view *v)
{
	struct nr_error why = { 0 };
	char text[1024];
	const json_t *arm;
	size_t i;
	if (access(path, F_OK)) return;
	struct nr_arena *arena = nr_arena_make();
	json_t *o = arena ? nr_json_load(path, &why) : NULL;
	nr_str_add(s, "<section id=\"results\"><h2>Results</h2>\n");
	if (o) add_table(s, o, arena);
	else nr_html_element(s, "p", "notes", arena ? nr_error_text(&why, text, sizeof text) : "out of memory");
	if (o) say_best(v, o, arena);
	nr_str_add(s, "</section>\n");
	json_array_foreach(json_object_get(o, "arms"), i, arm) { note_spared(v, arm); }
	json_decref(o);
	nr_arena_free(arena);
}

void nr_study_body(struct nr_str *s, const struct nr_study_view *v)
{
	if (v->fault.len) nr_html_element(s, "p", "notes", nr_str_text(&v->fault));
	nr_str_add(s, nr_str_text(&v->table));
	if (v->arms) add_grid(s, v);
}
