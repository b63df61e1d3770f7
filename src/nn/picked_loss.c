/* picked_loss: of the values that belong to a row's class (regions.h): the mask of the true class, its four offsets; without classes of
 * anchors. Binary cross entropy of logits or absolute errors, squared below beta (smooth L1). Rows are summed up in double, in order. */
#include "math/row.h"
#include "nn/op.h"
#include "nn/regions.h"

struct picked { struct nr_picked_options o; int labelled; };
enum { X, TARGET, WEIGHT, LABEL };

static int shape(struct nr_node *k)
{
	const struct picked *a = k->attr;
	const nr_t *x = k->in[X], *t = k->in[TARGET], *w = k->in[WEIGHT];
	const int64_t rows = nr_len(w), values = rows ? nr_len(t) / rows : 0, all = rows ? nr_len(x) / rows : 0;
	char sx[64], st[64];
	nr_shape_text(x, sx, sizeof sx), nr_shape_text(t, st, sizeof st);
	if (nr_expect(k, x->dtype == NR_REAL && t->dtype == NR_REAL && w->dtype == NR_REAL && values > 0 && nr_len(t) == rows * values,
		"the targets %s are not those of %lld rows", st, (long long)rows) ||
	    nr_expect(k, nr_len(x) == rows * all && all % values == 0 && (a->labelled || all == values),
		"%s is not %lld values for each class of %lld rows", sx, (long long)values, (long long)rows) ||
	    nr_expect(k, !a->labelled || (k->in[LABEL]->dtype == NR_I32 && nr_len(k->in[LABEL]) == rows), "not one label for each row"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->scratch = (size_t)rows * sizeof(double);
	return 0;
}

struct rows { int64_t n, values, classes; const real *x, *t, *w; const int32_t *label; };
static struct rows rows_of(const struct nr_call *k)
{
	const struct picked *a = k->node->attr;
	struct rows r = { .n = nr_len(k->node->in[WEIGHT]), .x = k->x[X].p, .t = k->x[TARGET].p, .w = k->x[WEIGHT].p };
	r.values = nr_len(k->node->in[TARGET]) / r.n;
	r.classes = nr_len(k->node->in[X]) / r.n / r.values;
	r.label = a->labelled ? nr_ints(&k->x[LABEL]) : NULL;
	return r;
}
/* Does row i count? Then *from is its first value, *step apart. */
static int place(const struct nr_picked_options *o, const struct rows *r, int64_t i, int64_t *from, int64_t *step)
{
	const int64_t c = r->label ? r->label[i] : 0;
	*step = o->last ? r->classes : 1;
	*from = i * r->classes * r->values + (o->last ? c : c * r->values);
	return c >= 0 && c < r->classes;
}

static double loss_of(const struct nr_picked_options *o, double x, double t)
{
	const double e = fabs(x - t);
	if (o->kind == NR_PICKED_BCE) return (x > 0 ? x : 0) - x * t + log1p(exp(-fabs(x)));
	return e < o->beta ? .5 * e * e / o->beta : e - .5 * o->beta;
}
static double slope_of(const struct nr_picked_options *o, double x, double t)
{
	const double e = x - t;
	if (o->kind == NR_PICKED_BCE) return (x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x))) - t;
	return fabs(e) < o->beta ? e / o->beta : (e > 0) - (e < 0);
}

static double row_loss(const struct nr_picked_options *o, const struct rows *r, int64_t i)
{
	int64_t from, step;
	double sum = 0;
	if (!place(o, r, i, &from, &step)) return 0;
	for (int64_t j = 0; j < r->values; j++) sum += loss_of(o, (double)r->x[from + j * step], (double)r->t[i * r->values + j]);
	return sum;
}

static void forward(const struct nr_call *k)
{
	const struct picked *a = k->node->attr;
	const struct rows r = rows_of(k);
	double *row = k->scratch, sum = 0;
#pragma omp parallel for schedule(static) if (r.n * r.values > 1024)
	for (int64_t i = 0; i < r.n; i++) row[i] = r.w[i] != 0 ? (double)r.w[i] * row_loss(&a->o, &r, i) : 0;
	for (int64_t i = 0; i < r.n; i++) sum += row[i];
	*(real *)k->y[0].p = (real)sum;
}

