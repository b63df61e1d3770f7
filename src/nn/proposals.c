/* proposals, detections: anchors or boxes with offsets and scores become the best boxes of each picture (regions.h; Ren et al. 2015,
 * arXiv:1506.01497). Levels or classes of a picture are groups, which threads share; no gradient. */
#include "math/chunk.h"
#include "math/detect.h"
#include "math/select.h"
#include "nn/op.h"
#include "nn/regions.h"

enum { LOGIT, OFFSET, SIZE };                                   /* inputs of proposals */
enum { PROBABILITY, OFFSETS, BOXES, COUNT, SIZES };                     /* and of detections */

struct propose { struct nr_region_rule rule; struct nr_anchor_grid grid; };
struct detect { struct nr_region_rule rule; int background_first; };

static struct nr_decode decode_of(const struct nr_box_code *c)
{
	return (struct nr_decode){ { c->std[0], c->std[1], c->std[2], c->std[3] }, c->limit, c->both_sides };
}

/* Memory of picture b: a list of places, then the candidates. */
static size_t bytes(int64_t rows, int groups, int64_t most)
{
	const size_t n = (size_t)(rows + rows % 2) * sizeof(int32_t) + nr_select_bytes(groups, most);
	return (n + 63) / 64 * 64;
}
static struct nr_select select_of(void *scratch, int64_t b, int64_t rows, int groups, int64_t most, int32_t **place)
{
	char *own = (char *)scratch + (size_t)b * bytes(rows, groups, most);
	*place = (int32_t *)own;
	return nr_select_at(own + (size_t)(rows + rows % 2) * sizeof(int32_t), groups, most);
}

/* The boxes of a picture, best first; zeros after them. How many. */
static int64_t write_best(struct nr_select *s, int64_t rows, int32_t *place, real *box)
{
	const int64_t n = nr_select_best(s, rows, place);
	for (int64_t i = 0; i < rows; i++)
		for (int j = 0; j < 4; j++) box[4 * i + j] = i < n ? s->box[4 * place[i] + j] : 0;
	return n;
}

/* ---- proposals ------------------------------------------------------------------------------------------------------------- */

static int64_t largest(const struct propose *a)
{
	int64_t most = 0;
	for (int l = 0; l < a->grid.levels; l++) most = nr_max64(most, nr_anchor_count_at(&a->grid, l));
	return most;
}
static int64_t before(const struct propose *a)
{
	return a->rule.before > 0 ? nr_min64(a->rule.before, largest(a)) : largest(a);
}

static int propose_shape(struct nr_node *k)
{
	const struct propose *a = k->attr;
	const int64_t n = nr_anchor_count(&a->grid);
	const nr_t *x = k->in[LOGIT];
	const int64_t B = x->d[0], rows = a->rule.keep;
	char s[64];
	if (nr_expect(k, nr_len(x) == B * n && nr_len(k->in[OFFSET]) == 4 * B * n, "scores %s and offsets are not those of %lld anchors",
		 nr_shape_text(x, s, sizeof s), (long long)n) ||
	    nr_expect(k, nr_len(k->in[SIZE]) == 2 * B && rows > 0 && n < INT32_MAX, "sizes of pictures, or no rows"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ B, rows, 4 }, NULL);
	nr_out(k, 1, NR_I32, 1, (int64_t[]){ B }, NULL);
	k->scratch = (size_t)B * (bytes(rows, a->grid.levels, before(a)) + (size_t)(2 * n) * sizeof(int32_t));
	return 0;
}

/* The best anchors of level l become candidates, and those that overlap are removed. order: 2 x anchors of the level. */
static void propose_level(const struct nr_call *k, int64_t b, int l, struct nr_select *s, int32_t *order)
{
	const struct propose *a = k->node->attr;
	const int64_t n = nr_anchor_count(&a->grid), own = nr_anchor_count_at(&a->grid, l);
	int64_t from = 0;
	for (int i = 0; i < l; i++) from += nr_anchor_count_at(&a->grid, i);
	const real *logit = (const real *)k->x[LOGIT].p + b * n + from, *offset = (const real *)k->x[OFFSET].p + 4 * (b * n + from);
	const real *size = (const real *)k->x[SIZE].p + 2 * b;
	const struct nr_decode d = decode_of(&a->rule.code);
	nr_sort_by_score(own, logit, order, order + own);
	nr_select_start(s, l);
	for (int64_t i = 0; i < nr_min64(own, s->most); i++) {
		double anchor[4];
		nr_anchor_box(&a->grid, from + order[i], anchor);
		const real prior[4] = { (real)anchor[0], (real)anchor[1], (real)anchor[2], (real)anchor[3] };
		real box[4];
		nr_box_decode(&d, prior, offset + 4 * order[i], (double)size[0], (double)size[1], box);
		nr_select_add(s, l, box, logit[order[i]], order[i], a->rule.min_size);
	}
	nr_select_nms(s, l, a->rule.nms);
}

