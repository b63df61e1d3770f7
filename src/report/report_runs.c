/* The end of the report: how each arm and run came about, and what is missing. */
#include "report/report_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "draw/html.h"
#include "norma/data.h"

enum { MANY = 8 };                                      /* runs whose commands are shown at once */

static const char *or_dash(const char *text) { return text && *text ? text : "–"; }

/* ---- data and statistics ----------------------------------------------------------------------------------------------- */

/* A text that all runs agree on; NULL if they do not, or none has it. */
static const char *common(const struct nr_arms *a, const char *(*of)(const struct nr_runfolder *, struct nr_arena *),
	struct nr_arena *arena)
{
	const char *first = a->runs ? of(&a->run[0], arena) : NULL;
	for (int i = 1; i < a->runs && first; i++) {
		const char *other = of(&a->run[i], arena);
		if (!other || strcmp(first, other)) return NULL;
	}
	return first;
}

static const char *data_of(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const char *header = nr_runfolder_header(r, "data", arena);
	return header ? header : nr_runfolder_env(r, "data");
}

static const char *statistics_of(const struct nr_runfolder *r, struct nr_arena *arena)
{
	return nr_runfolder_header(r, "batch statistics", arena);
}

static const char *model_of(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const char *header = nr_runfolder_header(r, "model", arena);
	return header ? header : nr_runfolder_env(r, "model");
}

/* Of the data set's files as published, where the run did not record those of its own. */
static const char *official_checksums(const char *data, struct nr_arena *arena)
{
	char name[64];
	struct nr_error ignored = { 0 };
	struct nr_str s = { 0 };
	snprintf(name, sizeof name, "%.*s", (int)strcspn(data ? data : "", ":"), data ? data : "");
	const struct nr_dataset *d = *name ? nr_dataset_find(name, &ignored) : NULL;
	for (const struct nr_data_file *f = d ? d->files : NULL; f && f->path; f++)
		if (f->md5) nr_str_printf(&s, "%s%s %s", s.len ? ", " : "not recorded; MD5 of the official files: ", f->path, f->md5);
	const char *text = s.len && !s.failed ? nr_arena_strdup(arena, nr_str_text(&s)) : NULL;
	nr_str_release(&s);
	return text;
}

/* Any entry of env.json that is called a checksum; an object of them becomes compact JSON. */
static const char *checksum_of(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const char *key;
	json_t *value;
	json_object_foreach(r->env, key, value) {
		if (!strstr(key, "checksum") && !strstr(key, "sha256")) continue;
		if (json_is_string(value)) return json_string_value(value);
		char *text = nr_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
		const char *copy = text ? nr_arena_strdup(arena, text) : NULL;
		free(text);
		return copy;
	}
	return official_checksums(nr_runfolder_env(r, "data"), arena);
}

