/* For writing objectives of training: their settings and commands, the graph that a trainer steps, and what is measured on the way. */
#ifndef NORMA_TASK_H
#define NORMA_TASK_H

#include "norma/data.h"
#include "norma/graph.h"

struct nr_task_metric {                     /* lists end with a NULL name */
	const char *name;                   /* in records with train_ or eval_ before it */
	const char *label;                  /* in the progress line; NULL: not shown there */
	const char *unit;                   /* "%": a share of 1, shown as percent; NULL: none */
	const char *title, *says;           /* of its curve in a report: heading, how to read it; NULL: the name, nothing */
	bool lower;                         /* the lower one is the better */
	bool wide;                          /* its curve may span powers of ten */
};
enum { NR_TASK_METRICS = 12 };              /* at most, of a step and of an evaluation */
enum { NR_TASK_SETTINGS = 512 };            /* bytes that a task's settings may have */
enum { NR_TASK_SHAPES = 16, NR_TASK_META = 8 };

struct nr_rates;
struct nr_train;
struct nr_weights;
struct nr_evaluation;
struct nr_str;
struct nr_st_meta;

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
	struct nr_plan *plan;               /* of that shape and batch, not the same in every step; NULL while recording */
	int decides;                        /* as in the task, unless `settle` changes it: which of of_eval says what is best */
	int64_t per_epoch, steps;           /* steps of an epoch and of the run; known from `record` on */
	int64_t parts;                      /* batches of a step, over all shards: c->batch is the samples of one */
	struct nr_store *teacher;           /* NULL, or weights that the task moves itself, set by `ready`: training checkpoints hold */
					    /* them as teacher.NAME, and models are made of them */
	int64_t passes;                     /* over a batch, each after `again`; 1 unless `settle` says more */
	bool evaluates;                     /* of a task with own_samples, set by `ready`: they are there */
	void *own;                          /* own_size bytes, zero at first */
};
/* For `settle`: an option of the model that follows the data or the task, unless the user's text names it. */
NR_API int nr_task_set(struct nr_task_run *, const char *option, int64_t value, struct nr_error *);
NR_API int nr_task_set_text(struct nr_task_run *, const char *option, const char *value, struct nr_error *);

struct nr_task_default { const char *option, *text; };

struct nr_task {
	const char *name, *title, *cite;
	/* Its command, `norma COMMAND`, which is also what a run is called in records. continued: what it is called if it begins with
	 * weights; NULL: the same */
	const char *command, *summary, *usage, *about, *continued;

	/* Settings: rows beside those that every run has, and the struct that they fill, of at most NR_TASK_SETTINGS bytes */
	const struct nr_option *options;
	size_t settings_size;
	const struct nr_task_default *defaults;     /* of any row, where another is better; ends with NULL. Or NULL */
	const char *from;                   /* its option that a study gives the weights of the stage before; NULL: it takes none */
	const char *auto_model;             /* what the model `auto` is without weights that say it; NULL: a model must be named */

	/* Samples and measures */
	enum nr_kind kind;                  /* pictures come in batches of a loader, others it fetches itself */
	const char *sample;                 /* the word for one: "picture" */
	bool own_samples;                   /* evaluates on samples that it finds itself, not on those of the data that are set apart */
	const struct nr_task_metric *of_step, *of_eval;
	int decides;                        /* which of of_eval says what is best */
	size_t own_size;                    /* of what it keeps during a run */

	/* Before the first step. settle: options of the model that the task or the data decide. shapes: how many shapes a batch can have
	 * (lengths of texts), the largest first, at most NR_TASK_SHAPES; NULL: one. record: inputs, model, loss, for every shape. ready:
	 * the plan is made, those of the evaluation follow. begin: files of its own for the run's folder; or NULL. load: what it wants of
	 * the loader of pictures; or NULL */
	int (*settle)(struct nr_task_run *, struct nr_error *);
	int64_t (*shapes)(struct nr_task_run *);
	nr_t *(*record)(struct nr_task_run *);
	int (*ready)(struct nr_task_run *, int64_t eval_batch, struct nr_error *);
	int (*begin)(struct nr_task_run *, const char *dir, struct nr_error *);
	void (*load)(const struct nr_task_run *, struct nr_loader_config *);

