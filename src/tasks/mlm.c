/* mlm: masked words, and with nsp whether a sentence follows another. Devlin et al. 2019, arXiv:1810.04805; without nsp as RoBERTa,
 * arXiv:1907.11692, with masks drawn anew in every epoch.
 *
 * A sample is a line of the text. With nsp it is a line and, for one half of them, the next line of its document, else a line drawn
 * from all. Only the masked tokens of a batch pass the head. An evaluation predicts the masked words of held-out texts, whose masks never
 * change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/comm.h"
#include "graph/streams.h"
#include "infer/metrics.h"
#include "models/text_heads.h"
#include "norma/nn.h"
#include "tasks/masking.h"
#include "tasks/texts.h"

struct settings { struct nr_text_settings text; bool nsp; };

static const struct nr_option options[] = {
	NR_TEXT_ROWS(128),
	NR_OPT_BOOL(struct settings, nsp, "0", "also learn whether a sentence follows the previous one (BERT)"),
	NR_OPT_END
};

enum { LOSS, ACCURACY, PERPLEXITY };
enum { DRAW_NEXT = 1, DRAW_OTHER };                     /* streams beside that of masks */

/* The graph of one shape, in training or evaluation. */
struct shape {
	nr_t *ids, *types, *valid, *next;               /* types, next: NULL without nsp */
	struct nr_masked masked;
	nr_t *logits, *words, *follows;
	struct nr_net *net;                             /* of evaluation */
	struct nr_plan *plan;
};
struct mlm {
	struct nr_texts texts;
	struct shape shape[NR_TASK_SHAPES], held[NR_TASK_SHAPES];
	struct nr_corpus held_corpus;                   /* made at the first evaluation */
	int32_t *second, *is_next;                      /* (batch): sentences B of the batch at hand */
	int32_t *row, *masked, *rank;                   /* scratch: one text; ranks of a batch */
};

/* ---- the graph ----------------------------------------------------------------------------------------------------------------- */

static const struct settings *settings_of(const struct nr_task_run *r) { return r->settings; }

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct mlm *s = r->own;
	const struct settings *o = r->settings;
	if (nr_texts_open(&s->texts, r, err) || nr_masking_check(s->texts.tokenizer, s->texts.path, o->text.mask, err)) return err->code;
	if (o->nsp && (s->texts.corpus.columns != 1 || !r->source->of->label)) {
		nr_fail(err, NR_EVALUE,
			"nsp=1 cannot be used with", r->c->data, "it needs lines that follow each other");
		return nr_hint(err, "one sentence per line, with a blank line between documents");
	}
	if (o->nsp && r->train.index) {
		nr_fail(err, NR_EVALUE,
			"nsp=1 cannot be used with", "limit or hold_out", "it needs lines that follow each other");
		return nr_hint(err, "hold texts out with text:path=...,val=0.05");
	}
	if (o->nsp && nr_model_int(&r->w->model, "types") < 2)
		return nr_fail(err, NR_EVALUE,
			"nsp=1 cannot be used with", r->c->model,
			"the model has only one segment type");
	if (o->nsp) {                                   /* a pair may fill all places */
		s->texts.longest = o->text.max_length;
		nr_texts_shapes(&s->texts, nr_text_length(&r->w->model));
	}
	return nr_task_set_text(r, "dropout", "0.1", err) ? (int)err->code : nr_task_set_text(r, "attention_dropout", "0.1", err);
}

static int64_t shapes(struct nr_task_run *r) { return ((struct mlm *)r->own)->texts.shapes; }

static nr_t *record_shape(struct nr_task_run *r, struct nr_net *n, struct shape *p, int64_t T)
{
	const struct settings *o = r->settings;
	const int64_t B = r->c->batch;
	p->ids = nr_input(n, "ids", NR_I32, NR_SHAPE(B, T));
	p->valid = nr_input(n, "valid", NR_I32, NR_SHAPE(B));
	p->types = o->nsp ? nr_input(n, "types", NR_I32, NR_SHAPE(B, T)) : NULL;
	struct nr_text t;
	nr_text_encode(n, &r->w->model, &(struct nr_inputs){ .ids = p->ids, .types = p->types, .valid = p->valid }, &t);
	const int64_t lead = t.tokens ? t.tokens->d[1] - T : 0;         /* a vector before the words, which is not one of them */
	nr_t *words = lead ? nr_span(n, t.tokens, lead, NR_END) : t.tokens;
	nr_t *masked = nr_masked_tokens(n, words, o->text.mask, &p->masked);
	p->logits = nr_tap(n, "logits", nr_mlm_logits(n, &r->w->model, masked, true));
	p->words = nr_tap(n, "words", nr_cross_entropy(n, p->logits, p->masked.labels, 0, NR_TEXT_IGNORED));
	if (!o->nsp) return p->words;
	p->next = nr_input(n, "next", NR_I32, NR_SHAPE(B));
	p->follows = nr_tap(n, "follows", nr_cross_entropy(n, nr_nsp_logits(n, nr_text_pooler(n, t.tokens)), p->next, 0, -1));
	return nr_add(n, p->words, p->follows);
}

