/* MAE's linear probe, over features in memory or over such of augmented pictures, made for each step. See probe.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/probe.h"
#include "analysis/probe_heads.h"
#include "base/rng.h"
#include "infer/metrics.h"
#include "math/chunk.h"

enum { STREAM = 0x4c415253 };               /* order of an epoch */

struct lars {
	const struct nr_probe_work *w;
	struct nr_probe_heads *heads;
	int32_t *row, *order;               /* rows to fit, and the order of this epoch */
	int64_t rows, batch, steps_of_epoch, steps;
	float *fresh;                       /* (batch,width) */
	real *x, *all, *one;                /* (batch,width); scores of all heads (batch,heads*classes), of one (batch,classes) */
	int32_t *label, *rank;              /* (batch) */
	double *loss;                       /* (heads) over the last epoch */
	struct nr_rates *rates;             /* (heads) */
};

static int gather(struct lars *l, const int32_t *which, int64_t n, int64_t epoch, struct nr_error *err)
{
	const struct nr_probe_data *d = l->w->train;
	const struct nr_probe *o = l->w->o;
	if (o->fresh && o->fresh(o->fresh_of, which, n, epoch, l->fresh, err)) return err->code;
#pragma omp parallel for schedule(static) if (n * d->width > 16384)
	for (int64_t i = 0; i < n; i++) {
		const float *from = o->fresh ? l->fresh + i * d->width : d->x + (int64_t)which[i] * d->width;
		for (int64_t c = 0; c < d->width; c++) l->x[i * d->width + c] = (real)from[c];
		l->label[i] = d->label[which[i]];
	}
	return NR_OK;
}

/* The learning rate at a step of the whole run: linear warm-up, then half a cosine, counted in epochs as MAE does. */
static void set_rates(struct lars *l, int64_t step)
{
	const struct nr_probe *o = l->w->o;
	const double at = (double)step / (double)l->steps_of_epoch, warm = fmin(o->warmup, o->epochs);
	const double share = at < warm ? at / warm : .5 * (1 + cos(3.14159265358979323846 * (at - warm) / fmax(o->epochs - warm, 1e-9)));
	for (int64_t i = 0; i < o->base_lrs; i++)
		for (int64_t k = 0; k < o->weight_decays; k++)
			l->rates[i * o->weight_decays + k] =
				(struct nr_rates){ share * o->base_lr[i] * (double)l->batch / 256, o->weight_decay[k] };
}

static int train(struct lars *l, struct nr_error *err)
{
	const int64_t H = l->heads->heads;
	int code = NR_OK;
	for (int64_t step = 0; !code && step < l->steps; step++) {
		const int64_t at = step % l->steps_of_epoch;
		if (at == 0) {
			const struct nr_rng rng = nr_rng_make(l->w->o->seed, STREAM, (uint32_t)(step / l->steps_of_epoch));
			nr_rng_shuffle(rng, 0, l->order, (int32_t)l->rows);
			for (int64_t i = 0; i < l->rows; i++) l->order[i] = l->row[l->order[i]];
			memset(l->loss, 0, (size_t)H * sizeof *l->loss);
		}
		if (gather(l, l->order + at * l->batch, l->batch, step / l->steps_of_epoch, err)) return err->code;
		set_rates(l, step);
		code = nr_probe_heads_step(l->heads, l->batch, l->x, l->label, l->rates, err);
		for (int64_t h = 0; !code && h < H; h++)
			l->loss[h] += nr_probe_heads_loss(l->heads, h, l->batch) / (double)l->steps_of_epoch;
		if (!code && l->w->o->watch && l->w->o->watch(l->w->o->context, step + 1, l->steps))
			code = nr_fail(err, NR_EVALUE, "cannot probe", NULL, "interrupted");
	}
	return code;
}

/* How often each head (heads) is right on a split; rows where `skip` has a label are left out (skip may be NULL). */
static void count_right(struct lars *l, const struct nr_probe_data *d, const int32_t *skip, int64_t *top1, int64_t *top5)
{
	const int64_t C = d->width, K = l->w->o->classes, H = l->heads->heads;
	memset(top1, 0, (size_t)H * sizeof *top1);
	memset(top5, 0, (size_t)H * sizeof *top5);
	for (int64_t first = 0; first < d->count; first += l->batch) {
		const int64_t n = nr_min64(l->batch, d->count - first);
		for (int64_t i = 0; i < n * C; i++) l->x[i] = (real)d->x[first * C + i];
		nr_probe_heads_scores(l->heads, n, l->x, l->all);
		for (int64_t h = 0; h < H; h++) {
			for (int64_t i = 0; i < n; i++) memcpy(l->one + i * K, l->all + (i * H + h) * K, (size_t)K * sizeof(real));
			nr_metric_rank(n, K, l->one, d->label + first, l->rank);
			for (int64_t i = 0; i < n; i++) {
				if (skip && skip[first + i] >= 0) continue;
				top1[h] += l->rank[i] < 1;
				top5[h] += l->rank[i] < 5;
			}
		}
	}
}

