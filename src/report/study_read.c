/* Reading a study's folder: see study_read.h. */
#include "report/study_read.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "draw/scale.h"
#include "norma/task.h"
#include "study/results.h"

static int no_memory(const char *dir, struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read", dir, "out of memory"); }

bool nr_study_is_here(const char *dir)
{
	char path[PATH_MAX];
	return snprintf(path, sizeof path, "%s/study.yaml", dir) < (int)sizeof path && !access(path, R_OK);
}

/* ---- the table ---------------------------------------------------------------------------------------------------------- */

/* A table is one with arms that have a name, a folder and metrics, and a list of metrics. */
static bool is_table(const json_t *t)
{
	const json_t *arms = json_object_get(t, "arms");
	const size_t n = json_array_size(arms);
	for (size_t i = 0; i < n; i++) {
		const json_t *a = json_array_get(arms, i);
		const char *folder = json_string_value(json_object_get(a, "folder"));
		if (!json_is_string(json_object_get(a, "name")) || !folder || strchr(folder, '/') || !strcmp(folder, "..")) return false;
	}
	const json_t *metrics = json_object_get(t, "metrics");
	for (size_t i = 0; i < json_array_size(metrics); i++)
		if (!json_is_string(json_array_get(metrics, i))) return false;
	return n > 0 && n <= NR_STUDY_MAX_ARMS && json_array_size(metrics) > 0;
}

/* As the folder stands now; if that cannot be told, as it was when the study last ended. */
static int read_table(struct nr_study_read *s, const struct nr_study_command *commands, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_error why = { 0 };
	char text[1500];
	s->commands = commands;
	s->table = nr_study_look(s->dir, commands, arena, err);
	if (s->table) return NR_OK;
	const char *path = nr_arena_printf(arena, "%s/table.json", s->dir);
	s->table = path ? nr_json_load(path, &why) : NULL;
	if (!is_table(s->table)) return err->code;
	nr_str_printf(&s->notes, "the numbers come from table.json, written when the study last ended: %s\n",
		nr_error_text(err, text, sizeof text));
	*err = (struct nr_error){ 0 };
	return NR_OK;
}

/* ---- the runs ----------------------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *list, size_t i, const char *key)
{
	const char *text = json_string_value(json_object_get(json_array_get(list, i), key));
	return text ? text : "";
}

/* Does stage k leave a run directory? */
static bool trains(const struct nr_study_read *s, size_t k)
{
	const char *name = text_at(json_object_get(s->table, "stages"), k, "command");
	for (const struct nr_study_command *c = s->commands; c && c->name; c++)
		if (!strcmp(c->name, name)) return c->trains;
	return false;
}

/* A stage that measures belongs to the last one before it that trains; with none, to what is there. */
static void add_measures(const struct nr_study_read *s, struct nr_runfolder *r, const char *base, size_t from, struct nr_arena *arena)
{
	const json_t *stages = json_object_get(s->table, "stages");
	for (size_t k = from; k < json_array_size(stages) && !(k > from && trains(s, k)); k++) {
		const char *dir = nr_arena_printf(arena, "%s/%s", base, text_at(stages, k, "name"));
		const char *log = nr_arena_printf(arena, "%s/%s.log", base, text_at(stages, k, "name"));
		if (dir) nr_runfolder_add(r, dir, arena);
		if (log) nr_runfolder_add_log(r, log, arena);
	}
}

/* A run that has not begun is no run; one without its settings is said. */
static int read_run(
	struct nr_study_read *s, struct nr_stage_runs *v, int arm, long long seed, size_t stage, bool training, struct nr_arena *arena)
{
	const char *base = nr_arena_printf(arena, "%s/%s/seed-%lld", s->dir, text_at(s->arm, (size_t)arm, "folder"), seed);
	const char *dir = nr_arena_printf(arena, "%s/%s", base ? base : "", v->name);
	struct nr_runfolder *r = &v->run[v->runs];
	struct nr_error why = { 0 };
	char text[1024];
	if (!base || !dir) return NR_EMEMORY;
	if (access(training ? dir : base, F_OK)) return NR_OK;
	if (!training) {
		*r = (struct nr_runfolder){ .dir = base, .seconds = NAN, .status = "–" };
	} else if (nr_runfolder_read(r, dir, arena, &why)) {
		nr_str_printf(&s->notes, "%s, seed %lld: %s\n", s->name[arm], seed, nr_error_text(&why, text, sizeof text));
		nr_runfolder_release(r);
		return NR_OK;
	}
	r->name = nr_arena_printf(arena, "%s/seed-%lld/%s", text_at(s->arm, (size_t)arm, "folder"), seed, v->name);
	r->seed = seed;
	add_measures(s, r, base, stage, arena);
	v->runs++;
	return r->name ? NR_OK : NR_EMEMORY;
}

static int read_stage(struct nr_study_read *s, size_t stage, bool training, struct nr_arena *arena, struct nr_error *err)
{
	const json_t *seeds = json_object_get(s->table, "seeds");
	struct nr_stage_runs *v = &s->stage[s->stages++];
	const size_t most = (size_t)s->arms * (size_t)s->seeds + 1;
	int *of = nr_arena_alloc(arena, most * sizeof *of);
	v->name = text_at(json_object_get(s->table, "stages"), stage, "name");
	v->run = nr_arena_alloc(arena, most * sizeof *v->run);
	if (!v->run || !of) return no_memory(s->dir, err);
	for (int a = 0; a < s->arms; a++)
		for (int i = 0; i < s->seeds; i++) {
			const int before = v->runs;
			if (read_run(s, v, a, (long long)json_integer_value(json_array_get(seeds, (size_t)i)), stage, training, arena))
				return no_memory(s->dir, err);
			if (v->runs > before) of[before] = a;
		}
	return nr_arms_given(&v->arms, v->run, v->runs, of, s->name, s->arms, arena, err);
}

static int read_stages(struct nr_study_read *s, struct nr_arena *arena, struct nr_error *err)
{
	const json_t *stages = json_object_get(s->table, "stages");
	s->stage = nr_arena_alloc(arena, (json_array_size(stages) + 1) * sizeof *s->stage);
	if (!s->stage) return no_memory(s->dir, err);
	for (size_t k = 0; k < json_array_size(stages); k++)
		if (trains(s, k) && read_stage(s, k, true, arena, err)) return err->code;
	return s->stages ? NR_OK : read_stage(s, 0, false, arena, err);
}

static void read_tuning(struct nr_study_read *s, struct nr_arena *arena)
{
	const char *path = nr_arena_printf(arena, "%s/tune/sensitivity.csv", s->dir);
	struct nr_error why = { 0 };
	char message[1024];
	if (!path || access(path, F_OK)) return;
	if (!nr_columns_load(path, arena, &s->tuning, &why)) return;
	s->tuning = (struct nr_columns){ 0 };
	nr_str_printf(&s->notes, "%s\n", nr_error_text(&why, message, sizeof message));
}

int nr_study_read(
	struct nr_study_read *s, const char *dir, const struct nr_study_command *commands, struct nr_arena *arena, struct nr_error *err)
{
	*s = (struct nr_study_read){ .dir = nr_arena_strdup(arena, dir) };
	if (!s->dir) return no_memory(dir, err);
	if (read_table(s, commands, arena, err)) return err->code;
	s->arm = json_object_get(s->table, "arms");
	s->arms = (int)json_array_size(s->arm);
	s->seeds = (int)json_array_size(json_object_get(s->table, "seeds"));
	s->name = nr_arena_alloc(arena, (size_t)s->arms * sizeof *s->name);
	if (!s->name) return no_memory(dir, err);
	for (int a = 0; a < s->arms; a++) s->name[a] = text_at(s->arm, (size_t)a, "name");
	read_tuning(s, arena);
	return read_stages(s, arena, err);
}

void nr_study_read_release(struct nr_study_read *s)
{
	for (int k = 0; k < s->stages; k++)
		for (int i = 0; i < s->stage[k].runs; i++) nr_runfolder_release(&s->stage[k].run[i]);
	json_decref(s->table);
	nr_str_release(&s->notes);
	*s = (struct nr_study_read){ 0 };
}

/* ---- looking things up -------------------------------------------------------------------------------------------------- */

const char *nr_study_metric(const struct nr_study_read *s, int metric)
{
	return json_string_value(json_array_get(json_object_get(s->table, "metrics"), (size_t)metric));
}

const json_t *nr_study_cell(const struct nr_study_read *s, int metric, int arm)
{
	const char *name = nr_study_metric(s, metric);
	return name ? json_object_get(json_object_get(json_array_get(s->arm, (size_t)arm), "metrics"), name) : NULL;
}

double nr_json_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* ---- names and numbers of metrics --------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

const char *nr_metric_title(const char *metric, struct nr_arena *arena)
{
	static const char *const known[][2] = {
		{ "cls.top1", "top‑1 on [CLS]" }, { "mean.top1", "top‑1 on the mean token" }, { "cls.top5", "top‑5 on [CLS]" },
		{ "mean.top5", "top‑5 on the mean token" }, { "cls.uniformity", "uniformity of [CLS]" },
		{ "mean.uniformity", "uniformity of the mean token" }, { "cls.effective_rank", "effective rank of [CLS]" },
		{ "mean.effective_rank", "effective rank of the mean token" }, { "eval_uniformity_cls", "uniformity of [CLS]" },
		{ "eval_uniformity_tokens", "uniformity of tokens" }, { "eval_rank_cls", "effective rank of [CLS]" },
		{ "eval_rank_tokens", "effective rank of tokens" }, { "eval_loss", "held-out loss" }, { "eval_top1", "held-out top‑1" },
		{ "eval_top5", "held-out top‑5" }, { "eval_ece", "calibration error" }, { ".top1", "top‑1" }, { ".top5", "top‑5" } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!ends_with(metric, known[i][0])) continue;
		const char *text = nr_arena_printf(arena, "%s (%.*s)", known[i][1], (int)strcspn(metric, "."), metric);
		return text ? text : metric;
	}
	const char *dot = strrchr(metric, '.');
	const char *stage = dot ? nr_arena_printf(arena, "%.*s", (int)strcspn(metric, "."), metric) : NULL;   /* often the task's name */
	const struct nr_task_metric *m = stage ? nr_task_metric_of(dot + 1, stage) : NULL;
	if (!m || !m->title) return metric;
	const char *text = nr_arena_printf(arena, "%c%s (%.*s)", tolower((unsigned char)*m->title), m->title + 1,
		(int)(dot - metric), metric);
	return text ? text : metric;
}

double nr_metric_factor(const char *metric) { return nr_metric_is_share(metric) ? 100 : 1; }
const char *nr_metric_unit(const char *metric) { return nr_metric_is_share(metric) ? "%" : ""; }

double nr_study_most(const struct nr_study_read *s, int metric)
{
	double most = 0;
	for (int a = 0; a < s->arms; a++) most = fmax(most, fabs(nr_json_at(nr_study_cell(s, metric, a), "mean")));
	return most;
}

const char *nr_metric_text(const char *metric, double v, double most, bool sign, char *buf, size_t size)
{
	if (!isfinite(v)) return snprintf(buf, size, "–"), buf;
	const size_t n = sign && v > 0 ? (size_t)snprintf(buf, size, "+") : 0;
	const double step = nr_metric_is_share(metric) ? 0.01 : most > 0 ? fmin(1, pow(10, floor(log10(most)) - 3)) : 0.001;
	nr_tick_text(v * nr_metric_factor(metric), step, buf + n, size - n);
	return buf;
}
