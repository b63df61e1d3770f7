/* See squash.h. The curve is taken again from x in backward; gradients of the parameters are summed per block of rows and folded in block
 * order. */
#include "norms/squash.h"

#include <string.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "math/stream.h"

enum { X, ALPHA, SHIFT };

static int learned(const struct nr_node *k)     /* numbers for the whole layer: the place of the weight, if there is one */
{
	return ((const struct nr_squash_attr *)k->attr)->curve == NR_CURVE_ERF ? SHIFT + 1 : SHIFT;
}

static struct nr_squash squash_of(const struct nr_call *k)
{
	const struct nr_squash_attr *a = k->node->attr;
	const int weight = learned(k->node), affine = k->node->n_in > weight;
	return (struct nr_squash){ a->curve, *(const real *)k->x[ALPHA].p, a->curve == NR_CURVE_ERF ? *(const real *)k->x[SHIFT].p : 0,
		affine ? k->x[weight].p : NULL, affine ? k->x[weight + 1].p : NULL, nr_streams(k->x[X].rows * k->x[X].c) };
}

int nr_squash_shape(struct nr_node *k)
{
	const nr_t *x = k->in[X];
	const int64_t C = nr_cols(x), weight = learned(k);
	nr_out_like(k, 0, x);
	/* per block: dweight, dbias, dalpha, dshift */
	k->scratch = (size_t)(nr_blocks_most(x) * (2 * C + 2)) * sizeof(real);
	return nr_expect(k, k->n_in == weight || (nr_len(k->in[weight]) == C && nr_len(k->in[weight + 1]) == C),
		"one weight and one bias per channel");
}

void nr_squash_forward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *y = &k->y[0];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	const struct nr_squash f = squash_of(k);
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows);
		nr_squash_active->forward(&f, rows, x->c, nr_row(x, r), x->c, nr_row(y, r), x->c);
	}
}

void nr_squash_backward(const struct nr_call *k)
{
	const struct nr_view *x = &k->x[X], *dy = &k->dy[0], *dx = &k->dx[X];
	const int64_t C = x->c, weight = learned(k->node);
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const struct nr_squash f = squash_of(k);
	real *dw = k->scratch, *db = dw + b.count * C, *da = db + b.count * C, *ds = da + b.count;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows;
		const int64_t r = nr_block(&b, q, &rows);
		memset(dw + q * C, 0, (size_t)C * sizeof(real));
		memset(db + q * C, 0, (size_t)C * sizeof(real));
		const struct nr_squash_sums sums = nr_squash_active->backward(&f, rows, C, nr_row(x, r), C, nr_row(dy, r), C,
			nr_row(dx, r), C, k->add[X], dw + q * C, db + q * C);
		da[q] = sums.alpha, ds[q] = sums.shift;
	}
	if (k->want >> ALPHA & 1) nr_put(k->dx[ALPHA].p, nr_sum(b.count, da), k->add[ALPHA]);
	if (weight > SHIFT && k->want >> SHIFT & 1) nr_put(k->dx[SHIFT].p, nr_sum(b.count, ds), k->add[SHIFT]);
	if (!f.weight) return;
	if (k->want >> weight & 1) nr_fold(b.count, C, dw, k->dx[weight].p, k->add[weight]);
	if (k->want >> (weight + 1) & 1) nr_fold(b.count, C, db, k->dx[weight + 1].p, k->add[weight + 1]);
}

static nr_t *number(struct nr_net *n, const char *name, double first)
{
	nr_t *t = nr_param(n, name, NR_ONES | NR_NO_DECAY, NR_SHAPE(1));
	if (t) t->entry->value = first;
	return t;
}

nr_t *nr_squash_apply(struct nr_net *n, const struct nr_op *op, nr_t *x, struct nr_squash_start s)
{
	const struct nr_squash_attr attr = { s.curve };
	nr_t *in[5] = { x, number(n, "alpha", s.alpha) };
	int count = 2;
	if (s.curve == NR_CURVE_ERF) in[count++] = number(n, "shift", s.shift);
	if (s.affine) {
		in[count++] = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
		in[count++] = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	}
	return nr_apply_list(n, op, &attr, sizeof attr, count, in);
}
