/* The result of a stage: one JSON object of which the numbers count. See results.h. */
#include "study/results.h"

#include <stdio.h>
#include <string.h>

#include "base/save.h"
#include "base/str.h"
#include "norma/task.h"
#include "study/job.h"

enum { DEPTH = 8 };

static void walk(json_t *o, const char *prefix, int depth, void (*each)(void *, const char *, double), void *context)
{
	const char *key;
	json_t *v;
	char path[256];
	json_object_foreach(o, key, v) {
		if (snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key) >= (int)sizeof path) continue;
		if (json_is_number(v)) each(context, path, json_number_value(v));
		else if (json_is_object(v) && depth < DEPTH) walk(v, path, depth + 1, each, context);
	}
}

void nr_result_each(json_t *o, void (*each)(void *, const char *, double), void *context)
{
	if (json_is_object(o)) walk(o, "", 0, each, context);
}

struct search {
	const char *path;
	double value, ending;               /* ending: of a path that only ends so */
	int64_t found, endings;
	struct nr_near near;
	char best[256];
};

static void compare(void *context, const char *path, double value)
{
	struct search *s = context;
	const size_t all = strlen(path), end = strlen(s->path);
	if (!strcmp(path, s->path)) s->value = value, s->found++;
	if (all > end && path[all - end - 1] == '.' && !strcmp(path + all - end, s->path)) s->ending = value, s->endings++;
	const char *before = s->near.best;
	nr_near_try(&s->near, path);
	if (s->near.best == before) return;
	snprintf(s->best, sizeof s->best, "%s", path);  /* the path does not outlive this call */
	s->near.best = s->best;
}

bool nr_result_number(json_t *o, const char *path, double *value)
{
	struct search s = { .path = path, .near = { .word = path } };
	nr_result_each(o, compare, &s);
	if (!s.found && s.endings != 1) return false;
	*value = s.found ? s.value : s.ending;
	return true;
}

static void list(void *context, const char *path, double value)
{
	struct nr_str *s = context;
	(void)value;
	if (s->len < 180) nr_str_printf(s, "%s%s", s->len ? ", " : "", path);
}

int nr_result_unknown(json_t *o, const char *stage, const char *metric, struct nr_error *err)
{
	const char *path = metric + strlen(stage) + 1;
	struct search s = { .path = path, .near = { .word = path } };
	struct nr_str all = { 0 };
	nr_result_each(o, compare, &s);
	nr_result_each(o, list, &all);
	nr_fail(err, NR_ENAME, "no such metric", metric, "the first result of %s has %s", stage,
		all.len ? nr_str_text(&all) : "no numbers");
	nr_str_release(&all);
	if (s.near.best) nr_hint(err, "did you mean '%s.%s'? What has run is kept", stage, s.near.best);
	else nr_hint(err, "choose one of them; finished runs are kept");
	return err->code;
}

double nr_result_seconds(const struct nr_job *j, json_t *o, double other)
{
	const json_t *v = o && j->study->stage[j->stage].trains ? json_object_get(o, "seconds") : NULL;
	return json_is_number(v) ? json_number_value(v) : other;
}

int nr_result_save(const struct nr_job *j, json_t *o, struct nr_error *err)
{
	struct nr_str s = { 0 };
	int code = nr_json_add(&s, json_incref(o), err);
	if (!code) code = nr_save_file(j->json, nr_str_text(&s), s.len, err);
	nr_str_release(&s);
	return code;
}

/* ---- what a metric's name says ------------------------------------------------------------------------------------------------ */

static bool has_one_of(const char *metric, const char *const *words)
{
	for (; *words; words++)
		if (strstr(metric, *words)) return true;
	return false;
}

/* Of a training, STAGE.eval_top1: what its task says of it; NULL: it is of another command. */
static const struct nr_task_metric *of_task(const char *metric)
{
	const char *dot = strrchr(metric, '.');
	return nr_task_metric_of(dot ? dot + 1 : metric, NULL);
}

bool nr_metric_is_share(const char *metric)
{
	const struct nr_task_metric *m = of_task(metric);
	if (m) return nr_metric_percent(m);
	static const char *const words[] = { "top1", "top5", "acc", "ece", "miou", "auc", "_error", NULL };
	return has_one_of(metric, words);
}

bool nr_metric_falls(const char *metric)
{
	const struct nr_task_metric *m = of_task(metric);
	if (m) return m->lower;
	static const char *const words[] = { "loss", "nll", "mse", "ece", "uniformity", "alignment", "perplexity", "_mae", ".mae",
		"_error", "brier", "mce", NULL };
	return has_one_of(metric, words);
}
