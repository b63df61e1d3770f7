/* text: a class or a value of texts or of pairs of texts, by any model of texts: ListOps (arXiv:2011.04006), tasks in the manner of GLUE
 * (arXiv:1804.07461) on one's own file.
 *
 * The model's own head reads what the model pools. Classes are learned by cross entropy, values by squared error. Both texts of a pair
 * are one input, as the tokenizer joins them. The metric that decides is a matter of choice: accuracy, F1, Matthews' or Spearman's
 * correlation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/text_score.h"
#include "base/log.h"
#include "infer/classes.h"
#include "infer/metrics.h"
#include "norma/infer.h"
#include "norma/nn.h"
#include "tasks/texts.h"

enum objective { AUTO, CLASSES, VALUE };
static const char *const objectives[] = { "auto", "classes", "value", NULL };
enum { LOSS, ACCURACY, F1, MATTHEWS, PEARSON, SPEARMAN, TEST_ACCURACY, TEST_SPEARMAN };
static const char *const metrics[] = { "auto", "accuracy", "f1", "matthews", "pearson", "spearman", "loss", NULL };

struct settings { struct nr_text_settings text; int32_t objective, metric; double smoothing; bool test; };

static const struct nr_option options[] = {
	NR_TEXT_LENGTH_ROWS(512),
	NR_OPT_ENUM(struct settings, objective, "auto", objectives,
		"learn classes, or values; auto: values if labels are numbers with a fraction"),
	NR_OPT_ENUM(struct settings, metric, "auto", metrics,
		"what decides which checkpoint is best; auto: accuracy, or spearman of values"),
	NR_OPT_FLOAT(struct settings, smoothing, 0, 0, 1, "label smoothing"),
	NR_OPT_BOOL(struct settings, test, "1", "also measure the test split, if it is not the one that decides"),
	NR_OPT_END
};

struct shape { nr_t *ids, *types, *valid, *label, *target, *output; };
enum { HELD, TEST, SETS };
struct held { const char *name, **text; int32_t *label; double *value; real *output; int64_t count, *confusion; };
struct text {
	struct nr_texts texts;
	struct shape shape[NR_TASK_SHAPES];
	bool values;                                    /* not classes */
	int32_t *rank;
	struct nr_text_runner *runner;                  /* made at the first evaluation, with: */
	struct held held[SETS];
};

static const struct settings *settings_of(const struct nr_task_run *r) { return r->settings; }

/* ---- settings that follow the data ------------------------------------------------------------------------- */

static int find_objective(struct text *s, struct nr_task_run *r, struct nr_error *err)
{
	bool fraction = false;
	int64_t words = 0;
	const struct nr_source *source = r->source;
	for (int64_t i = 0; i < source->count[r->train.split]; i++) {
		const double v = nr_source_value(source, r->train.split, i);
		words += isnan(v);
		fraction |= !isnan(v) && v != floor(v);
	}
	const bool all = !words;
	const int32_t asked = settings_of(r)->objective;
	if (asked == AUTO && words && fraction)
		nr_log_line(NR_LOG_WARNING, "labels are taken as classes: %lld of %lld are no numbers, the others look like values",
			(long long)words, (long long)source->count[r->train.split]);
	s->values = asked == VALUE || (asked == AUTO && all && (fraction || !source->classes));
	if (s->values && !all) return nr_fail(err, NR_EVALUE, "cannot learn values of", r->c->data, "some labels are no numbers");
	if (!s->values && (source->classes < 2 || !source->of->label)) {
		nr_fail(err, NR_EVALUE, "cannot classify", r->c->data, source->of->label ? "it has fewer than two classes, or too many"
			: "it has no labels");
		return nr_hint(err, "use --data labelled:path=FILE.csv,text=COLUMN,label=COLUMN");
	}
	const int32_t metric = settings_of(r)->metric;
	const bool of_values = metric == PEARSON || metric == SPEARMAN, of_classes = metric >= ACCURACY && metric <= MATTHEWS;
	if (s->values ? of_classes : of_values)
		return nr_fail(err, NR_EVALUE, "cannot decide by", metrics[metric], "it does not measure %s",
			s->values ? "values" : "classes");
	r->decides = metric > SPEARMAN ? LOSS : metric ? metric : s->values ? SPEARMAN : ACCURACY;
	r->w->objective = objectives[s->values ? VALUE : CLASSES];
	return NR_OK;
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct text *s = r->own;
	if (r->source->columns > 2) return nr_fail(err, NR_EVALUE, "cannot use", r->c->data, "it has more than two texts per sample");
	s->texts.joined = r->source->columns == 2;
	if (find_objective(s, r, err) || nr_texts_open(&s->texts, r, err)) return err->code;
	const int64_t cut = s->texts.corpus.cut, all = s->texts.corpus.samples;
	if (cut * 100 > all)
		nr_log_line(NR_LOG_WARNING, "%lld of %lld texts reach max_length=%lld and may be cut off", (long long)cut, (long long)all,
			(long long)settings_of(r)->text.max_length);
	if (nr_task_set(r, "classes", s->values ? 1 : r->source->classes, err)) return err->code;
	return nr_task_set_text(r, "dropout", "0.1", err) ? (int)err->code : nr_task_set_text(r, "attention_dropout", "0.1", err);
}

