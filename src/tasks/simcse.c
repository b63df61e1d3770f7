/* simcse: sentence embeddings by contrast. Gao, Yao & Chen 2021, arXiv:2104.08821, and the released code.
 *
 * Texts of one column: a sentence passes twice with other dropout masks. Pairs: the second is the positive. Triplets: the third is a
 * hard negative. All sentences of a batch pass in one go, so that batch statistics see all of them, as in the released code.
 *
 *   loss = mean_i -log softmax_j cos(z_i, z+_j) / temperature [i]  (+ mlm_weight * masked words, on a second, masked pass)
 *
 * An evaluation is Spearman's correlation on STS-B's development pairs, which also chooses the best checkpoint; with uniformity over
 * its sentences and alignment over its pairs of score 4 and more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/spearman.h"
#include "analysis/sts.h"
#include "analysis/uniformity.h"
#include "data/dataset.h"
#include "data/sts.h"
#include "graph/streams.h"
#include "models/text_heads.h"
#include "norma/nn.h"
#include "norma/trainer.h"
#include "tasks/masking.h"
#include "tasks/texts.h"

enum { KEEP_AUTO, KEEP_YES, KEEP_NO };
static const char *const keeps[] = { "auto", "yes", "no", NULL };

struct settings {
	struct nr_text_settings text;
	int32_t pooler, keep_layer;                     /* enum nr_text_pooling; does the layer after it stay in evaluation */
	double temperature, hard_weight, mlm_weight;
	char *sts;                                      /* folder of the STS sets, for STS-B's dev split; "": below the data root */
};

static const struct nr_option options[] = {
	NR_TEXT_ROWS(32),
	NR_OPT_ENUM(struct settings, pooler, "cls", nr_text_poolings,
		"how to pool tokens to a sentence; cls is followed by a tanh layer"),
	NR_OPT_FLOAT(struct settings, temperature, 0.05, 1e-4, 100, "temperature of the softmax over cosines"),
	NR_OPT_FLOAT(struct settings, hard_weight, 0, -100, 100, "added to the logit of a sentence's own hard negative"),
	NR_OPT_FLOAT(struct settings, mlm_weight, 0, 0, 100, "weight of the masked-word loss; 0: none"),
	NR_OPT_ENUM(struct settings, keep_layer, "auto", keeps,
		"keep the layer after cls in evaluation; auto: only for pairs and triplets"),
	NR_OPT_STRING(struct settings, sts, "",
		"folder with STS-B's dev split (as sts/tokenized/STSB/dev.tsv); default: the data root"),
	NR_OPT_END
};

enum { STS, UNIFORMITY, ALIGNMENT };
enum { CLOSE = 4 };                                     /* score from which a pair means the same */

struct shape { nr_t *ids, *valid, *masked_ids, *sim; struct nr_masked masked; };   /* masked_ids: NULL without an MLM term */
struct simcse {
	struct nr_texts texts;
	int64_t sentences;                              /* of a sample in the graph: 2 or 3 */
	struct shape shape[NR_TASK_SHAPES];
	struct nr_tsv dev;                              /* STS-B's development pairs; none: count 0 */
	struct nr_text_runner *runner;
	real *of[2], *close[2];                         /* embeddings of its sentences; of those of close pairs */
	double *cosine;
};

static const struct settings *settings_of(const struct nr_task_run *r) { return r->settings; }

