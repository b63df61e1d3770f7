/* upsample_add: a map (B,H,W,C) + a coarser one (B,h,w,C), each place of which is repeated: the way down of a feature pyramid. Place Y of
 * H takes place floor(Y h / H) of h: the nearest of interpolations to a given size, also where that is no multiple. */
#include "math/row.h"
#include "nn/op.h"

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0], *s = k->in[1];
	char a[64], b[64];
	if (nr_expect(k, x->nd == 4 && s->nd == 4 && x->d[0] == s->d[0] && x->d[3] == s->d[3] && s->d[1] <= x->d[1] && s->d[2] <= x->d[2],
		"%s is no coarser map (B,h,w,C) of %s", nr_shape_text(s, b, sizeof b), nr_shape_text(x, a, sizeof a)))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	return 0;
}

static void forward(const struct nr_call *k)
{
	const int64_t *d = k->node->in[0]->d, *e = k->node->in[1]->d, B = d[0], H = d[1], W = d[2], C = d[3], h = e[1], w = e[2];
	const real *x = k->x[0].p, *s = k->x[1].p;
	real *y = k->y[0].p;
#pragma omp parallel for schedule(static) if (B * H * W * C > 16384)
	for (int64_t r = 0; r < B * H; r++) {
		const real *row = s + (r / H * h + r % H * h / H) * w * C;
		for (int64_t i = 0; i < W; i++) nr_row_add(C, x + (r * W + i) * C, row + i * w / W * C, y + (r * W + i) * C);
	}
}

/* The first place of H that takes place i of h. */
static int64_t first(int64_t i, int64_t h, int64_t H) { return (i * H + h - 1) / h; }

static void backward(const struct nr_call *k)
{
	const int64_t *d = k->node->in[0]->d, *e = k->node->in[1]->d, B = d[0], H = d[1], W = d[2], C = d[3], h = e[1], w = e[2];
	const real *dy = k->dy[0].p;
	real *ds = k->dx[1].p;
	if (k->want & 2) {
#pragma omp parallel for schedule(static) if (B * H * W * C > 16384)
		for (int64_t r = 0; r < B * h; r++)
			for (int64_t i = 0; i < w; i++) {
				const int64_t from = first(r % h, h, H), to = first(r % h + 1, h, H), last = first(i + 1, w, W);
				real *to_s = ds + (r * w + i) * C;
				int add = k->add[1];
				for (int64_t Y = from; Y < to; Y++)
					for (int64_t X = first(i, w, W); X < last; X++, add = 1)
						nr_row_put(C, dy + ((r / h * H + Y) * W + X) * C, to_s, add);
			}
	}
	if (k->want & 1 && (k->dx[0].p != k->dy[0].p || k->add[0])) nr_array_put(B * H * W * C, dy, k->dx[0].p, k->add[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_upsample_add(n, x[0], x[1]);
}
static const struct nr_case cases[] = {
	{ "2x4x6x3 2x2x3x3", "" }, { "1x5x7x2 1x3x4x2", "" }, { "1x1x1x1 1x1x1x1", "" }, { "2x3x3x5 2x1x3x5", "" }, { NULL, NULL },
};
const struct nr_op nr_op_upsample_add = {
	.name = "upsample_add", .shape = shape, .forward = forward, .backward = backward, .flags = NR_INPLACE | NR_INPLACE_GRAD,
	.try_case = try_case, .cases = cases,
};

nr_t *nr_upsample_add(struct nr_net *n, nr_t *x, nr_t *coarse) { return nr_apply(n, &nr_op_upsample_add, NULL, 0, x, coarse); }