static void propose_forward(const struct nr_call *k)
{
	const struct propose *a = k->node->attr;
	const int64_t B = k->node->in[LOGIT]->d[0], n = nr_len(k->node->in[LOGIT]) / B, rows = a->rule.keep, most = before(a);
	int32_t *orders = (int32_t *)((char *)k->scratch + (size_t)B * bytes(rows, a->grid.levels, most)), *place;
#pragma omp parallel for schedule(static) private(place)
	for (int64_t q = 0; q < B * a->grid.levels; q++) {
		const int64_t b = q / a->grid.levels;
		const int l = (int)(q % a->grid.levels);
		int64_t from = 0;
		for (int i = 0; i < l; i++) from += nr_anchor_count_at(&a->grid, i);
		struct nr_select s = select_of(k->scratch, b, rows, a->grid.levels, most, &place);
		propose_level(k, b, l, &s, orders + 2 * (b * n + from));
	}
	for (int64_t b = 0; b < B; b++) {
		struct nr_select s = select_of(k->scratch, b, rows, a->grid.levels, most, &place);
		nr_ints(&k->y[1])[b] = (int32_t)write_best(&s, rows, place, (real *)k->y[0].p + 4 * b * rows);
	}
}

/* ---- detections ------------------------------------------------------------------------------------------------------------ */

static int detect_shape(struct nr_node *k)
{
	const struct detect *a = k->attr;
	const nr_t *p = k->in[PROBABILITY], *offset = k->in[OFFSETS], *box = k->in[BOXES];
	char s[64], t[64];
	nr_shape_text(p, s, sizeof s), nr_shape_text(offset, t, sizeof t);
	if (nr_expect(k, p->nd == 3 && p->d[2] > 1 && box->nd == 3 && box->d[0] == p->d[0] && box->d[1] == p->d[1] && box->d[2] == 4,
		"probabilities %s are not (B,P,K+1) for boxes (B,P,4)", s) ||
	    nr_expect(k, offset->nd == 3 && offset->d[0] == p->d[0] && offset->d[1] == p->d[1] &&
		offset->d[2] == 4 * (p->d[2] - !a->background_first), "offsets %s do not belong to probabilities %s", t, s) ||
	    nr_expect(k, nr_len(k->in[COUNT]) == p->d[0] && nr_len(k->in[SIZES]) == 2 * p->d[0] && a->rule.keep > 0,
		"counts and sizes of pictures, or no rows"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ p->d[0], a->rule.keep, 4 }, NULL);
	nr_out(k, 1, NR_REAL, 2, (int64_t[]){ p->d[0], a->rule.keep }, NULL);
	nr_out(k, 2, NR_I32, 2, (int64_t[]){ p->d[0], a->rule.keep }, NULL);
	k->scratch = (size_t)p->d[0] * bytes(a->rule.keep, (int)p->d[2] - 1, p->d[1]);
	return 0;
}

static void detect_class(const struct nr_call *k, int64_t b, int c, struct nr_select *s)
{
	const struct detect *a = k->node->attr;
	const int64_t P = k->node->in[BOXES]->d[1], K = k->x[PROBABILITY].c, D = k->x[OFFSETS].c;
	const int column = c + (a->background_first ? 1 : 0);
	const real *size = (const real *)k->x[SIZES].p + 2 * b;
	const struct nr_decode d = decode_of(&a->rule.code);
	nr_select_start(s, c);
	for (int64_t r = b * P; r < b * P + nr_min64(P, nr_ints(&k->x[COUNT])[b]); r++) {
		const real score = ((const real *)k->x[PROBABILITY].p)[r * K + column];
		real box[4];
		if (!((double)score > a->rule.score)) continue;
		nr_box_decode(&d, (const real *)k->x[BOXES].p + 4 * r, (const real *)k->x[OFFSETS].p + r * D + 4 * column, (double)size[0],
			(double)size[1], box);
		nr_select_add(s, c, box, score, (int32_t)(r - b * P), a->rule.min_size);
	}
	nr_select_nms(s, c, a->rule.nms);
}

