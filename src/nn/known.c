/* known_loss: mean over the values whose target is known (not NaN): absolute error, squared error, or binary cross entropy of
 * logits. Molecules that were not measured for every task have gaps. Sums in double, so that a mean over many is one. */
#include "math/row.h"
#include "nn/op.h"

static int shape(struct nr_node *k)
{
	const nr_t *a = k->in[0], *b = k->in[1];
	char sa[64], sb[64];
	if (nr_expect(k, a->dtype == NR_REAL && b->dtype == NR_REAL && nr_len(a) == nr_len(b), "%s predictions and %s targets differ",
		      nr_shape_text(a, sa, sizeof sa), nr_shape_text(b, sb, sizeof sb)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->stash = sizeof(real);                        /* 1 / what counts */
	return 0;
}

/* log(1 + e^x) without overflow. */
static real soft_plus(real x) { return (x > 0 ? x : 0) + nr_log(1 + nr_exp(x > 0 ? -x : x)); }

static real loss_of(enum nr_known kind, real x, real t)
{
	if (kind == NR_KNOWN_BCE) return soft_plus(x) - x * t;
	return kind == NR_KNOWN_SQUARE ? (x - t) * (x - t) : x > t ? x - t : t - x;
}

/* By the prediction; by the target it is the opposite, or -x for the cross entropy. */
static real slope_of(enum nr_known kind, real x, real t)
{
	if (kind == NR_KNOWN_BCE) return (x >= 0 ? 1 / (1 + nr_exp(-x)) : nr_exp(x) / (1 + nr_exp(x))) - t;
	return kind == NR_KNOWN_SQUARE ? 2 * (x - t) : (real)((x > t) - (x < t));
}

static void forward(const struct nr_call *k)
{
	const enum nr_known kind = *(const enum nr_known *)k->node->attr;
	const real *x = k->x[0].p, *t = k->x[1].p;
	double sum = 0;
	int64_t count = 0;
	for (int64_t i = 0; i < nr_len(k->node->in[0]); i++) {
		if (isnan(t[i])) continue;
		sum += (double)loss_of(kind, x[i], t[i]);
		count++;
	}
	*(real *)k->stash = count ? 1 / (real)count : 0;
	*(real *)k->y[0].p = count ? (real)(sum / (double)count) : 0;
}

static void backward(const struct nr_call *k)
{
	const enum nr_known kind = *(const enum nr_known *)k->node->attr;
	const real *x = k->x[0].p, *t = k->x[1].p, scale = *(const real *)k->dy[0].p * *(const real *)k->stash;
	for (int64_t i = 0; i < nr_len(k->node->in[0]); i++) {
		const int known = !isnan(t[i]);
		const real g = known ? scale * slope_of(kind, x[i], t[i]) : 0;
		if (k->want & 1) nr_put((real *)k->dx[0].p + i, g, k->add[0]);
		if (k->want & 2) nr_put((real *)k->dx[1].p + i, !known ? 0 : kind == NR_KNOWN_BCE ? -scale * x[i] : -g, k->add[1]);
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_known_loss(n, x[0], x[1], *options == 'b' ? NR_KNOWN_BCE : *options == 's' ? NR_KNOWN_SQUARE : NR_KNOWN_ABSOLUTE);
}
static const struct nr_case cases[] = { { "5x7 5x7", "absolute" }, { "5x7 5x7", "squared" }, { "5x7 5x7", "bce" }, { "1x1 1x1", "bce" },
	{ "3 3", "absolute" }, { NULL, NULL } };
const struct nr_op nr_op_known_loss = {
	.name = "known_loss", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.try_case = try_case, .cases = cases,
};

nr_t *nr_known_loss(struct nr_net *n, nr_t *pred, nr_t *target, enum nr_known kind)
{
	return nr_apply(n, &nr_op_known_loss, &kind, sizeof kind, pred, target);
}
