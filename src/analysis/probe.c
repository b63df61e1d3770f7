/* Linear probing. See probe.h. */
#include "analysis/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/logistic.h"
#include "base/rng.h"
#include "infer/metrics.h"
#include "math/moments.h"

enum { STREAM = 0x48454c44 };               /* which rows are held out */
enum { BLOCK = 8192 };                      /* rows that are scored at once */

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory"); }

int64_t nr_probe_hold_out(int64_t rows, const int32_t *label, int64_t classes, double share, uint64_t seed, int32_t *fit,
	struct nr_error *err)
{
	int32_t *order = malloc((size_t)rows * sizeof *order);
	int64_t *left = calloc((size_t)classes, sizeof *left), held = 0;
	if (!order || !left) {
		free(order);
		free(left);
		return out_of_memory(err);
	}
	memcpy(fit, label, (size_t)rows * sizeof *fit);
	for (int64_t i = 0; i < rows; i++) left[label[i]]++;
	for (int64_t k = 0; k < classes; k++) {
		const int64_t some = (int64_t)(share * (double)left[k] + .5);
		left[k] = some < left[k] ? some : left[k] - 1;
	}
	nr_rng_shuffle(nr_rng_make(seed, STREAM, 0), 0, order, (int32_t)rows);
	for (int64_t i = 0; i < rows; i++) {
		const int32_t k = label[order[i]];
		if (left[k] <= 0) continue;
		left[k]--;
		held++;
		fit[order[i]] = -1;
	}
	free(order);
	free(left);
	return held;
}

void nr_wilson(double p, int64_t n, double z, double *low, double *high)
{
	const double m = (double)n, middle = p + z * z / (2 * m), spread = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
	*low = fmax(0, (middle - spread) / (1 + z * z / m));
	*high = fmin(1, (middle + spread) / (1 + z * z / m));
}

/* ---- exact ---------------------------------------------------------------------------------------------------------------- */

struct exact {
	const struct nr_probe_work *w;
	real *train, *test, *scores;        /* standardised features; (BLOCK,classes) */
	int32_t *rank;                      /* (BLOCK) */
	double *moments, *weight;           /* mean and deviation of each column; (classes,width+1) */
	struct nr_logistic_data data;
};

/* A column without deviation becomes zero. */
static int standardise(const struct nr_probe_data *from, const double *mean, const double *std, real *to)
{
	const int64_t C = from->width;
	int finite = 1;
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < from->count; i++)
		for (int64_t c = 0; c < C; c++) to[i * C + c] = (real)(std[c] > 0 ? ((double)from->x[i * C + c] - mean[c]) / std[c] : 0);
	for (int64_t i = 0; finite && i < from->count * C; i++) finite = isfinite(to[i]);
	return finite;
}

static int prepare(struct exact *e, struct nr_error *err)
{
	const struct nr_probe_data *train = e->w->train, *test = e->w->test;
	const int64_t C = train->width, K = e->w->o->classes;
	e->train = malloc((size_t)(train->count * C) * sizeof(real));
	e->test = malloc((size_t)(test->count * C) * sizeof(real));
	e->scores = malloc((size_t)(BLOCK * K) * sizeof(real));
	e->rank = malloc(BLOCK * sizeof *e->rank);
	e->moments = malloc((size_t)(2 * C) * sizeof(double));
	e->weight = calloc((size_t)(K * (C + 1)), sizeof(double));
	if (!e->train || !e->test || !e->scores || !e->rank || !e->moments || !e->weight) return out_of_memory(err);
	double *mean = e->moments, *std = mean + C;
	for (int64_t i = 0; i < train->count * C; i++) e->train[i] = (real)train->x[i];
	nr_column_moments(train->count, C, e->train, mean, std);
	for (int64_t c = 0; c < C; c++) std[c] = std[c] > 1e-12 * (mean[c] * mean[c]) ? sqrt(std[c]) : 0;
	if (!standardise(train, mean, std, e->train) || !standardise(test, mean, std, e->test))
		return nr_fail(err, NR_EDIVERGED, "cannot probe", NULL, "a feature is not finite");
	return nr_logistic_data_init(&e->data, train->count, C, e->train, e->w->o->comm, err);
}

/* Shares of rows whose label is among the first k; rows where `skip` has a label are left out (skip may be NULL). */
static int score(struct exact *e, const struct nr_probe_data *d, const real *x, const int32_t *skip, double *top1, double *top5,
	struct nr_error *err)
{
	const int64_t K = e->w->o->classes;
	int64_t counted = 0, first = 0, five = 0;
	for (int64_t at = 0; at < d->count; at += BLOCK) {
		const int64_t n = d->count - at < BLOCK ? d->count - at : BLOCK;
		if (nr_logistic_scores(n, d->width, K, x + at * d->width, e->weight, e->scores, err)) return err->code;
		nr_metric_rank(n, K, e->scores, d->label + at, e->rank);
		for (int64_t i = 0; i < n; i++) {
			if (skip && skip[at + i] >= 0) continue;
			counted++;
			first += e->rank[i] < 1;
			five += e->rank[i] < 5;
		}
	}
	*top1 = counted ? (double)first / (double)counted : 0;
	*top5 = counted ? (double)five / (double)counted : 0;
	return NR_OK;
}