static bool keeps_layer(const struct nr_task_run *r)
{
	const struct settings *o = r->settings;
	if (o->pooler != NR_TEXT_CLS) return false;
	return o->keep_layer == KEEP_YES || (o->keep_layer == KEEP_AUTO && r->source->columns > 1);
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct simcse *s = r->own;
	const struct settings *o = r->settings;
	s->sentences = r->source->columns == 3 ? 3 : 2;
	if (nr_texts_open(&s->texts, r, err)) return err->code;
	if (r->c->batch < 2 && s->sentences < 3) {
		nr_fail(err, NR_EVALUE, "cannot contrast", r->c->data,
			"a batch of one sample has nothing to contrast with");
		return nr_hint(err, "use --batch 2 or more, or triplets");
	}
	if (o->hard_weight != 0 && s->sentences < 3)
		return nr_fail(err, NR_EVALUE,
			"hard_weight cannot be used with", r->c->data,
			"it applies to the third text of triplets");
	if (o->keep_layer != KEEP_AUTO && o->pooler != NR_TEXT_CLS)
		return nr_fail(err, NR_EVALUE, "keep_layer cannot be used with pooler", nr_text_poolings[o->pooler],
			"only cls has a layer");
	if (o->mlm_weight > 0 && nr_masking_check(s->texts.tokenizer, s->texts.path, o->text.mask, err)) return err->code;
	const char *pooler = nr_text_poolings[o->pooler];
	if (o->pooler != NR_TEXT_CLS) r->w->pooler = pooler;
	else r->w->pooler = keeps_layer(r) ? "cls+layer" : "cls_before_pooler";
	if (nr_task_set_text(r, "dropout", "0.1", err)) return err->code;
	return nr_task_set_text(r, "attention_dropout", "0.1", err);
}

static int64_t shapes(struct nr_task_run *r) { return ((struct simcse *)r->own)->texts.shapes; }

static nr_t *masked_words(struct nr_task_run *r, struct shape *p, int64_t rows, int64_t T)
{
	struct nr_text t;
	p->masked_ids = nr_input(r->net, "masked", NR_I32, NR_SHAPE(rows, T));
	nr_text_encode(r->net, &r->w->model, &(struct nr_inputs){ .ids = p->masked_ids, .valid = p->valid }, &t);
	nr_t *masked = nr_masked_tokens(r->net, t.tokens, settings_of(r)->text.mask, &p->masked);
	return nr_cross_entropy(r->net, nr_mlm_logits(r->net, &r->w->model, masked, false), p->masked.labels, 0, NR_TEXT_IGNORED);
}

static nr_t *record(struct nr_task_run *r)
{
	struct simcse *s = r->own;
	struct shape *p = &s->shape[r->shape];
	const struct settings *o = r->settings;
	const int64_t B = r->c->batch, S = s->sentences, T = nr_texts_length(&s->texts, r->shape);
	p->ids = nr_input(r->net, "ids", NR_I32, NR_SHAPE(B * S, T));
	p->valid = nr_input(r->net, "valid", NR_I32, NR_SHAPE(B * S));
	struct nr_text t;
	nr_text_encode(r->net, &r->w->model, &(struct nr_inputs){ .ids = p->ids, .valid = p->valid }, &t);
	nr_t *z = nr_text_pool(r->net, &t, (enum nr_text_pooling)o->pooler);
	if (o->pooler == NR_TEXT_CLS) z = nr_simcse_layer(r->net, z);
	nr_t *loss = nr_simcse_loss(r->net, nr_reshape(r->net, z, NR_SHAPE(B, S, nr_model_int(&r->w->model, "dim"))), o->temperature,
		o->hard_weight, &p->sim);
	p->sim = nr_tap(r->net, "sim", p->sim);
	if (o->mlm_weight <= 0) return loss;
	return nr_add(r->net, loss, nr_scale(r->net, masked_words(r, p, B * S, T), o->mlm_weight));
}

