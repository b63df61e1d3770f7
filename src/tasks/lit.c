/* lit: texts learn to name pictures. Zhai et al. 2022 (LiT), arXiv:2111.07991: the image tower is trained already and stays as it is, so
 * its features are computed once; a text tower learns to give the text of a picture the same direction.
 *
 *   z = unit(features), v = unit(head(text));  logits e^t z v' (+ b);  softmax (CLIP) or sigmoid loss (SigLIP): see nn/contrast.c
 *
 * An evaluation on captions made of class names is zero-shot classification of the pictures set apart; on given captions it is how often a
 * picture's own caption is the nearest of all that are set apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/zeroshot.h"
#include "base/save.h"
#include "data/captions.h"
#include "data/dataset.h"
#include "infer/metrics.h"
#include "infer/weights.h"
#include "norma/nn.h"
#include "tasks/caption_words.h"
#include "tasks/texts.h"
#include "tasks/tower_features.h"

enum { SOFTMAX, SIGMOID };
static const char *const losses[] = { "softmax", "sigmoid", NULL };

struct settings {
	struct nr_text_settings text;
	char *tower, *tower_model;
	int32_t loss;
	double temperature, bias;
	bool keep_features;
};

static const struct nr_option options[] = {
	NR_TEXT_LENGTH_ROWS(32),
	NR_OPT_STRING(struct settings, tower, "", "checkpoint of the image tower, which stays as it is"),
	NR_OPT_STRING(struct settings, tower_model, "", "its model, if the file does not name it"),
	NR_OPT_ENUM(struct settings, loss, "softmax", losses,
		"softmax over the batch in both directions (CLIP), or sigmoid of each pair (SigLIP)"),
	NR_OPT_FLOAT(struct settings, temperature, 0.1, 1e-4, 100, "first temperature: cosines are divided by it; it is learned"),
	NR_OPT_FLOAT(struct settings, bias, -2.71, -100, 100, "loss=sigmoid: first bias of the logits; it is learned"),
	NR_OPT_BOOL(struct settings, keep_features, "1", "keep the features of the pictures below the data root, for the next run"),
	NR_OPT_END
};

enum { TOP1, TOP5, RECALL };

struct shape { nr_t *ids, *valid, *features, *logits; };
struct lit {
	struct nr_texts texts;
	struct nr_weights *tower;
	struct nr_tower_features features;
	struct nr_tower_how how;                        /* to make them */
	enum nr_split held;                             /* the split to evaluate on */
	struct shape shape[NR_TASK_SHAPES];
	struct nr_text_runner *runner;
	int64_t judged;                                 /* texts: prompts, or captions of the split */
	const char **text;                              /* (judged) */
	real *of_text, *of_class, *image, *scores;      /* (judged,C); (classes,C); (pictures,C); (pictures, classes or judged) */
	int32_t *label, *rank;                          /* (pictures) */
};

static const struct settings *settings_of(const struct nr_task_run *r) { return r->settings; }

/* ---- before the first step ---------------------------------------------------------------------------------------------------- */

