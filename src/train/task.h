/* A task at work (the descriptor is in norma/task.h). One file in src/tasks, one line in tasks.def. */
#ifndef NR_TASK_H
#define NR_TASK_H

#include "base/str.h"
#include "norma/safetensors.h"
#include "train/evaluate.h"

struct nr_task_run {                        /* a task at work in a trainer, which owns all but `own` */
	const struct nr_train *c;
	const void *settings;               /* of the task: what its options fill */
	struct nr_weights *w;
	const struct nr_source *source;
	struct { enum nr_split split; const int32_t *index; int64_t count; } train;     /* samples; index NULL: the first ones */
	const char *norms;                  /* plan of the whole graph; that of the model alone is w->norms */
	struct nr_arena *arena;
	int64_t shape;                      /* the one that is recorded, or that the batch has */
	struct nr_net *net;                 /* of that shape */
	struct nr_plan *plan;               /* of that shape; NULL while recording */
	int decides;                        /* as in the task, unless `settle` changes it: which of of_eval says what is best */
	int64_t passes;                     /* over a batch, each after `again`; 1 unless `settle` says more */
	bool evaluates;                     /* of a task with own_samples, set by `ready`: they are there */
	void *own;                          /* own_size bytes, zero at first */
};

#endif
