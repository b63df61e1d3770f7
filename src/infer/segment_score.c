/* How right the classes of pixels are, over a split: see segmenter.h. */
#include <stdlib.h>
#include <string.h>

#include "infer/evaluate.h"
#include "infer/metrics.h"
#include "infer/segmenter.h"

struct scoring {
	struct nr_picture picture, truth, map;
	int32_t *a, *b;                         /* truth and map as the measure takes them, of a row */
	double loss;
	int64_t pixels, room;
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
	double loss;
	int64_t pixels;
	if (nr_source_get(e->source, e->split, sample, &k->picture, NULL, err) ||
		nr_source_map(e->source, e->split, sample, &k->picture, &k->truth, err) ||
		nr_segmenter_run(s, &k->picture, &k->truth, &k->map, &loss, &pixels, err))
		return err->code;
	k->loss += loss;
	k->pixels += pixels;
	return count(k, e->source->classes, e->confusion) ? nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory") : NR_OK;
}

int nr_segmenter_score(struct nr_segmenter *s, const struct nr_evaluation *e, const struct nr_segment_each *each,
	struct nr_segment_score *out,
	struct nr_error *err)
{
	const int32_t K = e->source->classes;
	const int64_t all = e->source->count[e->split], n = e->count ? e->count : all;
	struct scoring k = { .loss = 0 };
	double *iou = malloc((size_t)K * sizeof *iou);
	int code = iou ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	int64_t done = 0, seen = 0;
	memset(e->confusion, 0, (size_t)K * (size_t)K * sizeof *e->confusion);
	for (int64_t i = 0; i < n && !code; i++) {
		code = score_one(s, &k, e, i, err);
		const int64_t most = each ? each->most < n ? each->most : n : 0;
		if (!code && seen < most && i == (2 * seen + 1) * n / (2 * most))
			code = each->see(each->out, seen++, &k.picture, &k.truth, &k.map, err);
		if (code) break;
		done++;
		if (e->watch && e->watch(e->context, done, n)) break;
	}
	const struct nr_iou of = iou ? nr_metric_iou(K, e->confusion, iou) : (struct nr_iou){ 0 };
	*out = (struct nr_segment_score){ .loss = k.pixels ? k.loss / (double)k.pixels : 0, .miou = of.miou, .pixel_acc = of.pixel_acc,
		.mean_acc = of.mean_acc, .samples = done };
	free(iou);
	free(k.a);
	nr_picture_release(&k.picture);
	nr_picture_release(&k.truth);
	nr_picture_release(&k.map);
	return code;
}
