/* Losses: scalars in memory, the mean over what counts. Backward computes the gradient again from the kept inputs (a
 * softmax is cheaper than the memory of its result) and multiplies it by the gradient of the scalar.
 *
 * Squared errors are in mse.c. */
#include "graph/blocks.h"
#include "math/row.h"
#include "math/softmax.h"
#include "nn/op.h"

enum form { LABELS, SOFT, SIGMOID };

struct entropy { enum form form; enum nr_bce_mean mean; int32_t ignore; float smoothing; };

static int shape(struct nr_node *k)
{
	const struct entropy *a = k->attr;
	const nr_t *x = k->in[0], *t = k->in[1];
	const int labels = a->form == LABELS, one_each = t->dtype == NR_I32 && nr_len(t) == nr_rows(x);
	const int same = t->dtype == NR_REAL && nr_len(t) == nr_len(x) && nr_cols(t) == nr_cols(x);
	char sx[64], st[64];
	nr_shape_text(x, sx, sizeof sx), nr_shape_text(t, st, sizeof st);
	if (nr_expect(k, !labels || one_each, "the labels %s are not one int32 for each row of %s", st, sx) ||
	    nr_expect(k, labels || same, "the targets %s do not match the logits %s", st, sx))
		return NR_ESHAPE;
	if (nr_expect(k, a->smoothing >= 0 && a->smoothing <= 1, "label smoothing %g is not in [0,1]",
		(double)a->smoothing))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	k->stash = sizeof(real);                        /* 1 / what counts */
	k->scratch = (size_t)(nr_rows(x) + nr_array_chunks(nr_rows(x))) * sizeof(real); /* loss by row, sums */
	return 0;
}

static real share(const struct nr_call *k)      /* 1 / number of rows (or values) that the mean is over */
{
	const struct entropy *a = k->node->attr;
	const int64_t rows = k->x[0].rows;
	if (a->form == LABELS) {
		const int64_t n = nr_xent_count(rows, nr_ints(&k->x[1]), a->ignore);
		return n ? 1 / (real)n : 0;
	}
	return 1 / (real)(a->form == SIGMOID && a->mean == NR_BCE_MEAN_ALL ? rows * k->x[0].c : rows);
}

/* Each row's loss, or its gradient times scale. */
static void run(const struct nr_call *k, real scale, real *loss, const struct nr_view *dx, int add)
{
	const struct entropy *a = k->node->attr;
	const struct nr_view *x = &k->x[0];
	const int64_t C = x->c;
	const struct nr_blocks n = nr_blocks_of(x, nr_packed(x) && (!dx || nr_packed(dx)));
#pragma omp parallel for schedule(static) if (x->rows * C > 4096)
	for (int64_t q = 0; q < n.count; q++) {
		int64_t rows, r = nr_block(&n, q, &rows);
		const real *target = (const real *)k->x[1].p + r * C;
		real *l = loss ? loss + r : NULL, *d = dx ? nr_row(dx, r) : NULL;
		switch (a->form) {
		case LABELS:
			nr_row_active->xent_labels(rows, C, nr_row(x, r), C, nr_ints(&k->x[1]) + r, a->ignore,
				(real)a->smoothing, scale, l, d, C, add);
			break;
		case SOFT:
			nr_row_active->xent_soft(rows, C, nr_row(x, r), C, target, C, scale, l, d, C, add);
			break;
		case SIGMOID:
			nr_row_active->xent_sigmoid(rows, C, nr_row(x, r), C, target, C, scale, l, d, C, add);
			break;
		}
	}
}

static void forward(const struct nr_call *k)
{
	const int64_t rows = k->x[0].rows;
	real *loss = k->scratch, *y = k->y[0].p, *inverse = k->stash;
	*inverse = share(k);
	run(k, 1, loss, NULL, 0);
	*y = *inverse > 0 ? nr_array_sum(rows, loss, loss + rows) * *inverse : 0;
}

