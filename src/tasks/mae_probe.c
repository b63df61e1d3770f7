/* The probe that goes along with masked autoencoding: features by infer/features.h, fitted by analysis/probe.h. */
#include "tasks/mae_probe.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/probe.h"
#include "base/rng.h"
#include "graph/streams.h"

static const double weight_decays[] = { 1e-2, 1e-3, 1e-4 };
enum { WEIGHT_DECAYS = sizeof weight_decays / sizeof *weight_decays };

int32_t *nr_probe_order(const struct nr_task_run *r, int64_t *count, struct nr_error *err)
{
	const int64_t n = r->source->count[NR_TRAIN], most = n - (int64_t)(r->c->hold_out * (double)n);
	int32_t *order = malloc((size_t)(n + 1) * sizeof *order);
	if (!order) {
		nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
		return NULL;
	}
	nr_rng_shuffle(nr_rng_make(0, NR_STREAM_SUBSET, 0), 0, order, (int32_t)n);
	if (*count > most) *count = most;
	return order;
}

static int fit(const struct nr_task_run *r, struct nr_comm *comm, const struct nr_token_features *train,
	const struct nr_token_features *test, double top1[NR_FEATURE_KINDS], struct nr_error *err)
{
	struct nr_probe o = { .solver = NR_PROBE_EXACT, .classes = r->source->classes, .weight_decays = WEIGHT_DECAYS, .hold_out = 0.1,
		.tolerance = 1e-4, .iterations = 1000, .comm = comm };
	memcpy(o.weight_decay, weight_decays, sizeof weight_decays);
	for (int k = 0; k < NR_FEATURE_KINDS; k++) {
		struct nr_probe_result result;
		if (!train->x[k]) continue;
		const struct nr_probe_data from = { train->count, train->width, train->x[k], train->label };
		const struct nr_probe_data to = { test->count, test->width, test->x[k], test->label };
		if (nr_probe_run(&o, &from, &to, &result, err)) return err->code;
		top1[k] = result.best.top1;
	}
	return NR_OK;
}

int nr_mae_probe(struct nr_task_run *r, const struct nr_evaluation *e, int64_t count, int64_t batch, double top1[NR_FEATURE_KINDS],
	struct nr_error *err)
{
	const unsigned want = 1u << NR_FEATURE_MEAN | (nr_has_class_token(r->w) ? 1u << NR_FEATURE_CLS : 0);
	struct nr_token_features train = { 0 }, test = { 0 };
	int32_t *order = nr_probe_order(r, &count, err);
	struct nr_evaluation from = *e;
	from.split = NR_TRAIN;
	from.index = order;
	from.count = count;
	for (int k = 0; k < NR_FEATURE_KINDS; k++) top1[k] = NAN;
	int code = order ? nr_token_features_of(&train, r->w, &from, batch, want, err) : (int)err->code;
	if (!code) code = nr_token_features_of(&test, r->w, e, batch, want, err);
	if (!code) code = fit(r, e->comm, &train, &test, top1, err);
	nr_token_features_release(&train);
	nr_token_features_release(&test);
	free(order);
	return code;
}
