/* norma runs [NAME]: the runs of a store as a table, or one of them with its settings, metrics and curves. The store may come
 * from anywhere: texts are cleaned before they reach the terminal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/table.h"
#include "runs.h"
#include "record/recorder_env.h"

struct runs { bool json; char *store; int32_t sort; };

enum sort { BY_STARTED, BY_NAME, BY_STATUS, BY_DURATION, BY_STEPS, BY_LOSS, BY_ACCURACY };
static const char *const sorts[] = { "started", "name", "status", "duration", "steps", "loss", "accuracy", NULL };

static const struct nr_option options[] = {
	NR_OPT_BOOL(struct runs, json, "0", "print one line of JSON per run; for a single run also its curves"),
	{ .name = "store", .type = NR_TSTRING, .offset = offsetof(struct runs, store), .size = sizeof(char *), .text = "",
	  .metavar = "FILE", .help = "run database or its folder; default: runs.db here or in runs/" },
	NR_OPT_ENUM(struct runs, sort, "started", sorts, "order of the table; loss and accuracy: best first"),
	NR_OPT_END
};

static const char *const kinds[] = { "value", "loss", "accuracy" };

/* ---- metrics ---------------------------------------------------------------------------------------------------------- */

static enum runs_kind kind_of(const char *name)
{
	static const char *const loss[] = { "loss", "nll", "ece", "error", "perplexity", NULL };
	static const char *const accuracy[] = { "acc", "top", "miou", "map", "f1", "auc", "spearman", NULL };
	for (int i = 0; loss[i]; i++)
		if (strstr(name, loss[i])) return RUNS_LOSS;
	for (int i = 0; accuracy[i]; i++)
		if (strstr(name, accuracy[i])) return RUNS_ACCURACY;
	return RUNS_OTHER;
}

int runs_read_metric(struct cli *c, struct nr_rundb *s, int64_t run, const char *name, struct runs_metric *m)
{
	*m = (struct runs_metric){ .name = name, .kind = kind_of(name), .last = NAN, .best = NAN, .low = NAN, .high = NAN };
	const int code = nr_rundb_curve(s, run, name, c->arena, &m->curve, c->err);
	for (int64_t i = 0; i < m->curve.count && !code; i++) {
		const double v = m->last = m->curve.value[i];
		if (v < m->low || (isnan(m->low) && !isnan(v))) m->low = v, m->low_step = m->curve.step[i];
		if (v > m->high || (isnan(m->high) && !isnan(v))) m->high = v, m->high_step = m->curve.step[i];
	}
	if (m->kind) m->best = m->kind == RUNS_LOSS ? m->low : m->high;
	return code;
}

/* What was measured on data that the model did not train on comes first; among equals the first column. */
int runs_rank(const char *name)
{
	static const char *const held_out[] = { "eval", "val", "test", NULL };
	for (int i = 0; held_out[i]; i++)
		if (strstr(name, held_out[i])) return 1;
	return 0;
}

/* The columns as a JSON list; anything else is none. */
json_t *runs_columns(const struct nr_run *r)
{
	json_t *list = nr_json_parse(r->columns, strlen(r->columns), r->name, NULL);
	if (json_is_array(list)) return list;
	json_decref(list);
	return json_array();
}

