/* Shifted pictures: see shifted.h. The pictures of a batch are made by all threads, each with its own scratch. */
#include "surgery/shifted.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/draws.h"
#include "picture/augment.h"

#define MOST_KEPT ((int64_t)1 << 30)

struct worker {
	struct nr_augment_scratch *augment;
	struct nr_corrupt_scratch *corrupt;
	struct nr_resize_scratch resize;
	struct nr_picture read, converted, cropped;
};
struct nr_shift_set {
	struct nr_shift_source of;
	struct nr_augment eye;                  /* of pictures that are cropped already */
	struct nr_pixel_stats stats;
	int32_t channels, workers;
	int32_t *order;
	int64_t count, bytes;                   /* bytes: of one cropped picture */
	uint8_t *kept;                          /* (count,bytes), or NULL */
	bool *there;                            /* (count) */
	struct worker *worker;
};

static const char failed[] = "cannot measure shifted pictures";
static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, failed, NULL, "out of memory"); }

/* ---- the set ---- */

static int open_workers(struct nr_shift_set *s, struct nr_error *err)
{
	s->workers = omp_get_max_threads();
	if (!(s->worker = calloc((size_t)s->workers, sizeof *s->worker))) return out_of_memory(err);
	for (int32_t i = 0; i < s->workers; i++)
		if (nr_augment_scratch_make(&s->worker[i].augment, err) || nr_corrupt_scratch_make(&s->worker[i].corrupt, err))
			return err->code;
	return NR_OK;
}

static int fill(struct nr_shift_set *s, struct nr_error *err)
{
	const int64_t all = s->of.source->count[s->of.split];
	if (all < 1) return nr_fail(err, NR_EVALUE, "no samples in the split", nr_split_name(s->of.split), NULL);
	if (all > INT32_MAX || !(s->order = malloc((size_t)all * sizeof *s->order))) return out_of_memory(err);
	nr_rng_shuffle(nr_rng_make(s->of.seed, NR_STREAM_ORDER, 0), 0, s->order, (int32_t)all);
	s->count = s->of.samples && s->of.samples < all ? s->of.samples : all;
	s->bytes = s->of.view.size * s->of.view.size * s->channels;
	if (!(s->there = calloc((size_t)s->count, sizeof *s->there))) return out_of_memory(err);
	if (s->count * s->bytes <= MOST_KEPT && !(s->kept = malloc((size_t)(s->count * s->bytes)))) return out_of_memory(err);
	const int code = nr_augment_check(&s->of.view, &s->stats, err);
	return code ? code : open_workers(s, err);
}

int nr_shift_set_open(struct nr_shift_set **out, const struct nr_shift_source *of, struct nr_error *err)
{
	struct nr_shift_set *s = *out = calloc(1, sizeof *s);
	if (!s) return out_of_memory(err);
	s->of = *of;
	s->stats = nr_source_pixel_stats(of->source);
	s->channels = nr_augment_channels(&of->view, &s->stats);
	s->eye = of->view;
	s->eye.crop = NR_CROP_NONE;
	s->eye.channels = s->channels;
	const int code = fill(s, err);
	if (!code) return NR_OK;
	nr_shift_set_close(s);
	*out = NULL;
	return code;
}

void nr_shift_set_close(struct nr_shift_set *s)
{
	if (!s) return;
	for (int32_t i = 0; s->worker && i < s->workers; i++) {
		struct worker *w = &s->worker[i];
		nr_augment_scratch_free(w->augment);
		nr_corrupt_scratch_free(w->corrupt);
		nr_resize_scratch_release(&w->resize);
		nr_picture_release(&w->read);
		nr_picture_release(&w->converted);
		nr_picture_release(&w->cropped);
	}
	free(s->worker);
	free(s->order);
	free(s->kept);
	free(s->there);
	free(s);
}

int64_t nr_shift_set_count(const struct nr_shift_set *s) { return s->count; }

int64_t nr_shift_set_present(const struct nr_shift_set *s, bool *present)
{
	int64_t n = 0;
	memset(present, 0, (size_t)s->of.source->classes * sizeof *present);
	for (int64_t i = 0; i < s->of.source->count[s->of.split]; i++) {
		const int32_t label = nr_source_label(s->of.source, s->of.split, i);
		if (label < 0 || label >= s->of.source->classes || present[label]) continue;
		present[label] = true;
		n++;
	}
	return n;
}

/* ---- pictures ---- */

static int crop(struct nr_shift_set *s, struct worker *w, int64_t i, struct nr_error *err)
{
	const struct nr_picture *p = &w->read;
	const struct nr_augment *a = &s->of.view;
	struct nr_region part;
	int32_t h, on;
	int code = nr_source_get(s->of.source, s->of.split, s->order[i], &w->read, NULL, err);
	if (!code && p->channels != s->channels) {
		code = nr_picture_convert(p, s->channels, &w->converted, err);
		p = &w->converted;
	}
	if (!code) code = nr_center_part(p->h, p->w, a, &h, &on, &part, err);
	return code ? code
		: nr_resize_part(nr_pixels_of(p), NULL, h, on, part, (enum nr_filter)a->filter, &w->cropped, &w->resize, err);
}

