/* The inside of a trainer. */
#ifndef NR_TRAINER_H
#define NR_TRAINER_H

#include "base/mem.h"
#include "base/str.h"
#include "graph/together.h"
#include "infer/evaluate.h"
#include "record/recorder.h"
#include "train/checkpoint.h"
#include "train/layer_gradients.h"
#include "train/microscope.h"
#include "train/shards.h"
#include "train/task.h"

enum { NR_EXTENSIONS = 16 };

struct nr_trainer {
	struct nr_arena *arena;
	struct nr_train c;
	const char *command, *norms;        /* norm plan as one text */
	char *header;
	struct nr_source *source;
	enum nr_split split, eval_split;
	int32_t *order;                     /* of the training split: first what is trained on, then what is held out; or NULL */
	int64_t train_count, eval_count, held_count;
	const int32_t *train_index, *eval_index;
	const int32_t *held_index;          /* samples of `split` that choose the best weights, if eval is another split; or NULL */
	struct nr_weights w;                /* store and model */
	/* the training step */
	const struct nr_task *task;
	struct nr_task_run run;
	struct nr_trainer_shape {
		struct nr_net *net;
		struct nr_plan *plan;
		nr_t *loss;
		struct nr_microscope *microscope;   /* NULL: off */
		struct nr_plan **twin;              /* (shards.local) the plan and its twins, for shards side by side; or NULL */
	} shape[NR_TASK_SHAPES];
	int64_t shapes;
	const char **column;                /* names of metrics */
	struct nr_params params;
	struct nr_schedule schedule;
	struct nr_past { int64_t until; struct nr_schedule schedule; } past[NR_EXTENSIONS];     /* before the run was extended */
	int pasts;
	int64_t per_epoch, total;           /* steps */
	struct { double epochs; int64_t steps; } shorter;       /* the length before this session, if it asks for a longer one */
	real *ema, *spare;                  /* like the store's values */
	struct nr_loader *loader;
	struct nr_recorder *recorder;
	struct nr_microscope *looking;      /* what the step at hand is watched by */
	struct nr_layer_gradients *layers;  /* NULL: off */
	struct nr_origin origin;
	const char *forced;                 /* what changed before a resume that --force asked for; or NULL */
	struct nr_progress_state state;
	struct nr_shards shards;            /* c.batch is the samples of one */
	bool stopping;                      /* this process was asked to stop */
	struct nr_together together;        /* of the step at hand */
	struct nr_batch **held;             /* (shards.local) */
	double last_norm;                   /* of the gradient, in the step before */
	struct nr_train asked;              /* see below */
};
/* Of all ranks the first one writes the run folder. */
static inline bool nr_trainer_writes(const struct nr_trainer *t) { return nr_comm_rank(t->c.comm) == 0; }
/* Samples of a step. */
static inline int64_t nr_trainer_samples(const struct nr_trainer *t) { return t->c.batch * t->run.parts; }
/* The settings as they were given. */
static inline struct nr_train nr_trainer_asked(const struct nr_trainer *t)
{
	struct nr_train c = t->c;
	if (t->shards.count) c.batch *= t->shards.count;
	return c;
}

/* Model `auto` becomes the one of the weights to begin with, a folder of weights its file (start.c). */
int nr_trainer_start(struct nr_trainer *, struct nr_error *);
/* Opens data, model, plans (setup.c). */
int nr_trainer_setup(struct nr_trainer *, struct nr_error *);
/* What a checkpoint is made from; the task's texts are in the run's arena. */
struct nr_checkpoint nr_trainer_checkpoint(struct nr_trainer *);
/* The schedule of a run of so many steps; that of the step at hand; what c.extended says (setup.c, resume.c). */
struct nr_schedule nr_trainer_schedule(const struct nr_trainer *, int64_t total);
const struct nr_schedule *nr_trainer_schedule_now(const struct nr_trainer *);
int nr_trainer_past(struct nr_trainer *, struct nr_error *);
/* Resuming (resume.c): the settings of the run in `out`; digests of the data; the checkpoint, refused if they changed. */
int nr_trainer_settings(struct nr_trainer *, struct nr_error *);
int nr_trainer_origin(struct nr_trainer *, struct nr_error *);
int nr_trainer_resume(struct nr_trainer *, struct nr_error *);
/* All ranks do the same: an error names the first one that differs (ranks.c). */
int nr_trainer_agree(struct nr_trainer *, struct nr_error *);
/* Lines of the header on shards and ranks: what is exact, what each statistic sees. */
void nr_trainer_describe_ranks(const struct nr_trainer *, struct nr_str *);
/* Shards side by side, whose norms share statistics (together.c): twins of the plans; a step, as `gradients` has it. */
bool nr_trainer_shares(const struct nr_trainer *);
int nr_trainer_twins(struct nr_trainer *, struct nr_error *);
int nr_trainer_together(struct nr_trainer *, struct nr_error *);
/* Which plan the batch of a number has; its inputs' names and the rest of a step follow (trainer.c). */
struct nr_trainer_shape *nr_trainer_choose(struct nr_trainer *, int64_t number);
int nr_trainer_bad_loss(struct nr_trainer *, const struct nr_exec *, const char *what, struct nr_error *);
void nr_trainer_look(struct nr_trainer *, struct nr_trainer_shape *, struct nr_exec *);
/* The same error on all ranks that one of them met in a step. */
int nr_trainer_share_error(struct nr_trainer *, int code, struct nr_error *);
/* Somebody was asked to stop. */
bool nr_trainer_stops(const struct nr_trainer *);
/* What the run is, for people. */
char *nr_trainer_describe(const struct nr_trainer *);
/* "OUT/name" in the arena. */
const char *nr_trainer_path(const struct nr_trainer *, const char *name);

#endif
