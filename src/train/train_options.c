/* The settings of a training, as one option table for each task: what every run has, the task's rows, those of optimizer and schedule
 * under their common names, and for pictures those of the augmentation. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/yaml.h"
#include "norms/choice.h"
#include "plugin/plugin.h"
#include "train/task.h"

#define S struct nr_train
static const char *const overlaps[] = { "auto", "after", "between", "thread", NULL };
static const struct nr_option common[] = {
	NR_OPT_STRING(S, task, "", "objective; set by the command"),
	NR_OPT_STRING(S, data, "", "data set: NAME, NAME:key=value (norma data list), or your own: pictures/, lines.txt, molecules.csv"),
	NR_OPT_STRING(S, data_root, "", "folder of the data sets; default: $NORMA_DATA, or ~/.cache/norma/data"),
	NR_OPT_STRING(S, split, "train", "split to train on: train, extra (unlabelled or further pictures), val, test"),
	NR_OPT_STRING(S, model, "vit_micro", "model: a preset or a family, with options: ti/16:image=32,patch=4"),
	NR_OPT_NORMS(S, norms),
	NR_OPT_STRING(S, init, "", "initial weights (norma's, timm's or Hugging Face's)"),
	NR_OPT_STRING(S, resample, "timm",
		"how to resize a position table of another size: timm, mae, dino, bigvision"),
	NR_OPT_FLOAT(S, epochs, 10, 0, 1e6, "passes over the training data"),
	NR_OPT_INT(S, steps, 0, 0, 1e15, "optimizer steps, instead of epochs"),
	NR_OPT_STRING(S, extended, "",
		"STEP:STEPS,...: up to STEP the learning rate is that of a run of STEPS (written by --resume --epochs N)"),
	NR_OPT_INT(S, batch, 128, 1, 1000000, "samples per step (with accumulate: per part of a step)"),
	NR_OPT_INT(S, accumulate, 1, 1, 100000, "parts of a step: gradients are summed over N batches"),
	NR_OPT_INT(S, shards, 0, 0, 4096,
		"parts of a batch, a power of two: equal bits on up to so many ranks; 0: one for each rank"),
	NR_OPT_FLOAT(S, rank_timeout, 300, 1, 1e6, "seconds that a rank waits for another before the run ends"),
	NR_OPT_ENUM(S, overlap, "auto", overlaps,
		"when gradients leave for other ranks: after backward, between its calls (auto: on several hosts), or by a thread"),
	NR_OPT_BOOL(S, compress, "0", "gradients travel as bf16: half the traffic, but rounded"),
	NR_OPT_BOOL(S, rank_logs, "0", "show the warnings and the progress of all ranks, not of the first one alone"),
	NR_OPT_BOOL(S, rebuild, "0", "save memory by recomputing cheap outputs in backward; same results"),
	{ .name = "schedule", .type = NR_TENUM, .offset = offsetof(S, schedule.kind), .size = NR_FIELD_SIZE(S, schedule.kind),
	  .text = "cosine", .help = "how the learning rate changes after warm-up" },
	NR_OPT_FLOAT(S, warmup, 1, 0, 1e6, "epochs of linear warm-up"),
	NR_OPT_FLOAT(S, warmup_lr, 0, 0, 1e6, "learning rate at step 0"),
	NR_OPT_FLOAT(S, min_lr, 0, 0, 1e6, "learning rate at the end"),
	NR_OPT_STRING(S, eval_split, "auto",
		"split to evaluate on: val, test, ...; auto: val if there is one, otherwise test"),
	NR_OPT_FLOAT(S, hold_out, 0, 0, 0.9, "share of the training split to hold out; it chooses the best weights"),
	NR_OPT_FLOAT(S, eval_every, 1, 0, 1e6, "epochs between evaluations"),
	NR_OPT_FLOAT(S, crop_share, 1, 0.1, 1,
		"share of the picture that a centre crop keeps, in evaluation and with --crop center (224/256: 0.875)"),
	NR_OPT_INT(S, eval_batch, 0, 0, 1000000, "samples per evaluation batch; 0: as in training"),
	NR_OPT_INT(S, limit, 0, 0, 1e15, "train on the first N samples; 0: all"),
	NR_OPT_INT(S, eval_limit, 0, 0, 1e15, "evaluate on the first N samples; 0: all"),
	NR_OPT_INT(S, patience, 0, 0, 1000000, "stop after N evaluations without improvement; 0: never"),
	NR_OPT_FLOAT(S, ema, 0, 0, 1, "keep a moving average of the weights with this decay, and evaluate it"),
	NR_OPT_STRING(S, out, "", "run directory; default: runs/DATA-MODEL-NORM-SEED"),
	NR_OPT_STRING(S, store, "", "run database; default: runs.db beside the run directory"),
	NR_OPT_INT(S, seed, 0, 0, 9e15, "seed of everything random: weights, order, augmentation, dropout"),
	NR_OPT_INT(S, workers, 1, 1, 64, "threads that prepare batches"),
	NR_OPT_INT(S, log_every, 0, 0, 1000000, "steps between lines of metrics; 0: about twenty per epoch"),
	NR_OPT_INT(S, microscope, 0, 0, 1e15,
		"steps between recordings of every norm's input, output and parameters; 0: none"),
	NR_OPT_INT(S, gradients, 0, 0, 1e15, "steps between recordings of the gradient's norm in each layer; 0: none"),
	NR_OPT_INT(S, checkpoint_steps, 0, 0, 1e15, "steps between checkpoints; 0: by time"),
	NR_OPT_FLOAT(S, checkpoint_minutes, 2, 0, 1e6, "minutes between checkpoints"),
	NR_OPT_END
};

/* Rows of a table for a part of the settings, with our names where they differ; without those whose name is NULL. */
struct rename {
	const char *theirs, *ours;
};
static const struct rename optim_names[] = { { "kind", "optimizer" }, { "eps", "adam_eps" }, { NULL, NULL } };
static const struct rename schedule_names[] = { { "kind", NULL }, { "base", NULL }, { "final", NULL }, { "total", NULL },
	{ "warmup", NULL }, { "warmup_start", NULL }, { "inclusive", NULL }, { "counted", NULL }, /* own rows, in epochs, or fixed */
	{ "power", "schedule_power" }, { "timescale", "schedule_timescale" }, { "gamma", "schedule_gamma" }, { NULL, NULL } };
