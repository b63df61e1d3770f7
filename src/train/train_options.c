/* The settings of a training, as one option table: its own rows, those of optimizer and schedule under their common names,
 * and those of the augmentation. */
#include <pthread.h>
#include <string.h>

#include "norma/trainer.h"

static const char *const losses[] = { "softmax", "sigmoid", NULL };

#define S struct nr_train
static const struct nr_option common[] = {
	NR_OPT_STRING(S, task, "classify", "objective: classify, graph, mae, mlm, simcse"),
	NR_OPT_STRING(S, data, "", "data set: NAME or NAME:key=value (norma data list)"),
	NR_OPT_STRING(S, data_root, "", "folder of the data sets; default $NORMA_DATA, else ~/.cache/norma/data"),
	NR_OPT_STRING(S, split, "train", "split to train on: train, extra (unlabelled or further pictures), val, test"),
	NR_OPT_STRING(S, model, "vit_micro", "model: a preset or a family, with options: ti/16:image=32,patch=4"),
	NR_OPT_NORMS(S, norms),
	NR_OPT_STRING(S, init, "", "weights to begin with (ours, timm's or Hugging Face's names)"),
	NR_OPT_STRING(S, resample, "timm", "how a position table of another size is resized: timm, mae, dino, bigvision"),
	NR_OPT_FLOAT(S, epochs, 10, 0, 1e6, "passes over the training data"),
	NR_OPT_INT(S, steps, 0, 0, 1e15, "steps of the optimizer, instead of epochs"),
	NR_OPT_INT(S, batch, 128, 1, 1000000, "samples of a step (of a part of it, with accumulate)"),
	NR_OPT_INT(S, accumulate, 1, 1, 100000, "parts of a step: gradients are summed over so many batches"),
	{ .name = "schedule", .type = NR_TENUM, .offset = offsetof(S, schedule.kind), .size = NR_FIELD_SIZE(S, schedule.kind),
	  .text = "cosine", .choices = nr_schedule_names, .help = "how the learning rate falls after warm-up" },
	NR_OPT_FLOAT(S, warmup, 1, 0, 1e6, "epochs of linear warm-up"),
	NR_OPT_FLOAT(S, warmup_lr, 0, 0, 1e6, "learning rate at step 0"),
	NR_OPT_FLOAT(S, min_lr, 0, 0, 1e6, "learning rate at the end"),
	NR_OPT_STRING(S, eval_split, "auto", "split to evaluate on: val, test, ...; auto: val if there is one, else test"),
	NR_OPT_FLOAT(S, hold_out, 0, 0, 0.9, "share of the training split kept apart to evaluate on"),
	NR_OPT_FLOAT(S, eval_every, 1, 0, 1e6, "epochs between evaluations"),
	NR_OPT_FLOAT(S, crop_share, 1, 0.1, 1, "evaluation: the picture's part that the centre crop takes (224/256: 0.875)"),
	NR_OPT_INT(S, eval_batch, 0, 0, 1000000, "samples per evaluation batch; 0: as in training"),
	NR_OPT_INT(S, limit, 0, 0, 1e15, "train on the first so many samples; 0: all"),
	NR_OPT_INT(S, eval_limit, 0, 0, 1e15, "evaluate on the first so many samples; 0: all"),
	NR_OPT_INT(S, patience, 0, 0, 1000000, "stop after so many evaluations without a better one; 0: never"),
	NR_OPT_FLOAT(S, ema, 0, 0, 1, "keep a moving average of the weights with this decay, and evaluate it"),
	NR_OPT_STRING(S, out, "", "run directory; default runs/DATA-MODEL-NORM-SEED"),
	NR_OPT_STRING(S, store, "", "run store; default runs.db beside the run directory"),
	NR_OPT_INT(S, seed, 0, 0, 9e15, "of weights, order, augmentation, dropout: all that is random"),
	NR_OPT_INT(S, workers, 1, 1, 64, "threads that prepare batches"),
	NR_OPT_INT(S, log_every, 0, 0, 1000000, "steps between lines of metrics; 0: about twenty an epoch"),
	NR_OPT_INT(S, microscope, 0, 0, 1e15, "steps between looks at every norm's input, output and parameters; 0: none"),
	NR_OPT_INT(S, checkpoint_steps, 0, 0, 1e15, "steps between checkpoints; 0: by time"),
	NR_OPT_FLOAT(S, checkpoint_minutes, 2, 0, 1e6, "minutes between checkpoints"),
	NR_OPT_END
};
static const struct nr_option classify[] = {
	NR_OPT_ENUM(S, loss, "softmax", losses, "cross entropy; sigmoid: summed over classes, as big_vision"),
	NR_OPT_FLOAT(S, smoothing, 0, 0, 1, "label smoothing"),
	NR_OPT_FLOAT(S, mixup, 0, 0, 100, "alpha of Mixup; 0: none"),
	NR_OPT_FLOAT(S, cutmix, 0, 0, 100, "alpha of CutMix; 0: none"),
	NR_OPT_FLOAT(S, mix_prob, 1, 0, 1, "share of batches that are mixed"),
	NR_OPT_FLOAT(S, mix_switch, 0.5, 0, 1, "share of mixed batches that CutMix gets, if both are on"),
	NR_OPT_FLOAT(S, head_bias, 0, -100, 100, "first bias of the head (AugReg: -6.9)"),
	NR_OPT_BOOL(S, zero_head, "0", "the head's weights start at zero"),
	NR_OPT_END
};