/* Into w->cropped. */
static int look(struct nr_shift_set *s, struct worker *w, int64_t i, const struct nr_corrupt *how, struct nr_error *err)
{
	const int32_t side = (int32_t)s->of.view.size;
	int code;
	if (s->kept && s->there[i]) {
		if ((code = nr_picture_resize(&w->cropped, side, side, s->channels, err))) return code;
		memcpy(w->cropped.pixels, s->kept + i * s->bytes, (size_t)s->bytes);
	} else {
		if ((code = crop(s, w, i, err))) return code;
		if (s->kept) memcpy(s->kept + i * s->bytes, w->cropped.pixels, (size_t)s->bytes);
		s->there[i] = true;
	}
	if (!how) return NR_OK;
	struct nr_corrupt one = *how;
	one.sample = s->order[i];
	return nr_corrupt_run(&one, &w->cropped, w->corrupt, err);
}

int nr_shift_set_picture(struct nr_shift_set *s, int64_t i, const struct nr_corrupt *how, struct nr_picture *p, struct nr_error *err)
{
	int code = look(s, &s->worker[0], i, how, err);
	const struct nr_picture *from = &s->worker[0].cropped;
	if (!code) code = nr_picture_resize(p, from->h, from->w, from->channels, err);
	if (!code) memcpy(p->pixels, from->pixels, (size_t)s->bytes);
	return code;
}

/* The first error in the order of the pictures. */
static int make_batch(struct nr_shift_set *s, int64_t first, int64_t n, const struct nr_corrupt *how, float *image, struct nr_error *wrong,
	struct nr_error *err)
{
	memset(wrong, 0, (size_t)n * sizeof *wrong);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < n; i++) {
		struct worker *w = &s->worker[omp_get_thread_num()];
		if (!look(s, w, first + i, how, &wrong[i]))
			nr_augment_run(&s->eye, &s->stats, &w->cropped, 0, 0, 0, image + i * s->bytes, w->augment, &wrong[i]);
	}
	for (int64_t i = 0; i < n; i++)
		if (wrong[i].code) {
			*err = wrong[i];
			return err->code;
		}
	return NR_OK;
}

/* ---- scores ---- */

static void score_row(struct nr_calibration *c, int64_t K, const real *logit, const bool *present, int32_t label)
{
	double most = -INFINITY, sum = 0, squares = 0;
	int64_t best = -1;
	for (int64_t k = 0; k < K; k++)
		if ((!present || present[k]) && (double)logit[k] > most) most = (double)logit[k], best = k;
	for (int64_t k = 0; k < K; k++) sum += present && !present[k] ? 0 : exp((double)logit[k] - most);
	for (int64_t k = 0; k < K; k++) {
		const double d = (present && !present[k] ? 0 : exp((double)logit[k] - most) / sum) - (k == label);
		squares += d * d;
	}
	const double confidence = 1 / sum;
	const int bin = (int)(confidence * NR_CALIBRATION_BINS);
	const int place = bin < NR_CALIBRATION_BINS ? bin : NR_CALIBRATION_BINS - 1;
	c->samples++;
	c->error += best != label;
	c->nll += log(sum) - ((double)logit[label] - most);
	c->brier += squares;
	c->bin_count[place]++;
	c->bin_confidence[place] += confidence;
	c->bin_right[place] += best == label;
}

static int score_batch(struct nr_shift_set *s, const struct nr_shift *h, int64_t first, int64_t n, int64_t K, const real *logits,
	struct nr_calibration *c, struct nr_error *err)
{
	for (int64_t i = 0; i < n; i++) {
		const int32_t label = nr_source_label(s->of.source, s->of.split, s->order[first + i]);
		if (label < 0 || label >= K)
			return nr_fail(err, NR_EVALUE, failed, s->of.source->of->name, "sample %lld has no label",
				(long long)s->order[first + i]);
		for (int64_t k = 0; k < K; k++)
			if (!isfinite((double)logits[i * K + k]))
				return nr_fail(err, NR_EDIVERGED, failed, NULL, "the model's output is not finite");
		score_row(c, K, logits + i * K, h->present, label);
	}
	return NR_OK;
}

static void finish(struct nr_calibration *c)
{
	const double n = c->samples ? (double)c->samples : 1;
	c->error /= n;
	c->nll /= n;
	c->brier /= n;
	for (int b = 0; b < NR_CALIBRATION_BINS; b++) c->ece += fabs(c->bin_confidence[b] - c->bin_right[b]) / n;
}

int nr_shift_score(struct nr_shift_set *s, struct nr_adapter *a, const struct nr_shift *h, struct nr_calibration *c, struct nr_error *err)
{
	const int64_t K = nr_adapter_classes(a), batch = h->batch;
	const bool whole = nr_adapter_kind(a) != NR_ADAPT_NONE;
	float *image = calloc((size_t)(batch * s->bytes), sizeof *image);
	struct nr_error *wrong = malloc((size_t)batch * sizeof *wrong);
	int code = image && wrong ? NR_OK : out_of_memory(err);
	*c = (struct nr_calibration){ 0 };
	if (!code && whole && s->count < batch) {
		nr_fail(err, NR_EVALUE, "cannot adapt", nr_adapt_names[nr_adapter_kind(a)], "%lld samples do not fill a batch of %lld",
			(long long)s->count, (long long)batch);
		code = nr_hint(err, "lower --batch, or raise --samples");
	}
	nr_adapter_reset(a);
	for (int64_t at = 0; !code && at < s->count && (!whole || at + batch <= s->count); at += batch) {
		const int64_t n = at + batch < s->count ? batch : s->count - at;
		if ((code = make_batch(s, at, n, h->corrupt, image, wrong, err))) break;
		const real *logits = nr_adapter_run(a, image, n, err);
		code = logits ? score_batch(s, h, at, n, K, logits, c, err) : err->code;
		if (!code && h->watch && h->watch(h->context, at + n)) code = 1;
	}
	free(image);
	free(wrong);
	finish(c);
	return code;
}
