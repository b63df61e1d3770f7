/* anchor_match, focal_loss, anchor_box_loss: what heads over all anchors learn (anchors.h; Lin et al. 2017, arXiv:1708.02002). */
#include "base/rng.h"
#include "math/chunk.h"
#include "math/focal.h"
#include "math/row.h"
#include "nn/anchors.h"
#include "nn/op.h"
#include "nn/stream.h"

/* ---- anchor_match: a thread for each picture ------------------------------------------------------------------------------- */

struct match { struct nr_anchor_rule rule; uint32_t stream; };

static int match_shape(struct nr_node *k)
{
	const struct match *a = k->attr;
	const nr_t *truth = k->in[0], *classes = k->in[1];
	const int64_t n = nr_anchor_count(&a->rule.grid);
	char s[64], t[64];
	nr_shape_text(truth, s, sizeof s), nr_shape_text(classes, t, sizeof t);
	if (nr_expect(k, truth->nd == 3 && truth->d[2] == 4 && classes->dtype == NR_I32 && 4 * nr_len(classes) == nr_len(truth),
		"boxes %s and classes %s are not (B,G,4) and (B,G)", s, t) ||
	    nr_expect(k, n > 0 && n < INT32_MAX && (a->rule.rows > 0 || a->rule.every > 0), "%lld anchors", (long long)n))
		return NR_ESHAPE;
	const int64_t B = truth->d[0], G = truth->d[1];
	nr_out(k, 0, NR_REAL, 2, (int64_t[]){ B, n }, NULL);
	nr_out(k, 1, NR_I32, 2, (int64_t[]){ B, n }, NULL);
	k->scratch = (size_t)(4 * n + B * (5 * G + 2)) * sizeof(double) + (size_t)(2 * B * n) * sizeof(int32_t);
	return 0;
}

struct drawn { int64_t positives, negatives; };

/* weight becomes 1 for those that count; list: 2 n numbers. */
static struct drawn choose(const struct nr_call *k, int64_t b, const int32_t *match, int64_t n, real *weight, int32_t *list)
{
	const struct match *a = k->node->attr;
	const struct nr_anchor_rule *o = &a->rule;
	struct drawn d = { 0 };
	int32_t *negative = list + n;
	for (int32_t i = 0; i < n; i++) {
		weight[i] = 0;
		if (match[i] >= 0) list[d.positives++] = i;
		else if (match[i] == NR_MATCH_BACKGROUND) negative[d.negatives++] = i;
	}
	int64_t step = 1;
	if (o->rows > 0) {
		const struct nr_rng rng = nr_rng_make(k->ex->seed, NR_STREAM_ANCHORS + a->stream, (uint32_t)k->ex->step);
		const int64_t p = nr_min64(d.positives, (int64_t)((double)o->rows * o->positive)), q = nr_min64(d.negatives, o->rows - p);
		nr_rng_sample(rng, (uint64_t)b << 32, list, d.positives, p);
		nr_rng_sample(rng, (uint64_t)b << 32 | 1u << 31, negative, d.negatives, q);
		d = (struct drawn){ p, q };
	} else {
		step = o->every;
	}
	for (int64_t i = 0; i < d.positives; i++) weight[list[i]] = 1;
	for (int64_t i = 0; i < d.negatives; i += step) weight[negative[i]] = 1;
	d.negatives = (d.negatives + step - 1) / step;
	return d;
}

