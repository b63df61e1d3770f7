/* classify: a linear head on what the model pools, and cross entropy: softmax, or a sigmoid for each class as big_vision has it
 * (arXiv:2106.10270). Labels may be smoothed or mixed by the loader. */
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "infer/classes.h"
#include "infer/metrics.h"
#include "norma/nn.h"
#include "train/task.h"

enum { SOFTMAX, SIGMOID };
static const char *const losses[] = { "softmax", "sigmoid", NULL };

enum { EQUAL, BALANCED };
static const char *const weightings[] = { "none", "balanced", NULL };

struct settings {
	int32_t loss, class_weights;
	double smoothing, mixup, cutmix, mix_prob, mix_switch, head_bias;
	bool zero_head;
};

static const struct nr_option options[] = {
	NR_OPT_ENUM(struct settings, loss, "softmax", losses,
		"cross entropy; sigmoid: summed over classes, as in big_vision"),
	NR_OPT_ENUM(struct settings, class_weights, "none", weightings,
		"balanced: samples of rare classes count more, so that all classes count the same"),
	NR_OPT_FLOAT(struct settings, smoothing, 0, 0, 1, "label smoothing"),
	NR_OPT_FLOAT(struct settings, mixup, 0, 0, 100, "alpha of Mixup; 0: none"),
	NR_OPT_FLOAT(struct settings, cutmix, 0, 0, 100, "alpha of CutMix; 0: none"),
	NR_OPT_FLOAT(struct settings, mix_prob, 1, 0, 1, "share of batches that are mixed"),
	NR_OPT_FLOAT(struct settings, mix_switch, 0.5, 0, 1,
		"share of mixed batches that use CutMix, if both are on"),
	NR_OPT_FLOAT(struct settings, head_bias, 0, -100, 100, "initial bias of the head (AugReg: -6.9)"),
	NR_OPT_BOOL(struct settings, zero_head, "0", "start the head's weights at zero"),
	NR_OPT_END
};

struct classify {
	nr_t *image, *label, *target, *logits;          /* label or target is NULL */
	struct nr_runner eval;
	int32_t *rank;
	double *weight;                                 /* (classes); NULL: all 1 */
	int64_t *confusion;                             /* (classes,classes) of the last evaluation; NULL: too many */
	enum nr_split split;                            /* of that evaluation */
};

/* What a sample of each class counts: the mean over the training samples is 1. */
static int weigh_classes(struct nr_task_run *r, struct nr_error *err)
{
	struct classify *s = r->own;
	const struct settings *o = r->settings;
	const int32_t K = r->source->classes;
	int64_t present = 0;
	if (o->class_weights == EQUAL) return NR_OK;
	if (o->loss == SIGMOID) return nr_fail(err, NR_EVALUE, "cannot weigh classes", NULL,
		"the sigmoid loss has none; use --loss softmax");
	if (!(s->weight = nr_arena_alloc(r->arena, (size_t)K * sizeof *s->weight)))
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	for (int64_t i = 0; i < r->train.count; i++) {
		const int32_t label = nr_source_label(r->source, r->train.split, r->train.index ? r->train.index[i] : i);
		if (label >= 0 && label < K) s->weight[label]++;
	}
	for (int32_t k = 0; k < K; k++) present += s->weight[k] > 0;
	for (int32_t k = 0; k < K; k++)
		s->weight[k] = s->weight[k] > 0 ? (double)r->train.count / ((double)present * s->weight[k]) : 0;
	return NR_OK;
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	if (nr_model_expect(&r->w->model, NR_PICTURES, err)) return err->code;
	if (r->source->classes < 1) return nr_fail(err, NR_EVALUE, "cannot classify", r->c->data, "it has no labels");
	if (nr_task_set(r, "classes", r->source->classes, err) || nr_task_set(r, "channels", r->source->channels, err)) return err->code;
	if (nr_classes_fit(nr_model_int(&r->w->model, "classes"), r->source, err)) return err->code;
	return weigh_classes(r, err);
}

static nr_t *loss_of(struct nr_net *n, const struct classify *s, const struct settings *o)
{
	if (o->loss == SIGMOID) return nr_sigmoid_cross_entropy(n, s->logits, s->target, NR_BCE_MEAN_ROWS);
	if (s->target) return nr_soft_cross_entropy(n, s->logits, s->target);
	return nr_cross_entropy(n, s->logits, s->label, o->smoothing, -1);
}

static nr_t *record(struct nr_task_run *r)
{
	struct classify *s = r->own;
	const struct settings *o = r->settings;
	struct nr_net *n = r->net;
	const struct nr_model_spec *m = &r->w->model;
	const int64_t B = r->c->batch, size = nr_model_int(m, "image");
	s->image = nr_input(n, "image", NR_REAL, NR_SHAPE(B, nr_model_int(m, "channels"), size, size));
	if (o->mixup > 0 || o->cutmix > 0 || o->loss == SIGMOID || s->weight)
		s->target = nr_input(n, "target", NR_REAL, NR_SHAPE(B, nr_model_int(m, "classes")));
	else s->label = nr_input(n, "label", NR_I32, NR_SHAPE(B));
	s->logits = nr_tap(n, "logits", nr_model_logits(n, m, &(struct nr_inputs){ .image = s->image }));
	struct nr_entry *head = nr_store_find(r->w->store, "head.weight"), *bias = nr_store_find(r->w->store, "head.bias");
	if (head && o->zero_head) head->init = NR_ZEROS | (head->init & ~NR_INIT_KIND);
	if (bias && o->head_bias != 0) bias->init = NR_ONES | NR_NO_DECAY, bias->value = o->head_bias;
	return loss_of(n, s, o);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct classify *s = r->own;
	const size_t K = (size_t)r->source->classes;
	s->rank = malloc((size_t)r->c->batch * sizeof *s->rank);
	if (K <= NR_CLASSES_COUNTED) s->confusion = calloc(K * K, sizeof *s->confusion);
	if (!s->rank || (K <= NR_CLASSES_COUNTED && !s->confusion))
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	return nr_runner_open(&s->eval, r->w, batch, err);
}

