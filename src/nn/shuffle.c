/* shuffle: places of a grid become 2 x 2 places each, (B,h,w,4 C) -> (B,2 h,2 w,C), channel (c,a,b) going to row a and column b. Behind a
 * product it makes a transposed convolution with stride 2, whose windows do not overlap. */
#include "math/row.h"
#include "nn/op.h"
#include "nn/regions.h"

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 4 && x->dtype == NR_REAL && x->d[3] % 4 == 0, "grids are (B,h,w,4 C), not %s",
		nr_shape_text(x, s, sizeof s)))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ x->d[0], 2 * x->d[1], 2 * x->d[2], x->d[3] / 4 }, NULL);
	return 0;
}

/* Where channel 0 of corner (a,b) of row r goes. */
static int64_t place(const struct nr_node *k, int64_t r, int corner)
{
	const int64_t h = k->in[0]->d[1], w = k->in[0]->d[2], C = k->in[0]->d[3] / 4;
	const int64_t y = 2 * (r / w % h) + corner / 2, x = 2 * (r % w) + corner % 2;
	return ((r / (h * w) * 2 * h + y) * 2 * w + x) * C;
}
static void forward(const struct nr_call *k)
{
	const int64_t C = k->x[0].c / 4;
	const real *x = k->x[0].p;
	real *y = k->y[0].p;
#pragma omp parallel for schedule(static) if (k->x[0].rows * C > 4096)
	for (int64_t r = 0; r < k->x[0].rows; r++)
		for (int corner = 0; corner < 4; corner++)
			for (int64_t c = 0, at = place(k->node, r, corner); c < C; c++) y[at + c] = x[(r * C + c) * 4 + corner];
}
static void backward(const struct nr_call *k)
{
	const int64_t C = k->x[0].c / 4;
	const real *dy = k->dy[0].p;
	real *dx = k->dx[0].p;
	if (!(k->want & 1)) return;
#pragma omp parallel for schedule(static) if (k->x[0].rows * C > 4096)
	for (int64_t r = 0; r < k->x[0].rows; r++)
		for (int corner = 0; corner < 4; corner++)
			for (int64_t c = 0, at = place(k->node, r, corner); c < C; c++)
				nr_put(&dx[(r * C + c) * 4 + corner], dy[at + c], k->add[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return options[0] ? nr_deconv(n, "up", x[0], options[0] - '0') : nr_shuffle(n, x[0]);
}
static const struct nr_case cases[] = { { "2x3x2x8", "" }, { "1x1x1x4", "" }, { "2x3x4x5", "3" }, { "1x1x1x1", "1" }, { NULL, NULL } };
const struct nr_op nr_op_shuffle = {
	.name = "shuffle", .shape = shape, .forward = forward, .backward = backward, .try_case = try_case, .cases = cases,
};

nr_t *nr_shuffle(struct nr_net *n, nr_t *x) { return nr_apply(n, &nr_op_shuffle, NULL, 0, x); }

nr_t *nr_deconv(struct nr_net *n, const char *name, nr_t *x, int64_t out)
{
	if (!x) return NULL;
	const int64_t in = nr_cols(x), rows = nr_rows(x);
	nr_push(n, "%s", name);
	nr_t *weight = nr_param(n, "weight", NR_XAVIER, NR_SHAPE(in, out, 2, 2));
	nr_t *bias = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(out));
	nr_t *y = nr_matmul(n, nr_reshape(n, x, NR_SHAPE(1, rows, in)), nr_reshape(n, weight, NR_SHAPE(1, in, 4 * out)), 0, 0);
	y = nr_shuffle(n, nr_reshape(n, y, NR_SHAPE(x->d[0], x->d[1], x->d[2], 4 * out)));
	return nr_pop(n, nr_shift_channels(n, y, bias));
}
