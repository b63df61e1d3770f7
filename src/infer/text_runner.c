/* Sentence embeddings: texts sorted by length, a plan for each length in one memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/equal.h"
#include "base/real.h"
#include "base/sort.h"
#include "base/str.h"
#include "graph/comm.h"
#include "models/text_heads.h"
#include "norma/infer.h"
#include "norma/nn.h"
#include "norma/tokenizer.h"

enum { SHAPES = 1024, DENSE = 64, PER_OCTAVE = 16 };             /* lengths: all up to 64, then 16 from each power of two to the next */

struct shape { int64_t batch, length; struct nr_net *net; struct nr_plan *plan; nr_t *ids, *types, *valid, *out; };

struct nr_text_runner {
	const struct nr_weights *w;
	const struct nr_tokenizer *tokenizer;
	struct nr_text_runner_how how;
	struct nr_encoder *encoder;
	int (*watch)(void *context, int64_t done, int64_t of);
	void *context;
	int64_t width, shapes;
	bool whole;                                     /* every text has all positions (SigLIP), */
	int32_t pad;                                    /* which this fills up */
	struct shape shape[SHAPES];                     /* the first is the host of the others' memory */
	/* the texts of a run */
	int32_t *ids, *types;                           /* types: with logits, of models that have segments; else NULL */
	bool segments;
	int64_t *start, room;                           /* (n + 1); of ids */
	int32_t *first;                                 /* (n): which text before it has the same ids, or itself */
	int32_t *order;                                 /* (different): the first ones by falling length */
	int32_t *owner;                                 /* (n): the rank that runs it; -1: one before it has the same ids */
	int64_t different;
	double flops;                                   /* of the last run */
};

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot embed", NULL, "out of memory"); }

static int64_t rounded(int64_t length)
{
	int64_t step = 1;
	for (int64_t octave = DENSE; length > octave; octave *= 2) step = octave / PER_OCTAVE;
	return (length + step - 1) / step * step;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------------- */

static int make_plan(struct nr_text_runner *e, struct shape *s, struct nr_error *err)
{
	const struct nr_weights *w = e->w;
	if (!(s->net = nr_net_make(w->store))) return out_of_memory(err);
	if (nr_norms_use(s->net, w->norms, &w->model.norms, err)) return err->code;
	s->ids = nr_input(s->net, "ids", NR_I32, NR_SHAPE(s->batch, s->length));
	s->valid = nr_input(s->net, "valid", NR_I32, NR_SHAPE(s->batch));
	if (e->segments) s->types = nr_input(s->net, "types", NR_I32, NR_SHAPE(s->batch, s->length));
	const struct nr_inputs in = { .ids = s->ids, .types = s->types, .valid = s->valid };
	struct nr_text t;
	if (e->how.logits) s->out = nr_model_logits(s->net, &w->model, &in);
	else {
		nr_text_encode(s->net, &w->model, &in, &t);
		s->out = nr_text_pool(s->net, &t, e->how.pooling);
	}
	if (e->how.layer) s->out = nr_simcse_layer(s->net, s->out);
	return nr_plan_make_beside(&s->plan, s->net, s->out, 0, e->shape[0].plan, err);
}

static struct shape *add_shape(struct nr_text_runner *e, int64_t batch, int64_t length, struct nr_error *err)
{
	if (e->shapes == SHAPES) {
		nr_fail(err, NR_ELIMIT, "cannot embed", NULL, "batches of more than %d different shapes", SHAPES);
		return NULL;
	}
	struct shape *s = &e->shape[e->shapes];
	*s = (struct shape){ .length = length, .batch = batch };
	if (make_plan(e, s, err)) {
		nr_net_free(s->net);
		*s = (struct shape){ 0 };
		return NULL;
	}
	e->shapes++;
	return s;
}

/* Batches of one length hold about the same number of tokens; the first one a few more, so that its memory does for the others. The
 * last texts of a run, fewer than that, get the next power of two. */
static struct shape *shape_for(struct nr_text_runner *e, int64_t longest, int64_t texts, struct nr_error *err)
{
	const int64_t positions = e->how.max_length;
	const int64_t length = rounded(longest) < positions && !e->whole ? rounded(longest) : positions;
	if (!e->shapes && !add_shape(e, (e->how.tokens + length - 1) / length, length, err)) return NULL;
	const int64_t full = length == e->shape[0].length ? e->shape[0].batch : e->how.tokens > length ? e->how.tokens / length : 1;
	int64_t batch = 1;
	while (batch < texts && batch < full) batch *= 2;
	if (batch > full) batch = full;
	for (int64_t i = 0; i < e->shapes; i++)
		if (e->shape[i].length == length && e->shape[i].batch == batch) return &e->shape[i];
	return add_shape(e, batch, length, err);
}

int nr_text_fits(const struct nr_model_spec *m, const struct nr_tokenizer *t, struct nr_error *err)
{
	const int64_t has = nr_tokenizer_size(t), vocab = nr_model_int(m, "vocab");
	if (has <= vocab) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot use the tokenizer with", m->text,
		"it has %lld tokens, but the model has %lld", (long long)has,
		(long long)vocab);
}