static int open_tower(struct nr_task_run *r, struct nr_error *err)
{
	struct lit *s = r->own;
	const struct settings *o = r->settings;
	if (!*o->tower) {
		nr_fail(err, NR_EUSAGE, "no image tower was given", NULL, NULL);
		return nr_hint(err, "--tower names a checkpoint: of `norma train`, `norma pretrain`, timm or Hugging Face");
	}
	if (!r->source->of->get) return nr_fail(err, NR_EVALUE, "cannot use", r->c->data, "its texts have no pictures");
	if (nr_weights_open(&s->tower, o->tower, &(struct nr_weights_how){ .model = o->tower_model }, err)) return err->code;
	if (nr_model_expect(&s->tower->model, NR_PICTURES, err)) return err->code;
	nr_store_fix(s->tower->store);
	const char *root = nr_data_root(*r->c->data_root ? r->c->data_root : NULL, r->arena, err);
	if (!root) return err->code;
	s->held = r->source->count[NR_VAL] ? NR_VAL : NR_TEST;
	s->how = (struct nr_tower_how){ .tower = nr_weights_path(o->tower, r->arena), .what = nr_captions_text(r->source),
		.folder = o->keep_features ? nr_arena_printf(r->arena, "%s/cache", root) : NULL,
		.want = 1u << r->train.split | 1u << s->held,
		.batch = 64, .workers = (int)r->c->workers, .comm = r->c->comm };
	return nr_tower_features_open(&s->features, s->tower, r->source, &s->how, r->arena, err);
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct lit *s = r->own;
	if (r->c->batch < 2)
		return nr_fail(err, NR_EVALUE, "cannot contrast", r->c->data, "a batch of one sample has nothing to contrast with");
	if (open_tower(r, err)) return err->code;
	if (!*settings_of(r)->text.tokenizer && !*r->c->init) {
		const char *root = nr_data_root(*r->c->data_root ? r->c->data_root : NULL, r->arena, err);
		if (!root || nr_caption_words(&s->texts.otherwise, r->source, r->train.split, root, r->arena, err)) return err->code;
	}
	if (nr_texts_open(&s->texts, r, err)) return err->code;
	const int32_t end = nr_tokenizer_special(s->texts.tokenizer, NR_TOKEN_SEP);
	const bool ends = end >= 0 && nr_option_find(r->w->model.of->options, "end");
	if (ends && nr_task_set(r, "end", end, err)) return err->code;
	if (nr_option_find(r->w->model.of->options, "types") && nr_task_set_text(r, "pool", "cls", err)) return err->code;
	r->decides = nr_captions_prompts(r->source) ? TOP1 : RECALL;
	return nr_task_set(r, "classes", s->features.width, err);
}

/* SigLIP's texts have the whole length; batches of others the lengths that they need. */
static bool whole_length(const struct nr_task_run *r) { return nr_model_int(&r->w->model, "ends") == 0; }

static int64_t shapes(struct nr_task_run *r) { return whole_length(r) ? 1 : ((struct lit *)r->own)->texts.shapes; }

static nr_t *learned(struct nr_net *n, const char *name, double first)
{
	nr_t *x = nr_param(n, name, NR_ONES | NR_NO_DECAY, NR_SHAPE(1));
	if (x) x->entry->value = first;
	return x;
}

static nr_t *record(struct nr_task_run *r)
{
	struct lit *s = r->own;
	struct shape *p = &s->shape[r->shape];
	const struct settings *o = r->settings;
	struct nr_net *n = r->net;
	const int64_t B = r->c->batch, T = whole_length(r) ? nr_model_int(&r->w->model, "positions") : nr_texts_length(&s->texts, r->shape);
	p->ids = nr_input(n, "ids", NR_I32, NR_SHAPE(B, T));
	p->valid = nr_input(n, "valid", NR_I32, NR_SHAPE(B));
	p->features = nr_input(n, "features", NR_REAL, NR_SHAPE(B, s->features.width));
	nr_t *texts = nr_unit_rows(n, nr_model_logits(n, &r->w->model, &(struct nr_inputs){ .ids = p->ids, .valid = p->valid }));
	nr_t *t = learned(n, "contrast.t", -log(o->temperature)), *b = o->loss == SIGMOID ? learned(n, "contrast.b", o->bias) : NULL;
	nr_t *loss = nr_contrast_loss(n, nr_unit_rows(n, p->features), texts, t, b, &p->logits);
	p->logits = nr_tap(n, "logits", p->logits);
	return loss;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

static int64_t choose(struct nr_task_run *r, int64_t number)
{
	const int64_t shape = nr_texts_choose(&((struct lit *)r->own)->texts, number);
	return whole_length(r) ? 0 : shape;
}

static void bind(struct nr_task_run *r, const struct nr_batch *batch, int64_t number)
{
	struct lit *s = r->own;
	const struct shape *p = &s->shape[r->shape];
	const int64_t T = p->ids->d[1], C = s->features.width;
	int32_t *ids = nr_plan_data(r->plan, p->ids), *valid = nr_plan_data(r->plan, p->valid);
	real *features = nr_plan_data(r->plan, p->features);
	(void)batch, (void)number;
	for (int64_t b = 0; b < r->c->batch; b++) {
		const int64_t i = s->texts.sample[b], at = r->train.index ? r->train.index[i] : i;
		int64_t count;
		const int32_t *text = nr_corpus_text(&s->texts.corpus, i, 0, &count);
		nr_texts_put(&s->texts, text, count, T, ids + b * T, valid + b);
		nr_from_floats(features + b * C, s->features.x[r->train.split] + at * C, C);
	}
}

/* How often a picture's own text is the nearest. */
static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct lit *s = r->own;
	const nr_t *logits = s->shape[r->shape].logits;
	const int64_t B = logits->d[0];
	const real *x = nr_plan_data(r->plan, logits);
	(void)b;
	for (int64_t i = 0; i < B; i++) {
		int64_t most = 0;
		for (int64_t j = 1; j < B; j++) most = x[i * B + j] > x[i * B + most] ? j : most;
		sum[0] += most == i;
	}
}

