/* norma runs NAME: one run on the terminal, or as JSON with its curves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/plot.h"
#include "base/table.h"
#include "runs.h"
#include "norma/task.h"
#include "record/recorder_env.h"

enum { MAX_PLOTS = 4, PLOT_ROWS = 6 };

static void row(const char *label, const char *text)
{
	if (*text) printf("%s%-12s%s%s\n", cli_bold(), label, cli_plain(), text);
}

static void heading(const char *text) { printf("\n%s%s%s\n", cli_bold(), text, cli_plain()); }

static void indented(const char *text)
{
	for (size_t n; *text; text += n, text += *text == '\n') {
		n = strcspn(text, "\n");
		printf("    %.*s\n", (int)n, text);
	}
}

static void print_env(struct cli *c, const struct nr_run *r)
{
	json_t *env = nr_json_parse(r->env, strlen(r->env), r->name, NULL), *value;
	const char *key;
	if (json_object_size(env)) heading("Environment");
	json_object_foreach(env, key, value) {
		char *dump = json_is_string(value) ? NULL : nr_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT);
		const char *text = runs_clean(c, dump ? dump : json_is_string(value) ? json_string_value(value) : "", true);
		if (strchr(text, '\n')) printf("%s\n", runs_clean(c, key, false)), indented(text);
		else if (strcmp(key, "command")) printf("%-16s%s\n", runs_clean(c, key, false), text);
		free(dump);
	}
	json_decref(env);
}

static void print_metrics(struct cli *c, const struct runs_metric *m, int count)
{
	struct nr_table *t = nr_table_make();
	struct nr_str s = { 0 };
	static const char *const titles[] = { "metric", "records", "last", "lowest", "at step", "highest", "at step" };
	for (int i = 0; i < 7; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int i = 0; i < count; i++) {
		nr_table_cell(t, "%s", runs_clean(c, m[i].name, false));
		nr_table_cell(t, "%lld", (long long)m[i].curve.count);
		nr_table_cell(t, "%.6g", m[i].last);
		nr_table_cell(t, "%.6g", m[i].low);
		nr_table_cell(t, "%lld", (long long)m[i].low_step);
		nr_table_cell(t, "%.6g", m[i].high);
		nr_table_cell(t, "%lld", (long long)m[i].high_step);
	}
	nr_table_text(t, &s);
	if (count) heading("Metrics"), fputs(nr_str_text(&s), stdout);
	nr_str_release(&s);
	nr_table_free(t);
}

static void print_curves(struct cli *c, const struct runs_metric *m, int count)
{
	struct winsize size;
	const int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 30 ? size.ws_col : 80;
	for (int i = 0, drawn = 0; i < count && drawn < MAX_PLOTS; i++) {
		struct nr_str s = { 0 };
		if (!m[i].kind || m[i].curve.count < 2) continue;
		nr_plot_text(&(struct nr_plot){ .x = m[i].curve.step, .y = m[i].curve.value, .n = m[i].curve.count,
			.columns = (width < 90 ? width : 90) - 14, .rows = PLOT_ROWS }, &s);
		if (s.len) heading(runs_clean(c, m[i].name, false)), fputs(s.text, stdout);
		drawn += s.len > 0;
		nr_str_release(&s);
	}
}

/* The metric that decides, first: of what was held out, an accuracy rather than a loss. */
static void print_headline(struct cli *c, const struct runs_metric *m, int count)
{
	const struct runs_metric *best = NULL;
	for (int i = 0; i < count; i++)
		if (m[i].kind && (!best || runs_rank(m[i].name) + 2 * (m[i].kind == RUNS_ACCURACY) > runs_rank(best->name) + 2 *
			(best->kind == RUNS_ACCURACY))) best = &m[i];
	if (!best) return;
	const struct nr_task_metric *known = nr_task_metric_of(best->name, NULL);
	const bool percent = known && nr_metric_percent(known);
	const double factor = percent ? 100 : 1;
	const char *unit = percent ? " %" : "", *title = known && known->title ? known->title : best->name;
	printf("%s%s%s %.4g%s at the end, best %.4g%s at step %lld\n", cli_bold(), runs_clean(c, title, false), cli_plain(),
		factor * best->last, unit, factor * best->best, unit,
		(long long)(best->kind == RUNS_LOSS ? best->low_step : best->high_step));
}

static void print_run(struct cli *c, const struct runs_row *v, const struct runs_metric *m, int count,
	const struct nr_metric *result, int64_t results)
{
	const struct nr_run *r = v->run;
	char text[64], started[32];
	print_headline(c, m, count);
	row("run", runs_clean(c, r->name, false));
	row("directory", runs_clean(c, v->dir, false));
	row("kind", runs_clean(c, r->kind, false));
	row("status", runs_clean(c, v->status, false));
	row("command", runs_clean(c, r->command, false));
	row("started", nr_time_text((time_t)r->started, started, sizeof started));
	row("duration", nr_duration_text(r->seconds, text, sizeof text));
	snprintf(text, sizeof text, "%lld", (long long)r->steps);
	row("steps", text);
	for (int64_t i = 0; i < results; i++) {
		if (!i) heading("Results");
		printf("%-16s%.6g\n", runs_clean(c, result[i].name, false), result[i].value);
	}
	print_metrics(c, m, count);
	print_curves(c, m, count);
	print_env(c, r);
	if (*r->config) heading("Settings"), indented(runs_clean(c, r->config, true));
}

int runs_show(struct cli *c, struct nr_rundb *s, const struct runs_row *v, bool json)
{
	json_t *columns = runs_columns(v->run), *item;
	struct runs_metric *m = nr_arena_alloc(c->arena, (json_array_size(columns) + 1) * sizeof *m);
	struct nr_metric *result = NULL;
	int64_t results = 0;
	int count = 0, code = m ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot show", v->run->name, "out of memory");
	size_t i;
	json_array_foreach(columns, i, item) {
		if (code || !json_is_string(item)) continue;
		code = runs_read_metric(c, s, v->run->id, json_string_value(item), &m[count]);
		count += !code && m[count].curve.count;
	}
	if (!code) code = nr_rundb_results(s, v->run->id, c->arena, &result, &results, c->err);
	if (!code && json) {
		json_t *r = runs_json(v), *metrics = json_object(), *all = json_object();
		for (int k = 0; k < count; k++) json_object_set_new(metrics, m[k].name, runs_metric_json(&m[k], true));
		for (int64_t k = 0; k < results; k++) json_object_set_new(all, result[k].name, nr_record_number(result[k].value));
		json_object_set_new(r, "results", all);
		json_object_set_new(r, "metrics", metrics);
		json_object_set_new(r, "config", nr_record_text(v->run->config));
		json_t *env = nr_json_parse(v->run->env, strlen(v->run->env), v->run->name, NULL);
		json_object_set_new(r, "env", env ? env : json_null());
		code = nr_json_line(stdout, r, c->err);
	} else if (!code) print_run(c, v, m, count, result, results);
	json_decref(columns);
	return code;
}