/* A file says "cls+layer", or the name alone for a sentence without the layer. */
int nr_text_runner_pool_by(struct nr_text_runner_how *how, const struct nr_weights *w, const char *pooler, struct nr_error *err)
{
	const char *name = pooler ? pooler : w->pooler ? w->pooler : nr_text_poolings[NR_TEXT_AVG];
	const size_t n = strcspn(name, "+");
	int kind = 0;
	while (nr_text_poolings[kind] && (strlen(nr_text_poolings[kind]) != n || strncmp(nr_text_poolings[kind], name, n))) kind++;
	if (!nr_text_poolings[kind] && !pooler) {
		nr_fail(err, NR_EVALUE, "cannot embed with", w->model.text, "its sentences are pooled by '%s', which norma does not have",
			name);
		return nr_hint(err,
			"choose a pooler with --pooler: cls_before_pooler, avg, avg_top2 or avg_first_last");
	}
	if (!nr_text_poolings[kind]) {
		const char *near = nr_nearest(name, nr_text_poolings);
		nr_fail(err, NR_EVALUE, "unknown pooler", name, NULL);
		return near ? nr_hint(err, "did you mean '%s'?", near) : err->code;
	}
	how->pooling = (enum nr_text_pooling)kind;
	how->layer = strstr(name + n, "+layer") || (pooler && kind == NR_TEXT_CLS);
	how->normalize = strstr(name + n, "+normalize") != NULL;
	return NR_OK;
}

/* What can be asked for and cannot be done with these weights. */
static int check(const struct nr_text_runner *e, struct nr_error *err)
{
	const struct nr_weights *w = e->w;
	const int64_t places = nr_text_length(&w->model);
	if (e->how.max_length > places)
		return nr_fail(err, NR_EVALUE, "the length is too large for", w->model.text,
			"%lld tokens, but there are only %lld positions",
			(long long)e->how.max_length, (long long)places);
	if (e->how.layer && !nr_store_find(w->store, "simcse.dense.weight"))
		return nr_fail(err, NR_EVALUE, "cannot pool by cls", w->model.text,
			"the weights have no SimCSE layer; use cls_before_pooler for the token alone");
	return nr_text_fits(&w->model, e->tokenizer, err);
}

