/* Views and the residual sum: ops that the planner knows. Where it could alias, the pointers are equal and nothing is
 * copied; their kernels do the rest. */
#include "graph/net.h"


#include "graph/blocks.h"
#include "math/row.h"

void nr_rows_put(const struct nr_view *to, const struct nr_view *from, int add)
{
	if (to->p == from->p && !add) return;
	if (nr_packed(to) && nr_packed(from)) {
		nr_array_put(to->rows * to->c, from->p, to->p, add);
		return;
	}
	const int64_t samples = to->rows / to->t;
#pragma omp parallel for schedule(static) if (to->rows * to->c > 16384)
	for (int64_t b = 0; b < samples; b++) {
		const real *s = nr_row(from, b * from->t);
		real *d = nr_row(to, b * to->t);
		if (add) nr_row_axpy(to->t * to->c, 1, s, d);
		else memcpy(d, s, (size_t)(to->t * to->c) * sizeof *d);
	}
}

/* The part of a (B,T,C) view that holds rows from .. from+t-1 of each sample. */
static struct nr_view part(struct nr_view v, int64_t from, int64_t t)
{
	v.p = (real *)v.p + from * v.c;
	v.rows = v.rows / v.t * t;
	v.t = t;
	return v;
}

/* ---- lengths: of samples that grew, or of what a span leaves of them --------------------------------------------- */

struct lengths { int32_t shift, most; };

static int lengths_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return nr_expect(k, k->in[0]->dtype == NR_I32, "lengths are int32");
}
static void lengths_forward(const struct nr_call *k)
{
	const struct lengths *a = k->node->attr;
	for (int64_t i = 0; i < k->x[0].rows * k->x[0].c; i++) {
		const int32_t n = nr_ints(&k->x[0])[i] + a->shift;
		nr_ints(&k->y[0])[i] = n < 0 ? 0 : n > a->most ? a->most : n;
	}
}
static const struct nr_op op_lengths = { .name = "lengths", .shape = lengths_shape, .forward = lengths_forward };

nr_t *nr_lengths(struct nr_net *n, nr_t *valid, int64_t shift, int64_t most)
{
	const struct lengths a = { (int32_t)shift, (int32_t)most };
	return nr_apply(n, &op_lengths, &a, sizeof a, valid);
}

/* ---- span ------------------------------------------------------------------------------------------------------ */

static int span_shape(struct nr_node *k)
{
	const struct nr_span_attr *a = k->attr;
	const nr_t *x = k->in[0];
	if (nr_expect(k, x->nd == 3, "a span is cut from (B,T,C), not from %d dimensions", x->nd) ||
	    nr_expect(k, 0 <= a->from && a->from < a->to && a->to <= x->d[1], "tokens %lld to %lld of %lld", (long long)a->from,
		      (long long)a->to, (long long)x->d[1]))
		return NR_ESHAPE;
	nr_out(k, 0, x->dtype, 3, (int64_t[]){ x->d[0], a->to - a->from, x->d[2] }, NULL);
	return 0;
}
static void span_forward(const struct nr_call *k)
{
	const struct nr_span_attr *a = k->node->attr;
	const struct nr_view from = part(k->x[0], a->from, a->to - a->from);
	nr_rows_put(&k->y[0], &from, 0);
}
static void span_backward(const struct nr_call *k)
{
	const struct nr_span_attr *a = k->node->attr;
	const struct nr_view whole = k->dx[0], to = part(whole, a->from, a->to - a->from);
	if (to.p == k->dy[0].p) return;
	nr_rows_put(&to, &k->dy[0], k->add[0]);
	if (k->add[0]) return;
	const int64_t samples = whole.rows / whole.t; /* first writer: the other tokens get no gradient from here */
	for (int64_t b = 0; b < samples; b++) {
		memset(nr_row(&whole, b * whole.t), 0, (size_t)(a->from * whole.c) * sizeof(real));
		if (a->to < whole.t)
			memset(nr_row(&whole, b * whole.t + a->to), 0, (size_t)((whole.t - a->to) * whole.c) * sizeof(real));
	}
}
static nr_t *span_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_span(n, x[0], 1, NR_END);
}
static const struct nr_case span_cases[] = { { "2x4x3", "" }, { "1x2x1", "" }, { NULL, NULL } };
const struct nr_op nr_op_span = {
	.name = "span", .shape = span_shape, .forward = span_forward, .backward = span_backward,
	.flags = NR_VIEW | NR_STRIDED, .try_case = span_try, .cases = span_cases,
};

