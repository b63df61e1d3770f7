/* roi_sample: the boxes that the second stage of a detector is trained on, proposals and true boxes, each with its label: that of the true
 * box it overlaps most, or background. A share of them positive, drawn from what there is (Girshick 2015, arXiv:1504.08083), or all. Then
 * what they should become: box_targets, mask_targets. No gradients. */
#include "base/rng.h"
#include "math/chunk.h"
#include "math/detect.h"
#include "math/roi.h"
#include "nn/op.h"
#include "nn/regions.h"
#include "nn/stream.h"

/* ---- sample ---------------------------------------------------------------------------------------------------------------- */

enum { BOXES, COUNT, TRUTH, CLASSES };
struct sample { struct nr_sample_options o; uint32_t stream; };

static int64_t rows_of(const struct nr_node *k)
{
	const struct sample *a = k->attr;
	return a->o.rows > 0 ? a->o.rows : k->in[BOXES]->d[1] + k->in[TRUTH]->d[1];
}

/* Memory of a picture: all boxes, their IoU with the true ones, matches, positives and negatives. */
struct room { real *box, *iou; int32_t *match, *positive, *negative; };
static size_t room_size(int64_t N, int64_t G) { return (size_t)N * ((size_t)(4 + G) * sizeof(real) + 4 * sizeof(int32_t)); }
static struct room room_at(void *scratch, int64_t b, int64_t N, int64_t G)
{
	real *box = (real *)((char *)scratch + (size_t)b * room_size(N, G)), *iou = box + 4 * N;
	int32_t *match = (int32_t *)(iou + G * N);
	return (struct room){ box, iou, match, match + N, match + 2 * N };
}

static int sample_shape(struct nr_node *k)
{
	const nr_t *box = k->in[BOXES], *truth = k->in[TRUTH], *classes = k->in[CLASSES];
	char s[64], t[64];
	nr_shape_text(box, s, sizeof s), nr_shape_text(truth, t, sizeof t);
	if (nr_expect(k, box->nd == 3 && box->d[2] == 4 && truth->nd == 3 && truth->d[2] == 4 && truth->d[0] == box->d[0],
		"boxes %s and %s are not (B,P,4) and (B,G,4)", s, t) ||
	    nr_expect(k, classes->dtype == NR_I32 && 4 * nr_len(classes) == nr_len(truth) && nr_len(k->in[COUNT]) == box->d[0],
		"not one class for each true box, or not one count for each picture"))
		return NR_ESHAPE;
	const int64_t B = box->d[0], S = rows_of(k);
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ B, S, 4 }, NULL);
	nr_out(k, 1, NR_I32, 2, (int64_t[]){ B, S }, NULL);
	nr_out(k, 2, NR_I32, 2, (int64_t[]){ B, S }, NULL);
	k->scratch = (size_t)B * room_size(box->d[1] + truth->d[1], truth->d[1]);
	return 0;
}

/* Each box gets the true one that it overlaps most, or -1; then, if wanted, true boxes take those that overlap them most. */
static void match_boxes(const struct nr_sample_options *o, const struct room *r, int64_t from, int64_t n, const real *truth, int64_t G)
{
	nr_box_iou(n, r->box + 4 * from, G, truth, r->iou);
	for (int64_t i = 0; i < n; i++) {
		int32_t best = 0;
		for (int32_t g = 1; g < G; g++)
			if (r->iou[i * G + g] > r->iou[i * G + best]) best = g;
		r->match[from + i] = G && (double)r->iou[i * G + best] >= o->iou ? best : -1;
	}
	for (int32_t g = 0; o->low_quality && g < G; g++) {
		real top = 0;
		for (int64_t i = 0; i < n; i++) top = r->iou[i * G + g] > top ? r->iou[i * G + g] : top;
		for (int64_t i = 0; top > 0 && (double)top >= o->low_iou && i < n; i++)
			if (r->iou[i * G + g] >= top) r->match[from + i] = g;
	}
}

