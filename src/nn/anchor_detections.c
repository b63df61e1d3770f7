/* anchor_detections: the best boxes of each picture out of scores of every class at every anchor (anchors.h). Of each level the highest
 * scores above the threshold; then, best first, what does not overlap a better box of its class. A thread for each picture. */
#include "math/chunk.h"
#include "math/detect.h"
#include "math/select.h"
#include "nn/anchors.h"
#include "nn/op.h"

enum { LOGIT, OFFSET, SIZE };
struct detect { struct nr_anchor_grid grid; struct nr_region_rule rule; };

/* Memory of a picture: candidates of all levels. */
struct room { int64_t most; real *box, *score; int32_t *from, *order, *tmp; };
static int64_t most_of(const struct detect *a, int64_t K)
{
	int64_t n = 0;
	for (int l = 0; l < a->grid.levels; l++) n += nr_min64(a->rule.before, nr_anchor_count_at(&a->grid, l) * K);
	return n;
}
static size_t room_size(int64_t most) { return (size_t)(most + most % 2) * (5 * sizeof(real) + 4 * sizeof(int32_t)); }
static struct room room_at(void *scratch, int64_t b, int64_t most)
{
	real *box = (real *)((char *)scratch + (size_t)b * room_size(most));
	int32_t *from = (int32_t *)(box + 5 * most);
	return (struct room){ most, box, box + 4 * most, from, from + most, from + 2 * most };
}

static int shape(struct nr_node *k)
{
	const struct detect *a = k->attr;
	const nr_t *x = k->in[LOGIT];
	const int64_t n = nr_anchor_count(&a->grid);
	char s[64];
	if (nr_expect(k, x->nd == 3 && x->d[1] == n && x->d[2] > 0 && nr_len(k->in[OFFSET]) == 4 * nr_rows(x),
		    "logits %s and offsets are not (B,N,K) and (B,N,4) of %lld anchors", nr_shape_text(x, s, sizeof s), (long long)n) ||
		nr_expect(k, nr_len(k->in[SIZE]) == 2 * x->d[0] && a->rule.keep > 0 && n * x->d[2] < INT32_MAX,
			"sizes of pictures, or no rows"))
		return NR_ESHAPE;
	const int64_t B = x->d[0], rows = a->rule.keep;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ B, rows, 4 }, NULL);
	nr_out(k, 1, NR_REAL, 2, (int64_t[]){ B, rows }, NULL);
	nr_out(k, 2, NR_I32, 2, (int64_t[]){ B, rows }, NULL);
	k->scratch = (size_t)B * room_size(most_of(a, x->d[2]));
	return 0;
}

/* Is candidate i worse than j? Of equal scores the later one is. */
static int worse(const struct room *r, int64_t i, int64_t j)
{
	return r->score[i] < r->score[j] || (r->score[i] == r->score[j] && r->from[i] > r->from[j]);
}
static void swap(const struct room *r, int64_t i, int64_t j)
{
	const real score = r->score[i];
	const int32_t from = r->from[i];
	r->score[i] = r->score[j], r->from[i] = r->from[j];
	r->score[j] = score, r->from[j] = from;
}
/* A heap of n candidates from `at` on, the worst one first, gets another; how many it then has. */
static int64_t keep_best(const struct room *r, int64_t at, int64_t n, int64_t most, real score, int32_t from)
{
	if (n < most) {
		r->score[at + n] = score, r->from[at + n] = from;
		for (int64_t i = n; i > 0 && worse(r, at + i, at + (i - 1) / 2); i = (i - 1) / 2) swap(r, at + i, at + (i - 1) / 2);
		return n + 1;
	}
	if (!(score > r->score[at])) return n;
	r->score[at] = score, r->from[at] = from;
	for (int64_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
		child += child + 1 < n && worse(r, at + child + 1, at + child);
		if (!worse(r, at + child, at + i)) break;
		swap(r, at + i, at + child);
	}
	return n;
}