static void x_backward(const struct nr_call *k, const struct rows *r, int64_t i, double g)
{
	const struct picked *a = k->node->attr;
	real *dx = k->dx[X].p, *dt = k->dx[TARGET].p;
	int64_t from, step;
	const int counts = place(&a->o, r, i, &from, &step) && g != 0;
	if (k->want & 1 && !k->add[X]) memset(dx + i * r->classes * r->values, 0, (size_t)(r->classes * r->values) * sizeof(real));
	for (int64_t j = 0; j < r->values; j++) {
		const double x = counts ? (double)r->x[from + j * step] : 0, t = (double)r->t[i * r->values + j];
		const double d = counts ? g * slope_of(&a->o, x, t) : 0;
		if (k->want & 1 && counts) dx[from + j * step] += (real)d;
		if (k->want & 2) nr_put(&dt[i * r->values + j], (real)(a->o.kind == NR_PICKED_BCE ? -g * x : -d), k->add[TARGET]);
	}
}
static void backward(const struct nr_call *k)
{
	const struct picked *a = k->node->attr;
	const struct rows r = rows_of(k);
	const double g = (double)*(const real *)k->dy[0].p;
#pragma omp parallel for schedule(static) if (r.n * r.values > 1024)
	for (int64_t i = 0; i < r.n; i++) {
		if (k->want & 3) x_backward(k, &r, i, g * (double)r.w[i]);
		if (k->want & 4) nr_put((real *)k->dx[WEIGHT].p + i, (real)(g * row_loss(&a->o, &r, i)), k->add[WEIGHT]);
	}
}

/* "bce", "l1", "smooth", each with "last" */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	const struct nr_picked_options o = { strstr(options, "bce") ? NR_PICKED_BCE : NR_PICKED_L1, strstr(options, "smooth") ? .5 : 0,
		strstr(options, "last") != NULL };
	return nr_picked_loss(n, x[0], x[3], x[1], x[2], o);
}
static const struct nr_case cases[] = {
	{ "5x12 5x4 5 5:i3", "smooth" }, { "2x3x12 2x3x4 2x3 2x3:i3", "l1" }, { "6x2x2x3 6x4 6 6:i3", "bce,last" }, { "1x1 1 1", "bce" },
	{ "2x7 2x7 2x7", "bce" }, { "2x5x4 2x5x4 2x5", "smooth" }, { "300x8 300x4 300 300:i2", "l1" }, { NULL, NULL },
};
const struct nr_op nr_op_picked_loss = {
	.name = "picked_loss", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(X) | NR_KEEP_X(TARGET) | NR_KEEP_X(WEIGHT) | NR_KEEP_X(LABEL), .try_case = try_case, .cases = cases,
};

nr_t *nr_picked_loss(struct nr_net *n, nr_t *x, nr_t *label, nr_t *target, nr_t *weight, struct nr_picked_options o)
{
	const struct picked a = { o, label != NULL };
	nr_t *in[] = { x, target, weight, label };
	return nr_apply_list(n, &nr_op_picked_loss, &a, sizeof a, label ? 4 : 3, in);
}

/* ---- pick_masks: of the values of all classes those of a row's, as probabilities; no gradient --------------------------------- */

struct pick { int first; };

static int pick_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *label = k->in[1];
	char s[64];
	if (nr_expect(k, x->nd == 4 && label->dtype == NR_I32 && nr_len(label) == x->d[0], "%s has not one label for each map",
		nr_shape_text(x, s, sizeof s)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 2, (int64_t[]){ x->d[0], x->d[1] * x->d[2] }, NULL);
	return 0;
}
static void pick_forward(const struct nr_call *k)
{
	const struct pick *a = k->node->attr;
	const int64_t rows = k->node->in[0]->d[0], places = k->node->out[0]->d[1], K = nr_cols(k->node->in[0]);
	const real *x = k->x[0].p;
	real *y = k->y[0].p;
	for (int64_t i = 0; i < rows * places; i++) {
		const int64_t label = nr_ints(&k->x[1])[i / places], c = label + a->first;
		y[i] = label >= 0 && c < K ? (real)(1 / (1 + exp(-(double)x[i * K + c]))) : 0;
	}
}
static nr_t *pick_try(struct nr_net *n, nr_t **x, const char *options) { return nr_pick_masks(n, x[0], x[1], options[0] == 'f'); }
static const struct nr_case pick_cases[] = { { "6x2x3x4 2x3:i3", "f" }, { "1x1x1x1 1x1:i2", "l" }, { "3x4x4x2 3:i2", "l" },
	{ NULL, NULL } };
const struct nr_op nr_op_pick_masks = {
	.name = "pick_masks", .shape = pick_shape, .forward = pick_forward, .try_case = pick_try, .cases = pick_cases,
};

nr_t *nr_pick_masks(struct nr_net *n, nr_t *logit, nr_t *label, int background_first)
{
	const struct pick a = { background_first };
	return nr_apply(n, &nr_op_pick_masks, &a, sizeof a, logit, label);
}
