/* See outputs.h. */
#include "surgery/outputs.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/real.h"
#include "base/rng.h"
#include "norma/model.h"
#include "norma/norm.h"

enum { STREAM_MADE_UP = 51 };

static void make_up(struct nr_plan *plan, const struct nr_inputs *in, const struct nr_model_spec *m)
{
	const struct nr_rng rng = nr_rng_make(1, STREAM_MADE_UP, 0);
	if (in->image) {
		real *x = nr_plan_data(plan, in->image);
		for (int64_t i = 0; i < nr_len(in->image); i++) x[i] = (real)nr_rng_normal(rng, (uint64_t)i);
		return;
	}
	const int64_t vocab = nr_model_int(m, "vocab") > 4 ? nr_model_int(m, "vocab") : 4;
	int32_t *ids = nr_plan_data(plan, in->ids), *valid = in->valid ? nr_plan_data(plan, in->valid) : NULL;
	for (int64_t i = 0; i < nr_len(in->ids); i++) ids[i] = (int32_t)(3 + nr_rng_below(rng, (uint64_t)i, (uint64_t)vocab - 3));
	for (int64_t i = 0; valid && i < nr_len(in->valid); i++) valid[i] = (int32_t)in->ids->d[1];
}

static nr_t *record(struct nr_net *n, const struct nr_weights *w, struct nr_inputs *in, int64_t batch)
{
	*in = nr_model_inputs(n, &w->model, batch);
	nr_t *x = nr_model_tokens(n, &w->model, in);
	if (!w->model.of->pool || (w->model.of->reads == NR_TEXTS && !nr_weights_has_head(w))) return x;
	x = w->model.of->pool(n, x, w->model.conf);
	return nr_weights_has_head(w) ? nr_model_head(n, &w->model, x) : x;
}

int nr_outputs_of(struct nr_outputs *o, const struct nr_weights *w, int64_t batch, struct nr_error *err)
{
	enum { RUNS = 7 };
	struct nr_plan *plan = NULL;
	struct nr_inputs in;
	*o = (struct nr_outputs){ .seconds = INFINITY };
	if (w->model.of->reads == NR_MOLECULES) return NR_OK;
	struct nr_net *n = nr_net_make(w->store);
	int code = n ? nr_norms_use(n, w->norms, &w->model.norms, err)
		     : nr_fail(err, NR_EMEMORY, "cannot run the model", NULL, "out of memory");
	nr_t *y = code ? NULL : record(n, w, &in, batch);
	if (!code) code = nr_norms_done(n, err);
	if (!code) code = nr_plan_make(&plan, n, y, 0, err);
	if (!code && !(o->values = malloc((size_t)nr_len(y) * sizeof *o->values)))
		code = nr_fail(err, NR_EMEMORY, "cannot run the model", NULL, "out of memory");
	if (!code) {
		make_up(plan, &in, &w->model);
		for (int i = 0; i < RUNS; i++) {
			const double t = nr_clock();
			nr_plan_run(plan, &(struct nr_exec){ 0 }, NR_RUN_FORWARD);
			o->seconds = fmin(o->seconds, nr_clock() - t);
		}
		const real *values = nr_plan_data(plan, y);
		o->count = nr_len(y);
		for (int64_t i = 0; i < o->count; i++) o->values[i] = (float)values[i];
	}
	nr_plan_free(plan);
	nr_net_free(n);
	return code;
}

void nr_outputs_release(struct nr_outputs *o)
{
	free(o->values);
	*o = (struct nr_outputs){ 0 };
}

double nr_outputs_change(const struct nr_outputs *was, const struct nr_outputs *is)
{
	double most = 0, largest = 0;
	if (!was->values || !is->values || was->count != is->count) return NAN;
	for (int64_t i = 0; i < was->count; i++) {
		most = fmax(most, fabs((double)was->values[i] - (double)is->values[i]));
		largest = fmax(largest, fabs((double)was->values[i]));
		if (!isfinite(is->values[i])) return INFINITY;
	}
	return largest > 0 ? most / largest : most;
}
