/* See flow.h. */
#include "analysis/flow.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/gradients.h"
#include "analysis/taps.h"
#include "base/rng.h"
#include "graph/net.h"
#include "graph/streams.h"

/* A model with its first values and a head. */
static int make(struct nr_weights *w, const struct nr_flow_config *c, const char *plan, struct nr_arena *arena, struct nr_error *err)
{
	*w = (struct nr_weights){ .arena = arena, .norms = plan };
	if (nr_model_parse(&w->model, c->model, arena, err) || nr_store_make(&w->store, c->seed, err)) return err->code;
	const struct nr_model_spec *m = &w->model;
	struct nr_net *n = nr_net_make(w->store);
	if (!n) return nr_fail(err, NR_EMEMORY, "cannot record the model", c->model, "out of memory");
	int code = nr_model_expect(m, NR_PICTURES, err);
	if (!code) code = nr_norms_use(n, plan, &m->norms, err);
	if (!code) {
		const struct nr_inputs in = nr_model_inputs(n, m, c->batch);
		nr_model_logits(n, m, &in);
		code = nr_norms_done(n, err);
	}
	if (!code) code = nr_store_seal(w->store, err);
	nr_net_free(n);
	return code;
}

static void draw(const struct nr_flow_config *c, int64_t step, int64_t classes, int64_t values, float *image, int32_t *label)
{
	const struct nr_rng pixels = nr_rng_make(c->seed, NR_STREAM_SUBSET, (uint32_t)(2 * step)),
			    labels = nr_rng_make(c->seed, NR_STREAM_SUBSET, (uint32_t)(2 * step + 1));
	for (int64_t i = 0; i < c->batch * values; i++) image[i] = (float)nr_rng_normal(pixels, (uint64_t)i);
	for (int64_t i = 0; i < c->batch; i++) label[i] = (int32_t)nr_rng_below(labels, (uint64_t)i, (uint64_t)classes);
}

static double token_length(const struct nr_taps *t, const nr_t *x)
{
	const real *v = nr_plan_data(t->plan, x);
	const int64_t C = x->d[2], rows = x->d[0] * x->d[1];
	double sum = 0;
	for (int64_t i = 0; i < rows; i++) {
		double square = 0;
		for (int64_t c = 0; c < C; c++) square += (double)v[i * C + c] * (double)v[i * C + c];
		sum += sqrt(square) / (double)rows;
	}
	return sum;
}

static int sizes(struct nr_flow *f, const struct nr_weights *w, const struct nr_flow_config *c, const float *image, struct nr_error *err)
{
	struct nr_taps t;
	if (nr_taps_open(&t, w, c->batch, 0, "", err)) return err->code;
	nr_taps_run(&t, image);
	for (int64_t l = 1; l < t.layers && l <= f->blocks; l++) f->size[l - 1] = token_length(&t, t.layer[l].x);
	nr_taps_close(&t);
	return NR_OK;
}

static int run(struct nr_flow *f, const struct nr_weights *w, const struct nr_flow_config *c, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t size = nr_model_int(&w->model, "image"), values = nr_model_int(&w->model, "channels") * size * size;
	const int64_t classes = nr_model_int(&w->model, "classes");
	f->blocks = nr_model_int(&w->model, "depth");
	f->gradient = nr_arena_alloc(arena, (size_t)f->blocks * sizeof *f->gradient);
	f->size = nr_arena_alloc(arena, (size_t)f->blocks * sizeof *f->size);
	float *image = nr_arena_alloc(arena, (size_t)(c->batch * values) * sizeof *image);
	int32_t *label = nr_arena_alloc(arena, (size_t)c->batch * sizeof *label);
	struct nr_gradients g;
	if (!f->gradient || !f->size || !image || !label)
		return nr_fail(err, NR_EMEMORY, "cannot run the model", c->model, "out of memory");
	if (nr_gradients_open(&g, w, NULL, c->batch, true, err)) return err->code;
	for (int64_t step = 0; step < c->steps; step++) {
		draw(c, step, classes, values, image, label);
		nr_gradients_step(&g, &(struct nr_batch){ .samples = c->batch, .image = image, .label = label });
	}
	for (int64_t i = 0; i < f->blocks; i++) {
		const char *prefix = nr_arena_printf(arena, "blocks.%lld.", (long long)i);
		int64_t parameters;
		f->gradient[i] = prefix ? nr_gradients_norm(&g, prefix, &parameters) / sqrt((double)parameters) : NAN;
	}
	f->loss = g.loss_sum / (double)c->steps;
	nr_gradients_close(&g);
	return sizes(f, w, c, image, err);
}

int nr_flow_run(struct nr_flow *f, const struct nr_flow_config *c, const char *plan, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_weights w;
	*f = (struct nr_flow){ .plan = plan };
	int code = make(&w, c, plan, arena, err);
	if (!code && nr_model_int(&w.model, "classes") < 2)
		code = nr_fail(err, NR_EVALUE, "cannot take gradients of", c->model, "it has fewer than two classes");
	if (!code) code = run(f, &w, c, arena, err);
	nr_store_free(w.store);
	return code;
}