static int read_main(struct cli *c, struct nr_rundb *s, struct runs_row *v)
{
	int rank[3] = { -1, -1, -1 }, code = NR_OK;
	json_t *columns = runs_columns(v->run), *item;
	size_t i;
	json_array_foreach(columns, i, item) {
		const char *name = json_string_value(item);
		const enum runs_kind kind = name ? kind_of(name) : RUNS_OTHER;
		struct runs_metric m = { 0 };
		if (code || !kind || runs_rank(name) <= rank[kind]) continue;
		const char *copy = nr_arena_strdup(c->arena, name);
		code = copy ? runs_read_metric(c, s, v->run->id, copy, &m)
			    : nr_fail(c->err, NR_EMEMORY, "cannot list", name, "out of memory");
		if (code || !m.curve.count) continue;
		rank[kind] = runs_rank(name);
		v->main[kind] = m;
	}
	json_decref(columns);
	return code;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------- */

const char *runs_clean(struct cli *c, const char *text, bool lines)
{
	json_t *valid = nr_record_text(text);
	char *copy = nr_arena_strdup(c->arena, valid ? json_string_value(valid) : "");
	json_decref(valid);
	for (char *p = copy; p && *p; p++)
		if (((unsigned char)*p < 0x20 || *p == 0x7F) && !(lines && (*p == '\n' || *p == '\t'))) *p = '?';
	return copy ? copy : "";
}

static const char *dir_of(struct cli *c, const char *store, const struct nr_run *r)
{
	const char *slash = strrchr(store, '/');
	if (r->dir[0] == '/' || !slash) return r->dir;
	const char *path = nr_arena_printf(c->arena, "%.*s/%s", (int)(slash - store), store, r->dir);
	return path ? path : r->dir;
}

/* A run that was killed could not say so: it no longer holds its lock. */
static const char *status_of(struct cli *c, const char *store, const struct nr_run *r)
{
	const char *events = nr_arena_printf(c->arena, "%s/events.jsonl", dir_of(c, store, r));
	if (strcmp(r->status, "running") || (events && nr_file_locked(events))) return r->status;
	return "killed";
}

static int find_store(struct cli *c, const char *asked, const char **path)
{
	static const char *const usual[] = { "runs.db", "runs/runs.db", NULL };
	struct stat st;
	*path = asked;
	if (*asked) {
		if (!stat(asked, &st) && S_ISDIR(st.st_mode)) *path = nr_arena_printf(c->arena, "%s/runs.db", asked);
		return *path ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot read", asked, "out of memory");
	}
	for (int i = 0; usual[i]; i++)
		if (!stat(usual[i], &st)) return *path = usual[i], NR_OK;
	nr_fail(c->err, NR_EIO, "cannot find a run database", NULL, "there is neither runs.db nor runs/runs.db");
	return nr_hint(c->err, "norma train makes one; name another with --store");
}

static double key_of(const struct runs_row *v, enum sort by)
{
	switch (by) {
	case BY_DURATION: return -v->run->seconds;
	case BY_STEPS: return -(double)v->run->steps;
	case BY_LOSS: return v->main[RUNS_LOSS].name ? v->main[RUNS_LOSS].best : (double)NAN;
	case BY_ACCURACY: return v->main[RUNS_ACCURACY].name ? -v->main[RUNS_ACCURACY].best : (double)NAN;
	default: return (double)v->run->started;
	}
}

/* Runs without the value come last; equal ones by their start. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct runs_row *v = a, *w = b;
	const enum sort by = *(const enum sort *)arg;
	int order = by == BY_NAME ? strverscmp(v->run->name, w->run->name) : by == BY_STATUS ? strcmp(v->status, w->status) : 0;
	const double x = key_of(v, by), y = key_of(w, by);
	if (!order) order = isnan(x) - isnan(y);
	if (!order) order = (x > y) - (x < y);
	return order ? order : (v->run->id > w->run->id) - (v->run->id < w->run->id);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

json_t *runs_metric_json(const struct runs_metric *m, bool curve)
{
	json_t *o = json_object();
	json_object_set_new(o, "records", json_integer(m->curve.count));
	json_object_set_new(o, "last", nr_record_number(m->last));
	json_object_set_new(o, "best", m->kind ? nr_record_number(m->best) : json_null());
	json_object_set_new(o, "min", nr_record_number(m->low));
	json_object_set_new(o, "max", nr_record_number(m->high));
	if (!curve) return o;
	json_t *steps = json_array(), *values = json_array();
	for (int64_t i = 0; i < m->curve.count; i++) {
		json_array_append_new(steps, json_integer(m->curve.step[i]));
		json_array_append_new(values, nr_record_number(m->curve.value[i]));
	}
	json_object_set_new(o, "steps", steps);
	json_object_set_new(o, "values", values);
	return o;
}

json_t *runs_json(const struct runs_row *v)
{
	const struct nr_run *r = v->run;
	char started[32], finished[32];
	json_t *o = json_object();
	json_object_set_new(o, "id", json_integer(r->id));
	json_object_set_new(o, "name", nr_record_text(r->name));
	json_object_set_new(o, "dir", nr_record_text(r->dir));
	json_object_set_new(o, "kind", nr_record_text(r->kind));
	json_object_set_new(o, "status", nr_record_text(v->status));
	json_object_set_new(o, "started", json_string(nr_time_text((time_t)r->started, started, sizeof started)));
	json_object_set_new(o, "finished",
		r->finished ? json_string(nr_time_text((time_t)r->finished, finished, sizeof finished)) : json_null());
	json_object_set_new(o, "seconds", nr_record_number(r->seconds));
	json_object_set_new(o, "steps", json_integer(r->steps));
	json_object_set_new(o, "seed", r->seeded ? json_integer(r->seed) : json_null());
	json_object_set_new(o, "command", nr_record_text(r->command));
	return o;
}

/* ---- the table -------------------------------------------------------------------------------------------------------- */

/* The metric's name if all runs have the same one, else its kind. */
static const char *title_of(struct cli *c, const struct runs_row *v, int64_t n, enum runs_kind kind)
{
	const char *name = NULL;
	for (int64_t i = 0; i < n; i++) {
		const char *other = v[i].main[kind].name;
		if (other && name && strcmp(other, name)) name = kinds[kind];
		else if (other && !name) name = other;
	}
	const char *title = nr_arena_printf(c->arena, "%s (best)", name ? runs_clean(c, name, false) : kinds[kind]);
	return title ? title : kinds[kind];
}

static int print_table(struct cli *c, const struct runs_row *v, int64_t n)
{
	struct nr_table *t = nr_table_make();
	struct nr_str s = { 0 };
	char duration[32];
	static const char *const titles[] = { "name", "kind", "status", "duration", "steps" };
	enum runs_kind head = RUNS_LOSS;
	for (int64_t i = 0; i < n; i++)
		if (v[i].main[RUNS_ACCURACY].name) head = RUNS_ACCURACY;
	for (int i = 0; i < 5; i++) nr_table_column(t, titles[i], i < 3 ? NR_LEFT : NR_RIGHT);
	nr_table_column(t, title_of(c, v, n, head), NR_RIGHT);
	for (int64_t i = 0; i < n; i++) {
		const struct nr_run *r = v[i].run;
		nr_table_cell(t, "%s", runs_clean(c, r->name, false));
		nr_table_cell(t, "%s", runs_clean(c, r->kind, false));
		nr_table_cell(t, "%s", runs_clean(c, v[i].status, false));
		nr_table_cell(t, "%s", nr_duration_text(r->seconds, duration, sizeof duration));
		nr_table_cell(t, "%lld", (long long)r->steps);
		if (v[i].main[head].name) nr_table_cell(t, "%.4f (%.4f)", v[i].main[head].last, v[i].main[head].best);
		else nr_table_cell(t, "%s", "");
	}
	nr_table_text(t, &s);
	fputs(n ? nr_str_text(&s) : "no runs yet\n", stdout);
	nr_str_release(&s);
	nr_table_free(t);
	return NR_OK;
}

static int list(struct cli *c, const struct runs *o, struct nr_rundb *s, struct runs_row *v, int64_t n)
{
	int code = NR_OK;
	enum sort by = (enum sort)o->sort;
	for (int64_t i = 0; i < n && !code; i++) code = read_main(c, s, &v[i]);
	if (code) return code;
	if (n > 0 && v) qsort_r(v, (size_t)n, sizeof *v, compare, &by);
	if (!o->json) return print_table(c, v, n);
	for (int64_t i = 0; i < n && !code; i++) {
		json_t *r = runs_json(&v[i]), *metrics = json_object();
		for (int k = RUNS_LOSS; k <= RUNS_ACCURACY; k++)
			if (v[i].main[k].name) json_object_set_new(metrics, v[i].main[k].name, runs_metric_json(&v[i].main[k], false));
		json_object_set_new(r, "metrics", metrics);
		code = nr_json_line(stdout, r, c->err);
	}
	return code;
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

/* By name, directory or number. */
static const struct runs_row *find(struct cli *c, const struct runs_row *v, int64_t n, const char *name)
{
	const struct runs_row *found = NULL;
	struct nr_near near = { .word = name };
	int64_t id = 0, same = 0;
	for (int64_t i = 0; i < n; i++) {
		nr_near_try(&near, v[i].run->name);
		if (!strcmp(v[i].run->name, name)) found = &v[i], same++;
	}
	for (int64_t i = 0; i < n && same != 1; i++)
		if (!strcmp(v[i].run->dir, name) || (!same && nr_parse_int(name, &id) && v[i].run->id == id)) return &v[i];
	if (same == 1) return found;
	if (same) nr_fail(c->err, NR_ENAME, "cannot choose the run", name, "%lld runs have this name", (long long)same);
	else nr_fail(c->err, NR_ENAME, "unknown run", name, NULL);
	if (same) nr_hint(c->err, "give its directory: norma runs --json lists them");
	else if (near.best) nr_hint(c->err, "did you mean '%s'?", near.best);
	else nr_hint(c->err, "norma runs lists them");
	return NULL;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct runs *o = conf;
	const char *path;
	struct nr_rundb *s;
	struct nr_run *all;
	int64_t n = 0;
	if (args->count > 1) return cli_usage(c, "runs takes one name, or none");
	int code = find_store(c, o->store, &path);
	if (code) return code;
	code = nr_rundb_open(&s, path, 10, false, c->err);
	if (code) return code;
	code = nr_rundb_runs(s, c->arena, &all, &n, c->err);
	struct runs_row *v = nr_arena_alloc(c->arena, (size_t)(n + 1) * sizeof *v);
	if (!code && !v) code = nr_fail(c->err, NR_EMEMORY, "cannot list", path, "out of memory");
	for (int64_t i = 0; i < n && !code; i++)
		v[i] = (struct runs_row){ .run = &all[i], .status = status_of(c, path, &all[i]), .dir = dir_of(c, path, &all[i]) };
	if (!code && !args->count) code = list(c, o, s, v, n);
	else if (!code) {
		const struct runs_row *wanted = find(c, v, n, args->item[0]);
		code = wanted ? runs_show(c, s, wanted, o->json) : (int)c->err->code;
	}
	nr_rundb_close(s);
	return code;
}

const struct cli_command cli_runs = {
	.name = "runs",
	.title = "list runs: state, metrics, curves, settings",
	.usage = "[NAME]",
	.about = "Without a name: a table of all runs with the last and, in parentheses, the best value of loss and accuracy, from\n"
		 "the evaluation if there is one. A run that is recorded as running but no longer holds its lock was killed.\n"
		 "\n"
		 "With the name, directory or number of a run: its results, its metrics with curves, where it ran and its settings.",
	.conf_size = sizeof(struct runs),
	.options = options,
	.reads_records = true,
	.run = run,
};
