/* An objective: the graph that a trainer steps, and what is measured on the way. One file in src/tasks, one line in tasks.def. */
#ifndef NR_TASK_H
#define NR_TASK_H

#include "base/str.h"
#include "train/evaluate.h"

enum { NR_TASK_SHAPES = 16 };

struct nr_task_run {                        /* a task at work in a trainer, which owns all but `own` */
	const struct nr_train *c;
	struct nr_weights *w;
	const struct nr_source *source;
	struct { enum nr_split split; const int32_t *index; int64_t count; } train;     /* samples; index NULL: the first ones */
	const char *norms;                  /* plan of the whole graph; that of the model alone is w->norms */
	struct nr_arena *arena;
	int64_t shape;                      /* the one that is recorded, or that the batch has */
	struct nr_net *net;                 /* of that shape */
	struct nr_plan *plan;               /* of that shape; NULL while recording */
	int decides;                        /* as in the task, unless `settle` changes them: which of of_eval says what is best, */
	bool lower;                         /* and is it the lower one */
	int64_t passes;                     /* over a batch, each after `again`; 1 unless `settle` says more */
	bool evaluates;                     /* of a task with own_samples, set by `ready`: they are there */
	void *own;                          /* own_size bytes, zero at first */
};

struct nr_task {
	const char *name, *title, *cite;
	enum nr_kind kind;                  /* of the samples: pictures come in batches of a loader, others it fetches itself */
	size_t own_size;
	const struct nr_task_metric *of_step, *of_eval;
	int decides;                        /* which of of_eval says what is best */
	bool lower;                         /* it is the lower one */
	bool own_samples;                   /* evaluates on samples that it finds itself, not on those of the data that are set apart */
	int (*settle)(struct nr_task_run *, struct nr_error *);    /* options of the model that the task or the data decide */
	/* How many shapes a batch can have (lengths of texts), the largest first, at most NR_TASK_SHAPES; NULL: one */
	int64_t (*shapes)(struct nr_task_run *);
	nr_t *(*record)(struct nr_task_run *);                     /* inputs, model, loss; for every shape */
	int (*ready)(struct nr_task_run *, int64_t eval_batch, struct nr_error *);     /* the plan is made: those of the evaluation */
	int (*begin)(struct nr_task_run *, const char *dir, struct nr_error *);     /* files of its own for the run's folder; or NULL */
	int64_t (*choose)(struct nr_task_run *, int64_t number);   /* the shape of a batch; NULL: there is one */
	/* number: of the batch since the beginning, so that draws are pure functions of it. The batch is NULL if not of pictures */
	void (*bind)(struct nr_task_run *, const struct nr_batch *, int64_t number);
	void (*again)(struct nr_task_run *);                       /* other inputs for the next pass; NULL if there is one only */
	void (*measure)(struct nr_task_run *, const struct nr_batch *, double *sum);   /* after a pass: of_step, summed over samples */
	int (*evaluate)(struct nr_task_run *, const struct nr_evaluation *, double *value, int64_t *samples, struct nr_error *);
	int (*draw)(struct nr_task_run *, const char *path, struct nr_error *);        /* a PNG of the last evaluation; or NULL */
	int (*predictions)(struct nr_task_run *, struct nr_str *csv, struct nr_error *);       /* of the last evaluation; or NULL */
	void (*describe)(const struct nr_task_run *, struct nr_str *);                 /* lines of the run's header; or NULL */
	void (*close)(struct nr_task_run *);                                           /* also after a failure */
};

static inline int nr_task_metrics(const struct nr_task_metric *m)        /* how many */
{
	int n = 0;
	while (m[n].name) n++;
	return n;
}

#endif
