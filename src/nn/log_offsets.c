/* log_offsets: a linear layer on every offset (dy, dx) between two places of a grid of h x w, y = W s(d) + b with
 * s(d) = sign(d) log(1 + |d|): the first layer of the MLP that makes continuous position biases. Liu et al. 2022 (Swin v2),
 * arXiv:2111.09883, Eq. 4 and 5. Offsets are
 * in the order of nr_grid_bias's tables. */
#include <math.h>

#include "math/row.h"
#include "nn/op.h"

struct grid { int64_t h, w; };

static int64_t offsets(const struct grid *g) { return (2 * g->h - 1) * (2 * g->w - 1); }

static real squeezed(int64_t d) { return (real)copysign(log1p(fabs((double)d)), (double)d); }

static void offset(const struct grid *g, int64_t i, real s[2])
{
	s[0] = squeezed(i / (2 * g->w - 1) - g->h + 1);
	s[1] = squeezed(i % (2 * g->w - 1) - g->w + 1);
}

static int shape(struct nr_node *k)
{
	const struct grid *g = k->attr;
	const nr_t *w = k->in[0], *b = k->in[1];
	if (nr_expect(k, w->nd == 2 && w->d[1] == 2 && nr_len(b) == w->d[0], "a weight (D,2) and a bias (D) are needed") ||
	    nr_expect(k, g->h > 0 && g->w > 0, "these tokens have no grid"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 2, (int64_t[]){ offsets(g), w->d[0] }, NULL);
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct grid *g = k->node->attr;
	const int64_t N = offsets(g), D = k->y[0].c;
	const real *w = k->x[0].p, *b = k->x[1].p;
#pragma omp parallel for schedule(static) if (N * D > 16384)
	for (int64_t i = 0; i < N; i++) {
		real s[2], *y = (real *)k->y[0].p + i * D;
		offset(g, i, s);
		for (int64_t c = 0; c < D; c++) y[c] = w[2 * c] * s[0] + w[2 * c + 1] * s[1] + b[c];
	}
}

/* Each channel's sums over the offsets, in order. */
static void backward(const struct nr_call *k)
{
	const struct grid *g = k->node->attr;
	const int64_t N = offsets(g), D = k->dy[0].c;
	const real *dy = k->dy[0].p;
#pragma omp parallel for schedule(static) if (N * D > 16384)
	for (int64_t c = 0; c < D; c++) {
		real sum[3] = { 0 }, s[2];
		for (int64_t i = 0; i < N; i++) {
			offset(g, i, s);
			sum[0] += dy[i * D + c] * s[0], sum[1] += dy[i * D + c] * s[1], sum[2] += dy[i * D + c];
		}
		for (int64_t p = 0; p < 2 && k->want & 1; p++) nr_put((real *)k->dx[0].p + 2 * c + p, sum[p], k->add[0]);
		if (k->want & 2) nr_put((real *)k->dx[1].p + c, sum[2], k->add[1]);
	}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *o) { return nr_log_offsets(n, x[0], x[1], o[0] - '0', o[1] - '0'); }
static const struct nr_case cases[] = { { "3x2 3", "23" }, { "1x2 1", "11" }, { "5x2 5", "31" }, { NULL, NULL } };
const struct nr_op nr_op_log_offsets = {
	.name = "log_offsets", .shape = shape, .forward = forward, .backward = backward, .try_case = try_case, .cases = cases,
};

nr_t *nr_log_offsets(struct nr_net *n, nr_t *weight, nr_t *bias, int64_t h, int64_t w)
{
	const struct grid g = { h, w };
	return nr_apply(n, &nr_op_log_offsets, &g, sizeof g, weight, bias);
}