int nr_text_runner_open(struct nr_text_runner **out, const struct nr_weights *w, const struct nr_tokenizer *t,
	const struct nr_text_runner_how *how, struct nr_error *err)
{
	*out = NULL;
	if (nr_model_expect(&w->model, NR_TEXTS, err)) return err->code;
	struct nr_text_runner *e = calloc(1, sizeof *e);
	if (!e) return out_of_memory(err);
	*e = (struct nr_text_runner){ .w = w, .tokenizer = t, .width = nr_model_int(&w->model, "dim") };
	if (how) e->how = *how;
	int code = how ? NR_OK : nr_text_runner_pool_by(&e->how, w, NULL, err);
	if (!code) code = check(e, err);
	if (e->how.logits) {
		e->width = nr_model_int(&w->model, "classes");
		e->segments = nr_model_int(&w->model, "types") > 1;
	}
	const int32_t pad = nr_tokenizer_special(t, NR_TOKEN_PAD);
	e->whole = nr_model_int(&w->model, "ends") == 0;
	e->pad = pad >= 0 && !e->whole ? pad : e->whole ? (int32_t)nr_model_int(&w->model, "pad") : 0;
	if (e->whole || e->how.max_length < 1) e->how.max_length = nr_text_length(&w->model);
	if (e->how.tokens < 1) e->how.tokens = 1024;
	if (!code) code = nr_encoder_make(&e->encoder, t, err);
	if (code) nr_text_runner_close(e);
	else *out = e;
	return code;
}

void nr_text_runner_close(struct nr_text_runner *e)
{
	if (!e) return;
	while (e->shapes-- > 0) {
		nr_plan_free(e->shape[e->shapes].plan);
		nr_net_free(e->shape[e->shapes].net);
	}
	nr_encoder_free(e->encoder);
	free(e->ids);
	free(e->types);
	free(e->start);
	free(e->first);
	free(e->order);
	free(e->owner);
	free(e);
}

int64_t nr_text_runner_width(const struct nr_text_runner *e) { return e->width; }
int64_t nr_text_runner_different(const struct nr_text_runner *e) { return e->different; }
double nr_text_runner_flops(const struct nr_text_runner *e) { return e->flops; }

/* ---- a run -------------------------------------------------------------------------------------------------------------------- */

static int encode(struct nr_text_runner *e, const char *const *text, int64_t n, struct nr_error *err)
{
	const struct nr_encode_how how = { .max_length = e->how.max_length };
	for (int64_t i = 0; i < n; i++) {
		struct nr_encoding x;
		const char *tab = e->how.logits ? strchr(text[i], '\t') : NULL, *second = tab ? tab + 1 : NULL;
		const size_t first = tab ? (size_t)(tab - text[i]) : strlen(text[i]);
		if (nr_encode(e->encoder, text[i], first, second, second ? strlen(second) : 0, &how, &x, err)) return err->code;
		if (e->start[i] + x.count > e->room) {
			const int64_t room = 2 * (e->start[i] + x.count) + 4096;
			int32_t *ids = realloc(e->ids, (size_t)room * sizeof *ids);
			if (!ids) return out_of_memory(err);
			e->ids = ids;
			int32_t *types = e->segments ? realloc(e->types, (size_t)room * sizeof *types) : NULL;
			if (e->segments && !types) return out_of_memory(err);
			e->types = types;
			e->room = room;
		}
		if (e->segments) memcpy(e->types + e->start[i], x.types, (size_t)x.count * sizeof *x.types);
		memcpy(e->ids + e->start[i], x.ids, (size_t)x.count * sizeof *x.ids);
		e->start[i + 1] = e->start[i] + x.count;
	}
	return NR_OK;
}

static int32_t length_of(const struct nr_text_runner *e, int64_t i) { return (int32_t)(e->start[i + 1] - e->start[i]); }

/* Texts of the same ids are embedded once: three of ten sentences of STS have been there before. */
static int find_equal(struct nr_text_runner *e, int64_t n, struct nr_error *err)
{
	struct nr_piece *piece = malloc((size_t)n * sizeof *piece + 1);
	if (!piece) return out_of_memory(err);
	for (int64_t i = 0; i < n; i++)
		piece[i] = (struct nr_piece){ e->ids + e->start[i], (size_t)length_of(e, i) * sizeof *e->ids };
	e->different = nr_equal_pieces(piece, n, e->first);
	free(piece);
	return e->different < 0 ? out_of_memory(err) : NR_OK;
}