static nr_t *record(struct nr_task_run *r)
{
	struct mlm *s = r->own;
	return record_shape(r, r->net, &s->shape[r->shape], nr_texts_length(&s->texts, r->shape));
}

/* ---- batches -------------------------------------------------------------------------------------------------------------------- */

static int32_t document(const struct nr_task_run *r, int64_t i) { return nr_source_label(r->source, r->train.split, i); }

/* Sentence B of every sample of the batch: the next line, or any. */
static void draw_pairs(struct mlm *s, const struct nr_task_run *r, int64_t number)
{
	const int64_t B = r->c->batch, n = s->texts.corpus.samples;
	const struct nr_rng coin = nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK + DRAW_NEXT, (uint32_t)number);
	const struct nr_rng other = nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK + DRAW_OTHER, (uint32_t)number);
	for (int64_t b = 0; b < B; b++) {
		const int64_t i = s->texts.sample[b];
		const bool has_next = i + 1 < n && document(r, i) == document(r, i + 1);
		const bool next = has_next && nr_rng_uniform(coin, (uint64_t)b) < 0.5f;
		s->second[b] = next ? (int32_t)(i + 1) : (int32_t)nr_rng_below(other, (uint64_t)b, (uint64_t)n);
		s->is_next[b] = next || (has_next && s->second[b] == i + 1) ? 0 : 1;    /* 0: is next, as BERT has it */
	}
}

/* How many tokens of A and B a pair of at most `room` keeps: the longer one is cut, one token at a time. */
static void cut_pair(int64_t room, int64_t *a, int64_t *b)
{
	while (*a + *b > room) *(*a > *b ? a : b) -= 1;
}

/* [CLS] A [SEP] B [SEP]: both texts have their special tokens, of which B's first is left out. Returns its length. */
static int64_t join_pair(const struct mlm *s, int64_t i, int64_t j, int64_t most, int32_t *ids, int32_t *types)
{
	int64_t a, b;
	const int32_t *first = nr_corpus_text(&s->texts.corpus, i, 0, &a), *second = nr_corpus_text(&s->texts.corpus, j, 0, &b);
	const int32_t end = first[a - 1];
	a -= 2, b -= 2;
	cut_pair(most - 3, &a, &b);
	ids[0] = first[0];
	memcpy(ids + 1, first + 1, (size_t)a * sizeof *ids);
	ids[a + 1] = end;
	memcpy(ids + a + 2, second + 1, (size_t)b * sizeof *ids);
	ids[a + b + 2] = end;
	for (int64_t k = 0; k < a + b + 3; k++) types[k] = k >= a + 2;
	return a + b + 3;
}

static int64_t pair_length(const struct mlm *s, int64_t i, int64_t j, int64_t most)
{
	int64_t a, b;
	nr_corpus_text(&s->texts.corpus, i, 0, &a);
	nr_corpus_text(&s->texts.corpus, j, 0, &b);
	return a + b - 1 < most ? a + b - 1 : most;
}

static int64_t choose(struct nr_task_run *r, int64_t number)
{
	struct mlm *s = r->own;
	const int64_t shape = nr_texts_choose(&s->texts, number);
	if (!settings_of(r)->nsp) return shape;
	int64_t longest = 0;
	draw_pairs(s, r, number);
	for (int64_t b = 0; b < r->c->batch; b++) {
		const int64_t n = pair_length(s, s->texts.sample[b], s->second[b], settings_of(r)->text.max_length);
		longest = n > longest ? n : longest;
	}
	return (s->texts.longest - longest) / s->texts.step;
}

/* Row b of the inputs from s->row (length n), masked. */
static void put_row(struct mlm *s, struct nr_masker *m, const struct shape *p, struct nr_plan *plan, int64_t b, int64_t n,
	struct nr_rng rng, uint64_t first)
{
	const int64_t T = p->ids->d[1];
	int32_t *ids = nr_plan_data(plan, p->ids), *valid = nr_plan_data(plan, p->valid);
	nr_masker_add(m, rng, first, b * T, n, s->row, s->masked);
	nr_texts_put(&s->texts, s->masked, n, T, ids + b * T, valid + b);
}

