/* Evaluation: top-1, top-5, negative log-likelihood and the calibration error (Guo et al. 2017, arXiv:1706.04599; 15 bins of
 * equal width of the largest probability). Sums run in sample order: the same bits for any number of threads. */
#include "infer/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "graph/comm.h"
#include "graph/net.h"
#include "infer/finite.h"
#include "infer/metrics.h"

enum { BINS = 15 };

struct sums {
	double nll, bin_conf[BINS], bin_right[BINS], bin_count[BINS];
	int64_t top1, top5, samples;
	int32_t *rank;                      /* (batch) */
	int64_t *confusion;
};

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

/* On the batch once more: a plan may have put something else into the place of its input. */
static int not_finite(struct nr_runner *r, const struct nr_batch *b, enum nr_stats stats, struct nr_error *err)
{
	const struct nr_exec ex = { .train = stats == NR_STATS_BATCH, .no_dropout = 1 };
	nr_from_floats(nr_plan_data(r->plan, r->image), b->image, nr_len(r->image));
	return nr_not_finite(r->plan, r->net->store, &ex, r->model, err);
}

/* What a rank has to say of a batch: how many samples, or the error; then labels, numbers and outputs. */
struct said { int64_t samples; struct nr_error err; };
struct shared {
	struct nr_comm *comm;
	nr_t *out;
	int64_t ranks, rank;
	size_t ints, bytes;                     /* of labels and numbers; of all that a rank says */
	char *mine, *all;
};

static int open_shared(struct shared *s, const struct nr_runner *r, struct nr_comm *comm, struct nr_error *err)
{
	*s = (struct shared){ .comm = comm, .out = r->logits ? r->logits : r->pooled, .ranks = nr_comm_size(comm),
		.rank = nr_comm_rank(comm) };
	s->ints = (size_t)(r->batch + (r->batch & 1)) * sizeof(int32_t);        /* what follows is aligned */
	s->bytes = (sizeof(struct said) + 2 * s->ints + (size_t)nr_len(s->out) * sizeof(real) + 15) / 16 * 16;
	s->mine = calloc(1, s->bytes);
	s->all = calloc((size_t)s->ranks, s->bytes);
	return s->mine && s->all ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
}

static void release_shared(struct shared *s)
{
	free(s->mine);
	free(s->all);
}

/* This rank's batch of a round. */
static int run_own(struct shared *s, struct nr_loader *loader, struct nr_runner *r, const struct nr_evaluation *e, struct nr_error *err)
{
	struct nr_batch *b;
	char *ints = s->mine + sizeof(struct said);
	if (nr_loader_next(loader, &b, err)) return err->code;
	nr_runner_run(r, b->image, e->stats);
	((struct said *)(void *)s->mine)->samples = b->samples;
	memcpy(ints, b->label, (size_t)b->samples * sizeof *b->label);
	memcpy(ints + s->ints, b->index, (size_t)b->samples * sizeof *b->index);
	memcpy(ints + 2 * s->ints, nr_plan_data(r->plan, s->out), (size_t)nr_len(s->out) * sizeof(real));
	const int code = nr_rows_finite(r->plan, s->out, b->samples) ? NR_OK : not_finite(r, b, e->stats, err);
	nr_loader_give_back(loader, b);
	return code;
}

/* Rounds of one batch for each rank, whose outputs all of them then go through in order. */
static int run_shared(struct nr_runner *r, const struct nr_evaluation *e, struct nr_loader *loader, nr_each_batch *each, void *out,
	struct nr_error *err)
{
	struct shared s;
	int code = open_shared(&s, r, e->comm, err);
	const int64_t batches = nr_loader_batches(loader);
	for (int64_t q = 0; q < batches && !code; q += s.ranks) {
		struct said *said = (struct said *)(void *)s.mine;
		*said = (struct said){ 0 };
		if (q + s.rank < batches) run_own(&s, loader, r, e, &said->err);
		if ((code = nr_comm_gather(s.comm, s.mine, s.bytes, s.all, err))) break;
		for (int64_t i = 0; i < s.ranks && q + i < batches && !code; i++) {
			const struct said *of = (const struct said *)(const void *)(s.all + (size_t)i * s.bytes);
			char *ints = s.all + (size_t)i * s.bytes + sizeof *of;
			struct nr_batch b = { .number = q + i, .samples = of->samples, .label = (int32_t *)(void *)ints,
				.index = (int32_t *)(void *)(ints + s.ints) };
			if ((code = of->err.code)) {
				*err = of->err;
				nr_comm_agreed(s.comm);
				break;
			}
			memcpy(nr_plan_data(r->plan, s.out), ints + 2 * s.ints, (size_t)nr_len(s.out) * sizeof(real));
			each(out, r, &b, (q + i) * r->batch);
		}
		if (!code && e->watch) e->watch(e->context, q + s.ranks < batches ? q + s.ranks : batches, batches);
	}
	release_shared(&s);
	return code;
}