static void match_forward(const struct nr_call *k)
{
	const struct match *a = k->node->attr;
	const int64_t B = k->node->in[0]->d[0], G = k->node->in[0]->d[1], n = nr_anchor_count(&a->rule.grid);
	double *anchor = k->scratch, *own = anchor + 4 * n, *part = own + 5 * B * G, total = 0;
	int32_t *list = (int32_t *)(part + 2 * B);
	nr_anchor_boxes(&a->rule.grid, anchor);
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < B; b++) {
		const real *truth = (const real *)k->x[0].p + 4 * b * G;
		const int32_t *classes = nr_ints(&k->x[1]) + b * G;
		double *box = own + 5 * b * G;
		int64_t m = 0;
		for (; m < G && classes[m] >= 0; m++)
			for (int j = 0; j < 4; j++) box[4 * m + j] = (double)truth[4 * m + j];
		int32_t *match = nr_ints(&k->y[1]) + b * n;
		nr_match(&a->rule.match, n, anchor, m, box, box + 4 * G, match);
		const struct drawn d = choose(k, b, match, n, (real *)k->y[0].p + b * n, list + 2 * b * n);
		const double p = d.positives > 1 ? (double)d.positives : 1, q = d.negatives > 1 ? (double)d.negatives : 1;
		part[2 * b] = a->rule.mean == NR_ANCHOR_DRAWN ? (double)(d.positives + d.negatives)
			: a->rule.mean == NR_ANCHOR_DRAWN_BOTH ? p + q : p;
	}
	for (int64_t b = 0; b < B; b++) total += part[2 * b];
#pragma omp parallel for schedule(static)
	for (int64_t b = 0; b < B; b++) {
		const double by = a->rule.mean == NR_ANCHOR_PER_PICTURE ? (double)B * part[2 * b] : total;
		real *weight = (real *)k->y[0].p + b * n;
		for (int64_t i = 0; i < n; i++) weight[i] = by > 0 ? (real)((double)weight[i] / by) : 0;
	}
}

/* ---- focal_loss: of each anchor, its sum over classes ----------------------------------------------------------------------- */

enum { LOGIT, MATCH, WEIGHT, CLASSES };

static int focal_shape(struct nr_node *k)
{
	const nr_t *x = k->in[LOGIT], *m = k->in[MATCH], *w = k->in[WEIGHT];
	char s[64], t[64];
	nr_shape_text(x, s, sizeof s), nr_shape_text(m, t, sizeof t);
	if (nr_expect(k, x->nd == 3 && m->dtype == NR_I32 && nr_len(m) == nr_rows(x) && nr_len(w) == nr_rows(x),
		"logits %s are not (B,N,K) of anchors with matches %s", s, t) ||
	    nr_expect(k, k->n_in > CLASSES ? k->in[CLASSES]->dtype == NR_I32 && nr_len(k->in[CLASSES]) % x->d[0] == 0 : x->d[2] == 1,
		"no classes for logits %s", s))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->scratch = (size_t)nr_rows(x) * sizeof(double);
	k->stash = (size_t)nr_len(x) * sizeof(real);            /* slopes: an exponential costs more than their memory */
	return 0;
}

struct anchors { int64_t rows, K, per_picture, G; const int32_t *match, *classes; const real *x, *weight; };
static struct anchors anchors_of(const struct nr_call *k)
{
	const nr_t *x = k->node->in[LOGIT];
	struct anchors a = { .rows = nr_rows(x), .K = nr_cols(x), .per_picture = x->d[1], .match = nr_ints(&k->x[MATCH]),
		.x = k->x[LOGIT].p, .weight = k->x[WEIGHT].p };
	if (k->node->n_in > CLASSES) a.classes = nr_ints(&k->x[CLASSES]), a.G = nr_len(k->node->in[CLASSES]) / x->d[0];
	return a;
}
static int64_t class_of(const struct anchors *a, int64_t i)
{
	const int32_t m = a->match[i];
	return m < 0 ? -1 : a->classes ? a->classes[i / a->per_picture * a->G + m] : 0;
}

/* Of anchor i; its slopes go to `slope`, or NULL. */
static double row_loss(const struct nr_focal *o, const struct anchors *a, int64_t i, real *slope)
{
	const int64_t own = class_of(a, i), low = own < 0 || own >= a->K ? a->K : own;
	const double negative = o->alpha < 0 ? 1 : 1 - o->alpha, positive = o->alpha < 0 ? 1 : o->alpha;
	const real *x = a->x + i * a->K;
	double sum = nr_focal_active->low(low, x, negative, o->gamma, slope);
	if (low == a->K) return sum;
	const struct nr_focal_value v = nr_focal_high((double)x[own], o->gamma);
	if (slope) slope[own] = (real)(positive * v.slope);
	sum += positive * v.loss;
	return sum + nr_focal_active->low(a->K - own - 1, x + own + 1, negative, o->gamma, slope ? slope + own + 1 : NULL);
}