/* ---- evaluation -------------------------------------------------------------------------------------------------------------------- */

static int make_room(struct lit *s, int64_t pictures, int64_t classes, struct nr_error *err)
{
	const int64_t C = s->features.width;
	s->of_text = malloc((size_t)(s->judged * C) * sizeof(real) + 1);
	s->of_class = malloc((size_t)(classes * C) * sizeof(real) + 1);
	s->image = malloc((size_t)(pictures * C) * sizeof(real) + 1);
	s->scores = malloc((size_t)(pictures * classes) * sizeof(real) + 1);
	s->label = malloc((size_t)pictures * sizeof *s->label + 1);
	s->rank = malloc((size_t)pictures * sizeof *s->rank + 1);
	return s->of_text && s->of_class && s->image && s->scores && s->label && s->rank ? NR_OK
		: nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct lit *s = r->own;
	const struct nr_prompts *prompts = nr_captions_prompts(r->source);
	const int64_t n = r->source->count[s->held];
	(void)batch;
	if (nr_tower_features_make(&s->features, s->tower, r->source, &s->how, err)) return err->code;
	r->evaluates = n > 0;
	if (!n) return NR_OK;
	s->judged = prompts ? prompts->classes * prompts->templates : n;
	s->text = nr_arena_alloc(r->arena, (size_t)s->judged * sizeof *s->text);
	if (!s->text || make_room(s, n, prompts ? prompts->classes : n, err))
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	for (int64_t i = 0; i < s->judged; i++) s->text[i] = prompts ? prompts->text[i] : nr_source_text(r->source, s->held, i, 0);
	for (int64_t i = 0; i < n; i++) s->label[i] = prompts ? nr_source_label(r->source, s->held, i) : (int32_t)i;
	const struct nr_text_runner_how how = { .logits = true, .max_length = settings_of(r)->text.max_length,
		.comm = r->c->comm };
	return nr_text_runner_open(&s->runner, r->w, s->texts.tokenizer, &how, err);
}

/* A caption that several pictures have counts for each of them: its first place does. */
static void share_captions(const struct lit *s, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < i; k++)
			if (!strcmp(s->text[i], s->text[k])) {
				s->label[i] = s->label[k];
				break;
			}
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct lit *s = r->own;
	const struct nr_prompts *prompts = nr_captions_prompts(r->source);
	const int64_t n = r->source->count[s->held], C = s->features.width, K = prompts ? prompts->classes : n;
	int64_t *first = nr_arena_alloc(r->arena, (size_t)(K + 1) * sizeof *first);
	(void)e;
	if (!first) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	for (int64_t k = 0; k <= K; k++) first[k] = k * (s->judged / K);
	nr_from_floats(s->image, s->features.x[s->held], n * C);
	if (nr_text_runner_run(s->runner, s->text, s->judged, s->of_text, err)) return err->code;
	nr_zeroshot_classes(K, C, first, s->of_text, s->of_class);
	if (nr_zeroshot_scores(n, C, s->image, K, s->of_class, s->scores, err)) return err->code;
	if (!prompts) share_captions(s, n);
	nr_metric_rank(n, K, s->scores, s->label, s->rank);
	const double top1 = nr_metric_topk(n, s->rank, 1);
	value[TOP1] = prompts ? top1 : NAN;
	value[TOP5] = prompts ? nr_metric_topk(n, s->rank, 5) : NAN;
	value[RECALL] = prompts ? NAN : top1;
	*samples = n;
	return NR_OK;
}

