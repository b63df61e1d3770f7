/* Attentive probing. See attentive.h. */
#include "analysis/attentive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "infer/metrics.h"
#include "math/chunk.h"
#include "norma/nn.h"
#include "norma/optim.h"

enum { STREAM = 0x41545450 };                   /* order of an epoch */

/* ---- tokens -------------------------------------------------------------------------------------------------------------------- */

static void take(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	struct nr_token_set *s = out;
	const real *x = nr_plan_data(r->plan, r->tokens);
	const int64_t each = s->tokens * s->width;
	for (int64_t i = 0; i < b->samples * each; i++) s->x[first * each + i] = (float)x[i];
	memcpy(s->label + first, b->label, (size_t)b->samples * sizeof *s->label);
}

int nr_token_set_of(struct nr_token_set *s, const struct nr_weights *w, const struct nr_evaluation *what, int64_t batch,
	struct nr_error *err)
{
	struct nr_runner r;
	const int64_t count = what->count ? what->count : what->source->count[what->split];
	*s = (struct nr_token_set){ .count = count };
	if (nr_runner_open_encoder(&r, w, batch < count ? batch : count, err)) return err->code;
	s->tokens = r.tokens->d[1], s->width = r.tokens->d[2];
	const double bytes = (double)count * (double)(s->tokens * s->width) * sizeof *s->x;
	int code = nr_memory_check(bytes, "cannot keep all tokens of", nr_split_name(what->split), err);
	if (code) nr_hint(err, "fewer samples: --train-limit, --limit");
	s->x = code ? NULL : malloc((size_t)bytes + 1);
	s->label = malloc((size_t)(count + 1) * sizeof *s->label);
	if (!code && (!s->x || !s->label)) code = nr_fail(err, NR_EMEMORY, "cannot keep the tokens", NULL, "out of memory");
	if (!code) code = nr_run_over(&r, what, take, s, err);
	if (code > 0) code = nr_fail(err, NR_EVALUE, "cannot keep the tokens", NULL, "interrupted");
	nr_runner_close(&r);
	if (code) nr_token_set_release(s);
	return code;
}

void nr_token_set_release(struct nr_token_set *s)
{
	free(s->x);
	free(s->label);
	*s = (struct nr_token_set){ 0 };
}

/* ---- the head ------------------------------------------------------------------------------------------------------------------- */

struct head {
	const struct nr_attentive *o;
	const struct nr_token_set *train;
	double *mean, *scale;                   /* (width) of the training tokens; scale 0: a channel that never changes */
	int64_t batch;
	struct nr_store *store;
	struct nr_net *net;
	struct nr_plan *plan;
	struct nr_params params;
	struct nr_optim optim;
	nr_t *x, *label, *logits, *loss;
	int32_t *rank;                          /* (batch) */
};

static int open_head(struct head *h, struct nr_error *err)
{
	const int64_t T = h->train->tokens, C = h->train->width;
	if (nr_store_make(&h->store, h->o->seed, err)) return err->code;
	struct nr_net *n = h->net = nr_net_make(h->store);
	if (!n) return nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
	h->x = nr_input(n, "tokens", NR_REAL, NR_SHAPE(h->batch, T, C));
	h->label = nr_input(n, "label", NR_I32, NR_SHAPE(h->batch));
	nr_t *query = nr_param(n, "query", NR_TRUNC_02, NR_SHAPE(1, 1, C));
	nr_t *q = nr_linear(n, "q", nr_span(n, nr_prepend(n, query, h->x), 0, 1), C), *kv = nr_linear(n, "kv", h->x, 2 * C);
	nr_t *y = nr_kv_attention(n, q, kv, (struct nr_attention_options){ .heads = h->o->heads });
	h->logits = nr_tap(n, "logits", nr_linear(n, "head", nr_reshape(n, y, NR_SHAPE(h->batch, C)), h->o->classes));
	h->loss = nr_cross_entropy(n, h->logits, h->label, 0, -1);
	if (nr_plan_make(&h->plan, n, h->loss, NR_PLAN_TRAIN, err)) return err->code;
	if (nr_optim_init(&h->optim, "adamw", err)) return err->code;
	return nr_params_init(&h->params, h->store, &h->optim, err);
}

static void close_head(struct head *h)
{
	nr_params_release(&h->params);
	nr_plan_free(h->plan);
	nr_net_free(h->net);
	nr_store_free(h->store);
	h->params = (struct nr_params){ 0 }, h->plan = NULL, h->net = NULL, h->store = NULL;
}

/* row NULL: samples from `first` on; what is missing of the batch is filled with its last one. */
static void bind(struct head *h, const struct nr_token_set *s, const int32_t *row, int64_t first, int64_t n)
{
	const int64_t C = s->width, each = s->tokens * C;
	real *x = nr_plan_data(h->plan, h->x);
	int32_t *label = nr_plan_data(h->plan, h->label);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < h->batch; i++) {
		const int64_t k = nr_min64(i, n - 1), from = row ? row[k] : first + k;
		for (int64_t j = 0; j < each; j++)
			x[i * each + j] = (real)(((double)s->x[from * each + j] - h->mean[j % C]) * h->scale[j % C]);
		label[i] = s->label[from];
	}
}

static double rate_at(double lr, int64_t step, int64_t steps)
{
	const double at = (double)step / (double)steps, warm = .1;
	if (at < warm) return lr * (double)(step + 1) / (warm * (double)steps + 1);
	return lr * .5 * (1 + cos(3.14159265358979323846 * (at - warm) / (1 - warm)));
}

