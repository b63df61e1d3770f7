/* How right the classes of pixels are, over a split: see segmenter.h. */
#include <stdlib.h>
#include <string.h>

#include "graph/comm.h"
#include "infer/evaluate.h"
#include "infer/metrics.h"
#include "infer/segmenter.h"

struct scoring {
	struct nr_picture picture, truth, map;
	int32_t *a, *b; /* truth and map as the measure takes them, of a row */
	int64_t room;
	struct pixels {
		double loss;
		int64_t count;
	} * of;         /* (samples) */
	int32_t *owner; /* (samples): the rank that looks at it */
	int64_t *all;   /* (ranks, classes, classes) */
};

static int count(struct scoring *k, int32_t classes, int64_t *confusion)
{
	const int64_t n = (int64_t)k->map.h * k->map.w;
	if (n > k->room) {
		free(k->a);
		k->room = n;
		if (!(k->a = malloc(2 * (size_t)n * sizeof *k->a))) return NR_EMEMORY;
	}
	k->b = k->a + n;
	for (int64_t i = 0; i < n; i++) k->a[i] = k->truth.pixels[i], k->b[i] = k->map.pixels[i];
	nr_metric_confusion(n, k->a, k->b, classes, NR_NO_CLASS, confusion);
	return NR_OK;
}

static int score_one(struct nr_segmenter *s, struct scoring *k, const struct nr_evaluation *e, int64_t i, struct nr_error *err)
{
	const int64_t sample = e->index ? e->index[i] : i;
	struct pixels *of = &k->of[i];
	if (nr_source_get(e->source, e->split, sample, &k->picture, NULL, err) ||
		nr_source_map(e->source, e->split, sample, &k->picture, &k->truth, err) ||
		nr_segmenter_run(s, &k->picture, &k->truth, &k->map, &of->loss, &of->count, err))
		return err->code;
	return count(k, e->source->classes, e->confusion) ? nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory") : NR_OK;
}

/* Which one of those to show a sample is, or -1. */
static int64_t shown(const struct nr_segment_each *each, int64_t i, int64_t n)
{
	const int64_t most = each ? each->most < n ? each->most : n : 0;
	for (int64_t q = 0; q < most; q++)
		if (i == (2 * q + 1) * n / (2 * most)) return q;
	return -1;
}

/* What ranks counted, to all of them. */
static int share(struct scoring *k, const struct nr_evaluation *e, int64_t n, struct nr_error *err)
{
	const size_t cells = (size_t)e->source->classes * (size_t)e->source->classes;
	if (!e->comm) return NR_OK;
	if (nr_comm_spread(e->comm, n, sizeof *k->of, k->owner, k->of, err) ||
		nr_comm_gather(e->comm, e->confusion, cells * sizeof *k->all, k->all, err))
		return err->code;
	memset(e->confusion, 0, cells * sizeof *k->all);
	for (size_t i = 0; i < cells * (size_t)nr_comm_size(e->comm); i++) e->confusion[i % cells] += k->all[i];
	return NR_OK;
}

/* The first rank has those that are shown; the others are dealt out. */
static int look(struct nr_segmenter *s, struct scoring *k, const struct nr_evaluation *e, const struct nr_segment_each *each, int64_t n,
	int64_t *done, struct nr_error *err)
{
	for (int64_t i = 0; i < n; i++) {
		const int64_t number = shown(each, i, n);
		k->owner[i] = number >= 0 ? 0 : nr_comm_owner(e->comm, i);
		if (k->owner[i] != nr_comm_rank(e->comm)) continue;
		if (score_one(s, k, e, i, err)) return err->code;
		if (number >= 0 && each->see(each->out, number, &k->picture, &k->truth, &k->map, err)) return err->code;
		*done = i + 1;
		if (e->watch && e->watch(e->context, i + 1, n) && !e->comm) return NR_OK;
	}
	*done = n;
	return share(k, e, n, err);
}

int nr_segmenter_score(struct nr_segmenter *s, const struct nr_evaluation *e, const struct nr_segment_each *each,
	struct nr_segment_score *out,
	struct nr_error *err)
{
	const int32_t K = e->source->classes;
	const size_t cells = (size_t)K * (size_t)K, n = (size_t)(e->count ? e->count : e->source->count[e->split]);
	struct scoring k = { .of = calloc(n + 1, sizeof *k.of), .owner = calloc(n + 1, sizeof *k.owner),
		.all = calloc(e->comm ? cells * (size_t)nr_comm_size(e->comm) : 1, sizeof *k.all) };
	double *iou = malloc((size_t)K * sizeof *iou), loss = 0;
	int64_t done = 0, pixels = 0;
	memset(e->confusion, 0, cells * sizeof *e->confusion);
	const int code = iou && k.of && k.owner && k.all ? look(s, &k, e, each, (int64_t)n, &done, err)
							 : nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	for (int64_t i = 0; i < done; i++) loss += k.of[i].loss, pixels += k.of[i].count;
	const struct nr_iou of = iou ? nr_metric_iou(K, e->confusion, iou) : (struct nr_iou){ 0 };
	*out = (struct nr_segment_score){ .loss = pixels ? loss / (double)pixels : 0, .miou = of.miou, .pixel_acc = of.pixel_acc,
		.mean_acc = of.mean_acc, .samples = done };
	free(iou);
	free(k.a);
	free(k.of);
	free(k.owner);
	free(k.all);
	nr_picture_release(&k.picture);
	nr_picture_release(&k.truth);
	nr_picture_release(&k.map);
	return code;
}