static void bind(struct nr_task_run *r, const struct nr_batch *batch, int64_t number)
{
	struct mlm *s = r->own;
	const struct shape *p = &s->shape[r->shape];
	const struct nr_rng rng = nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK, (uint32_t)number);
	const int64_t T = p->ids->d[1];
	int32_t *types = p->types ? nr_plan_data(r->plan, p->types) : NULL;
	struct nr_masker m = nr_masker_begin(s->texts.tokenizer, settings_of(r)->text.mask, r->plan, &p->masked);
	(void)batch;
	for (int64_t b = 0; b < r->c->batch; b++) {
		int64_t n;
		if (types) {
			memset(types + b * T, 0, (size_t)T * sizeof *types);
			n = join_pair(s, s->texts.sample[b], s->second[b], settings_of(r)->text.max_length, s->row, types + b * T);
		} else {
			const int32_t *text = nr_corpus_text(&s->texts.corpus, s->texts.sample[b], 0, &n);
			memcpy(s->row, text, (size_t)n * sizeof *s->row);
		}
		put_row(s, &m, p, r->plan, b, n, rng, (uint64_t)b << 20);
	}
	nr_masker_end(&m);
	if (p->next) memcpy(nr_plan_data(r->plan, p->next), s->is_next, (size_t)r->c->batch * sizeof *s->is_next);
}

/* Words that were found, of those to predict. */
static void count_right(struct mlm *s, const struct shape *p, const struct nr_plan *plan, double *right, double *all)
{
	const int64_t rows = nr_len(p->masked.labels);
	const int32_t *labels = nr_plan_data(plan, p->masked.labels);
	nr_metric_rank(rows, nr_cols(p->logits), nr_plan_data(plan, p->logits), labels, s->rank);
	for (int64_t i = 0; i < rows; i++)
		if (labels[i] != NR_TEXT_IGNORED) *right += s->rank[i] < 1, *all += 1;
}

static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	struct mlm *s = r->own;
	double right = 0, all = 0;
	(void)b;
	count_right(s, &s->shape[r->shape], r->plan, &right, &all);
	sum[0] += all > 0 ? (double)r->c->batch * right / all : 0;
}

/* ---- evaluation ------------------------------------------------------------------------------------------------------------------ */

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct mlm *s = r->own;
	const int64_t B = r->c->batch, T = s->texts.longest;
	(void)batch;
	s->second = malloc((size_t)B * sizeof *s->second);
	s->is_next = malloc((size_t)B * sizeof *s->is_next);
	s->row = malloc((size_t)T * sizeof *s->row);
	s->masked = malloc((size_t)T * sizeof *s->masked);
	s->rank = malloc((size_t)(B * T) * sizeof *s->rank);
	if (!s->second || !s->is_next || !s->row || !s->masked || !s->rank)
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	return NR_OK;
}

/* Forward graphs of all shapes, for the held-out texts. */
static int open_held(struct nr_task_run *r, const struct nr_evaluation *e, struct nr_error *err)
{
	struct mlm *s = r->own;
	const int64_t n = e->count ? e->count : e->source->count[e->split];
	if (s->held_corpus.samples) return NR_OK;
	if (nr_corpus_make(&s->held_corpus, e->source, e->split, e->index, n, s->texts.tokenizer, settings_of(r)->text.max_length, err))
		return err->code;
	for (int64_t i = 0; i < s->texts.shapes; i++) {
		struct shape *p = &s->held[i];
		if (!(p->net = nr_net_make(r->w->store))) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
		if (nr_norms_use(p->net, r->norms, &r->w->model.norms, err)) return err->code;
		nr_t *loss = record_shape(r, p->net, p, nr_texts_length(&s->texts, i));
		if (nr_plan_make_beside(&p->plan, p->net, loss, 0, s->held[0].plan, err)) return err->code;
	}
	return NR_OK;
}

/* Texts of the corpus in order, so many at a time; what is missing in the last batch repeats its first text, of which no word counts
 * again. */
