/* A case, ready to run: store, graph, plan, inputs from counters, and AdamW over the store as the peers set it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench.h"
#include "math/random.h"
#include "nn/products.h"

enum { SEED = 1, STREAM_IMAGE = 2, STREAM_LABELS = 3, STREAM_IDS = 4 };

/* Words without the special ones, as the peer draws them. */
static void fill_text(struct bench *b)
{
	const struct bench_size *s = b->target.size;
	const int64_t rows = b->in.ids->d[0], views = rows / s->batch, first = s->vocab > 2000 ? 1000 : 1;
	int32_t *ids = nr_plan_data(b->plan, b->in.ids), *valid = nr_plan_data(b->plan, b->in.valid);
	for (int64_t i = 0; i < rows * s->length; i++) {
		const int64_t sentence = i / s->length / views, place = sentence * s->length + i % s->length;
		const uint64_t word = nr_rng_below(nr_rng_make(SEED, STREAM_IDS, 0), (uint64_t)place, (uint64_t)(s->vocab - first));
		ids[i] = (int32_t)(first + (int64_t)word);
	}
	for (int64_t i = 0; i < rows; i++) valid[i] = (int32_t)s->length;
}

static void fill_inputs(struct bench *b)
{
	if (b->in.ids) fill_text(b);
	if (b->target.of->model->fill) b->target.of->model->fill(b);
	if (b->in.image)
		nr_fill_normal(nr_len(b->in.image), nr_plan_data(b->plan, b->in.image), 0, 1,
			nr_rng_make(SEED, STREAM_IMAGE, 0), 0);
	int32_t *labels = b->in.labels ? nr_plan_data(b->plan, b->in.labels) : NULL;
	for (int64_t i = 0; labels && i < b->target.size->batch; i++)
		labels[i] = (int32_t)nr_rng_below(
			nr_rng_make(SEED, STREAM_LABELS, 0), (uint64_t)i, (uint64_t)b->target.size->classes);
}

/* Every parameter decays, as torch.optim.AdamW does with model.parameters(). */
static int make_optimizer(struct bench *b, struct nr_error *err)
{
	int code = nr_optim_init(&b->optim, "adamw", err);
	b->optim.lr = 1e-4;
	b->optim.weight_decay = .05;
	if (!code) code = nr_params_init(&b->params, b->store, &b->optim, err);
	for (int64_t i = 0; !code && i < b->params.count; i++) b->params.segment[i].decay = 1;
	return code;
}

int bench_open(struct bench **out, const struct bench_target *t, unsigned flags, struct nr_error *err)
{
	*out = NULL;
	struct bench *b = calloc(1, sizeof *b);
	if (!b) return nr_fail(err, NR_EMEMORY, "cannot open the case", t->of->name, "out of memory");
	b->target = *t;
	b->exec = (struct nr_exec){ .train = t->train, .seed = SEED };
	int code = nr_store_make(&b->store, SEED, err);
	if (!code && !(b->net = nr_net_make(b->store)))
		code = nr_fail(err, NR_EMEMORY, "cannot record the case", t->of->name, "out of memory");
	struct nr_model_spec named = { .norms = t->of->model->norms };
	if (!code && t->size->model) code = nr_model_parse(&named, t->size->model, nr_net_arena(b->net), err);
	if (!code) code = nr_norms_use(b->net, t->norm, &named.norms, err);
	if (!code) {
		const double start = nr_clock();
		b->out = (t->train ? t->of->model->train : t->of->model->infer)(b->net, t->size, &b->in);
		code = nr_norms_done(b->net, err);
		b->plan_seconds = nr_clock() - start;
	}
	if (!code) code = nr_store_seal(b->store, err);         /* initial values are no part of planning */
	if (!code && !t->train) nr_store_fix(b->store);
	if (!code) {
		const double start = nr_clock();
		code = nr_plan_make(&b->plan, b->net, b->out, flags | (t->train ? NR_PLAN_TRAIN : 0), err);
		b->plan_seconds += nr_clock() - start;
	}
	if (!code) fill_inputs(b);
	if (!code && t->train) code = make_optimizer(b, err);
	if (!code && t->train && t->of->model->open) code = t->of->model->open(b, err);
	if (code) bench_close(b);
	else *out = b;
	return code;
}

void bench_close(struct bench *b)
{
	if (!b) return;
	if (b->target.of->model->close) b->target.of->model->close(b);  /* guests of the plan before it */
	nr_params_release(&b->params);
	nr_plan_free(b->plan);
	nr_net_free(b->net);
	nr_store_free(b->store);
	free(b);
}

double bench_forward_flops(const struct bench *b)
{
	const struct bench_target *t = &b->target;
	return t->of->model->flops ? t->of->model->flops(t->size, t->train) : 2 * nr_net_macs(b->net);
}

void bench_update(struct bench *b)
{
	const struct nr_rates rates = { b->optim.lr, b->optim.weight_decay };
	nr_optim_step(&b->optim, &rates, b->exec.step, b->params.segment, b->params.count, b->params.scratch, NULL);
}

void bench_step(struct bench *b)
{
	const struct bench_model *m = b->target.of->model;
	b->exec.step++;
	if (!b->target.train) {
		nr_plan_run(b->plan, &b->exec, NR_RUN_FORWARD);
		return;
	}
	if (m->draw) m->draw(b->target.size, &b->in, b->plan, b->exec.step);
	if (m->before) m->before(b);
	nr_plan_run(b->plan, &b->exec, NR_RUN_FORWARD | NR_RUN_BACKWARD | NR_RUN_COMMIT);
	bench_update(b);
	if (m->after) m->after(b);
}

double bench_loss(const struct bench *b)
{
	const real *loss = b->target.train ? nr_plan_data(b->plan, b->out) : NULL;
	return loss ? (double)*loss : 0;
}
