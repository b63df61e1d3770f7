/* Measures of DINO's teacher: see dino_eval.h. */
#include "tasks/dino_eval.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/knn.h"
#include "analysis/probe.h"
#include "analysis/uniformity.h"
#include "infer/features.h"
#include "tasks/mae_probe.h"

enum { METER = 2048 };                          /* features whose spread is measured */
static const double weight_decays[] = { 1e-2, 1e-3, 1e-4 };
enum { WEIGHT_DECAYS = sizeof weight_decays / sizeof *weight_decays };

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory"); }

/* The same for training pictures; *order is theirs. */
static int from_training(struct nr_task_run *r, const struct nr_evaluation *e, int64_t count, struct nr_evaluation *from, int32_t **order,
	struct nr_error *err)
{
	*from = *e;
	from->split = NR_TRAIN;
	from->count = count ? count : r->source->count[NR_TRAIN];
	from->index = *order = nr_probe_order(r, &from->count, err);
	return *order ? NR_OK : (int)err->code;
}

static int spread(const struct nr_feature_set *f, double *value, struct nr_error *err)
{
	const int64_t n = f->count < METER ? f->count : METER, C = f->width;
	struct nr_spread spread;
	real *x = malloc((size_t)(n * C) * sizeof *x);
	double *s = malloc((size_t)(n < C ? n : C) * sizeof *s);
	for (int64_t i = 0; x && i < n * C; i++) x[i] = (real)f->x[i];
	const int code = x && s ? nr_spread(n, C, x, s, &spread, err) : no_memory(err);
	if (!code) value[NR_DINO_RANK] = spread.rank, value[NR_DINO_UNIFORMITY] = spread.uniformity;
	free(x);
	free(s);
	return code;
}

static int neighbours(struct nr_task_run *r, const struct nr_weights *w, const struct nr_evaluation *e, int64_t batch,
	const struct nr_feature_set *test, double *top1, struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	struct nr_feature_set train = { 0 };
	struct nr_evaluation from;
	int32_t *order;
	double top5;
	int code = from_training(r, e, o->knn, &from, &order, err);
	if (!code) code = nr_features_of(&train, w, &from, batch, err);
	if (!code)
		code = nr_knn(train.count, train.width, train.x, train.label, test->count, test->x, test->label, r->source->classes,
			o->knn_k < train.count ? o->knn_k : train.count, o->knn_temp, top1, &top5, e->comm, err);
	nr_features_release(&train);
	free(order);
	return code;
}

static int linear_head(struct nr_task_run *r, const struct nr_weights *w, const struct nr_evaluation *e, int64_t batch, double *top1,
	struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	struct nr_feature_set train = { 0 }, test = { 0 };
	struct nr_evaluation from;
	struct nr_probe_result result;
	int32_t *order;
	struct nr_probe p = { .solver = NR_PROBE_EXACT, .classes = r->source->classes, .weight_decays = WEIGHT_DECAYS, .hold_out = 0.1,
		.tolerance = 1e-4, .iterations = 1000, .comm = e->comm };
	memcpy(p.weight_decay, weight_decays, sizeof weight_decays);
	int code = from_training(r, e, o->linear, &from, &order, err);
	if (!code) code = nr_block_features_of(&train, w, &from, batch, o->linear_blocks, o->linear_mean, err);
	if (!code) code = nr_block_features_of(&test, w, e, batch, o->linear_blocks, o->linear_mean, err);
	if (!code) {
		const struct nr_probe_data a = { train.count, train.width, train.x, train.label };
		const struct nr_probe_data b = { test.count, test.width, test.x, test.label };
		code = nr_probe_run(&p, &a, &b, &result, err);
	}
	if (!code) *top1 = result.best.top1;
	nr_features_release(&train);
	nr_features_release(&test);
	free(order);
	return code;
}

int nr_dino_evaluate(struct nr_task_run *r, const struct nr_weights *w, const struct nr_evaluation *e, int64_t batch, bool linear,
	double *value, int64_t *samples, struct nr_error *err)
{
	const struct nr_dino *o = r->settings;
	const bool classes = r->source->classes > 1 && r->source->count[NR_TRAIN] > 0;
	struct nr_feature_set test;
	for (int i = 0; i < NR_DINO_VALUES; i++) value[i] = NAN;
	if (nr_features_of(&test, w, e, batch, err)) return err->code;
	*samples = test.count;
	int code = spread(&test, value, err);
	if (!code && classes) code = neighbours(r, w, e, batch, &test, &value[NR_DINO_KNN], err);
	nr_features_release(&test);
	if (!code && linear && o->linear) code = linear_head(r, w, e, batch, &value[NR_DINO_LINEAR], err);
	return code;
}
