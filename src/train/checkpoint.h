/* Checkpoints: one safetensors file with weights, buffers, optimizer state and where the run was. Replaced at once or not at
 * all. */
#ifndef NR_CHECKPOINT_H
#define NR_CHECKPOINT_H

#include "base/real.h"
#include "train/task.h"

struct nr_progress_state {                  /* what a resumed run needs beside the tensors */
	int64_t step, best_step, stale;
	double seconds, loss_sum, sum[NR_TASK_METRICS], seen;  /* of the epoch so far */
	double train_loss, train[NR_TASK_METRICS];      /* of the last whole stretch between evaluations */
	double last[NR_TASK_METRICS], best; /* evaluation */
	double held[NR_TASK_METRICS], best_held;        /* of samples held out to choose the best, if there are any */
	int64_t eval_samples;
};
struct nr_origin { char data[65], eval_data[65], isa[16]; };     /* what equal bits depend on: digests, instruction set; "": not known */
struct nr_checkpoint {
	const struct nr_store *store;
	int slots;                          /* optimizer moments: 0, 1, 2 */
	real *ema;                          /* like the store's values; NULL: none */
	const struct nr_source *source;     /* class names, mean and std; NULL: none */
	const struct nr_train *config;
	const char *model, *norms;          /* texts */
	const char *pooler, *objective;     /* of texts, of graphs; or NULL */
	char *const *class_name;            /* of outputs, if not the source's; or NULL */
	struct nr_st_meta meta[NR_TASK_META];   /* of the task */
	int metas;
	struct nr_origin origin;
	struct nr_progress_state state;
	const struct nr_store *teacher;     /* of the task; NULL: none */
};
/* full: with optimizer state, EMA and teacher; else the weights alone (those of the teacher or the EMA if there is one). */
int nr_checkpoint_write(const struct nr_checkpoint *, const char *path, bool full, struct nr_error *);
/* Into the same store, EMA and state. A state that no run of `steps` steps can have is refused. */
int nr_checkpoint_read(struct nr_checkpoint *, const char *path, int64_t steps, struct nr_error *);
int nr_checkpoint_origin(struct nr_origin *, const char *path, struct nr_error *);
/* norma.state as text: JSON (state.c). NULL: out of memory. */
char *nr_state_text(const struct nr_progress_state *);
int nr_state_read(struct nr_progress_state *, const char *text, const char *path, int64_t steps, struct nr_error *);

#endif