static void load(const struct nr_task_run *r, struct nr_loader_config *l)
{
	const struct settings *o = r->settings;
	l->mixup = o->mixup;
	l->cutmix = o->cutmix;
	l->mix_prob = o->mix_prob;
	l->mix_switch = o->mix_switch;
	l->smoothing = o->smoothing;
}

/* A row counts as its class does; one that is mixed as its shares of classes. */
static void weigh(const struct classify *s, const struct nr_batch *b, real *target, int64_t B, int64_t K)
{
	for (int64_t i = 0; i < B; i++, target += K) {
		double weight = b->target ? 0 : s->weight[b->label[i]];
		for (int64_t k = 0; k < K && b->target; k++) weight += (double)target[k] * s->weight[k];
		for (int64_t k = 0; k < K; k++) target[k] = (real)((double)target[k] * weight);
	}
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	const struct classify *s = r->own;
	const double smoothing = ((const struct settings *)r->settings)->smoothing;
	const int64_t B = r->c->batch, K = nr_cols(s->logits);
	(void)number;
	nr_from_floats(nr_plan_data(r->plan, s->image), b->image, nr_len(s->image));
	if (s->label) memcpy(nr_plan_data(r->plan, s->label), b->label, (size_t)B * sizeof *b->label);
	real *target = s->target ? nr_plan_data(r->plan, s->target) : NULL;
	if (target && b->target) nr_from_floats(target, b->target, B * K);
	else if (target)                                /* nothing is mixed, but sigmoid loss and weights want a row per sample */
		for (int64_t i = 0; i < B * K; i++)
			target[i] = (real)(smoothing / (double)K + (i % K == b->label[i / K] ? 1 - smoothing : 0));
	if (target && s->weight) weigh(s, b, target, B, K);
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct classify *s = r->own;
	nr_metric_rank(r->c->batch, nr_cols(s->logits), nr_plan_data(r->plan, s->logits), b->label, s->rank);
	for (int64_t i = 0; i < r->c->batch; i++) sum[0] += s->rank[i] < 1;
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct classify *s = r->own;
	struct nr_evaluation counted = *e;
	struct nr_score score;
	const size_t K = (size_t)r->source->classes;
	counted.confusion = s->confusion;
	s->split = e->split;
	if (s->confusion) memset(s->confusion, 0, K * K * sizeof *s->confusion);
	if (nr_evaluate(&s->eval, &counted, &score, err)) return err->code;
	value[0] = score.loss;
	value[1] = score.top1;
	value[2] = score.top5;
	value[3] = score.ece;
	*samples = score.samples;
	return NR_OK;
}

/* Which classes it tells apart. */
static int predictions(struct nr_task_run *r, struct nr_str *text, struct nr_error *err)
{
	const struct classify *s = r->own;
	const struct nr_class_counts told = { r->source->classes, s->confusion, r->source->class_name };
	return s->confusion ? nr_class_counts_record(text, &told, nr_split_name(s->split), err) : NR_OK;
}

static void close(struct nr_task_run *r)
{
	struct classify *s = r->own;
	nr_runner_close(&s->eval);
	free(s->rank);
	free(s->confusion);
}

static const struct nr_task_metric of_step[] = {
	{ .name = "top1", .label = "acc", .unit = "%", .title = "Training top-1" },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "loss", .title = "Held-out loss", .lower = true, .wide = true },
	{ .name = "top1", .label = "eval", .unit = "%", .title = "Held-out top-1" },
	{ .name = "top5", .unit = "%", .title = "Held-out top-5" },
	{ .name = "ece", .unit = "%", .title = "Calibration error", .says = "Low is well calibrated.", .lower = true },
	{ .name = NULL },
};

const struct nr_task nr_task_classify = {
	.name = "classify",
	.title = "classification of pictures",
	.command = "train",
	.continued = "finetune",
	.summary = "train a picture classifier",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Trains a model on a data set and leaves a run directory: checkpoints, metrics as CSV, JSON lines and\n"
		 "TensorBoard events, every setting, and a row in the run database. Settings come from flags, from a recipe\n"
		 "(YAML with the flags' names as keys), or from both: flags override the recipe.\n"
		 "\n"
		 "Ctrl-C finishes the step, writes a checkpoint and says how to resume; --resume gives the same bits as an\n"
		 "uninterrupted run, even after a kill. If the loss is not finite, the run stops with exit code 3, names the\n"
		 "first bad site and keeps the last checkpoint.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.sample = "picture",
	.own_size = sizeof(struct classify),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = 1,
	.settle = settle,
	.record = record,
	.ready = ready,
	.load = load,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.predictions = predictions,
	.predicted = "classes.json",
	.close = close,
};
