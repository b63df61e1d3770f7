/* Training: from a data set's, a model's, a norm plan's and an objective's text to a run directory.
 *
 *   struct nr_train c; nr_train_init(&c, "classify", &err); c.data = "fashion-mnist"; ...
 *   struct nr_trainer *t; nr_trainer_open(&t, &c, command, &err); nr_trainer_run(t, NULL, &result, &err); nr_trainer_close(t);
 *
 * A run is a pure function of its settings: stopped at any step and resumed, on any number of threads, it ends with the
 * same bits. */
#ifndef NORMA_TRAINER_H
#define NORMA_TRAINER_H

#include "norma/data.h"
#include "norma/model.h"
#include "norma/task.h"
#include "norma/train.h"

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
	struct nr_optim optim;
	struct nr_schedule schedule;        /* its kind and what that reads; the rest follows from lr, epochs and the next line */
	double warmup, min_lr, warmup_lr;   /* warm-up in epochs */
	struct nr_augment augment;          /* of pictures */
	/* evaluation */
	char *eval_split;                   /* "auto": val if there is one, else test */
	double hold_out;                    /* share of the training split kept apart as the evaluation split; 0: none */
	double eval_every, crop_share;      /* in epochs; of the centre crop for evaluation */
	int64_t eval_batch, limit, eval_limit, patience;
	double ema;
	/* the run */
	char *out, *store;
	bool resume;
	int64_t seed, workers, log_every, microscope, checkpoint_steps;
	double checkpoint_minutes;
};
/* Every row of a task: flags of its command, keys of recipes and of a run's config.yaml. NULL: no such task, or out of memory. */
NR_API const struct nr_option *nr_train_options(const char *task);
/* The defaults of a task, also of what its rows leave out. */
NR_API int nr_train_init(struct nr_train *, const char *task, struct nr_error *);
/* Settings from a config.yaml or a recipe, which names its task (none: classify), above the defaults. Texts go to the arena. */
NR_API int nr_train_read(struct nr_train *, const char *path, struct nr_arena *, struct nr_error *);

struct nr_score { double loss, top1, top5, ece; int64_t samples; };   /* shares of 1; ece: calibration error, 15 bins */
struct nr_train_result {
	int64_t step, steps;
	double seconds, train_loss;
	const struct nr_task_metric *of_step, *of_eval;   /* what the task measures */
	const char *sample;                 /* its word for one: "picture" */
	double train[NR_TASK_METRICS], last[NR_TASK_METRICS];   /* means over the last epoch; the last evaluation */
	int decides;                        /* which of of_eval says what is best */
	double best;
	int64_t best_step, eval_samples;    /* best_step 0: no evaluation yet */
	const char *status;                 /* "done", "interrupted", "stopped early" */
};

/* Called every step by nr_trainer_run; returning non-zero stops after a checkpoint. */
struct nr_train_watch {
	int (*step)(void *context, const struct nr_train_result *, double samples_per_second, const char *note);
	void *context;
};

struct nr_trainer;
/* command: for the record. With resume the settings come from the run directory `out`, apart from resume itself. */
NR_API int nr_trainer_open(struct nr_trainer **, const struct nr_train *, const char *command, struct nr_error *);
/* What the run is, in a few lines: data, model, parameters, norms and what their batch statistics see, memory. */
NR_API const char *nr_trainer_header(const struct nr_trainer *);
NR_API const char *nr_trainer_out(const struct nr_trainer *);
NR_API void nr_trainer_progress(const struct nr_trainer *, int64_t *step, int64_t *steps);
NR_API int nr_trainer_run(struct nr_trainer *, const struct nr_train_watch *, struct nr_train_result *, struct nr_error *);
NR_API void nr_trainer_close(struct nr_trainer *);            /* NULL is fine */

/* ---- trained models --------------------------------------------------------------------------------------------------- */

struct nr_weights {                         /* a model with its values: from one of our files, or a public one */
	struct nr_arena *arena;
	struct nr_store *store;
	struct nr_model_spec model;
	const char *norms;                  /* norm plan */
	const char *data;                   /* what it was trained on; NULL: not known */
	const char *pooler;                 /* of sentences, for texts: "avg", "cls+layer" (SimCSE's after it); NULL: not known */
	const char *objective;              /* of graphs: "mae", "mse" or "bce"; NULL: not known */
	const char *naming;                 /* of the file */
	char **class_name;                  /* names of the outputs, then NULL; NULL: not known */
	double mean[3], std[3];             /* of its input; std 0: not known */
	bool normalize;                     /* by mean and std; else to [-1,1] */
	int64_t step, kept;                 /* kept: entries that the file did not have */
	const struct nr_mae *mae;           /* the store has the decoder of a masked autoencoder too; NULL: the model alone */
	const char *whole_norms;            /* then: the plan of both */
};
/* path, or model.safetensors in it if it is a folder, in the arena; NULL: out of memory. */
NR_API char *nr_weights_path(const char *path, struct nr_arena *);
/* model, norms: NULL takes what the file says (a public file says nothing: then the model must be given). partial: entries
 * may be missing, e.g. the head for another number of classes. */