/* The boxes of a picture in one list, matched; how many. */
static int64_t gather(const struct nr_call *k, int64_t b, const struct room *r)
{
	const struct nr_sample_options *o = &((const struct sample *)k->node->attr)->o;
	const int64_t P = k->node->in[BOXES]->d[1], most = k->node->in[TRUTH]->d[1], n = nr_min64(nr_ints(&k->x[COUNT])[b], P);
	const real *truth = (const real *)k->x[TRUTH].p + 4 * b * most;
	const int32_t *classes = nr_ints(&k->x[CLASSES]) + b * most;
	int64_t G = 0;
	while (G < most && classes[G] >= 0) G++;
	const int64_t first = o->boxes_first ? G : 0, last = o->boxes_first ? 0 : n;
	memcpy(r->box + 4 * first, (const real *)k->x[BOXES].p + 4 * b * P, (size_t)(4 * n) * sizeof(real));
	memcpy(r->box + 4 * last, truth, (size_t)(4 * G) * sizeof(real));
	match_boxes(o, r, first, o->boxes_first ? n : n + G, truth, G);
	for (int32_t g = 0; o->boxes_first && g < G; g++) r->match[g] = g;
	return n + G;
}

/* Which rows picture b gets, in r->positive; how many. */
static int64_t choose(const struct nr_call *k, int64_t b, const struct room *r, int64_t n)
{
	const struct sample *a = k->node->attr;
	int64_t positives = 0, negatives = 0;
	if (a->o.rows <= 0 && !a->o.positives_first) {
		for (int32_t i = 0; i < n; i++) r->positive[i] = i;
		return n;
	}
	for (int32_t i = 0; i < n; i++) {
		if (r->match[i] >= 0) r->positive[positives++] = i;
		else r->negative[negatives++] = i;
	}
	if (a->o.rows > 0) {
		const struct nr_rng rng = nr_rng_make(k->ex->seed, NR_STREAM_ROIS + a->stream, (uint32_t)k->ex->step);
		const int64_t p = nr_min64(positives, (int64_t)((double)a->o.rows * a->o.positive));
		const int64_t q = nr_min64(negatives, a->o.rows - p);
		nr_rng_sample(rng, (uint64_t)b << 32, r->positive, positives, p);
		nr_rng_sample(rng, (uint64_t)b << 32 | 1u << 31, r->negative, negatives, q);
		positives = p, negatives = q;
	}
	memcpy(r->positive + positives, r->negative, (size_t)negatives * sizeof *r->negative);
	return positives + negatives;
}

static void sample_forward(const struct nr_call *k)
{
	const struct nr_sample_options *o = &((const struct sample *)k->node->attr)->o;
	const int64_t B = k->node->in[BOXES]->d[0], G = k->node->in[TRUTH]->d[1], N = k->node->in[BOXES]->d[1] + G, S = rows_of(k->node);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < B; b++) {
		const struct room r = room_at(k->scratch, b, N, G);
		const int32_t *classes = nr_ints(&k->x[CLASSES]) + b * G;
		const int64_t n = choose(k, b, &r, gather(k, b, &r));
		real *box = (real *)k->y[0].p + 4 * b * S;
		int32_t *label = nr_ints(&k->y[1]) + b * S, *match = nr_ints(&k->y[2]) + b * S;
		for (int64_t i = 0; i < S; i++) {
			const int32_t at = i < n ? r.positive[i] : 0, own = i < n ? r.match[at] : -1;
			for (int j = 0; j < 4; j++) box[4 * i + j] = i < n ? r.box[4 * at + j] : 0;
			match[i] = own;
			label[i] = i >= n ? -1 : own < 0 ? o->background : classes[own] + !o->background;
		}
	}
}

/* ---- box_targets ----------------------------------------------------------------------------------------------------------- */

enum { ROI, LABEL, MATCH, TRUE };
struct targets { double std[4]; int32_t background; };