static void detect_forward(const struct nr_call *k)
{
	const struct detect *a = k->node->attr;
	const int64_t B = k->node->in[BOXES]->d[0], P = k->node->in[BOXES]->d[1], rows = a->rule.keep;
	const int K = (int)k->x[PROBABILITY].c - 1;
	int32_t *place;
#pragma omp parallel for schedule(static) private(place)
	for (int64_t q = 0; q < B * K; q++) {
		struct nr_select s = select_of(k->scratch, q / K, rows, K, P, &place);
		detect_class(k, q / K, (int)(q % K), &s);
	}
	for (int64_t b = 0; b < B; b++) {
		struct nr_select s = select_of(k->scratch, b, rows, K, P, &place);
		const int64_t n = write_best(&s, rows, place, (real *)k->y[0].p + 4 * b * rows);
		for (int64_t i = 0; i < rows; i++) {
			((real *)k->y[1].p)[b * rows + i] = i < n ? s.score[place[i]] : 0;
			nr_ints(&k->y[2])[b * rows + i] = i < n ? (int32_t)(place[i] / P) : -1;
		}
	}
}

/* ---- tests' entries, descriptors, builders ----------------------------------------------------------------------------------- */

static const struct nr_region_rule try_rule = { .code = { { .1, .1, .2, .2 }, 4, 1 }, .score = .1, .nms = .5, .before = 6, .keep = 5 };

/* Sizes of pictures are about as large as the anchors, or negative, so that many boxes are empty. */
static nr_t *propose_try(struct nr_net *n, nr_t **x, const char *options)
{
	struct nr_region_rule rule = try_rule;
	struct nr_anchor_grid grid = { .levels = x[0]->d[1] < 3 ? 1 : 2,
		.shapes = 1,
		.level = { { .h = 1, .w = x[0]->d[1], .dx = .1, .dy = 1 }, { .h = x[0]->d[1] / 3, .w = 1, .dx = 1, .dy = .1 } } };
	nr_t *count;
	if (grid.levels == 2) grid.level[0].w -= grid.level[1].h;
	for (int l = 0; l < 2; l++) nr_anchor_shapes(&grid.level[l], 1, (double[]){ .5 + l }, 1, (double[]){ 1.5 }, 0);
	rule.before = options[0] - '0';
	return nr_proposals(n, x[0], x[1], x[2], &grid, rule, &count);
}
static nr_t *detect_try(struct nr_net *n, nr_t **x, const char *options)
{
	nr_t *score, *label;
	return nr_detections(n, nr_softmax(n, x[0], 1, NULL), x[1], x[2], x[3], x[4], options[0] == 'f', try_rule, &score, &label);
}
static const struct nr_case propose_cases[] = { { "2x30 2x30x4 2x2", "6" }, { "1x1 1x1x4 1x2", "0" }, { "3x90 3x90x4 3x2", "0" },
	{ NULL, NULL } };
static const struct nr_case detect_cases[] = { { "2x9x4 2x9x16 2x9x4 2:i10 2x2", "f" }, { "1x1x2 1x1x4 1x1x4 1:i1-1 1x2", "l" },
	{ "3x40x3 3x40x8 3x40x4 3:i41 3x2", "l" }, { NULL, NULL } };

const struct nr_op nr_op_proposals = {
	.name = "proposals", .shape = propose_shape, .forward = propose_forward, .try_case = propose_try, .cases = propose_cases,
};
const struct nr_op nr_op_detections = {
	.name = "detections", .shape = detect_shape, .forward = detect_forward, .try_case = detect_try, .cases = detect_cases,
};

nr_t *nr_proposals(struct nr_net *n, nr_t *logit, nr_t *offset, nr_t *size, const struct nr_anchor_grid *grid, struct nr_region_rule rule,
	nr_t **count)
{
	const struct propose a = { .rule = rule, .grid = *grid };
	nr_t *y = nr_apply(n, &nr_op_proposals, &a, sizeof a, logit, offset, size);
	*count = y ? y->src->out[1] : NULL;
	return y;
}

nr_t *nr_detections(struct nr_net *n, nr_t *probability, nr_t *offset, nr_t *boxes, nr_t *count, nr_t *size, int background_first,
	struct nr_region_rule rule, nr_t **score, nr_t **label)
{
	const struct detect a = { .rule = rule, .background_first = background_first };
	nr_t *y = nr_apply(n, &nr_op_detections, &a, sizeof a, probability, offset, boxes, count, size);
	*score = y ? y->src->out[1] : NULL;
	*label = y ? y->src->out[2] : NULL;
	return y;
}
