/* position_bias: scores that depend on where two tokens lie on the grid: y[h,i,j] = a_h . (d^2, dx, dy), d = (dx, dy) from
 * token i to token j, dx along columns. DTN, Eq. 6; as a bias of attention its Table 10a. Special tokens lie nowhere: 0. Keys on a coarser
 * grid, as those of PVT, lie in the middle of the stride x stride tokens that they stand for. */
#include "math/row.h"
#include "nn/op.h"

struct grid { int64_t h, w, special, stride; };

static int64_t tokens(const struct grid *g) { return g->special + g->h * g->w; }
static int64_t keys(const struct grid *g) { return g->h / g->stride * (g->w / g->stride); }

static void offset(const struct grid *g, int64_t i, int64_t j, real r[3])
{
	const int64_t across = g->w / g->stride;
	const real middle = (real)(g->stride - 1) / 2;
	const real dx = (real)(j % across * g->stride - i % g->w) + middle, dy = (real)(j / across * g->stride - i / g->w) + middle;
	r[0] = dx * dx + dy * dy, r[1] = dx, r[2] = dy;
}

static int shape(struct nr_node *k)
{
	const struct grid *g = k->attr;
	const nr_t *a = k->in[0];
	if (nr_expect(k, a->nd == 2 && a->d[1] == 3, "three numbers for each head") ||
	    nr_expect(k, g->stride > 0 && g->h >= g->stride && g->w >= g->stride, "these tokens have no grid"))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ a->d[0], tokens(g), g->special + keys(g) }, NULL);
	k->scratch = (size_t)(a->d[0] * g->h * g->w * 3) * sizeof(real);       /* a row's part of the gradient */
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct grid *g = k->node->attr;
	const int64_t H = k->node->in[0]->d[0], N = keys(g), T = tokens(g), S = g->special;
	const real *a = k->x[0].p;
#pragma omp parallel for schedule(static) if (H * T * N > 16384)
	for (int64_t q = 0; q < H * T; q++) {
		const int64_t h = q / T, i = q % T - S;
		real *y = (real *)k->y[0].p + q * (S + N), r[3];
		memset(y, 0, (size_t)(S + N) * sizeof *y);
		for (int64_t j = 0; i >= 0 && j < N; j++) {
			offset(g, i, j, r);
			y[S + j] = a[3 * h] * r[0] + a[3 * h + 1] * r[1] + a[3 * h + 2] * r[2];
		}
	}
}

static void backward(const struct nr_call *k)
{
	const struct grid *g = k->node->attr;
	const int64_t H = k->node->in[0]->d[0], N = g->h * g->w, M = keys(g), T = tokens(g), S = g->special;
	real *part = k->scratch;                        /* (H,N,3) */
#pragma omp parallel for schedule(static) if (H * N * M > 16384)
	for (int64_t q = 0; q < H * N; q++) {
		const real *dy = (const real *)k->dy[0].p + ((q / N) * T + S + q % N) * (S + M) + S;
		real *sum = part + 3 * q, r[3];
		sum[0] = sum[1] = sum[2] = 0;
		for (int64_t j = 0; j < M; j++) {
			offset(g, q % N, j, r);
			for (int c = 0; c < 3; c++) sum[c] += dy[j] * r[c];
		}
	}
	for (int64_t h = 0; h < H; h++)
		for (int c = 0; c < 3; c++) {
			real sum = 0;
			for (int64_t i = 0; i < N; i++) sum += part[3 * (h * N + i) + c];
			nr_put((real *)k->dx[0].p + 3 * h + c, sum, k->add[0]);
		}
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	const int64_t stride = text[1] - '0';
	return nr_position_bias(n, x[0], 2 * stride, 3 * stride + 1, text[0] - '0', stride);
}
static const struct nr_case cases[] = { { "2x3", "01" }, { "1x3", "11" }, { "4x3", "21" }, { "2x3", "02" }, { "3x3", "13" },
	{ NULL, NULL } };

const struct nr_op nr_op_position_bias = {
	.name = "position_bias", .shape = shape, .forward = forward, .backward = backward, .try_case = try_case, .cases = cases,
};

nr_t *nr_position_bias(struct nr_net *n, nr_t *a, int64_t h, int64_t w, int64_t special, int64_t stride)
{
	const struct grid g = { h, w, special, stride };
	return nr_apply(n, &nr_op_position_bias, &g, sizeof g, a);
}