static int64_t shapes(struct nr_task_run *r) { return ((struct text *)r->own)->texts.shapes; }

static nr_t *record(struct nr_task_run *r)
{
	struct text *s = r->own;
	struct shape *p = &s->shape[r->shape];
	struct nr_net *n = r->net;
	const int64_t B = r->c->batch, T = nr_texts_length(&s->texts, r->shape);
	p->ids = nr_input(n, "ids", NR_I32, NR_SHAPE(B, T));
	p->valid = nr_input(n, "valid", NR_I32, NR_SHAPE(B));
	if (s->texts.joined && nr_model_int(&r->w->model, "types") > 1) p->types = nr_input(n, "types", NR_I32, NR_SHAPE(B, T));
	p->output = nr_tap(n, "output",
		nr_model_logits(n, &r->w->model, &(struct nr_inputs){ .ids = p->ids, .types = p->types, .valid = p->valid }));
	if (s->values) {
		p->target = nr_input(n, "target", NR_REAL, NR_SHAPE(B, 1));
		return nr_mse(n, p->output, p->target);
	}
	p->label = nr_input(n, "label", NR_I32, NR_SHAPE(B));
	return nr_cross_entropy(n, p->output, p->label, settings_of(r)->smoothing, -1);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct text *s = r->own;
	(void)batch;
	s->rank = malloc((size_t)r->c->batch * sizeof *s->rank);
	return s->rank ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
}

/* ---- batches ----------------------------------------------------------------------------------------------- */

static int64_t choose(struct nr_task_run *r, int64_t number) { return nr_texts_choose(&((struct text *)r->own)->texts, number); }

/* Sample i of the training texts, as a sample of the split. */
static int64_t sample_of(const struct nr_task_run *r, int64_t i) { return r->train.index ? r->train.index[i] : i; }

static void bind(struct nr_task_run *r, const struct nr_batch *batch, int64_t number)
{
	struct text *s = r->own;
	const struct shape *p = &s->shape[r->shape];
	const struct nr_corpus *c = &s->texts.corpus;
	const int64_t T = p->ids->d[1];
	int32_t *ids = nr_plan_data(r->plan, p->ids), *valid = nr_plan_data(r->plan, p->valid);
	int32_t *types = p->types ? nr_plan_data(r->plan, p->types) : NULL, *label = p->label ? nr_plan_data(r->plan, p->label) : NULL;
	int32_t unread;
	(void)batch, (void)number;
	for (int64_t b = 0; b < r->c->batch; b++) {
		const int64_t i = s->texts.sample[b], at = sample_of(r, i);
		int64_t n;
		const int32_t *text = nr_corpus_text(c, i, 0, &n);
		nr_texts_put(&s->texts, text, n, T, ids + b * T, valid ? valid + b : &unread);
		if (types) memcpy(types + b * T, c->types + (text - c->ids), (size_t)n * sizeof *types);
		if (types) memset(types + b * T + n, 0, (size_t)(T - n) * sizeof *types);
		if (label) label[b] = nr_source_label(r->source, r->train.split, at);
		else ((real *)nr_plan_data(r->plan, p->target))[b] = (real)nr_source_value(r->source, r->train.split, at);
	}
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct text *s = r->own;
	const struct shape *p = &s->shape[r->shape];
	(void)b;
	if (s->values) {
		sum[0] = NAN;
		return;
	}
	nr_metric_rank(r->c->batch, nr_cols(p->output), nr_plan_data(r->plan, p->output), nr_plan_data(r->plan, p->label), s->rank);
	for (int64_t i = 0; i < r->c->batch; i++) sum[0] += s->rank[i] < 1;
}