static void score(struct lars *l, struct nr_probe_result *r)
{
	const struct nr_probe *o = l->w->o;
	int64_t held[NR_PROBE_MAX] = { 0 }, top1[NR_PROBE_MAX], top5[NR_PROBE_MAX];
	if (l->w->held) count_right(l, l->w->train, l->w->fit, held, top5);
	count_right(l, l->w->test, NULL, top1, top5);
	r->tries = l->heads->heads;
	for (int64_t h = 0; h < r->tries; h++) {
		r->each[h] = (struct nr_probe_try){ .weight_decay = o->weight_decay[h % o->weight_decays],
			.base_lr = o->base_lr[h / o->weight_decays], .loss = l->loss[h], .iterations = l->steps,
			.held_top1 = l->w->held ? (double)held[h] / (double)l->w->held : -1,
			.top1 = (double)top1[h] / (double)l->w->test->count, .top5 = (double)top5[h] / (double)l->w->test->count };
		if (r->each[h].held_top1 > r->each[r->chosen].held_top1) r->chosen = h;
	}
	r->best = r->each[r->chosen];
}

static int prepare(struct lars *l, struct nr_error *err)
{
	const struct nr_probe_work *w = l->w;
	const int64_t C = w->train->width, K = w->o->classes, H = w->o->base_lrs * w->o->weight_decays;
	if (H < 1 || H > NR_PROBE_MAX)
		return nr_fail(err, NR_EVALUE, "cannot probe", NULL,
			"%lld heads: there must be from 1 to %d", (long long)H, NR_PROBE_MAX);
	for (int64_t i = 0; i < w->train->count; i++) l->rows += w->fit[i] >= 0;
	l->batch = nr_min64(w->o->batch, l->rows);
	l->steps_of_epoch = l->rows / l->batch;                 /* what does not fill a batch waits for another epoch */
	l->steps = (int64_t)ceil(w->o->epochs * (double)l->steps_of_epoch);
	if (nr_probe_heads_make(&l->heads, C, K, H, l->batch, err)) return err->code;
	l->row = malloc((size_t)l->rows * sizeof *l->row);
	l->order = malloc((size_t)l->rows * sizeof *l->order);
	l->label = malloc((size_t)l->batch * sizeof *l->label);
	l->x = malloc((size_t)(l->batch * C) * sizeof *l->x);
	l->all = malloc((size_t)(l->batch * H * K) * sizeof *l->all);
	l->one = malloc((size_t)(l->batch * K) * sizeof *l->one);
	l->rank = malloc((size_t)l->batch * sizeof *l->rank);
	l->fresh = malloc((size_t)(w->o->fresh ? l->batch * C : 1) * sizeof *l->fresh);
	l->loss = calloc((size_t)H, sizeof *l->loss);
	l->rates = calloc((size_t)H, sizeof *l->rates);
	if (!l->row || !l->order || !l->label || !l->x || !l->all || !l->one || !l->rank || !l->fresh || !l->loss || !l->rates)
		return nr_fail(err, NR_EMEMORY, "cannot probe", NULL, "out of memory");
	for (int64_t i = 0, n = 0; i < w->train->count; i++)
		if (w->fit[i] >= 0) l->row[n++] = (int32_t)i;
	nr_probe_heads_init(l->heads, w->o->seed, .01);
	return NR_OK;
}

int nr_probe_lars(const struct nr_probe_work *w, struct nr_probe_result *r, struct nr_error *err)
{
	struct lars l = { .w = w };
	int code = prepare(&l, err);
	if (!code) code = train(&l, err);
	if (!code) score(&l, r);
	nr_probe_heads_free(l.heads);
	free(l.row), free(l.order), free(l.label), free(l.x), free(l.all), free(l.one), free(l.rank);
	free(l.fresh), free(l.loss), free(l.rates);
	return code;
}
