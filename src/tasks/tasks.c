/* The registry of objectives. */
#include "tasks/tasks.h"

#include <string.h>

#define TASK(name) extern const struct nr_task nr_task_##name;
#include "tasks/tasks.def"
#undef TASK
#define TASK(name) &nr_task_##name,
static const struct nr_task *const tasks[] = {
#include "tasks/tasks.def"
	NULL
};
#undef TASK

const struct nr_task *const *nr_tasks(void) { return tasks; }

const struct nr_task *nr_task_find(const char *name, struct nr_error *err)
{
	struct nr_near near = { .word = name };
	for (const struct nr_task *const *t = tasks; *t; t++) {
		if (!strcmp((*t)->name, name)) return *t;
		nr_near_try(&near, (*t)->name);
	}
	nr_fail(err, NR_ENAME, "unknown task", name, NULL);
	nr_hint(err, near.best ? "did you mean '%s'?" : "there are classify, graph, mae, mlm and simcse", near.best);
	return NULL;
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