static void focal_forward(const struct nr_call *k)
{
	const struct nr_focal *o = k->node->attr;
	const struct anchors a = anchors_of(k);
	real *slope = k->stash;
	double *row = k->scratch, sum = 0;
#pragma omp parallel for schedule(static) if (a.rows * a.K > 1024)
	for (int64_t i = 0; i < a.rows; i++)
		row[i] = a.weight[i] != 0 ? (double)a.weight[i] * row_loss(o, &a, i, slope ? slope + i * a.K : NULL) : 0;
	for (int64_t i = 0; i < a.rows; i++) sum += row[i];
	*(real *)k->y[0].p = (real)sum;
}

static void focal_backward(const struct nr_call *k)
{
	const struct nr_focal *o = k->node->attr;
	const struct anchors a = anchors_of(k);
	const double g = (double)*(const real *)k->dy[0].p;
#pragma omp parallel for schedule(static) if (a.rows * a.K > 1024)
	for (int64_t i = 0; i < a.rows; i++) {
		const real by = (real)(g * (double)a.weight[i]), *slope = (const real *)k->stash + i * a.K;
		real *dx = (real *)k->dx[LOGIT].p + i * a.K;
		for (int64_t c = 0; k->want & 1 && c < a.K; c++) nr_put(&dx[c], a.weight[i] != 0 ? by * slope[c] : 0, k->add[LOGIT]);
		if (k->want >> WEIGHT & 1) nr_put((real *)k->dx[WEIGHT].p + i, (real)(g * row_loss(o, &a, i, NULL)), k->add[WEIGHT]);
	}
}

/* ---- anchor_box_loss --------------------------------------------------------------------------------------------------------- */

enum { OFFSET, MATCHED, WEIGHTS, TRUTH };
struct boxes { struct nr_anchor_grid grid; struct nr_box_cost cost; };