/* ---- evaluation -------------------------------------------------------------------------------------------- */

/* A pair as one text: the runner parts it at the tab, of which the first text has none. */
static const char *joined(struct nr_task_run *r, const struct nr_source *s, enum nr_split split, int64_t i)
{
	const char *first = nr_source_text(s, split, i, 0), *second = s->columns == 2 ? nr_source_text(s, split, i, 1) : NULL;
	char *copy = second || strchr(first, '\t') ? nr_arena_strdup(r->arena, first) : NULL;
	for (char *c = copy; c && *c; c++) *c = *c == '\t' ? ' ' : *c;
	if (second) return copy ? nr_arena_printf(r->arena, "%s\t%s", copy, second) : NULL;
	return copy ? copy : first;
}

static int open_set(struct nr_task_run *r, struct held *h, const struct nr_source *source, enum nr_split split, const int32_t *index,
	int64_t count, struct nr_error *err)
{
	const int64_t K = nr_model_int(&r->w->model, "classes");
	h->name = nr_split_name(split);
	h->text = malloc((size_t)count * sizeof *h->text + 1);
	h->label = malloc((size_t)count * sizeof *h->label + 1);
	h->value = malloc((size_t)count * sizeof *h->value + 1);
	h->output = malloc((size_t)(count * K) * sizeof *h->output + 1);
	const bool counts = !((const struct text *)r->own)->values && K <= NR_CLASSES_COUNTED;
	h->confusion = counts ? malloc((size_t)(K * K) * sizeof *h->confusion) : NULL;
	bool whole = h->text && h->label && h->value && h->output && (h->confusion || !counts);
	for (int64_t i = 0; whole && i < count; i++) {
		const int64_t at = index ? index[i] : i;
		h->text[i] = joined(r, source, split, at);
		h->label[i] = nr_source_label(source, split, at);
		h->value[i] = nr_source_value(source, split, at);
		whole = h->text[i];
	}
	h->count = count;
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
}

static int open_held(struct nr_task_run *r, const struct nr_evaluation *e, struct nr_error *err)
{
	struct text *s = r->own;
	const int64_t all = e->source->count[NR_TEST], most = r->c->eval_limit;
	if (s->runner) return NR_OK;
	const int64_t count = e->count ? e->count : e->source->count[e->split];
	if (open_set(r, &s->held[HELD], e->source, e->split, e->index, count, err)) return err->code;
	if (settings_of(r)->test && all && (e->split != NR_TEST || e->index) &&
	    open_set(r, &s->held[TEST], e->source, NR_TEST, NULL, most && most < all ? most : all, err))
		return err->code;
	const struct nr_text_runner_how how = { .logits = true, .max_length = settings_of(r)->text.max_length,
		.comm = r->c->comm };
	return nr_text_runner_open(&s->runner, r->w, s->texts.tokenizer, &how, err);
}

static int run_set(struct text *s, struct held *h, struct nr_text_score *score, struct nr_error *err)
{
	*score = (struct nr_text_score){ NAN, NAN, NAN, NAN, NAN, NAN, 0 };
	if (!h->count) return NR_OK;
	if (nr_text_runner_run(s->runner, h->text, h->count, h->output, err)) return err->code;
	if (s->values) return nr_score_values(h->count, h->output, h->value, score, err);
	const size_t K = (size_t)nr_text_runner_width(s->runner);
	if (h->confusion) memset(h->confusion, 0, K * K * sizeof *h->confusion);
	return nr_score_classes(h->count, (int64_t)K, h->output, h->label, h->confusion, score, err);
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct text *s = r->own;
	struct nr_text_score held, test;
	if (open_held(r, e, err) || run_set(s, &s->held[HELD], &held, err) || run_set(s, &s->held[TEST], &test, err)) return err->code;
	const double all[] = { held.loss, held.accuracy, held.f1, held.matthews, held.pearson, held.spearman, test.accuracy,
		test.spearman };
	memcpy(value, all, sizeof all);
	*samples = held.samples;
	return NR_OK;
}