static int run_each(struct nr_runner *r, const struct nr_evaluation *e, struct nr_loader *loader, nr_each_batch *each, void *out,
	struct nr_error *err)
{
	const int64_t batches = nr_loader_batches(loader), ranks = nr_comm_size(e->comm);
	int code = NR_OK;
	for (int64_t q = nr_comm_rank(e->comm); !code && q < batches; q += ranks) {
		struct nr_batch *b;
		if ((code = nr_loader_next(loader, &b, err))) break;
		nr_runner_run(r, b->image, e->stats);
		if (nr_rows_finite(r->plan, r->logits ? r->logits : r->pooled, b->samples)) each(out, r, b, q * r->batch);
		else code = not_finite(r, b, e->stats, err);
		nr_loader_give_back(loader, b);
		if (!code && e->watch && e->watch(e->context, q + 1, batches) && !e->comm) code = 1;
	}
	return code;
}

static int open_loader(struct nr_loader **out, const struct nr_runner *r, const struct nr_evaluation *e, struct nr_error *err)
{
	struct nr_loader_config config = { .source = e->source, .split = e->split, .augment = &e->augment, .batch = r->batch,
		.index = e->index, .count = e->count, .threads = e->workers, .drop_last = e->stats == NR_STATS_BATCH };
	*out = NULL;
	if (e->comm) {
		const int64_t ranks = nr_comm_size(e->comm), rank = nr_comm_rank(e->comm);
		const int64_t count = e->count ? e->count : e->source->count[e->split];
		config.share.of = ranks, config.share.from = rank, config.share.take = 1;
		config.stop = ((count + r->batch - 1) / r->batch - rank + ranks - 1) / ranks;
	}
	return nr_loader_open(out, &config, err);
}

int nr_run_own(struct nr_runner *r, const struct nr_evaluation *e, nr_each_batch *each, void *out, struct nr_error *err)
{
	struct nr_loader *loader;
	int code = open_loader(&loader, r, e, err);
	if (!code) code = run_each(r, e, loader, each, out, err);
	nr_loader_close(loader);
	return code;
}

int nr_run_over(struct nr_runner *r, const struct nr_evaluation *e, nr_each_batch *each, void *out, struct nr_error *err)
{
	struct nr_loader *loader;
	if (!e->comm) return nr_run_own(r, e, each, out, err);
	int code = open_loader(&loader, r, e, err);
	if (!code) code = run_shared(r, e, loader, each, out, err);
	nr_loader_close(loader);
	return code;
}

static void score_batch(void *out, const struct nr_runner *r, const struct nr_batch *b, int64_t first)
{
	struct sums *s = out;
	const real *logits = nr_plan_data(r->plan, r->logits);
	(void)first;
	nr_metric_rank(b->samples, r->classes, logits, b->label, s->rank);
	for (int64_t i = 0; i < b->samples; i++)
		add_sample(s, r->classes, logits + i * r->classes, b->label[i], s->rank[i], s->confusion);
}

int nr_classes_fit(int64_t classes, const struct nr_source *s, struct nr_error *err)
{
	if (classes == s->classes) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot use", s->of->name, "the model has %lld classes, the data %d", (long long)classes,
		s->classes);
}

int nr_evaluate(struct nr_runner *r, const struct nr_evaluation *e, struct nr_score *out, struct nr_error *err)
{
	if (nr_classes_fit(r->classes, e->source, err)) return err->code;
	struct sums s = { .rank = malloc((size_t)r->batch * sizeof *s.rank), .confusion = e->confusion };
	if (!s.rank) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	const int code = nr_run_over(r, e, score_batch, &s, err);
	free(s.rank);
	*out = score_of(&s);
	return code < 0 ? code : NR_OK;                 /* stopped: what was seen counts */
}