/* By falling length; equal lengths stay in order, so that results do not depend on the sort. */
static int sort(struct nr_text_runner *e, int64_t n, struct nr_error *err)
{
	const int32_t most = (int32_t)e->how.max_length;
	int32_t *spare = malloc(((size_t)n + nr_sort_spare(e->different, most)) * sizeof *spare), *missing = spare;
	if (!spare) return out_of_memory(err);
	for (int64_t i = 0, at = 0; i < n; i++) {
		if (e->first[i] == i) e->order[at++] = (int32_t)i;
		missing[i] = most - length_of(e, i);
	}
	nr_sort_by_key(e->order, e->different, missing, most, spare + n);
	free(spare);
	return NR_OK;
}

/* A batch that is not full repeats its first text. */
static void run_batch(struct nr_text_runner *e, struct shape *s, const int32_t *which, int64_t n, real *out)
{
	int32_t *ids = nr_plan_data(s->plan, s->ids), *valid = nr_plan_data(s->plan, s->valid);
	for (int64_t b = 0; b < s->batch; b++) {
		const int32_t i = which[b < n ? b : 0], length = length_of(e, i);
		memcpy(ids + b * s->length, e->ids + e->start[i], (size_t)length * sizeof *ids);
		for (int64_t k = length; k < s->length; k++) ids[b * s->length + k] = e->pad;
		valid[b] = length;
		if (!s->types) continue;
		int32_t *types = (int32_t *)nr_plan_data(s->plan, s->types) + b * s->length;
		memcpy(types, e->types + e->start[i], (size_t)length * sizeof *types);
		memset(types + length, 0, (size_t)(s->length - length) * sizeof *types);
	}
	nr_plan_run(s->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
	const real *y = nr_plan_data(s->plan, s->out);
	for (int64_t b = 0; b < n; b++, y += e->width) {
		double square = 0;
		for (int64_t k = 0; k < e->width; k++) square += (double)y[k] * (double)y[k];
		const real scale = e->how.normalize && square > 0 ? (real)(1 / sqrt(square)) : 1;
		for (int64_t k = 0; k < e->width; k++) out[which[b] * e->width + k] = y[k] * scale;
	}
}

void nr_text_runner_watch(struct nr_text_runner *e, int (*watch)(void *context, int64_t done, int64_t of), void *context)
{
	e->watch = watch;
	e->context = context;
}

int nr_text_runner_run(struct nr_text_runner *e, const char *const *text, int64_t n, real *out, struct nr_error *err)
{
	if (n > INT32_MAX) return nr_fail(err, NR_ELIMIT, "cannot embed", NULL,
		"too many texts at once: %lld", (long long)n);
	free(e->start);
	free(e->first);
	free(e->order);
	free(e->owner);
	e->start = calloc((size_t)n + 1, sizeof *e->start);
	e->first = malloc(((size_t)n + 1) * sizeof *e->first);
	e->order = malloc(((size_t)n + 1) * sizeof *e->order);
	e->owner = malloc(((size_t)n + 1) * sizeof *e->owner);
	if (!e->start || !e->first || !e->order || !e->owner) return out_of_memory(err);
	if (encode(e, text, n, err) || find_equal(e, n, err) || sort(e, n, err)) return err->code;
	e->flops = 0;
	for (int64_t i = 0; i < n; i++) e->owner[i] = -1;
	for (int64_t at = 0, q = 0; at < e->different; q++) {
		struct shape *s = shape_for(e, length_of(e, e->order[at]), e->different - at, err);
		if (!s) return err->code;
		const int64_t take = e->different - at < s->batch ? e->different - at : s->batch;
		for (int64_t b = 0; b < take; b++) e->owner[e->order[at + b]] = nr_comm_owner(e->how.comm, q);
		if (nr_comm_mine(e->how.comm, q)) run_batch(e, s, e->order + at, take, out);
		e->flops += nr_plan_stats(s->plan).forward_flops;
		at += take;
		if (e->watch && e->watch(e->context, at * n / e->different, n)) return 1;
	}
	if (nr_comm_spread(e->how.comm, n, (size_t)e->width * sizeof *out, e->owner, out, err)) return err->code;
	for (int64_t i = 0; i < n; i++)
		if (e->first[i] != i) memcpy(out + i * e->width, out + e->first[i] * e->width, (size_t)e->width * sizeof *out);
	return NR_OK;
}