	/* A step. number: of the batch since the beginning, so that draws are pure functions of it. choose: its shape; NULL: there is one.
	 * bind: its inputs; the batch is NULL if not of pictures. again: other inputs for the next pass; NULL if there is one only.
	 * measure: of_step after the passes, summed over samples; NULL if there are none */
	int64_t (*choose)(struct nr_task_run *, int64_t number);
	void (*bind)(struct nr_task_run *, const struct nr_batch *, int64_t number);
	void (*again)(struct nr_task_run *);
	void (*measure)(struct nr_task_run *, const struct nr_batch *, double *sum);

	/* What it has to say on the update of the weights. still: steps at the beginning in which a parameter is left alone; NULL: none.
	 * rates: changes what the schedules say for a step, counted from 0; or NULL. moved: after it, counted from 1; or NULL */
	int64_t (*still)(const struct nr_task_run *, const struct nr_entry *);
	void (*rates)(const struct nr_task_run *, int64_t step, struct nr_rates *);
	void (*moved)(struct nr_task_run *, int64_t step);

	/* An evaluation: of_eval and how many samples; NAN: not measured. draw: a PNG of the last one, in the folder `pictures` and at the
	 * end under the name `picture`; or NULL. predictions: of the last one; or NULL */
	int (*evaluate)(struct nr_task_run *, const struct nr_evaluation *, double *value, int64_t *samples, struct nr_error *);
	int (*draw)(struct nr_task_run *, const char *path, struct nr_error *);
	const char *picture;
	/* What somebody should know after an evaluation, from the means of of_step since the one before: a warning and an event of the
	 * run's record. Empty: nothing. Or NULL */
	void (*notice)(const struct nr_task_run *, const double *train, struct nr_str *text);
	int (*predictions)(struct nr_task_run *, struct nr_str *text, struct nr_error *);
	const char *predicted;              /* its file; NULL: predictions.csv. Without a text there is none */

	/* describe: lines of the run's header; or NULL. meta: what its checkpoints say beside what all do, at most NR_TASK_META texts
	 * in the arena; returns how many. Or NULL. close: also after a failure; or NULL */
	void (*describe)(const struct nr_task_run *, struct nr_str *);
	int (*meta)(const struct nr_task_run *, struct nr_st_meta *);
	void (*close)(struct nr_task_run *);
};

NR_API const struct nr_task *const *nr_tasks(void);                      /* ends with NULL */
NR_API const struct nr_task *nr_task_find(const char *name, struct nr_error *);  /* unknown ones come with the nearest */
/* What a column of a record measures ("eval_top1", "train_mae", also "best_top1"), for this task (or NULL), else for the first that
 * has it. NULL: nothing that a task measures. */
NR_API const struct nr_task_metric *nr_task_metric_of(const char *column, const char *task);

static inline int nr_task_metrics(const struct nr_task_metric *m)        /* how many */
{
	int n = 0;
	while (m[n].name) n++;
	return n;
}

static inline bool nr_metric_percent(const struct nr_task_metric *m) { return m->unit && *m->unit == '%'; }

/* ---- masked autoencoders: MAE and U-MAE ---- */

enum nr_mae_target { NR_UNIFORM_NONE, NR_UNIFORM_CLS, NR_UNIFORM_TOKENS, NR_UNIFORM_BOTH };
enum nr_mae_power { NR_UNIFORM_SQUARE, NR_UNIFORM_LINEAR, NR_UNIFORM_INFONCE };

struct nr_mae {
	int64_t decoder_dim, decoder_depth, decoder_heads;
	double decoder_mlp;
	char *decoder_act;
	int32_t pos;                        /* enum nr_position, of encoder and decoder */
	double mask_ratio;
	bool norm_pix;
	/* U-MAE: loss = mae + lambda * unif */
	int32_t uniform, power;             /* enum nr_mae_target, enum nr_mae_power */
	double lambda, temperature;         /* temperature: of InfoNCE */
	bool self, unit, in_image, extra_norm;
	int64_t probe;                      /* training pictures for a linear probe at each evaluation; 0: none */
};
extern NR_DATA const struct nr_option nr_mae_options[];

#endif