static void add_fact(struct nr_str *s, const struct nr_arms *a, const char *title, const char *missing,
	const char *(*of)(const struct nr_runfolder *, struct nr_arena *), struct nr_arena *arena)
{
	const char *all = common(a, of, arena);
	bool any = all != NULL;
	for (int i = 0; i < a->runs && !any; i++) any = of(&a->run[i], arena) != NULL;
	nr_html_element(s, "dt", NULL, title);
	if (all || !any) {
		nr_html_element(s, "dd", NULL, all ? all : missing);
		return;
	}
	for (int i = 0; i < a->count; i++) {
		const char *one = a->arm[i].runs ? of(&a->run[a->arm[i].run[0]], arena) : "not run yet";
		nr_str_add(s, i ? "<br/>" : "<dd>");
		if (a->count > 1) nr_html_printf(s, "%s: ", a->arm[i].label);
		nr_html_text(s, one ? one : missing);
	}
	nr_str_add(s, "</dd>");
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

static void add_machine(struct nr_html_table *t, const struct nr_runfolder *r)
{
	const json_t *threads = json_object_get(r->env, "threads");
	nr_html_cell(t, NULL, or_dash(nr_runfolder_env(r, "cpu")));
	if (!r->env) return;
	nr_str_add(t->s, "<small>");
	const long long n = (long long)json_integer_value(threads);
	if (n > 0) nr_str_printf(t->s, "%lld thread%s, ", n, n == 1 ? "" : "s");
	nr_html_printf(t->s, "%s; host %s", or_dash(nr_runfolder_env(r, "isa")), or_dash(nr_runfolder_env(r, "host")));
	nr_str_add(t->s, "</small>");
}

static void add_run_row(struct nr_html_table *t, const struct nr_arm *m, const struct nr_runfolder *r, bool repeated)
{
	char text[64];
	nr_html_row(t);
	nr_html_cell(t, NULL, m->label);
	nr_html_cell_open(t, "arm");
	nr_html_element(t->s, "span", "plan", r->name);
	nr_html_cell_open(t, "number");
	if (r->seed >= 0) nr_str_printf(t->s, "%lld", (long long)r->seed);
	else nr_str_add(t->s, "–");
	if (repeated) nr_str_add(t->s, "<small>repeated</small>");
	nr_html_cell(t, NULL, r->status);
	if (r->resumed) nr_str_printf(t->s, "<small>resumed %lld×</small>", (long long)r->resumed);
	nr_html_cell_open(t, "number");
	nr_str_printf(t->s, "%lld", (long long)r->step);
	nr_html_cell(t, "number", isnan(r->seconds) ? "–" : nr_duration_text(r->seconds, text, sizeof text));
	nr_html_cell(t, NULL, or_dash(nr_runfolder_env(r, "started")));
	add_machine(t, r);
	nr_html_cell(t, NULL, or_dash(nr_runfolder_env(r, "version")));
}

/* What is long is shown on demand; on paper it is open. */
static void open_details(struct nr_str *s, const char *title, int runs)
{
	nr_str_printf(s, "<details%s><summary>%s: %d run%s</summary>\n", runs > MANY ? "" : " open=\"open\"", title, runs,
		runs == 1 ? "" : "s");
}

static void add_runs(struct nr_str *s, const struct nr_arms *a)
{
	static const char *const titles[] = { "arm", "run", "seed", "ended", "steps", "wall time", "started", "machine", "norma" };
	struct nr_html_table t = { .s = s };
	open_details(s, "Runs and machines", a->runs);
	nr_html_table_open(&t, "runs");
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
		nr_html_head(&t, i == 2 || i == 4 || i == 5 ? "number" : NULL, titles[i]);
	for (int m = 0; m < a->count; m++)
		for (int i = 0; i < a->arm[m].runs; i++)
			add_run_row(&t, &a->arm[m], &a->run[a->arm[m].run[i]], i >= a->arm[m].distinct);
	nr_html_table_close(&t);
	nr_str_add(s, "</details>\n");
}

static void add_commands(struct nr_str *s, const struct nr_arms *a)
{
	open_details(s, "Commands", a->runs);
	nr_str_add(s, "<pre>");
	for (int i = 0; i < a->runs; i++) {
		const char *command = nr_runfolder_env(&a->run[i], "command");
		const char *probe = json_string_value(json_object_get(a->run[i].probe, "command"));
		nr_str_add(s, i ? "\n" : "");
		if (a->run[i].commands.len) {                   /* a study logged those of all stages */
			nr_html_text(s, nr_str_text(&a->run[i].commands));
			continue;
		}
		nr_html_printf(s, "%s\n", command ? command : "# this run did not record its command");
		if (probe) nr_html_printf(s, "%s\n", probe);
	}
	nr_str_add(s, "</pre></details>\n");
}

/* ---- what is missing --------------------------------------------------------------------------------------------------- */

static void add_missing(struct nr_str *s, const struct nr_arms *a)
{
	nr_str_add(s, "<h3>Missing</h3>\n<ul class=\"notes\">");
	bool any = false;
	for (int i = 0; i < a->runs; i++) {
		struct nr_str both = { 0 };
		nr_str_printf(&both, "%s%s", nr_str_text(&a->run[i].notes), nr_str_text(&a->run[i].absent));
		if (both.failed) s->failed = true;
		const char *notes = nr_str_text(&both);
		if (*notes) {
			any = true;
			nr_str_add(s, "<li>");
			nr_html_element(s, "span", "plan", a->run[i].name);
			nr_str_add(s, ": ");
		}
		for (size_t n; *notes; notes += n + (notes[n] == '\n')) {
			n = strcspn(notes, "\n");
			nr_html_printf(s, "%.*s%s", (int)n, notes, notes[n] && notes[n + 1] ? "; " : "");
		}
		if (both.len) nr_str_add(s, "</li>");
		nr_str_release(&both);
	}
	if (!any)
		nr_str_add(s, "<li>Nothing: every run has its settings, environment, metrics, events, probe, spectrum and pictures.</li>");
	nr_str_add(s, "</ul>\n");
}

void nr_report_origin(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	nr_str_add(s, "<dl>");
	add_fact(s, a, "Data", "not recorded", data_of, arena);
	add_fact(s, a, "Checksum of the data", "not recorded", checksum_of, arena);
	add_fact(s, a, "Model", "not recorded", model_of, arena);
	add_fact(s, a, "What batch statistics saw", "not recorded", statistics_of, arena);
	nr_str_add(s, "</dl>\n");
	add_runs(s, a);
	add_commands(s, a);
}

void nr_report_runs(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	nr_str_add(s, "<section id=\"runs\"><h2>How this came about</h2>\n");
	nr_report_origin(s, a, arena);
	add_missing(s, a);
	nr_str_add(s, "</section>\n");
}