static int64_t choose(struct nr_task_run *r, int64_t number) { return nr_texts_choose(&((struct simcse *)r->own)->texts, number); }

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	struct simcse *s = r->own;
	const struct shape *p = &s->shape[r->shape];
	const struct nr_corpus *c = &s->texts.corpus;
	const int64_t T = p->ids->d[1], rows = p->ids->d[0];
	int32_t *ids = nr_plan_data(r->plan, p->ids), *valid = nr_plan_data(r->plan, p->valid);
	(void)b;
	for (int64_t row = 0; row < rows; row++) {
		int64_t count;
		const int32_t column = (int32_t)(row % s->sentences);
		const int32_t *text = nr_corpus_text(c, s->texts.sample[row / s->sentences], column < c->columns ? column : 0, &count);
		nr_texts_put(&s->texts, text, count, T, ids + row * T, valid + row);
	}
	if (!p->masked_ids) return;
	struct nr_masker m = nr_masker_begin(s->texts.tokenizer, settings_of(r)->text.mask, r->plan, &p->masked);
	const struct nr_rng rng = nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK, (uint32_t)number);
	int32_t *masked = nr_plan_data(r->plan, p->masked_ids);
	memcpy(masked, ids, (size_t)(rows * T) * sizeof *masked);
	for (int64_t row = 0; row < rows; row++)
		nr_masker_add(&m, rng, (uint64_t)row << 20, row * T, valid[row], ids + row * T, masked + row * T);
	nr_masker_end(&m);
}

/* How often a sentence's own positive is the nearest. */
static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct simcse *s = r->own;
	const nr_t *sim = s->shape[r->shape].sim;
	const int64_t B = sim->d[0], n = sim->d[1];
	const real *x = nr_plan_data(r->plan, sim);
	(void)b;
	for (int64_t i = 0; i < B; i++) {
		int64_t most = 0;
		for (int64_t j = 1; j < n; j++) most = x[i * n + j] > x[i * n + most] ? j : most;
		sum[0] += most == i;
	}
}

/* ---- evaluation --------------------------------------------------------------------------------------------------------------- */

/* STS-B's development pairs, if they are there; without them the last weights are the result. */
static int open_dev(struct nr_task_run *r, struct simcse *s, struct nr_error *err)
{
	const char *given = settings_of(r)->sts, *root = nr_data_root(*given ? given : r->c->data_root, r->arena, err);
	struct nr_error absent = { 0 };
	if (!root) return err->code;
	if (!nr_sts_open(&s->dev, root, false, nr_sts_find("STSB", NULL), "dev", &absent)) return NR_OK;
	nr_tsv_release(&s->dev);
	if (!*given && absent.code == NR_EIO) return NR_OK;
	if (*given) *absent.hint = 0;                   /* it speaks of the data root */
	*err = absent;
	return *given ? nr_hint(err, "set --sts to the folder with sts/tokenized/STSB/dev.tsv") : (int)err->code;
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct simcse *s = r->own;
	(void)batch;
	if (open_dev(r, s, err)) return err->code;
	if (!s->dev.count) return NR_OK;
	const struct nr_text_runner_how how = { .pooling = (enum nr_text_pooling)settings_of(r)->pooler, .layer = keeps_layer(r),
		.comm = r->c->comm };
	const size_t values = (size_t)(s->dev.count * nr_model_int(&r->w->model, "dim"));
	for (int k = 0; k < 2; k++) s->of[k] = malloc(values * sizeof(real)), s->close[k] = malloc(values * sizeof(real));
	s->cosine = malloc((size_t)s->dev.count * sizeof *s->cosine);
	if (!s->of[0] || !s->of[1] || !s->close[0] || !s->close[1] || !s->cosine)
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	r->evaluates = true;
	return nr_text_runner_open(&s->runner, r->w, s->texts.tokenizer, &how, err);
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct simcse *s = r->own;
	const int64_t n = s->dev.count, C = nr_text_runner_width(s->runner);
	struct nr_pairs pairs;
	int64_t close = 0;
	(void)e;
	for (int k = 0; k < 2; k++)
		if (nr_text_runner_run(s->runner, s->dev.text[k], n, s->of[k], err)) return err->code;
	nr_sts_cosines(n, C, s->of[0], s->of[1], s->cosine);
	if (nr_spearman(n, s->cosine, s->dev.value, &value[STS], err) || nr_uniformity(n, C, s->of[0], 2, &pairs, err)) return err->code;
	for (int64_t i = 0; i < n; i++) {
		if (s->dev.value[i] < CLOSE) continue;
		for (int k = 0; k < 2; k++) memcpy(s->close[k] + close * C, s->of[k] + i * C, (size_t)C * sizeof(real));
		close++;
	}
	value[UNIFORMITY] = pairs.uniformity;
	value[ALIGNMENT] = close ? nr_alignment(close, C, s->close[0], s->close[1], 2) : NAN;
	*samples = n;
	return NR_OK;
}