static const struct rename augment_names[] = { { "size", NULL }, { "channels", NULL }, { "crop_share", NULL },
	{ NULL, NULL } }; /* the model's, and our own */
static const struct rename of_pictures[] = { { "resample", NULL }, { "crop_share", NULL }, { NULL, NULL } };

enum { MAX_ROWS = 192 };
struct table {
	struct nr_option row[MAX_ROWS];
	size_t n;
};
/* One for each task, in the order of nr_tasks. Made anew when something was registered; older ones stay for whoever holds them. */
static struct tables {
	struct table *of;
	int added;
	struct tables *older;
} * tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void append(struct table *t, const struct nr_option *rows, size_t offset, const struct rename *names)
{
	for (; rows && rows->name && t->n + 1 < MAX_ROWS; rows++) {
		struct nr_option row = *rows;
		for (const struct rename *r = names; r && r->theirs; r++)
			if (!strcmp(r->theirs, rows->name)) row.name = r->ours;
		row.offset += offset;
		if (row.name) t->row[t->n++] = row;
	}
}

static void set_default(struct table *t, const char *option, const char *text)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->row[i].name, option)) t->row[i].text = text;
}

static void fill(struct table *t, const struct nr_task *task)
{
	const bool pictures = task->kind == NR_PICTURES;
	append(t, common, 0, pictures ? NULL : of_pictures);
	append(t, task->options, offsetof(struct nr_train, own), NULL);
	append(t, nr_optim_options(), offsetof(struct nr_train, optim), optim_names);
	append(t, nr_schedule_options(), offsetof(struct nr_train, schedule), schedule_names);
	if (pictures) append(t, nr_augment_options, offsetof(struct nr_train, augment), augment_names);
	set_default(t, "task", task->name);
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->row[i].name, "schedule")) t->row[i].choices = nr_schedule_names();
	for (const struct nr_task_default *d = task->defaults; d && d->option; d++) set_default(t, d->option, d->text);
}

static struct tables *build(void)
{
	size_t n = 0;
	while (nr_tasks()[n]) n++;
	struct tables *t = malloc(sizeof *t);
	struct table *of = calloc(n + 1, sizeof *of);
	if (!t || !of) {
		free(t);
		free(of);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) fill(&of[i], nr_tasks()[i]);
	*t = (struct tables){ .of = of, .added = nr_registry_added(), .older = tables };
	return t;
}

const struct nr_option *nr_train_options(const char *task)
{
	pthread_mutex_lock(&lock);
	struct tables *t = tables && tables->added == nr_registry_added() ? tables : build();
	if (t) tables = t;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; t && nr_tasks()[i]; i++)
		if (!strcmp(nr_tasks()[i]->name, task)) return t->of[i].row;
	return NULL;
}

int nr_train_init(struct nr_train *c, const char *task, struct nr_error *err)
{
	const struct nr_task *t = nr_task_find(task, err);
	if (!t) return err->code;
	const struct nr_option *rows = nr_train_options(task);
	if (!rows) return nr_fail(err, NR_EMEMORY, "cannot read the settings of", task, "out of memory");
	if (t->settings_size > sizeof c->own)
		return nr_fail(err, NR_ELIMIT, "cannot train by", task, "its settings have %zu bytes, more than %zu", t->settings_size,
			sizeof c->own);
	*c = (struct nr_train){ 0 };
	for (const struct rename *r = of_pictures; r->theirs; r++) { /* rows that the table may lack */
		const struct nr_option one[] = { *nr_option_find(common, r->theirs), NR_OPT_END };
		nr_option_defaults(one, c);
	}
	nr_option_defaults(nr_augment_options, &c->augment);
	nr_option_defaults(rows, c);
	return NR_OK;
}

int nr_train_read(struct nr_train *c, const char *path, struct nr_arena *arena, struct nr_error *err)
{
	size_t size;
	struct nr_yaml_errors all = { 0 };
	const char *text = nr_yaml_load(path, &size, arena, err);
	if (!text) return err->code;
	if (nr_plugins_read(path, err)) return err->code;
	const char *task = nr_yaml_peek(text, size, NULL, "task", arena);
	if (nr_train_init(c, task && *task ? task : "classify", err)) return err->code;
	const struct nr_yaml_section sections[] = { { NULL, nr_train_options(c->task), c }, { 0 } };
	return nr_yaml_parse(text, size, path, sections, arena, &all, err);
}
