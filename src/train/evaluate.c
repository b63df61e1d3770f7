/* Evaluation: top-1, top-5, negative log-likelihood and the calibration error (Guo et al. 2017, arXiv:1706.04599; 15 bins of
 * equal width of the largest probability). Sums run in sample order: the same bits for any number of threads. */
#include "train/evaluate.h"

#include <math.h>
#include <stdlib.h>

#include "train/metrics.h"

enum { BINS = 15 };

struct sums {
	double nll, bin_conf[BINS], bin_right[BINS], bin_count[BINS];
	int64_t top1, top5, samples;
};

struct nr_augment nr_augment_for_eval(const struct nr_augment *train, int64_t size, int32_t channels, double crop_share)
{
	static char none[] = "";
	struct nr_augment a = *train;
	a.size = size;
	a.channels = channels;
	a.crop = NR_CROP_CENTER;
	a.crop_share = crop_share;
	a.flip = a.brightness = a.contrast = a.saturation = a.hue = a.erase = 0;
	a.randaugment = none;
	a.repeats = 1;
	return a;
}

static void add_sample(struct sums *s, int64_t K, const real *logits, int32_t label, int32_t rank, int64_t *confusion)
{
	int64_t best = 0;
	double sum = 0;
	for (int64_t k = 1; k < K; k++)
		if (logits[k] > logits[best]) best = k;
	for (int64_t k = 0; k < K; k++) sum += exp((double)logits[k] - (double)logits[best]);
	const double conf = 1 / sum;
	int bin = conf >= 0 ? (int)(conf * BINS) : 0;   /* a broken model gives NaN */
	if (bin >= BINS) bin = BINS - 1;
	if (label >= 0 && label < K) s->nll += log(sum) - ((double)logits[label] - (double)logits[best]);
	s->top1 += rank < 1;
	s->top5 += rank < 5;
	s->bin_conf[bin] += conf;
	s->bin_right[bin] += rank < 1;
	s->bin_count[bin] += 1;
	s->samples++;
	if (confusion && label >= 0 && label < K) confusion[label * K + best]++;
}

static struct nr_score score_of(const struct sums *s)
{
	const double n = s->samples ? (double)s->samples : 1;
	struct nr_score score = { .loss = s->nll / n, .top1 = (double)s->top1 / n, .top5 = (double)s->top5 / n, .samples = s->samples };
	for (int b = 0; b < BINS; b++) score.ece += fabs(s->bin_conf[b] - s->bin_right[b]) / n;
	return score;
}

static void keep(const struct nr_evaluation *e, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	const real *logits = nr_plan_data(r->plan, r->logits), *pooled = nr_plan_data(r->plan, r->pooled);
	for (int64_t i = 0; i < b->samples; i++) {
		const int64_t at = first + i;
		for (int64_t k = 0; e->logits && k < r->classes; k++) e->logits[at * r->classes + k] = (float)logits[i * r->classes + k];
		for (int64_t k = 0; e->pooled && k < r->width; k++) e->pooled[at * r->width + k] = (float)pooled[i * r->width + k];
		if (e->label) e->label[at] = b->label[i];
	}
}

int nr_evaluate(struct nr_runner *r, const struct nr_evaluation *e, struct nr_score *out, struct nr_error *err)
{
	const struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = r->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .drop_last = e->stats == NR_STATS_BATCH };
	struct nr_loader *loader = NULL;
	struct sums s = { 0 };
	int32_t *rank = malloc((size_t)r->batch * sizeof *rank);
	if (!rank) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	int code = nr_loader_open(&loader, &config, err);
	const int64_t batches = code ? 0 : nr_loader_batches(loader);
	for (int64_t q = 0; !code && q < batches; q++) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		nr_runner_run(r, b->image, e->stats);
		const real *logits = nr_plan_data(r->plan, r->logits);
		nr_metric_rank(b->samples, r->classes, logits, b->label, rank);
		for (int64_t i = 0; i < b->samples; i++)
			add_sample(&s, r->classes, logits + i * r->classes, b->label[i], rank[i], e->confusion);
		keep(e, r, b, q * r->batch);
		nr_loader_give_back(loader, b);
		if (e->watch && e->watch(e->context, q + 1, batches)) break;
	}
	nr_loader_close(loader);
	free(rank);
	*out = score_of(&s);
	return code;
}