static int fit(struct head *h, const int32_t *row, int64_t rows, int32_t *order, double lr, struct nr_probe_try *t, struct nr_error *err)
{
	const int64_t of_epoch = nr_max64(rows / h->batch, 1), steps = (int64_t)ceil(h->o->epochs * (double)of_epoch);
	*t = (struct nr_probe_try){ .base_lr = lr, .weight_decay = h->o->weight_decay, .held_top1 = -1, .iterations = steps,
		.converged = true };
	for (int64_t step = 0; step < steps; step++) {
		const int64_t at = step % of_epoch, epoch = step / of_epoch;
		if (!at) {
			nr_rng_shuffle(nr_rng_make(h->o->seed, STREAM, (uint32_t)epoch), 0, order, (int32_t)rows);
			for (int64_t i = 0; i < rows; i++) order[i] = row[order[i]];
			t->loss = 0;
		}
		bind(h, h->train, order + at * h->batch, 0, nr_min64(h->batch, rows - at * h->batch));
		nr_plan_run(h->plan, &(struct nr_exec){ .train = 1, .seed = h->o->seed, .step = step }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		const double loss = (double)*(const real *)nr_plan_data(h->plan, h->loss);
		if (!isfinite(loss))
			return nr_fail(err, NR_EDIVERGED, "the probe diverged", NULL, "learning rate %g, step %lld", lr, (long long)step);
		t->loss += loss / (double)of_epoch;
		const struct nr_rates rates = { rate_at(lr, step, steps), h->o->weight_decay };
		if (nr_params_step(&h->params, &h->optim, &rates, step + 1, err)) return err->code;
		if (h->o->watch && h->o->watch(h->o->context, step + 1, steps))
			return nr_fail(err, NR_EVALUE, "cannot probe", NULL, "interrupted");
	}
	return NR_OK;
}

/* Shares that are right, of those where `skip` has no label (NULL: of all). */
static void score(struct head *h, const struct nr_token_set *s, const int32_t *skip, double *top1, double *top5)
{
	int64_t counted = 0, first = 0, five = 0;
	for (int64_t at = 0; at < s->count; at += h->batch) {
		const int64_t n = nr_min64(h->batch, s->count - at);
		bind(h, s, NULL, at, n);
		nr_plan_run(h->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
		nr_metric_rank(n, h->o->classes, nr_plan_data(h->plan, h->logits), s->label + at, h->rank);
		for (int64_t i = 0; i < n; i++) {
			if (skip && skip[at + i] >= 0) continue;
			counted++, first += h->rank[i] < 1, five += h->rank[i] < 5;
		}
	}
	*top1 = counted ? (double)first / (double)counted : 0;
	*top5 = counted ? (double)five / (double)counted : 0;
}

/* ---- all learning rates ---------------------------------------------------------------------------------------------------------- */

static void measure_channels(struct head *h)
{
	const struct nr_token_set *s = h->train;
	const int64_t rows = s->count * s->tokens, C = s->width;
#pragma omp parallel for schedule(static)
	for (int64_t c = 0; c < C; c++) {
		double mean = 0, square = 0;
		for (int64_t i = 0; i < rows; i++) mean += (double)s->x[i * C + c] / (double)rows;
		for (int64_t i = 0; i < rows; i++) {
			const double apart = (double)s->x[i * C + c] - mean;
			square += apart * apart / (double)rows;
		}
		h->mean[c] = mean, h->scale[c] = square > 1e-12 * mean * mean ? 1 / sqrt(square) : 0;
	}
}

static int try_all(struct head *h, const struct nr_token_set *test, int32_t *label, int32_t *row, int32_t *order,
	struct nr_probe_result *r, struct nr_error *err)
{
	const struct nr_token_set *train = h->train;
	int64_t rows = 0;
	r->held = nr_probe_hold_out(train->count, train->label, h->o->classes, h->o->lrs > 1 ? h->o->hold_out : 0, h->o->seed, label, err);
	if (r->held < 0) return (int)r->held;
	for (int64_t i = 0; i < train->count; i++)
		if (label[i] >= 0) row[rows++] = (int32_t)i;
	h->batch = nr_min64(h->o->batch, rows);
	h->rank = malloc((size_t)h->batch * sizeof *h->rank);
	if (!h->rank) return nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
	for (int64_t k = 0; k < h->o->lrs; k++, r->tries++) {
		struct nr_probe_try *t = &r->each[k];
		double ignored;
		int code = open_head(h, err);
		if (!code) code = fit(h, row, rows, order, h->o->lr[k], t, err);
		if (!code && r->held) score(h, train, label, &t->held_top1, &ignored);
		if (!code) score(h, test, NULL, &t->top1, &t->top5);
		close_head(h);
		if (code) return code;
		if (t->held_top1 > r->each[r->chosen].held_top1) r->chosen = k;
	}
	r->best = r->each[r->chosen];
	return NR_OK;
}

int nr_attentive_run(const struct nr_attentive *o, const struct nr_token_set *train, const struct nr_token_set *test,
	struct nr_probe_result *r, struct nr_error *err)
{
	struct head h = { .o = o, .train = train };
	int32_t *label = malloc((size_t)train->count * sizeof *label), *row = malloc((size_t)train->count * sizeof *row);
	int32_t *order = malloc((size_t)train->count * sizeof *order);
	h.mean = malloc((size_t)train->width * sizeof *h.mean);
	h.scale = malloc((size_t)train->width * sizeof *h.scale);
	*r = (struct nr_probe_result){ 0 };
	int code = label && row && order && h.mean && h.scale ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
	if (!code) measure_channels(&h);
	if (!code) code = try_all(&h, test, label, row, order, r, err);
	free(h.rank), free(h.mean), free(h.scale), free(label), free(row), free(order);
	return code;
}