static int begin(struct nr_task_run *r, const char *dir, struct nr_error *err)
{
	return nr_tokenizer_copy(((struct simcse *)r->own)->texts.path, dir, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct simcse *s = r->own;
	const struct settings *o = r->settings;
	static const char *const forms[] = { "",
		"each sentence twice, with different dropout", "pairs", "triplets with a hard negative" };
	nr_texts_describe(&s->texts, r, text);
	nr_str_printf(text, "contrast          %s; %s, temperature %g", forms[r->source->columns], nr_text_poolings[o->pooler],
		o->temperature);
	if (o->mlm_weight > 0) nr_str_printf(text, ", masked words with weight %g", o->mlm_weight);
	if (s->dev.count)
		nr_str_printf(text, "\nevaluation        Spearman on %lld pairs of STS-B (dev), pooled by %s\n", (long long)s->dev.count,
			r->w->pooler);
	else nr_str_add(text, "\nevaluation        none: no STS-B in the data root (set its folder with --sts)\n");
}

static void close(struct nr_task_run *r)
{
	struct simcse *s = r->own;
	nr_text_runner_close(s->runner);
	nr_tsv_release(&s->dev);
	nr_texts_close(&s->texts);
	for (int k = 0; k < 2; k++) {
		free(s->of[k]);
		free(s->close[k]);
	}
	free(s->cosine);
}

static const struct nr_task_default defaults[] = { { "model", "auto" }, { "batch", "64" }, { "lr", "3e-5" }, { "weight_decay", "0" },
	{ "schedule", "linear" }, { "warmup", "0" }, { "epochs", "1" }, { "clip", "global" }, { "clip_norm", "1" }, { NULL, NULL } };

static const struct nr_task_metric of_step[] = {
	{ .name = "accuracy", .label = "acc", .unit = "%", .title = "Sentences whose positive is the nearest" },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "sts", .label = "STS-B", .unit = "%", .title = "Spearman correlation on STS-B (dev)" },
	{ .name = "uniformity", .label = "uniformity", .title = "Uniformity of the sentences", .lower = true,
	  .unit = "log mean Gaussian potential; lower is more even" },
	{ .name = "alignment", .title = "Alignment of close pairs", .unit = "mean squared distance", .lower = true },
	{ .name = NULL },
};

const struct nr_task nr_task_simcse = {
	.name = "simcse",
	.title = "sentences by contrast",
	.cite = "arXiv:2104.08821",
	.command = "simcse",
	.summary = "train sentence embeddings by contrastive learning (SimCSE)",
	.usage = "[RECIPE.yaml] --data text:path=FILE --init MODEL | --resume DIRECTORY",
	.about = "With one sentence per line, each sentence passes twice under different dropout masks and must find itself among the\n"
		 "others of its batch. A CSV of pairs provides positives, one of triplets also hard negatives (sent0,sent1,hard_neg).\n"
		 "With --init training starts from a Hugging Face model or a run of `norma mlm`. STS-B's development pairs choose the\n"
		 "best checkpoint if they are available (--sts). Settings, metrics, checkpoints, Ctrl-C and resuming work as in\n"
		 "`norma train`.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.auto_model = "bert-base-uncased",
	.kind = NR_TEXTS,
	.sample = "text",
	.own_size = sizeof(struct simcse),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = STS,
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
	.close = close,
};