static int boxes_shape(struct nr_node *k)
{
	const struct boxes *a = k->attr;
	const nr_t *x = k->in[OFFSET], *m = k->in[MATCHED], *t = k->in[TRUTH];
	char s[64];
	if (nr_expect(k, x->nd == 3 && x->d[2] == 4 && x->d[1] == nr_anchor_count(&a->grid) && m->dtype == NR_I32 &&
		nr_len(m) == nr_rows(x) && nr_len(k->in[WEIGHTS]) == nr_rows(x), "offsets %s are not (B,N,4) of %lld anchors",
		nr_shape_text(x, s, sizeof s), (long long)nr_anchor_count(&a->grid)) ||
	    nr_expect(k, t->nd == 3 && t->d[0] == x->d[0] && t->d[2] == 4, "boxes %s are not (B,G,4)", nr_shape_text(t, s, sizeof s)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->scratch = (size_t)nr_rows(x) * sizeof(double);
	return 0;
}

/* Of row i, which has a box; d: the gradient, or NULL. */
static double box_loss(const struct nr_call *k, int64_t i, double *d)
{
	const struct boxes *a = k->node->attr;
	const int64_t n = k->node->in[OFFSET]->d[1], G = k->node->in[TRUTH]->d[1];
	double anchor[4];
	nr_anchor_box(&a->grid, i % n, anchor);
	return nr_box_cost(&a->cost, anchor, (const real *)k->x[TRUTH].p + 4 * (i / n * G + nr_ints(&k->x[MATCHED])[i]),
		(const real *)k->x[OFFSET].p + 4 * i, d);
}

static void boxes_forward(const struct nr_call *k)
{
	const int64_t rows = nr_rows(k->node->in[OFFSET]);
	const int32_t *match = nr_ints(&k->x[MATCHED]);
	const real *weight = k->x[WEIGHTS].p;
	double *row = k->scratch, sum = 0;
#pragma omp parallel for schedule(static) if (rows > 1024)
	for (int64_t i = 0; i < rows; i++) row[i] = match[i] >= 0 && weight[i] != 0 ? (double)weight[i] * box_loss(k, i, NULL) : 0;
	for (int64_t i = 0; i < rows; i++) sum += row[i];
	*(real *)k->y[0].p = (real)sum;
}

static void boxes_backward(const struct nr_call *k)
{
	const int64_t rows = nr_rows(k->node->in[OFFSET]);
	const int32_t *match = nr_ints(&k->x[MATCHED]);
	const real *weight = k->x[WEIGHTS].p;
	const double g = (double)*(const real *)k->dy[0].p;
#pragma omp parallel for schedule(static) if (rows > 1024)
	for (int64_t i = 0; i < rows; i++) {
		double d[4] = { 0 };
		const double loss = match[i] >= 0 ? box_loss(k, i, d) : 0;
		real *dx = (real *)k->dx[OFFSET].p + 4 * i;
		for (int j = 0; k->want & 1 && j < 4; j++)
			nr_put(&dx[j], match[i] >= 0 ? (real)(g * (double)weight[i] * d[j]) : 0, k->add[OFFSET]);
		if (k->want >> WEIGHTS & 1) nr_put((real *)k->dx[WEIGHTS].p + i, (real)(g * loss), k->add[WEIGHTS]);
	}
	real *dt = k->dx[TRUTH].p;
	for (int64_t i = 0; k->want >> TRUTH & 1 && !k->add[TRUTH] && i < nr_len(k->node->in[TRUTH]); i++) dt[i] = 0;
}

/* ---- tests' entries, descriptors, builders ----------------------------------------------------------------------------------- */

/* Two levels of a few places, whose anchors are about as large as boxes of normal numbers. */
static struct nr_anchor_grid try_grid(int shapes)
{
	struct nr_anchor_grid g = { .levels = 2, .shapes = shapes, .level = { { .h = 2, .w = 3, .dx = .6, .dy = .7 },
		{ .h = 1, .w = 1, .dx = 1, .dy = 1 } } };
	for (int l = 0; l < 2; l++) nr_anchor_shapes(&g.level[l], 1, (double[]){ .5 + l }, shapes, (double[]){ 1, 1.7, 3 }, 0);
	return g;
}
/* (B,G,4) of any numbers: whole numbers make boxes in quarters, with sides of 1/4 at least. */
static int quarters_shape(struct nr_node *k) { return nr_out(k, 0, NR_REAL, 3, k->in[0]->d, NULL) ? 0 : NR_EMEMORY; }
static void quarters_forward(const struct nr_call *k)
{
	const int32_t *q = nr_ints(&k->x[0]);
	real *box = k->y[0].p;
	for (int64_t i = 0; i < nr_len(k->node->in[0]); i += 4)
		for (int j = 0; j < 2; j++) {
			box[i + j] = (real)q[i + j] / 4 - 1 + (real).03;
			box[i + 2 + j] = box[i + j] + (real)(q[i + 2 + j] + 1) / 4;
		}
}
static const struct nr_op quarters = { .name = "quarters", .shape = quarters_shape, .forward = quarters_forward };

/* "shapes mean low_quality rows" */
static struct nr_anchor_rule try_rule(const char *options)
{
	return (struct nr_anchor_rule){ .grid = try_grid(options[0] - '0'),
		.match = { .4, .2, .05, options[2] - '0' },
		.mean = options[1] - '0',
		.rows = options[3] - '0',
		.every = 2,
		.positive = .5 };
}
static nr_t *match_try(struct nr_net *n, nr_t **x, const char *options)
{
	const struct nr_anchor_rule rule = try_rule(options);
	nr_t *match;
	return nr_anchor_match(n, nr_apply(n, &quarters, NULL, 0, x[0]), x[1], &rule, &match);
}
/* Whole numbers from 0 on become matches from NR_MATCH_BETWEEN on. */
static int matches_shape(struct nr_node *k) { return nr_out(k, 0, NR_I32, 2, k->in[0]->d, NULL) ? 0 : NR_EMEMORY; }
static void matches_forward(const struct nr_call *k)
{
	for (int64_t i = 0; i < nr_len(k->node->in[0]); i++) nr_ints(&k->y[0])[i] = nr_ints(&k->x[0])[i] + NR_MATCH_BETWEEN;
}
static const struct nr_op matches = { .name = "matches", .shape = matches_shape, .forward = matches_forward };

static nr_t *focal_try(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_focal_loss(n, x[0], nr_apply(n, &matches, NULL, 0, x[1]), x[2], x[3],
		(struct nr_focal){ options[1] == 'a' ? .25 : -1, (options[0] - '0') / 2. });
}
/* "shapes kind beta low_quality" */
static nr_t *boxes_try(struct nr_net *n, nr_t **x, const char *options)
{
	const struct nr_anchor_rule rule = try_rule((char[]){ options[0], '0', options[3], '0', 0 });
	nr_t *truth = nr_apply(n, &quarters, NULL, 0, x[1]), *match, *weight = nr_anchor_match(n, truth, x[2], &rule, &match);
	return nr_anchor_box_loss(n, x[0], match, weight, truth, &rule.grid,
		(struct nr_box_cost){ options[1] - '0', options[2] == '1' ? .3 : 0, { 1, .5, 1, 2 }, 1.2, options[1] == '1' });
}
static const struct nr_case match_cases[] = { { "2x4x4:i9 2x4:i5", "3012" }, { "1x1x4:i5 1x1:i1", "1100" }, { "3x2x4:i9 3x2:i1", "2220" },
	{ "2x3x4:i9 2x3:i5", "3309" }, { NULL, NULL } };
static const struct nr_case focal_cases[] = { { "2x7x5 2x7:i6 2x7 2x4:i5", "4a" }, { "1x1x1 1x1:i3 1x1", "0n" },
	{ "3x9x1 3x9:i4 3x9", "3a" }, { "2x40x16 2x40:i5 2x40 2x3:i16", "4n" }, { NULL, NULL } };
static const struct nr_case boxes_cases[] = { { "2x21x4 2x4x4:i9 2x4:i5", "3011" }, { "1x7x4 1x1x4:i6 1x1:i1", "1102" },
	{ "2x14x4 2x3x4:i9 2x3:i4", "2111" }, { "1x21x4 1x3x4:i9 1x3:i4", "3002" }, { NULL, NULL } };

const struct nr_op nr_op_anchor_match = {
	.name = "anchor_match", .shape = match_shape, .forward = match_forward, .flags = NR_RANDOM | NR_BATCHWISE, .try_case = match_try,
	.cases = match_cases,
};
const struct nr_op nr_op_focal_loss = {
	.name = "focal_loss", .shape = focal_shape, .forward = focal_forward, .backward = focal_backward,
	.keeps = NR_KEEP_X(LOGIT) | NR_KEEP_X(MATCH) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(CLASSES), .try_case = focal_try, .cases = focal_cases,
};
const struct nr_op nr_op_anchor_box_loss = {
	.name = "anchor_box_loss",
	.shape = boxes_shape,
	.forward = boxes_forward,
	.backward = boxes_backward,
	.keeps = NR_KEEP_X(OFFSET) | NR_KEEP_X(MATCHED) | NR_KEEP_X(WEIGHTS) | NR_KEEP_X(TRUTH),
	.try_case = boxes_try,
	.cases = boxes_cases,
};

nr_t *nr_anchor_match(struct nr_net *n, nr_t *truth, nr_t *classes, const struct nr_anchor_rule *rule, nr_t **match)
{
	const struct match a = { *rule, nr_stream_next(n) };
	nr_t *y = nr_apply(n, &nr_op_anchor_match, &a, sizeof a, truth, classes);
	*match = y ? y->src->out[1] : NULL;
	return y;
}

nr_t *nr_focal_loss(struct nr_net *n, nr_t *logit, nr_t *match, nr_t *weight, nr_t *classes, struct nr_focal o)
{
	nr_t *in[] = { logit, match, weight, classes };
	return nr_apply_list(n, &nr_op_focal_loss, &o, sizeof o, classes ? 4 : 3, in);
}

nr_t *nr_anchor_box_loss(struct nr_net *n, nr_t *offset, nr_t *match, nr_t *weight, nr_t *truth, const struct nr_anchor_grid *grid,
	struct nr_box_cost cost)
{
	const struct boxes a = { *grid, cost };
	return nr_apply(n, &nr_op_anchor_box_loss, &a, sizeof a, offset, match, weight, truth);
}
