/* Places of tokens that no table holds whole: sines (Vaswani et al. 2017, arXiv:1706.03762, section 3.5; channels in pairs), and Reformer's
 * axial positions (arXiv:2001.04451): place t of a grid of n columns has row t / n of one table beside row t % n of another. */
#include <math.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "nn/op.h"

static int is_tokens(struct nr_node *k)
{
	char s[64];
	return !nr_expect(k, k->in[0]->nd == 3 && k->in[0]->dtype == NR_REAL, "tokens are (B,T,C), not %s",
		nr_shape_text(k->in[0], s, sizeof s));
}

/* ---- add_sines --------------------------------------------------------------------------------------------------------------- */

static int sines_shape(struct nr_node *k)
{
	if (!is_tokens(k)) return NR_ESHAPE;
	nr_out_like(k, 0, k->in[0]);
	k->scratch = (size_t)k->in[0]->d[1] * (size_t)k->in[0]->d[2] * sizeof(real);
	return 0;
}
static void sines_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const int64_t C = x->c, T = x->t;
	real *table = k->scratch;
#pragma omp parallel for schedule(static) if (T * C > 4096)
	for (int64_t i = 0; i < C; i += 2) {
		const double w = pow(10000, -(double)i / (double)C);
		for (int64_t t = 0; t < T; t++) {
			table[t * C + i] = (real)sin((double)t * w);
			if (i + 1 < C) table[t * C + i + 1] = (real)cos((double)t * w);
		}
	}
#pragma omp parallel for schedule(static) if (x->rows * C > 16384)
	for (int64_t r = 0; r < x->rows; r++) nr_row_add(C, nr_row(x, r), table + r % T * C, nr_row(y, r));
}
static void pass_back(const struct nr_call *k)
{
	if (k->want & 1 && k->dx[0].p != k->dy[0].p) nr_rows_put(&k->dx[0], &k->dy[0], k->add[0]);
}
static nr_t *sines_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_add_sines(n, x[0]);
}
static const struct nr_case sines_cases[] = { { "3x5x8", "" }, { "1x1x1", "" }, { "2x9x5", "" }, { NULL, NULL } };
const struct nr_op nr_op_add_sines = {
	.name = "add_sines", .shape = sines_shape, .forward = sines_forward, .backward = pass_back,
	.flags = NR_STRIDED | NR_INPLACE | NR_INPLACE_GRAD, .try_case = sines_try, .cases = sines_cases,
};
nr_t *nr_add_sines(struct nr_net *n, nr_t *x) { return nr_apply(n, &nr_op_add_sines, NULL, 0, x); }

/* ---- add_axial ----------------------------------------------------------------------------------------------------------------- */

static int axial_shape(struct nr_node *k)
{
	const nr_t *a = k->in[1], *b = k->in[2];
	char sa[64], sb[64];
	if (!is_tokens(k)) return NR_ESHAPE;
	const nr_t *x = k->in[0];
	if (nr_expect(k, a->nd == 3 && b->nd == 3 && a->d[1] == 1 && b->d[0] == 1 && a->d[2] + b->d[2] == x->d[2],
		      "tables %s and %s do not give %lld channels", nr_shape_text(a, sa, sizeof sa), nr_shape_text(b, sb, sizeof sb),
		      (long long)x->d[2]) ||
	    nr_expect(k, a->d[0] * b->d[1] >= x->d[1], "there are %lld x %lld places, but %lld tokens", (long long)a->d[0],
		      (long long)b->d[1], (long long)x->d[1]))
		return NR_ESHAPE;
	nr_out_like(k, 0, x);
	return 0;
}
static void axial_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const int64_t columns = k->node->in[2]->d[1], Ca = k->x[1].c, Cb = k->x[2].c;
	const real *a = k->x[1].p, *b = k->x[2].p;
#pragma omp parallel for schedule(static) if (x->rows * x->c > 16384)
	for (int64_t r = 0; r < x->rows; r++) {
		const int64_t t = r % x->t;
		nr_row_add(Ca, nr_row(x, r), a + t / columns * Ca, nr_row(y, r));
		nr_row_add(Cb, nr_row(x, r) + Ca, b + t % columns * Cb, nr_row(y, r) + Ca);
	}
}
/* Row i of a table gets the gradients of its tokens, in order. */
static void axial_backward(const struct nr_call *k)
{
	const struct nr_view *g = &k->dy[0];
	const int64_t rows = k->node->in[1]->d[0], columns = k->node->in[2]->d[1], Ca = k->x[1].c, Cb = k->x[2].c, B = g->rows / g->t;
	real *ga = k->dx[1].p, *gb = k->dx[2].p;
	for (int64_t i = 0; !k->add[1] && i < rows * Ca; i++) ga[i] = 0;
	for (int64_t i = 0; !k->add[2] && i < columns * Cb; i++) gb[i] = 0;
#pragma omp parallel for schedule(static) if (g->rows * g->c > 16384)
	for (int64_t i = 0; i < rows + columns; i++)
		for (int64_t b = 0; b < B; b++) {
			const int64_t from = i < rows ? i * columns : i - rows, step = i < rows ? 1 : columns;
			const int64_t to = i < rows ? from + columns : g->t;
			for (int64_t t = from; t < to && t < g->t; t += step) {
				if (i < rows) nr_row_axpy(Ca, 1, nr_row(g, b * g->t + t), ga + i * Ca);
				else nr_row_axpy(Cb, 1, nr_row(g, b * g->t + t) + Ca, gb + (i - rows) * Cb);
			}
		}
	pass_back(k);
}
static nr_t *axial_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_add_axial(n, x[0], x[1], x[2]);
}
static const struct nr_case axial_cases[] = { { "2x12x7 3x1x3 1x4x4", "" }, { "1x1x2 1x1x1 1x1x1", "" }, { "2x10x5 4x1x2 1x3x3", "" },
	{ NULL, NULL } };
const struct nr_op nr_op_add_axial = {
	.name = "add_axial", .shape = axial_shape, .forward = axial_forward, .backward = axial_backward, .flags = NR_STRIDED | NR_INPLACE,
	.try_case = axial_try, .cases = axial_cases,
};
nr_t *nr_add_axial(struct nr_net *n, nr_t *x, nr_t *a, nr_t *b) { return nr_apply(n, &nr_op_add_axial, NULL, 0, x, a, b); }