nr_t *nr_span(struct nr_net *n, nr_t *x, int64_t from, int64_t to)
{
	if (!x) return NULL;
	if (to == NR_END && x->nd == 3) to = x->d[1];
	if (x->nd == 3 && from == 0 && to == x->d[1]) return x;
	nr_t *y = nr_apply(n, &nr_op_span, (&(struct nr_span_attr){ from, to }), sizeof(struct nr_span_attr), x);
	if (y && x->tok) { /* the special tokens lead; a span without all the others has no grid */
		struct nr_tokens tok = *x->tok;
		const int64_t special = tok.special;
		tok.special = (int32_t)(from >= special ? 0 : (to < special ? to : special) - from);
		if (from > special || to < x->d[1]) tok.h = tok.w = 0;
		if (to <= special) tok.valid = NULL;
		else if (tok.valid) tok.valid = nr_lengths(n, tok.valid, -from, to - from);
		if (to < x->d[1] || from > special) tok.pos = NULL;
		nr_with_tokens(n, y, tok);
	}
	return y;
}

/* ---- join ------------------------------------------------------------------------------------------------------ */

static int join_shape(struct nr_node *k)
{
	const nr_t *a = k->in[0], *b = k->in[1];
	if (nr_expect(k, a->nd == 3 && b->nd == 3 && a->d[0] == b->d[0] && a->d[2] == b->d[2],
		      "both must be (B,T,C) with the same B and C"))
		return NR_ESHAPE;
	nr_out(k, 0, a->dtype, 3, (int64_t[]){ a->d[0], a->d[1] + b->d[1], a->d[2] }, NULL);
	return 0;
}
static void join_forward(const struct nr_call *k)
{
	const struct nr_view a = part(k->y[0], 0, k->x[0].t), b = part(k->y[0], k->x[0].t, k->x[1].t);
	nr_rows_put(&a, &k->x[0], 0);
	nr_rows_put(&b, &k->x[1], 0);
}
static void join_backward(const struct nr_call *k)
{
	const struct nr_view a = part(k->dy[0], 0, k->x[0].t), b = part(k->dy[0], k->x[0].t, k->x[1].t);
	if (k->dx[0].p != a.p) nr_rows_put(&k->dx[0], &a, k->add[0]);
	if (k->dx[1].p != b.p) nr_rows_put(&k->dx[1], &b, k->add[1]);
}
static nr_t *join_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_join(n, x[0], x[1]);
}
static const struct nr_case join_cases[] = { { "2x1x3 2x4x3", "" }, { "1x1x1 1x1x1", "" }, { NULL, NULL } };
const struct nr_op nr_op_join = {
	.name = "join", .shape = join_shape, .forward = join_forward, .backward = join_backward,
	.flags = NR_VIEW | NR_STRIDED, .try_case = join_try, .cases = join_cases,
};

nr_t *nr_join(struct nr_net *n, nr_t *a, nr_t *b) { return nr_apply(n, &nr_op_join, NULL, 0, a, b); }

/* ---- reshape, pack --------------------------------------------------------------------------------------------- */

static int reshape_shape(struct nr_node *k)
{
	const struct nr_shape *r = k->attr;
	const nr_t *y = nr_out(k, 0, k->in[0]->dtype, r->nd, r->d, NULL);
	return !y ? NR_ESHAPE : nr_expect(k, nr_len(y) == nr_len(k->in[0]), "%lld values do not fit %lld",
					  (long long)nr_len(k->in[0]), (long long)nr_len(y));
}
/* y in rows like those of x. They may differ in length, but not in number of values; if they do, y has no gaps. */
static struct nr_view in_rows_of(const struct nr_view *x, struct nr_view y)
{
	if (y.c != x->c || y.t != x->t) y.rows = x->rows, y.c = x->c, y.t = x->t, y.bs = y.t * y.c;
	return y;
}
static void pack_forward(const struct nr_call *k)
{
	const struct nr_view y = in_rows_of(&k->x[0], k->y[0]);
	nr_rows_put(&y, &k->x[0], 0);
}
static void pack_backward(const struct nr_call *k)
{
	const struct nr_view dy = in_rows_of(&k->dx[0], k->dy[0]);
	if (dy.p != k->dx[0].p) nr_rows_put(&k->dx[0], &dy, k->add[0]);
}
static nr_t *reshape_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_reshape(n, x[0], NR_SHAPE(x[0]->d[0], -1));
}
static const struct nr_case reshape_cases[] = { { "2x4x3", "" }, { NULL, NULL } };
const struct nr_op nr_op_reshape = {
	.name = "reshape", .shape = reshape_shape, .forward = pack_forward, .backward = pack_backward,
	.flags = NR_VIEW, .try_case = reshape_try, .cases = reshape_cases,
};