/* Fits from the weights as they are; held: also scores the rows that were left out. */
static int fit_one(struct exact *e, const int32_t *label, bool held, double weight_decay, struct nr_probe_try *t, struct nr_error *err)
{
	const struct nr_probe *o = e->w->o;
	const struct nr_logistic problem = { .data = &e->data, .classes = o->classes, .label = label, .l2 = weight_decay,
		.tolerance = o->tolerance, .iterations = o->iterations };
	struct nr_logistic_result r;
	double ignored;
	*t = (struct nr_probe_try){ .weight_decay = weight_decay, .held_top1 = -1 };
	if (nr_logistic_fit(&problem, e->weight, &r, err)) return err->code;
	t->loss = r.loss, t->gradient = r.gradient, t->iterations = r.iterations, t->converged = r.converged;
	if (held && score(e, e->w->train, e->train, label, &t->held_top1, &ignored, err)) return err->code;
	return score(e, e->w->test, e->test, NULL, &t->top1, &t->top5, err);
}

static int falling(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

static int exact(const struct nr_probe_work *w, struct nr_probe_result *r, struct nr_error *err)
{
	struct exact e = { .w = w };
	double decay[NR_PROBE_MAX];
	int code = prepare(&e, err);
	memcpy(decay, w->o->weight_decay, sizeof decay);
	qsort(decay, (size_t)w->o->weight_decays, sizeof *decay, falling);
	r->tries = w->o->weight_decays;
	for (int64_t i = 0; !code && i < r->tries; i++) {
		code = fit_one(&e, w->fit, w->held > 0, decay[i], &r->each[i], err);
		if (r->each[i].held_top1 > r->each[r->chosen].held_top1) r->chosen = i;         /* of equals the larger decay */
	}
	if (!code && !w->held) r->best = r->each[r->chosen];
	if (!code && w->held) {
		code = fit_one(&e, w->train->label, false, decay[r->chosen], &r->best, err);
		r->best.held_top1 = r->each[r->chosen].held_top1;
	}
	nr_logistic_data_release(&e.data);
	free(e.train), free(e.test), free(e.scores), free(e.rank), free(e.moments), free(e.weight);
	return code;
}

/* ---- both ----------------------------------------------------------------------------------------------------------------- */

static int check_labels(const struct nr_probe_data *d, int64_t classes, const char *split, struct nr_error *err)
{
	for (int64_t i = 0; i < d->count; i++) {
		if (d->label[i] >= 0 && d->label[i] < classes) continue;
		if (d->label[i] < 0) return nr_fail(err, NR_EVALUE, "cannot probe", split, "sample %lld has no label", (long long)i);
		return nr_fail(err, NR_EVALUE, "cannot probe", split,
			"sample %lld has class %d, but the data have %lld classes",
			(long long)i, d->label[i], (long long)classes);
	}
	return NR_OK;
}

static int check(const struct nr_probe *o, const struct nr_probe_data *train, const struct nr_probe_data *test, struct nr_error *err)
{
	if (check_labels(train, o->classes, "train", err) || check_labels(test, o->classes, "test", err)) return err->code;
	if (test->count < 1 || train->count < 2)
		return nr_fail(err, NR_EVALUE, "cannot probe", NULL,
			"too few samples: %lld for training, %lld for testing",
			(long long)train->count, (long long)test->count);
	for (int64_t i = 1; i < train->count; i++)
		if (train->label[i] != train->label[0]) return train->width == test->width ? NR_OK : NR_ESHAPE;
	return nr_fail(err, NR_EVALUE, "cannot probe", NULL, "all %lld training samples are of one class", (long long)train->count);
}

int nr_probe_run(const struct nr_probe *o, const struct nr_probe_data *train, const struct nr_probe_data *test, struct nr_probe_result *r,
	struct nr_error *err)
{
	*r = (struct nr_probe_result){ 0 };
	if (check(o, train, test, err)) return err->code;
	int32_t *fit = malloc((size_t)train->count * sizeof *fit);
	if (!fit) return out_of_memory(err);
	const bool several = o->weight_decays * (o->solver == NR_PROBE_LARS ? o->base_lrs : 1) > 1;
	r->held = nr_probe_hold_out(train->count, train->label, o->classes, several ? o->hold_out : 0, o->seed, fit, err);
	int code = r->held < 0 ? (int)r->held : NR_OK;
	if (!code && several && !r->held) {
		nr_fail(err, NR_EVALUE, "cannot choose among several settings", NULL,
			"there are too few training samples to hold any out");
		code = nr_hint(err, "give a single weight decay, or use more samples");
	}
	const struct nr_probe_work w = { o, train, test, fit, r->held };
	if (!code) code = o->solver == NR_PROBE_EXACT ? exact(&w, r, err) : nr_probe_lars(&w, r, err);
	free(fit);
	return code;
}