static void run_held(struct nr_task_run *r, int64_t at, double *loss, double *right, double *all)
{
	struct mlm *s = r->own;
	const int64_t B = r->c->batch;
	int32_t longest = 0;
	const int64_t there = s->held_corpus.samples - at < B ? s->held_corpus.samples - at : B;
	for (int64_t b = 0; b < there; b++) longest = s->held_corpus.length[at + b] > longest ? s->held_corpus.length[at + b] : longest;
	if (longest > s->texts.longest) longest = (int32_t)s->texts.longest;
	struct shape *p = &s->held[(s->texts.longest - longest) / s->texts.step];
	const int64_t T = p->ids->d[1];
	struct nr_masker m = nr_masker_begin(s->texts.tokenizer, settings_of(r)->text.mask, p->plan, &p->masked);
	for (int64_t b = 0; b < B; b++) {
		int64_t n;
		const int64_t i = b < there ? at + b : at;
		if (b == there) nr_masker_end(&m);
		const int32_t *text = nr_corpus_text(&s->held_corpus, i, 0, &n);
		n = n < T ? n : T;
		memcpy(s->row, text, (size_t)n * sizeof *s->row);
		put_row(s, &m, p, p->plan, b, n, nr_rng_make(0, NR_STREAM_MASK, 0), (uint64_t)i << 20);
	}
	nr_masker_end(&m);
	if (p->types) memset(nr_plan_data(p->plan, p->types), 0, (size_t)(B * T) * sizeof(int32_t));
	if (p->next) memset(nr_plan_data(p->plan, p->next), 0xff, (size_t)B * sizeof(int32_t));   /* -1: single sentences have none */
	nr_plan_run(p->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
	const double before = *all;
	count_right(s, p, p->plan, right, all);
	if (*all > before) *loss += (*all - before) * (double)*(const real *)nr_plan_data(p->plan, p->words);
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	struct mlm *s = r->own;
	double loss = 0, right = 0, all = 0;
	if (open_held(r, e, err)) return err->code;
	*samples = s->held_corpus.samples;
	const int64_t B = r->c->batch, batches = (*samples + B - 1) / B;
	struct { double loss, right, all; } *of = calloc((size_t)batches + 1, sizeof *of);
	if (!of) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	for (int64_t q = 0; q < batches; q++)
		if (nr_comm_mine(e->comm, q)) run_held(r, q * B, &of[q].loss, &of[q].right, &of[q].all);
	const int code = nr_comm_spread(e->comm, batches, sizeof *of, NULL, of, err);
	for (int64_t q = 0; q < batches; q++) loss += of[q].loss, right += of[q].right, all += of[q].all;
	free(of);
	if (code) return code;
	value[LOSS] = all > 0 ? loss / all : NAN;
	value[ACCURACY] = all > 0 ? right / all : NAN;
	value[PERPLEXITY] = exp(value[LOSS]);
	return NR_OK;
}

static int begin(struct nr_task_run *r, const char *dir, struct nr_error *err)
{
	return nr_tokenizer_copy(((struct mlm *)r->own)->texts.path, dir, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct mlm *s = r->own;
	nr_texts_describe(&s->texts, r, text);
	nr_str_printf(text, "masking           %g %% of the tokens: 80 %% masked, 10 %% another word, 10 %% kept%s\n",
		100 * settings_of(r)->text.mask, settings_of(r)->nsp ? "; pairs, one half of them in sequence" : "");
}

static void close(struct nr_task_run *r)
{
	struct mlm *s = r->own;
	for (int64_t i = NR_TASK_SHAPES - 1; i >= 0; i--) {
		nr_plan_free(s->held[i].plan);
		nr_net_free(s->held[i].net);
	}
	nr_corpus_release(&s->held_corpus);
	nr_texts_close(&s->texts);
	free(s->second);
	free(s->is_next);
	free(s->row);
	free(s->masked);
	free(s->rank);
}

static const struct nr_task_default defaults[] = { { "model", "auto" }, { "batch", "64" }, { "lr", "5e-4" }, { "schedule", "linear" },
	{ "clip", "global" }, { "clip_norm", "1" }, { NULL, NULL } };

static const struct nr_task_metric of_step[] = {
	{ .name = "accuracy", .label = "acc", .unit = "%", .title = "Masked words found, in training" },
	{ .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "loss", .title = "Held-out loss", .lower = true, .wide = true },
	{ .name = "accuracy", .label = "held-out", .unit = "%", .title = "Masked words found, held-out" },
	{ .name = "perplexity", .title = "Held-out perplexity", .lower = true, .wide = true },
	{ .name = NULL },
};

const struct nr_task nr_task_mlm = {
	.name = "mlm",
	.title = "masked words",
	.cite = "arXiv:1810.04805",
	.command = "mlm",
	.summary = "pre-train a text model on masked words (BERT, RoBERTa)",
	.usage = "[RECIPE.yaml] --data text:path=FILE --tokenizer VOCAB | --resume DIRECTORY",
	.about = "Masks some words of every line and learns to predict them; --nsp adds BERT's prediction of the next sentence. Lines\n"
		 "are sorted by length within windows of batches to reduce padding, and norms see no padding. Settings, metrics,\n"
		 "checkpoints, Ctrl-C and resuming work as in `norma train`. The run's folder includes the tokenizer files, so\n"
		 "`norma embed` and `norma simcse --init` need nothing else.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.auto_model = "bert-mini",
	.kind = NR_TEXTS,
	.sample = "text",
	.own_size = sizeof(struct mlm),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = LOSS,
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