/* Which classes it tells apart, on the split that decides. */
static int predictions(struct nr_task_run *r, struct nr_str *text, struct nr_error *err)
{
	const struct text *s = r->own;
	const struct held *h = &s->held[HELD];
	const struct nr_class_counts told = { nr_model_int(&r->w->model, "classes"), h->confusion, r->source->class_name };
	return h->confusion ? nr_class_counts_record(text, &told, h->name, err) : NR_OK;
}

/* ---- the rest ---------------------------------------------------------------------------------------------- */

static int begin(struct nr_task_run *r, const char *dir, struct nr_error *err)
{
	return nr_tokenizer_copy(((struct text *)r->own)->texts.path, dir, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct text *s = r->own;
	nr_texts_describe(&s->texts, r, text);
	if (s->values) nr_str_printf(text, "objective         a value");
	else nr_str_printf(text, "objective         %d classes", r->source->classes);
	nr_str_printf(text, " of %s; %s decides\n", s->texts.joined ? "a pair of texts" : "a text",
		r->decides ? metrics[r->decides] : "loss");
}

static void close(struct nr_task_run *r)
{
	struct text *s = r->own;
	nr_text_runner_close(s->runner);
	for (int k = 0; k < SETS; k++) {
		free(s->held[k].text);
		free(s->held[k].label);
		free(s->held[k].value);
		free(s->held[k].output);
		free(s->held[k].confusion);
	}
	nr_texts_close(&s->texts);
	free(s->rank);
}

static const struct nr_task_default defaults[] = { { "model", "auto" }, { "batch", "32" }, { "lr", "1e-4" }, { "schedule", "linear" },
	{ "clip", "global" }, { "clip_norm", "1" }, { NULL, NULL } };

static const struct nr_task_metric of_step[] = {
	{ .name = "accuracy", .label = "acc", .unit = "%", .title = "Training accuracy" },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "loss", .title = "Held-out loss", .lower = true, .wide = true },
	{ .name = "accuracy", .label = "held-out", .unit = "%", .title = "Held-out accuracy" },
	{ .name = "f1", .unit = "%", .title = "Held-out F1", .says = "Of the second class of two, else the mean over classes." },
	{ .name = "matthews", .title = "Held-out Matthews correlation" },
	{ .name = "pearson", .title = "Held-out Pearson correlation" },
	{ .name = "spearman", .label = "spearman", .title = "Held-out Spearman correlation" },
	{ .name = "test_accuracy", .label = "test", .unit = "%", .title = "Test accuracy" },
	{ .name = "test_spearman", .title = "Test Spearman correlation" },
	{ .name = NULL },
};

const struct nr_task nr_task_text = {
	.name = "text",
	.title = "classes or values of texts",
	.cite = "arXiv:2011.04006",
	.command = "text",
	.summary = "train a text model to tell classes or values (ListOps, your own labels)",
	.usage = "[RECIPE.yaml] --data listops | --data labelled:path=FILE --tokenizer VOCAB | --resume DIRECTORY",
	.about = "Learns the class or the value of each text, or of each pair of texts, with any text model: --data listops, or rows\n"
		 "of your own as CSV, TSV or JSON lines (--data labelled:path=FILE,text=COLUMN,pair=COLUMN,label=COLUMN,val=0.1).\n"
		 "With --init a pre-trained model is fine-tuned, as on GLUE. Evaluations are accuracy, F1 and Matthews' correlation of\n"
		 "classes, Pearson's and Spearman's of values; --metric chooses the one that decides. Settings, metrics, checkpoints,\n"
		 "Ctrl-C and resuming work as in `norma train`. `norma predict RUN TEXT...` uses the result.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.auto_model = "bert-mini",
	.kind = NR_TEXTS,
	.sample = "text",
	.own_size = sizeof(struct text),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = ACCURACY,
	.settle = settle,
	.shapes = shapes,
	.record = record,
	.ready = ready,
	.begin = begin,
	.choose = choose,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.predictions = predictions,
	.predicted = "classes.json",
	.describe = describe,
	.close = close,
};
