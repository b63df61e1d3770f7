/* The registry of objectives. */
#include <string.h>

#include "base/registry.h"
#include "train/task.h"

#define TASK(name) extern const struct nr_task nr_task_##name;
#include "tasks/tasks.def"
#undef TASK
#define TASK(name) &nr_task_##name,
static const struct nr_task *const built_in[] = {
#include "tasks/tasks.def"
	NULL
};
#undef TASK

const struct nr_task *const *nr_tasks(void) { return NR_REGISTRY(NR_OF_TASKS, nr_task, built_in); }

const struct nr_task *nr_task_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		if (!strcmp((*t)->name, name)) return *t;
		nr_near_try(&near, (*t)->name);
	}
	nr_fail(err, NR_ENAME, "unknown task", name, NULL);
	struct nr_str known = { 0 };
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) nr_str_printf(&known, "%s%s", known.len ? ", " : "", (*t)->name);
	if (near.best) nr_hint(err, "did you mean '%s'?", near.best);
	else nr_hint(err, "there are %s", nr_str_text(&known));
	nr_str_release(&known);
	return NULL;
}

static const struct nr_task_metric *metric_in(const struct nr_task_metric *m, const char *name)
{
	while (m->name && strcmp(m->name, name) != 0) m++;
	return m->name ? m : NULL;
}

const struct nr_task_metric *nr_task_metric_of(const char *column, const char *task)
{
	const bool train = !strncmp(column, "train_", 6);
	const bool eval = !strncmp(column, "eval_", 5) || !strncmp(column, "best_", 5) || !strncmp(column, "held_", 5);
	const struct nr_task_metric *first = NULL;
	for (const struct nr_task *const *t = nr_tasks(); (train || eval) && *t; t++) {
		const struct nr_task_metric *m = metric_in(train ? (*t)->of_step : (*t)->of_eval, column + (train ? 6 : 5));
		if (m && (!task || !strcmp(task, (*t)->name))) return m;
		if (!first) first = m;
	}
	return first;
}

int nr_task_set(struct nr_task_run *r, const char *option, int64_t value, struct nr_error *err)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	return nr_task_set_text(r, option, text, err);
}

int nr_task_set_text(struct nr_task_run *r, const char *option, const char *value, struct nr_error *err)
{
	char key[2][40];
	snprintf(key[0], sizeof key[0], ":%s=", option);
	snprintf(key[1], sizeof key[1], ",%s=", option);
	if (strstr(r->c->model, key[0]) || strstr(r->c->model, key[1])) return NR_OK;
	return nr_model_set(&r->w->model, option, value, r->arena, err);
}
