/* grid_bias: scores learned for each offset between two places of a grid, spread to (H,Tq,Tk): Swin's relative position bias
 * (arXiv:2103.14030, Eq. 4), BEiT's with a class token (arXiv:2106.08254), LeViT's attention bias (arXiv:2104.01136, section 4.1). */
#include "math/row.h"
#include "nn/op.h"

static int64_t side(int64_t k, int64_t stride) { return (k - 1) / stride + 1; }

/* Entry of the table for a query that is dy rows below a key and dx columns right of it. */
static inline int64_t entry(const struct nr_grid_bias *g, int64_t dy, int64_t dx)
{
	if (g->with_signs) return (dy + g->kh - 1) * (2 * g->kw - 1) + dx + g->kw - 1;
	return (dy < 0 ? -dy : dy) * g->kw + (dx < 0 ? -dx : dx);
}
/* Entry for query i and key j, one of them special (these are the first); -1: there is none. */
static int64_t special_entry(const struct nr_grid_bias *g, int64_t i, int64_t j)
{
	const int64_t S = g->special, offsets = (2 * g->kh - 1) * (2 * g->kw - 1);
	return !g->special_rows ? -1 : i < S && j < S ? offsets + 2 : i < S ? offsets : offsets + 1;
}
static inline int64_t entries(const struct nr_grid_bias *g)
{
	return g->with_signs ? (2 * g->kh - 1) * (2 * g->kw - 1) + (g->special_rows ? 3 : 0) : g->kh * g->kw;
}
static int64_t keys(const struct nr_grid_bias *g) { return g->special + g->kh * g->kw; }
static int64_t heads(const struct nr_node *k)
{
	const struct nr_grid_bias *g = k->attr;
	return k->in[0]->d[g->with_signs ? 1 : 0];
}
/* Where the table has an entry of a head. */
static inline int64_t place(const struct nr_grid_bias *g, int64_t e, int64_t h, int64_t H)
{
	return g->with_signs ? e * H + h : h * entries(g) + e;
}

static int shape(struct nr_node *k)
{
	const struct nr_grid_bias *g = k->attr;
	const nr_t *t = k->in[0];
	char s[64];
	if (nr_expect(k, g->kh > 0 && g->kw > 0 && g->stride > 0 && g->special >= 0 && (g->with_signs || !g->special_rows),
		"no grid of %lld x %lld", (long long)g->kh, (long long)g->kw) ||
	    nr_expect(k, t->nd == 2 && t->d[g->with_signs ? 0 : 1] == entries(g),
		"the table %s has no %lld offsets of a grid of %lld x %lld", nr_shape_text(t, s, sizeof s), (long long)entries(g),
			(long long)g->kh, (long long)g->kw))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ heads(k), g->special + side(g->kh, g->stride) * side(g->kw, g->stride), keys(g) }, NULL);
	return 0;
}

/* Query i: its place among the keys, and how many keys have a special entry for it, the first ones. */
struct query {
	int64_t y, x, specials;
};
static struct query query(const struct nr_grid_bias *g, int64_t i)
{
	const int64_t S = g->special, qw = side(g->kw, g->stride);
	if (i < S) return (struct query){ .specials = keys(g) };
	return (struct query){ (i - S) / qw * g->stride, (i - S) % qw * g->stride, S };
}

static void forward(const struct nr_call *k)
{
	const struct nr_grid_bias *g = k->node->attr;
	const int64_t H = heads(k->node), Q = k->node->out[0]->d[1], K = keys(g);
	const real *t = k->x[0].p;
#pragma omp parallel for schedule(static) if (H * Q * K > 16384)
	for (int64_t r = 0; r < H * Q; r++) {
		const struct query q = query(g, r % Q);
		real *y = (real *)k->y[0].p + r * K;
		for (int64_t j = 0; j < q.specials; j++) {
			const int64_t e = special_entry(g, r % Q, j);
			*y++ = e < 0 ? 0 : t[place(g, e, r / Q, H)];
		}
		for (int64_t j = 0; q.specials < K && j < g->kh; j++)
			for (int64_t i = 0; i < g->kw; i++) *y++ = t[place(g, entry(g, q.y - j, q.x - i), r / Q, H)];
	}
}

/* The gradient of query i, of a row of keys. */
static void spread(const struct nr_grid_bias *g, int64_t i, int64_t h, int64_t H, const real *dy, real *t)
{
	const struct query q = query(g, i);
	for (int64_t j = 0; j < q.specials; j++, dy++) {
		const int64_t e = special_entry(g, i, j);
		if (e >= 0) t[place(g, e, h, H)] += *dy;
	}
	for (int64_t j = 0; q.specials < keys(g) && j < g->kh; j++)
		for (int64_t x = 0; x < g->kw; x++) t[place(g, entry(g, q.y - j, q.x - x), h, H)] += *dy++;
}

/* One thread for each head, which adds up its pairs in order. */
static void backward(const struct nr_call *k)
{
	const struct nr_grid_bias *g = k->node->attr;
	const int64_t H = heads(k->node), Q = k->node->out[0]->d[1], K = keys(g);
	real *t = k->dx[0].p;
	if (!k->add[0]) nr_array_fill(H * entries(g), 0, t);
#pragma omp parallel for schedule(static) if (H * Q * K > 16384)
	for (int64_t h = 0; h < H; h++)
		for (int64_t i = 0; i < Q; i++) spread(g, i, h, H, (const real *)k->dy[0].p + (h * Q + i) * K, t);
}

/* "342s": rows, columns, stride, with signs; then "1": special tokens, "+": with rows of their own */
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *o)
{
	struct nr_grid_bias g = { .kh = o[0] - '0', .kw = o[1] - '0', .stride = o[2] - '0', .with_signs = o[3] == 's' };
	if (o[3] && o[4]) g.special = o[4] - '0', g.special_rows = o[5] == '+';
	return nr_grid_bias(n, x[0], g);
}
static const struct nr_case cases[] = { { "35x2", "341s" }, { "3x12", "341" }, { "2x25", "552" }, { "1x1", "111s" }, { "2x6", "232" },
	{ "38x2", "341s1+" }, { "35x3", "341s1" }, { "18x2", "231s2+" }, { "1x1", "111s2" }, { NULL, NULL } };
const struct nr_op nr_op_grid_bias = {
	.name = "grid_bias", .shape = shape, .forward = forward, .backward = backward, .try_case = try_case, .cases = cases,
};

nr_t *nr_grid_bias(struct nr_net *n, nr_t *table, struct nr_grid_bias g) { return nr_apply(n, &nr_op_grid_bias, &g, sizeof g, table); }
