/* entropy_loss: H_b = -sum_k p log p of the softmax p of row b; the loss is their mean over the rows that count and have H_b < margin.
 * Wang et al. 2021 (Tent, arXiv:2006.10726), Eq. 1; the margin is Niu et al. 2023 (SAR, arXiv:2302.12400), Eq. 2.
 * d H / d x_k = -p_k (log p_k + H); which rows count is taken as given. */
#include "math/row.h"
#include "nn/op.h"

struct entropy { double margin; };

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *counts = k->in[1];
	char sx[64], sc[64];
	if (nr_expect(k, x->dtype == NR_REAL && counts->dtype == NR_I32 && nr_len(counts) == nr_rows(x),
		    "%s is not one int32 for each row of %s", nr_shape_text(counts, sc, sizeof sc), nr_shape_text(x, sx, sizeof sx)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 1, (int64_t[]){ 1 }, NULL);
	nr_out(k, 1, NR_REAL, 1, (int64_t[]){ nr_rows(x) }, NULL);
	k->stash = (size_t)(2 * nr_rows(x) + 1) * sizeof(real);        /* entropy and log of the sum by row, 1 / what counts */
	return 0;
}

/* log of the sum of exponentials, and with it the entropy. */
static real entropy_of(int64_t C, const real *x, real *log_sum)
{
	const real top = nr_row_max(C, x);
	real sum = 0, mean = 0;
	for (int64_t i = 0; i < C; i++) {
		const real e = nr_exp(x[i] - top);
		sum += e;
		mean += e * (x[i] - top);
	}
	*log_sum = top + nr_log(sum);
	return nr_log(sum) - mean / sum;
}

static int counts(const struct nr_call *k, int64_t r, real h)
{
	const double margin = ((const struct entropy *)k->node->attr)->margin;
	return nr_ints(&k->x[1])[r] && (margin <= 0 || (double)h < margin);
}

static void forward(const struct nr_call *k)
{
	const int64_t rows = k->x[0].rows;
	real *h = k->stash, *log_sum = h + rows, *out = k->y[1].p;
	double sum = 0;
	int64_t count = 0;
	for (int64_t r = 0; r < rows; r++) {
		h[r] = entropy_of(k->x[0].c, nr_row(&k->x[0], r), &log_sum[r]);
		const int in = counts(k, r, h[r]);
		sum += in ? (double)h[r] : 0;
		count += in;
		if (out) out[r] = h[r];
	}
	log_sum[rows] = count ? 1 / (real)count : 0;
	*(real *)k->y[0].p = count ? (real)(sum / (double)count) : 0;
}

static void backward(const struct nr_call *k)
{
	const int64_t rows = k->x[0].rows, C = k->x[0].c;
	const real *h = k->stash, *log_sum = h + rows, scale = *(const real *)k->dy[0].p * log_sum[rows];
	for (int64_t r = 0; r < rows; r++) {
		const int in = counts(k, r, h[r]);
		const real *x = nr_row(&k->x[0], r);
		real *dx = nr_row(&k->dx[0], r);
		for (int64_t i = 0; i < C; i++) {
			const real log_p = x[i] - log_sum[r];
			nr_put(&dx[i], in ? -scale * nr_exp(log_p) * (log_p + h[r]) : 0, k->add[0]);
		}
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_entropy_loss(n, x[0], x[1], *options == 'm' ? 1.2 : 0, NULL);
}
static const struct nr_case cases[] = {
	{ "5x7 5:i2", "" }, { "1x1 1:i1-1", "" }, { "9x4 9:i1-1", "margin" }, { "2x3x5 2x3:i2", "" }, { NULL, NULL }
};
const struct nr_op nr_op_entropy_loss = {
	.name = "entropy_loss", .shape = shape, .forward = forward, .backward = backward, .keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.optional = 1u << 1, .flags = NR_STRIDED, .try_case = try_case, .cases = cases,
};

nr_t *nr_entropy_loss(struct nr_net *n, nr_t *logits, nr_t *counts, double margin, nr_t **rows)
{
	const struct entropy a = { margin };
	nr_t *loss = nr_apply(n, &nr_op_entropy_loss, &a, sizeof a, logits, counts);
	if (rows) *rows = loss ? loss->src->out[1] : NULL;
	return loss;
}