nr_t *nr_reshape(struct nr_net *n, nr_t *x, struct nr_shape s)
{
	int64_t known = 1;
	int open = -1;
	if (!x || s.nd < 0 || s.nd > NR_MAXD) return x ? nr_net_fail(n, NR_ELIMIT, "reshape", "%d dimensions", (int)s.nd) : NULL;
	for (int i = 0; i < s.nd; i++) {
		if (s.d[i] == -1) open = i;
		else known *= s.d[i];
	}
	if (open >= 0) s.d[open] = known > 0 ? nr_len(x) / known : 0;
	return nr_apply(n, &nr_op_reshape, &s, sizeof s, x);
}

static int pack_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return 0;
}
static nr_t *pack_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_pack(n, x[0]);
}
static const struct nr_case pack_cases[] = { { "2x4x3", "" }, { "7", "" }, { NULL, NULL } };
const struct nr_op nr_op_pack = { /* always a copy: an input used twice, or one with gaps */
	.name = "pack", .shape = pack_shape, .forward = pack_forward, .backward = pack_backward, .flags = NR_STRIDED | NR_NARROW,
	.tokenwise = 1, .try_case = pack_try, .cases = pack_cases,
};

nr_t *nr_pack(struct nr_net *n, nr_t *x) { return nr_apply(n, &nr_op_pack, NULL, 0, x); }

/* ---- add: the residual connection ------------------------------------------------------------------------------ */

static int add_shape(struct nr_node *k)
{
	const nr_t *a = k->in[0], *b = k->in[1];
	char sa[64], sb[64];
	if (nr_expect(k, a->nd == b->nd && !memcmp(a->d, b->d, (size_t)a->nd * sizeof *a->d), "%s and %s differ",
		      nr_shape_text(a, sa, sizeof sa), nr_shape_text(b, sb, sizeof sb)))
		return NR_ESHAPE;
	nr_out(k, 0, a->dtype, a->nd, a->d, a->tok ? a->tok : b->tok);
	return 0;
}
static void add_forward(const struct nr_call *k)
{
	if (nr_packed(&k->x[0]) && nr_packed(&k->x[1]) && nr_packed(&k->y[0])) {
		nr_array_add(k->y[0].rows * k->y[0].c, k->x[0].p, k->x[1].p, k->y[0].p);
		return;
	}
#pragma omp parallel for schedule(static) if (k->y[0].rows * k->y[0].c > 16384)
	for (int64_t r = 0; r < k->y[0].rows; r++)
		nr_row_add(k->y[0].c, nr_row(&k->x[0], r), nr_row(&k->x[1], r), nr_row(&k->y[0], r));
}
static void add_backward(const struct nr_call *k) /* dx that already is dy was aliased by the plan */
{
	for (int i = 0; i < 2; i++)
		if (k->want >> i & 1 && k->dx[i].p != k->dy[0].p) nr_rows_put(&k->dx[i], &k->dy[0], k->add[i]);
}
static nr_t *add_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_add(n, x[0], x[1]);
}
static const struct nr_case add_cases[] = { { "2x4x3 2x4x3", "" }, { "5 5", "" }, { NULL, NULL } };
const struct nr_op nr_op_add = {
	.name = "add", .shape = add_shape, .forward = add_forward, .backward = add_backward,
	.flags = NR_SUM | NR_STRIDED | NR_INPLACE | NR_NARROW, .tokenwise = 3, .try_case = add_try, .cases = add_cases,
};

static void add_undo(const struct nr_call *k)
{
#pragma omp parallel for schedule(static) if (k->y[0].rows * k->y[0].c > 16384)
	for (int64_t r = 0; r < k->y[0].rows; r++) {
		const real *y = nr_row(&k->y[0], r), *b = nr_row(&k->x[1], r);
		real *a = nr_row(&k->x[0], r);
		for (int64_t i = 0; i < k->y[0].c; i++) a[i] = y[i] - b[i];
	}
}
static nr_t *reversible_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_add_reversible(n, x[0], x[1]);
}
const struct nr_op nr_op_add_reversible = {
	.name = "add_reversible", .shape = add_shape, .forward = add_forward, .backward = add_backward, .undo = add_undo,
	.flags = NR_SUM | NR_STRIDED | NR_INPLACE, .try_case = reversible_try, .cases = add_cases,
};

nr_t *nr_add_reversible(struct nr_net *n, nr_t *a, nr_t *b) { return nr_apply(n, &nr_op_add_reversible, NULL, 0, a, b); }
nr_t *nr_add(struct nr_net *n, nr_t *a, nr_t *b) { return nr_apply(n, &nr_op_add, NULL, 0, a, b); }
