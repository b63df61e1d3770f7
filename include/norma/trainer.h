/* For training: from the texts of a data set, a model, a norm plan and an objective to a run directory, as the command does it.
 *
 * A run is a pure function of its settings: stopped at any step and resumed, on any number of threads, it ends with the same bits.
 *
 * Example:
 *   struct nr_train c;
 *   struct nr_train_result result;
 *   struct nr_trainer *trainer = NULL;
 *   if (!nr_train_init(&c, "classify", &err)) {
 *           c.data = "fashion-mnist", c.model = "vit:image=28,channels=1,patch=7,dim=16,depth=2,heads=2", c.norms.norm = "rms";
 *           c.steps = 20, c.batch = 10, c.out = "run";
 *           if (!nr_trainer_open(&trainer, &c, "my program", &err) && !nr_trainer_run(trainer, NULL, &result, &err))
 *                   printf("%s: %lld steps, loss %.4f\n", result.status, (long long)result.step, result.train_loss);
 *           nr_trainer_close(trainer);
 *   }
 */
#ifndef NORMA_TRAINER_H
#define NORMA_TRAINER_H

#include "norma/data.h"
#include "norma/infer.h"
#include "norma/task.h"
#include "norma/optim.h"

struct nr_comm;
struct nr_train {
	/* what */
	char *task;                         /* "classify", "mae": nr_tasks */
	union { unsigned char bytes[NR_TASK_SETTINGS]; int64_t aligned; } own;  /* settings of the task, as its rows lay them out */
	char *data, *data_root, *split, *model;
	struct nr_norm_choice norms;
	char *init, *resample;              /* weights to begin with; how their position table is resized */
	/* how long, how fast */
	double epochs;
	int64_t steps, batch, accumulate;   /* steps > 0 instead of epochs */
	bool rebuild;                       /* NR_PLAN_REBUILD */
	char *extended;                     /* "STEP:STEPS,...": up to STEP the learning rate followed the schedule of STEPS */
	struct nr_optim optim;
	struct nr_schedule schedule;        /* its kind and what that reads; the rest follows from lr, epochs and the next line */
	double warmup, min_lr, warmup_lr;   /* warm-up in epochs */
	struct nr_augment augment;          /* of pictures */
	/* evaluation */
	char *eval_split;                   /* "auto": val if there is one, else test */
	double hold_out;                    /* share of the training split kept apart to choose the best weights, and to evaluate on */
					    /* if there is no evaluation split; 0: none */
	double eval_every, crop_share;      /* in epochs; of the centre crop for evaluation */
	int64_t eval_batch, limit, eval_limit, patience;
	double ema;
	/* the run */
	char *out, *store;
	bool resume, force;                 /* force: also where the data or the instruction set changed; the record says so */
	double longer_epochs;               /* with resume: the new length of the run; 0: as it was */
	int64_t longer_steps;               /* likewise, instead of epochs */
	int64_t seed, workers, log_every, microscope, gradients, checkpoint_steps;
	double checkpoint_minutes;
	/* several processes */
	int64_t shards;                     /* of a batch, whose gradients are summed by a fixed tree; 0: one for each rank */
	double rank_timeout;                /* seconds to wait for another rank */
	int32_t overlap;                    /* enum nr_overlap: when gradients leave for other ranks */
	bool compress;                      /* they travel as bf16 */
	bool rank_logs;                     /* of all ranks; else of the first one */
	struct nr_comm *comm;               /* NULL: this process is alone */
};
/* Every row of a task: flags of its command, keys of recipes and of a run's config.yaml. NULL: no such task, or out of memory. */
NR_API const struct nr_option *nr_train_options(const char *task);
/* The defaults of a task, also of what its rows leave out. */
NR_API int nr_train_init(struct nr_train *, const char *task, struct nr_error *);
/* Settings from a config.yaml or a recipe, which names its task (none: classify), above the defaults. Texts go to the arena. */
NR_API int nr_train_read(struct nr_train *, const char *path, struct nr_arena *, struct nr_error *);

struct nr_train_result {
	int64_t step, steps;
	double seconds, train_loss;
	const struct nr_task_metric *of_step, *of_eval;   /* what the task measures */
	const char *sample;                 /* its word for one: "picture" */
	double train[NR_TASK_METRICS], last[NR_TASK_METRICS];   /* means over the last epoch; the last evaluation */
	int decides;                        /* which of of_eval says what is best */
	double best;                        /* at best_step */
	bool has_held;                      /* held-out samples choose best_step; else the evaluation does */
	double held[NR_TASK_METRICS], best_held;
	int64_t best_step, eval_samples;    /* best_step 0: no evaluation yet */
	int64_t eval_step;                  /* of the last evaluation in this process; 0: none yet */
	const char *status;                 /* "done", "interrupted", "stopped early" */
};

/* Called every step by nr_trainer_run; returning non-zero stops after a checkpoint. */
struct nr_train_watch {
	int (*step)(void *context, const struct nr_train_result *, double samples_per_second, const char *note);
	void *context;
};

struct nr_trainer;
/* command: for the record. With resume the settings come from the run directory `out`, apart from resume and force. */
NR_API int nr_trainer_open(struct nr_trainer **, const struct nr_train *, const char *command, struct nr_error *);
/* What the run is, in a few lines: data, model, parameters, norms and what their batch statistics see, memory. */
NR_API const char *nr_trainer_header(const struct nr_trainer *);
NR_API const char *nr_trainer_out(const struct nr_trainer *);
NR_API void nr_trainer_progress(const struct nr_trainer *, int64_t *step, int64_t *steps);
NR_API int nr_trainer_run(struct nr_trainer *, const struct nr_train_watch *, struct nr_train_result *, struct nr_error *);
NR_API void nr_trainer_close(struct nr_trainer *);            /* NULL is fine */

#endif