static int targets_shape(struct nr_node *k)
{
	const nr_t *box = k->in[ROI];
	if (nr_expect(k, box->nd == 3 && box->d[2] == 4 && 4 * nr_len(k->in[LABEL]) == nr_len(box) &&
		4 * nr_len(k->in[MATCH]) == nr_len(box), "not one label and one match for each box"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, box->d, NULL);
	nr_out(k, 1, NR_REAL, 2, box->d, NULL);
	return 0;
}
static void targets_forward(const struct nr_call *k)
{
	const struct targets *a = k->node->attr;
	const int64_t S = k->node->in[ROI]->d[1], rows = k->node->in[ROI]->d[0] * S, G = k->node->in[TRUE]->d[1];
	const int32_t *label = nr_ints(&k->x[LABEL]), *match = nr_ints(&k->x[MATCH]);
	real *out = k->y[0].p, *weight = k->y[1].p;
	int64_t used = 0;
	for (int64_t i = 0; i < rows; i++) used += label[i] >= 0;
	memset(out, 0, (size_t)(4 * rows) * sizeof *out);
	for (int64_t i = 0; i < rows; i++) {
		const int counts = label[i] >= 0 && label[i] != a->background && match[i] >= 0;
		weight[i] = counts ? 1 / (real)used : 0;
		if (counts)
			nr_box_encode(1, (const real *)k->x[ROI].p + 4 * i, (const real *)k->x[TRUE].p + 4 * (i / S * G + match[i]), a->std,
				out + 4 * i);
	}
}

/* ---- mask_targets ---------------------------------------------------------------------------------------------------------- */

static int masks_shape(struct nr_node *k)
{
	const struct nr_mask_target *a = k->attr;
	const nr_t *box = k->in[ROI], *mask = k->in[TRUE];
	char s[64];
	if (nr_expect(k, box->nd == 3 && a->rows > 0 && a->rows <= box->d[1], "%lld rows of %s", (long long)a->rows,
		nr_shape_text(box, s, sizeof s)) ||
	    nr_expect(k, mask->nd == 3 && mask->dtype == NR_U8 && mask->d[2] == (a->h * a->w + 7) / 8,
		"masks %s are not bits of %lld x %lld pixels",
		nr_shape_text(mask, s, sizeof s), (long long)a->h, (long long)a->w))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ box->d[0], a->rows, a->size * a->size }, NULL);
	nr_out(k, 1, NR_REAL, 2, (int64_t[]){ box->d[0], a->rows }, NULL);
	nr_out(k, 2, NR_I32, 2, (int64_t[]){ box->d[0], a->rows }, NULL);
	return 0;
}
static void masks_forward(const struct nr_call *k)
{
	const struct nr_mask_target *a = k->node->attr;
	const int64_t B = k->node->in[ROI]->d[0], S = k->node->in[ROI]->d[1], G = k->node->in[TRUE]->d[1];
	const int64_t places = a->size * a->size, bytes = (a->h * a->w + 7) / 8;
	const int32_t *label = nr_ints(&k->x[LABEL]), *match = nr_ints(&k->x[MATCH]);
	const struct nr_roi roi = { a->size, a->size, 0, a->aligned };
	const uint8_t *bits = k->x[TRUE].p;
	int32_t *own = nr_ints(&k->y[2]);
	int64_t positives = 0;
	for (int64_t i = 0; i < B * a->rows; i++) {
		const int64_t from = i / a->rows * S + i % a->rows;
		own[i] = match[from] >= 0 && label[from] != a->background ? label[from] : -1;
		positives += own[i] >= 0;
	}
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < B * a->rows; i++) {
		const int64_t b = i / a->rows, from = b * S + i % a->rows;
		real *out = (real *)k->y[0].p + i * places;
		((real *)k->y[1].p)[i] = own[i] >= 0 ? 1 / (real)(positives * places) : 0;
		if (own[i] < 0) memset(out, 0, (size_t)places * sizeof *out);
		else
			nr_roi_mask(&roi, a->h, a->w, bits + (b * G + match[from]) * bytes, (const real *)k->x[ROI].p + 4 * from,
				a->threshold, out);
	}
}