NR_API int nr_weights_open(struct nr_weights **, const char *path, const char *model, const char *norms, const char *resample,
	bool partial, struct nr_error *);
/* The same with all that an import can be told; *how also says what came of it. */
NR_API int nr_weights_import(struct nr_weights **, const char *path, const char *model, const char *norms, struct nr_import *how,
	struct nr_error *);
NR_API void nr_weights_close(struct nr_weights *);
/* Records what the weights have, one sample, under a norm plan: entries of the net's store get the names. */
NR_API int nr_weights_record(struct nr_net *, const struct nr_weights *, const char *norms, struct nr_error *);

enum nr_stats { NR_STATS_RUNNING, NR_STATS_BATCH };
/* A model ready to run on batches of one size. */
struct nr_runner {
	struct nr_net *net;
	struct nr_plan *plan;
	nr_t *image, *logits, *pooled, *tokens;
	int64_t batch, channels, size, classes, width;
};
NR_API int nr_runner_open(struct nr_runner *, const struct nr_weights *, int64_t batch, struct nr_error *);
/* Fills the image input from floats and runs; results are read with nr_plan_data. */
NR_API void nr_runner_run(struct nr_runner *, const float *image, enum nr_stats);
NR_API void nr_runner_close(struct nr_runner *);

/* ---- sentence embeddings ------------------------------------------------------------------------------------------------
 *
 *   struct nr_weights *w; nr_weights_open(&w, "model/model.safetensors", NULL, NULL, NULL, false, &err);
 *   struct nr_tokenizer *t; nr_tokenizer_open(&t, "model/", &err);
 *   struct nr_text_runner *r; nr_text_runner_open(&r, w, t, NULL, &err);
 *   nr_text_runner_run(r, texts, n, out, NULL, NULL, &err);
 *   nr_text_runner_close(r); nr_tokenizer_close(t); nr_weights_close(w);
 *
 * Texts are sorted by length and embedded in batches of one length each, those with the same ids once; an embedding does not
 * depend on the texts beside it, nor on the number of threads. */
struct nr_tokenizer;
struct nr_text_runner;
struct nr_text_runner_how {
	enum nr_text_pooling pooling;
	bool layer;                         /* SimCSE's tanh layer after it */
	int64_t max_length;                 /* with special tokens; 0: as many as the model has positions */
	int64_t tokens;                     /* of a batch, about; 0: 1024, whose activations stay in the cache */
};
/* An error if the tokenizer has more tokens than the model. */
NR_API int nr_text_fits(const struct nr_model_spec *, const struct nr_tokenizer *, struct nr_error *);
/* Sets pooling and layer: pooler is one of nr_text_poolings (cls: with the layer), or NULL: as the weights were trained, if they or a
 * modules.json of sentence-transformers beside them say it, else the mean of the tokens. */
NR_API int nr_text_runner_pool_by(struct nr_text_runner_how *, const struct nr_weights *, const char *pooler, struct nr_error *);
/* how NULL: as the weights were trained. Weights and tokenizer are the caller's and outlive it; values of the store may change between
 * runs. */
NR_API int nr_text_runner_open(struct nr_text_runner **, const struct nr_weights *, const struct nr_tokenizer *,
	const struct nr_text_runner_how *how, struct nr_error *);
NR_API void nr_text_runner_close(struct nr_text_runner *);    /* NULL is fine */
NR_API int64_t nr_text_runner_width(const struct nr_text_runner *);
/* out (n,width). watch may be NULL; when it returns non-zero the rest is left out and 1 is returned. */
NR_API int nr_text_runner_run(struct nr_text_runner *, const char *const *text, int64_t n, real *out,
	int (*watch)(void *context, int64_t done, int64_t of), void *context, struct nr_error *);
/* How many different texts the last run had. */
NR_API int64_t nr_text_runner_different(const struct nr_text_runner *);
/* Floating-point operations of the last run, padding included. */
NR_API double nr_text_runner_flops(const struct nr_text_runner *);

#endif