/* The candidates of all levels with their boxes and logits; how many. */
static int64_t collect(const struct nr_call *k, int64_t b, const struct room *r)
{
	const struct detect *a = k->node->attr;
	const int64_t K = k->x[LOGIT].c, N = k->node->in[LOGIT]->d[1];
	const real *logit = (const real *)k->x[LOGIT].p + b * N * K, *size = (const real *)k->x[SIZE].p + 2 * b;
	const real above = (real)(log(a->rule.score) - log1p(-a->rule.score));
	const struct nr_decode d = { { a->rule.code.std[0], a->rule.code.std[1], a->rule.code.std[2], a->rule.code.std[3] },
		a->rule.code.limit, a->rule.code.both_sides };
	int64_t n = 0;
	for (int64_t l = 0, from = 0; l < a->grid.levels; l++) {
		const int64_t own = nr_anchor_count_at(&a->grid, (int)l) * K, most = nr_min64(a->rule.before, own);
		int64_t here = 0;
		for (int64_t i = from; i < from + own; i++)
			if (logit[i] > above) here = keep_best(r, n, here, most, logit[i], (int32_t)i);
		from += own;
		n += here;
	}
	int64_t kept = 0;
	for (int64_t i = 0; i < n; i++) {
		const int64_t at = r->from[i] / K;
		double anchor[4];
		nr_anchor_box(&a->grid, at, anchor);
		const real prior[4] = { (real)anchor[0], (real)anchor[1], (real)anchor[2], (real)anchor[3] };
		real *box = r->box + 4 * kept;
		nr_box_decode(&d, prior, (const real *)k->x[OFFSET].p + 4 * (b * N + at), (double)size[0], (double)size[1], box);
		r->score[kept] = r->score[i], r->from[kept] = r->from[i];
		kept += a->rule.min_size < 0 || (box[2] > box[0] && box[3] > box[1] && (double)(box[2] - box[0]) >= a->rule.min_size &&
			(double)(box[3] - box[1]) >= a->rule.min_size);
	}
	return kept;
}

static int hidden(const struct room *r, int32_t i, const int32_t *kept, int64_t n, int64_t K, double threshold)
{
	real iou;
	for (int64_t j = 0; j < n; j++) {
		if (r->from[kept[j]] % K != r->from[i] % K) continue;
		nr_box_iou(1, r->box + 4 * kept[j], 1, r->box + 4 * i, &iou);
		if ((double)iou > threshold) return 1;
	}
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct detect *a = k->node->attr;
	const int64_t B = k->node->in[LOGIT]->d[0], K = k->x[LOGIT].c, rows = a->rule.keep, most = most_of(a, K);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < B; b++) {
		const struct room r = room_at(k->scratch, b, most);
		const int64_t n = collect(k, b, &r);
		int32_t *kept = r.tmp;
		int64_t count = 0;
		nr_sort_by_score(n, r.score, r.order, r.tmp);
		for (int64_t i = 0; i < n && count < rows; i++)
			if (!hidden(&r, r.order[i], kept, count, K, a->rule.nms)) kept[count++] = r.order[i];
		for (int64_t i = 0; i < rows; i++) {
			const int64_t at = i < count ? kept[i] : 0;
			for (int j = 0; j < 4; j++) ((real *)k->y[0].p)[4 * (b * rows + i) + j] = i < count ? r.box[4 * at + j] : 0;
			((real *)k->y[1].p)[b * rows + i] = i < count ? (real)(1 / (1 + exp(-(double)r.score[at]))) : 0;
			nr_ints(&k->y[2])[b * rows + i] = i < count ? (int32_t)(r.from[at] % K) : -1;
		}
	}
}

/* "shapes before" */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	const int shapes = options[0] - '0';
	struct nr_anchor_grid g = { .levels = 2, .shapes = shapes, .level = { { .h = 2, .w = 3, .dx = .6, .dy = .7 },
		{ .h = 1, .w = 1, .dx = 1, .dy = 1 } } };
	nr_t *scores, *labels;
	for (int l = 0; l < 2; l++) nr_anchor_shapes(&g.level[l], 1, (double[]){ .5 + l }, shapes, (double[]){ 1, 1.7, 3 }, 0);
	return nr_anchor_detections(n, x[0], x[1], x[2], &g, (struct nr_region_rule){ .code = { { 1, 1, 1, 1 }, 4, 0 }, .score = .3,
		.nms = .5, .before = options[1] - '0', .keep = 6 }, &scores, &labels);
}
static const struct nr_case cases[] = { { "2x21x4 2x21x4 2x2", "35" }, { "1x7x1 1x7x4 1x2", "10" }, { "3x14x2 3x14x4 3x2", "29" },
	{ NULL, NULL } };
const struct nr_op nr_op_anchor_detections = {
	.name = "anchor_detections", .shape = shape, .forward = forward, .try_case = try_case, .cases = cases,
};

nr_t *nr_anchor_detections(struct nr_net *n, nr_t *logit, nr_t *offset, nr_t *size, const struct nr_anchor_grid *grid,
	struct nr_region_rule rule, nr_t **score, nr_t **label)
{
	struct detect a = { *grid, rule };
	if (a.rule.before <= 0) a.rule.before = 1000;
	nr_t *y = nr_apply(n, &nr_op_anchor_detections, &a, sizeof a, logit, offset, size);
	*score = y ? y->src->out[1] : NULL;
	*label = y ? y->src->out[2] : NULL;
	return y;
}