/* ---- tests' entries, descriptors, builders ----------------------------------------------------------------------------------- */

/* "rows low boxes_first": positives are a quarter, boxes of normal numbers rarely overlap, so that the IoU is low */
static nr_t *sample_try(struct nr_net *n, nr_t **x, const char *options)
{
	const struct nr_sample_options o = { .rows = options[0] - '0',
		.positive = .5,
		.iou = .1,
		.low_quality = options[1] == '1',
		.low_iou = .01,
		.boxes_first = options[2] == '1',
		.positives_first = options[2] == '1',
		.background = options[2] == '1' ? 3 : 0 };
	nr_t *label, *match;
	return nr_roi_sample(n, x[0], x[1], x[2], x[3], o, &label, &match);
}
static nr_t *targets_try(struct nr_net *n, nr_t **x, const char *options)
{
	static const double std[4] = { 1, 1, 1, 1 };
	nr_t *weight;
	(void)options;
	nr_box_targets(n, x[0], x[1], x[2], x[3], std, 0, &weight);
	return weight;
}
static const struct nr_case sample_cases[] = { { "2x9x4 2:i10 2x3x4 2x3:i3", "000" }, { "1x1x4 1:i2 1x1x4 1x1:i1", "011" },
	{ "3x40x4 3:i41 3x5x4 3x5:i3", "700" }, { "2x20x4 2:i21 2x4x4 2x4:i3", "911" }, { NULL, NULL } };
static const struct nr_case targets_cases[] = { { "2x5x4 2x5:i3 2x5:i2 2x2x4", "" }, { "1x1x4 1x1:i2 1x1:i1 1x1x4", "" }, { NULL, NULL } };

const struct nr_op nr_op_roi_sample = {
	.name = "roi_sample", .shape = sample_shape, .forward = sample_forward, .flags = NR_RANDOM, .try_case = sample_try,
	.cases = sample_cases,
};
const struct nr_op nr_op_box_targets = {
	.name = "box_targets", .shape = targets_shape, .forward = targets_forward, .try_case = targets_try, .cases = targets_cases,
};
static const struct nr_op op_mask_targets = { .name = "mask_targets", .shape = masks_shape, .forward = masks_forward };

static nr_t *output(const nr_t *y, int j) { return y ? y->src->out[j] : NULL; }

nr_t *nr_roi_sample(struct nr_net *n, nr_t *boxes, nr_t *count, nr_t *truth, nr_t *classes, struct nr_sample_options o, nr_t **label,
	nr_t **match)
{
	const struct sample a = { o, nr_stream_next(n) };
	nr_t *y = nr_apply(n, &nr_op_roi_sample, &a, sizeof a, boxes, count, truth, classes);
	*label = output(y, 1);
	*match = output(y, 2);
	return y;
}

nr_t *nr_box_targets(struct nr_net *n, nr_t *boxes, nr_t *label, nr_t *match, nr_t *truth, const double std[4], int32_t background,
	nr_t **weight)
{
	const struct targets a = { { std[0], std[1], std[2], std[3] }, background };
	nr_t *y = nr_apply(n, &nr_op_box_targets, &a, sizeof a, boxes, label, match, truth);
	*weight = output(y, 1);
	return y;
}

nr_t *nr_mask_targets(struct nr_net *n, nr_t *boxes, nr_t *label, nr_t *match, nr_t *masks, struct nr_mask_target a, nr_t **weight,
	nr_t **own_label)
{
	nr_t *y = nr_apply(n, &op_mask_targets, &a, sizeof a, boxes, label, match, masks);
	*weight = output(y, 1);
	*own_label = output(y, 2);
	return y;
}