/* Rows of a table for a part of the settings, with our names where they differ. */
struct rename { const char *theirs, *ours; };
static const struct rename optim_names[] = { { "kind", "optimizer" }, { "eps", "adam_eps" }, { NULL, NULL } };
static const struct rename schedule_names[] = { { "kind", NULL }, { "base", NULL }, { "final", NULL }, { "total", NULL },
	{ "warmup", NULL }, { "warmup_start", NULL }, { "inclusive", NULL }, { "counted", NULL },       /* own rows, in epochs, or fixed */
	{ "power", "schedule_power" }, { "timescale", "schedule_timescale" }, { "gamma", "schedule_gamma" }, { NULL, NULL } };
static const struct rename augment_names[] = { { "size", NULL }, { "channels", NULL }, { "crop_share", NULL },
	{ NULL, NULL } };                               /* the model's, and our own */

static const struct rename of_pictures[] = { { "resample", NULL }, { "crop_share", NULL }, { NULL, NULL } };

enum { MAX_ROWS = 128 };
struct table { struct nr_option row[MAX_ROWS]; size_t n; };

static void append(struct table *t, const struct nr_option *rows, size_t offset, const struct rename *names)
{
	for (; rows->name && t->n + 1 < MAX_ROWS; rows++) {
		struct nr_option row = *rows;
		bool skip = false;
		for (const struct rename *r = names; r && r->theirs; r++)
			if (!strcmp(r->theirs, rows->name)) row.name = r->ours, skip = !r->ours;
		row.offset += offset;
		if (!skip) t->row[t->n++] = row;
	}
}

/* Defaults that a task has of its own. */
struct value { const char *name, *text; };
static const struct value simcse_values[] = { { "task", "simcse" }, { "model", "auto" }, { "batch", "64" }, { "lr", "3e-5" },
	{ "weight_decay", "0" }, { "schedule", "linear" }, { "warmup", "0" }, { "epochs", "1" }, { "clip", "global" }, { "clip_norm", "1" },
	{ NULL, NULL } };
static const struct value mlm_values[] = { { "task", "mlm" }, { "model", "auto" }, { "batch", "64" }, { "lr", "5e-4" },
	{ "schedule", "linear" }, { "max_length", "128" }, { "clip", "global" }, { "clip_norm", "1" }, { NULL, NULL } };
static const struct value graph_values[] = { { "task", "graph" }, { "model", "graphormer-slim" }, { "batch", "64" }, { "lr", "2e-4" },
	{ "weight_decay", "0.01" }, { "schedule", "linear" }, { "clip", "global" }, { "clip_norm", "5" }, { NULL, NULL } };
static const struct value mae_values[] = { { "task", "mae" }, { "beta2", "0.95" }, { "epochs", "20" }, { "warmup", "2" },
	{ "decoder_dim", "64" }, { "decoder_depth", "2" }, { "decoder_heads", "4" }, { NULL, NULL } };

/* Rows that one task has beside the common ones, and whether it reads pictures. */
static struct of_task {
	const char *task;
	const struct nr_option *rows;
	size_t offset;
	bool pictures;
	const struct value *values;
	struct table table;
} of_task[] = {
	{ .task = "classify", .rows = classify, .pictures = true },
	{ .task = "graph", .rows = nr_graph_options, .offset = offsetof(struct nr_train, graph), .values = graph_values },
	{ .task = "mae", .rows = nr_mae_options, .offset = offsetof(struct nr_train, mae), .pictures = true, .values = mae_values },
	{ .task = "mlm", .rows = nr_mlm_options, .offset = offsetof(struct nr_train, text), .values = mlm_values },
	{ .task = "simcse", .rows = nr_simcse_options, .offset = offsetof(struct nr_train, text), .values = simcse_values },
};
enum { TASKS = sizeof of_task / sizeof *of_task };
static struct table all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool has(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->row[i].name, name)) return true;
	return false;
}

static void build(void)
{
	append(&all, common, 0, NULL);
	for (int i = 0; i < TASKS; i++) {
		struct of_task *o = &of_task[i];
		append(&o->table, common, 0, o->pictures ? NULL : of_pictures);
		append(&o->table, o->rows, o->offset, NULL);
		append(&o->table, nr_optim_options(), offsetof(struct nr_train, optim), optim_names);
		append(&o->table, nr_schedule_options, offsetof(struct nr_train, schedule), schedule_names);
		if (o->pictures) append(&o->table, nr_augment_options, offsetof(struct nr_train, augment), augment_names);
		for (const struct nr_option *row = o->rows; row->name; row++)           /* tasks may share rows */
			if (!has(&all, row->name)) append(&all, (struct nr_option[]){ *row, NR_OPT_END }, o->offset, NULL);
		for (const struct value *v = o->values; v && v->name; v++)
			for (struct nr_option *r = o->table.row; r->name; r++)
				if (!strcmp(r->name, v->name)) r->text = v->text;
	}
	append(&all, nr_optim_options(), offsetof(struct nr_train, optim), optim_names);
	append(&all, nr_schedule_options, offsetof(struct nr_train, schedule), schedule_names);
	append(&all, nr_augment_options, offsetof(struct nr_train, augment), augment_names);
}

const struct nr_option *nr_train_options(void)
{
	pthread_once(&once, build);
	return all.row;
}

const struct nr_option *nr_train_options_of(const char *task)
{
	pthread_once(&once, build);
	for (int i = 0; i < TASKS; i++)
		if (!strcmp(of_task[i].task, task)) return of_task[i].table.row;
	return NULL;
}
