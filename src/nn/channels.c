/* channels: some of the channels of each row, copied: the values of packed queries, keys and values, where a model needs them alone. */
#include "math/row.h"
#include "nn/op.h"

struct range { int64_t from, to; };

static int shape(struct nr_node *k)
{
	const struct range *a = k->attr;
	const nr_t *x = k->in[0];
	int64_t d[NR_MAXD];
	if (nr_expect(k, x->dtype == NR_REAL && a->from >= 0 && a->from < a->to && a->to <= nr_cols(x), "no channels %lld to %lld of %lld",
		(long long)a->from, (long long)a->to, (long long)nr_cols(x)))
		return NR_ESHAPE;
	memcpy(d, x->d, sizeof d);
	d[x->nd - 1] = a->to - a->from;
	nr_out(k, 0, NR_REAL, x->nd, d, x->tok);
	return 0;
}
static void forward(const struct nr_call *k)
{
	const struct range *a = k->node->attr;
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
#pragma omp parallel for schedule(static) if (y->rows * y->c > 16384)
	for (int64_t r = 0; r < x->rows; r++) memcpy(nr_row(y, r), nr_row(x, r) + a->from, (size_t)y->c * sizeof(real));
}
static void backward(const struct nr_call *k)
{
	const struct range *a = k->node->attr;
	const struct nr_view *dx = &k->dx[0], *dy = &k->dy[0];
	if (!(k->want & 1)) return;
#pragma omp parallel for schedule(static) if (dx->rows * dx->c > 16384)
	for (int64_t r = 0; r < dx->rows; r++) {
		real *d = nr_row(dx, r);
		if (!k->add[0]) memset(d, 0, (size_t)dx->c * sizeof(real));
		nr_row_put(dy->c, nr_row(dy, r), d + a->from, k->add[0]);
	}
}
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *o) { return nr_channels(n, x[0], o[0] - '0', o[1] - '0'); }
static const struct nr_case cases[] = { { "2x5x7", "25" }, { "1x1x1", "01" }, { "2x3x6", "06" }, { "3x4", "34" }, { NULL, NULL } };
const struct nr_op nr_op_channels = {
	.name = "channels", .shape = shape, .forward = forward, .backward = backward, .flags = NR_CHEAP | NR_STRIDED, .try_case = try_case,
	.cases = cases,
};

nr_t *nr_channels(struct nr_net *n, nr_t *x, int64_t from, int64_t to)
{
	const struct range a = { from, to };
	return nr_apply(n, &nr_op_channels, &a, sizeof a, x);
}