/* ---- records ------------------------------------------------------------------------------------------------------------------------ */

static int begin(struct nr_task_run *r, const char *dir, struct nr_error *err)
{
	return nr_tokenizer_copy(((struct lit *)r->own)->texts.path, dir, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct lit *s = r->own;
	const struct settings *o = r->settings;
	const struct nr_prompts *prompts = nr_captions_prompts(r->source);
	nr_texts_describe(&s->texts, r, text);
	nr_str_printf(text, "image tower       %s: %s, %lld features%s\n", o->tower, s->tower->model.of->title,
		(long long)s->features.width, s->features.kept ? ", kept from an earlier run" : "");
	nr_str_printf(text, "loss              %s, temperature %g at first\n", losses[o->loss], o->temperature);
	if (!r->source->count[s->held]) nr_str_add(text, "evaluation        none: no pictures are set apart\n");
	else if (prompts)
		nr_str_printf(text, "evaluation        zero-shot on %s, %lld classes of %lld texts each\n", nr_split_name(s->held),
			(long long)prompts->classes, (long long)prompts->templates);
	else nr_str_printf(text, "evaluation        captions of %s found by their pictures\n", nr_split_name(s->held));
}

static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	const char *path = nr_weights_path(settings_of(r)->tower, r->arena);
	char *whole = path ? realpath(path, NULL) : NULL;
	m[0] = (struct nr_st_meta){ "norma.tower", nr_arena_strdup(r->arena, whole ? whole : settings_of(r)->tower) };
	m[1] = (struct nr_st_meta){ "norma.tower_model", nr_arena_strdup(r->arena, ((struct lit *)r->own)->tower->model.text) };
	free(whole);
	return 2;
}

static void close(struct nr_task_run *r)
{
	struct lit *s = r->own;
	nr_text_runner_close(s->runner);
	nr_tower_features_release(&s->features);
	nr_weights_close(s->tower);
	nr_texts_close(&s->texts);
	free(s->of_text), free(s->of_class), free(s->image), free(s->scores), free(s->label), free(s->rank);
}

static const struct nr_task_default defaults[] = { { "model", "auto" }, { "batch", "128" }, { "lr", "1e-3" }, { "weight_decay", "0.01" },
	{ "clip", "global" }, { "clip_norm", "1" }, { NULL, NULL } };

static const struct nr_task_metric of_step[] = {
	{ .name = "accuracy", .label = "acc", .unit = "%", .title = "Pictures whose own text is the nearest in the batch" },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "top1", .label = "zero-shot", .unit = "%", .title = "Zero-shot accuracy" },
	{ .name = "top5", .label = "top-5", .unit = "%", .title = "Zero-shot accuracy, top 5" },
	{ .name = "recall", .label = "recall", .unit = "%", .title = "Pictures whose own caption is the nearest of all" }, { .name = NULL },
};

const struct nr_task nr_task_lit = {
	.name = "lit",
	.title = "texts for a frozen image tower",
	.cite = "arXiv:2111.07991",
	.command = "lit",
	.summary = "train a text tower for a trained image tower (LiT)",
	.usage = "[RECIPE.yaml] --data captions:of=SET --tower CHECKPOINT | --resume DIRECTORY",
	.about = "The features of the pictures are computed once by the image tower, which stays as it is, and kept below the data\n"
		 "root. The text tower learns to give each picture's caption the direction of its features. Captions come from a file\n"
		 "(captions:path=FILE.csv) or from the class names of any data set of pictures (captions:of=cifar10,templates=FILE).\n"
		 "Without --tokenizer and --init the vocabulary is made of the words of the captions. `norma zeroshot` classifies\n"
		 "pictures with the result. Settings, metrics, checkpoints, Ctrl-C and resuming work as in `norma train`.",
	.options = options,
	.from = "tower",
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.auto_model = "clip_text_nano",
	.kind = NR_TEXTS,
	.sample = "caption",
	.own_size = sizeof(struct lit),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = TOP1,
	.own_samples = true,
	.settle = settle,
	.shapes = shapes,
	.record = record,
	.ready = ready,
	.begin = begin,
	.choose = choose,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.describe = describe,
	.meta = meta,
	.close = close,
};