/* d loss / d target: log sum e^x - x for the softmax, -x for the sigmoid. */
static void target_backward(const struct nr_call *k, real scale)
{
	const struct entropy *a = k->node->attr;
	const struct nr_view *x = &k->x[0];
	const int64_t C = x->c;
#pragma omp parallel for schedule(static) if (x->rows * C > 4096)
	for (int64_t r = 0; r < x->rows; r++) {
		const real *v = nr_row(x, r);
		real *d = (real *)k->dx[1].p + r * C, log_sum = 0;
		if (a->form == SOFT) {
			const real top = nr_row_max(C, v);
			for (int64_t i = 0; i < C; i++) log_sum += nr_exp(v[i] - top);
			log_sum = top + nr_log(log_sum);
		}
		for (int64_t i = 0; i < C; i++) nr_put(&d[i], scale * (log_sum - v[i]), k->add[1]);
	}
}

static void backward(const struct nr_call *k)
{
	const struct entropy *a = k->node->attr;
	const real scale = *(const real *)k->dy[0].p * *(const real *)k->stash;
	if (k->want & 1) run(k, scale, NULL, &k->dx[0], k->add[0]);
	if (k->want & 2 && a->form != LABELS) target_backward(k, scale);
}

static nr_t *labels_try(struct nr_net *n, nr_t **x, const char *options)
{
	const int ignore = strstr(options, "ignore") ? 1 : -1;
	return nr_cross_entropy(n, x[0], x[1], strstr(options, "smooth") ? 0.1 : 0, ignore);
}
static nr_t *soft_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_soft_cross_entropy(n, x[0], x[1]);
}
static nr_t *sigmoid_try(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_sigmoid_cross_entropy(n, x[0], x[1], strcmp(options, "rows") ? NR_BCE_MEAN_ALL : NR_BCE_MEAN_ROWS);
}
static const struct nr_case labels_cases[] = {
	{ "5x7 5:i7", "" }, { "1x1 1:i1", "" }, { "2x3x5 2x3:i5", "smooth" }, { "70x3 70:i3", "ignore" },
	{ "2x2 2:i1-1", "ignore" }, { "9x4 9:i4", "smooth,ignore" }, { NULL, NULL },
};
static const struct nr_case soft_cases[] = { { "5x7 5x7", "" }, { "1x1 1x1", "" }, { "2x3x5 2x3x5", "" },
	{ NULL, NULL } };
static const struct nr_case sigmoid_cases[] = { { "5x7 5x7", "all" }, { "1x1 1x1", "all" },
	{ "2x3x5 2x3x5", "rows" }, { NULL, NULL } };

const struct nr_op nr_op_cross_entropy = {
	.name = "cross_entropy", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_STRIDED, .try_case = labels_try, .cases = labels_cases,
};
const struct nr_op nr_op_soft_cross_entropy = {
	.name = "soft_cross_entropy", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.flags = NR_STRIDED, .try_case = soft_try, .cases = soft_cases,
};
const struct nr_op nr_op_sigmoid_cross_entropy = {
	.name = "sigmoid_cross_entropy", .shape = shape, .forward = forward, .backward = backward,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_STRIDED, .try_case = sigmoid_try, .cases = sigmoid_cases,
};

nr_t *nr_cross_entropy(struct nr_net *n, nr_t *logits, nr_t *labels, double smoothing, int32_t ignore)
{
	const struct entropy a = { .form = LABELS, .ignore = ignore, .smoothing = (float)smoothing };
	return nr_apply(n, &nr_op_cross_entropy, &a, sizeof a, logits, labels);
}
nr_t *nr_soft_cross_entropy(struct nr_net *n, nr_t *logits, nr_t *targets)
{
	const struct entropy a = { .form = SOFT };
	return nr_apply(n, &nr_op_soft_cross_entropy, &a, sizeof a, logits, targets);
}
nr_t *nr_sigmoid_cross_entropy(struct nr_net *n, nr_t *logits, nr_t *targets, enum nr_bce_mean mean)
{
	const struct entropy a = { .form = SIGMOID, .mean = mean };
	return nr_apply(n, &nr_op_sigmoid_cross_entropy, &a, sizeof a, logits, targets);
}
