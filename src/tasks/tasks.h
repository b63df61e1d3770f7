/* What the files of tasks share. */
#ifndef NR_TASKS_H
#define NR_TASKS_H

#include "train/task.h"

/* An option of the model that follows the data or the task, unless the user's text names it. */
int nr_task_set(struct nr_task_run *, const char *option, int64_t value, struct nr_error *);
int nr_task_set_text(struct nr_task_run *, const char *option, const char *value, struct nr_error *);

#endif
