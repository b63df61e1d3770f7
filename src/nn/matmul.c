/* matmul: C = op(A) op(B) for every matrix of two batches, op the transposition or nothing; the transposition alone.
 *
 * Backward, with D = dC: dA = D op(B)^T or, A transposed, op(B) D^T; dB = op(A)^T D or, B transposed, D^T op(A). */
#include "math/gemm.h"
#include "math/transpose.h"
#include "nn/op.h"

struct matmul { int ta, tb; };

struct sizes { int64_t m, n, k, count; };
static struct sizes sizes(const struct nr_node *node)
{
	const struct matmul *o = node->attr;
	const nr_t *a = node->in[0], *b = node->in[1];
	const int64_t *da = a->d + a->nd - 2, *db = b->d + b->nd - 2;
	return (struct sizes){ .m = da[o->ta], .k = da[!o->ta], .n = db[!o->tb], .count = nr_rows(a) / da[0] };
}

/* c (m,n) (+)= op(a) op(b), whole matrices next to each other. */
static struct nr_gemm product(int64_t count, int64_t m, int64_t n, int64_t k, const real *a, int ta,
	const real *b, int tb, real *c, int add)
{
	return (struct nr_gemm){
		.m = m, .n = n, .k = k, .a = a, .lda = ta ? m : k, .ta = ta, .b = b, .ldb = tb ? k : n, .tb = tb,
		.c = c, .ldc = n,
		.add = add, .count = count, .stride_a = m * k, .stride_b = k * n, .stride_c = m * n,
	};
}
static struct nr_gemm forward_product(const struct nr_node *node, const real *a, const real *b, real *c)
{
	const struct matmul *o = node->attr;
	const struct sizes s = sizes(node);
	return product(s.count, s.m, s.n, s.k, a, o->ta, b, o->tb, c, 0);
}
static struct nr_gemm left_product(const struct nr_node *node, const real *dc, const real *b, real *da, int add)
{
	const struct matmul *o = node->attr;
	const struct sizes s = sizes(node);
	return o->ta ? product(s.count, s.k, s.m, s.n, b, o->tb, dc, 1, da, add)
		     : product(s.count, s.m, s.k, s.n, dc, 0, b, !o->tb, da, add);
}
static struct nr_gemm right_product(const struct nr_node *node, const real *dc, const real *a, real *db, int add)
{
	const struct matmul *o = node->attr;
	const struct sizes s = sizes(node);
	return o->tb ? product(s.count, s.n, s.k, s.m, dc, 1, a, o->ta, db, add)
		     : product(s.count, s.k, s.n, s.m, a, !o->ta, dc, 0, db, add);
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static int shape(struct nr_node *k)
{
	const struct matmul *o = k->attr;
	const nr_t *a = k->in[0], *b = k->in[1];
	char sa[64], sb[64];
	const int fits = a->nd >= 2 && a->nd == b->nd && !memcmp(a->d, b->d, (size_t)(a->nd - 2) * sizeof *a->d) &&
			 a->d[a->nd - 1 - (o->ta != 0)] == b->d[b->nd - 2 + (o->tb != 0)];
	if (nr_expect(k, fits, "%s%s and %s%s cannot be multiplied", nr_shape_text(a, sa, sizeof sa),
		o->ta ? " transposed" : "",
		      nr_shape_text(b, sb, sizeof sb), o->tb ? " transposed" : ""))
		return NR_ESHAPE;
	const struct sizes s = sizes(k);
	int64_t d[NR_MAXD];
	memcpy(d, a->d, sizeof d);
	d[a->nd - 2] = s.m, d[a->nd - 1] = s.n;
	nr_out(k, 0, NR_REAL, a->nd, d, o->ta ? NULL : a->tok);
	const struct nr_gemm p[] = { forward_product(k, NULL, NULL, NULL), left_product(k, NULL, NULL, NULL, 1),
		right_product(k, NULL, NULL, NULL, 1) };
	for (int i = 0; i < 3; i++) k->scratch = most(k->scratch, nr_gemm_scratch_of(&p[i]));
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct nr_gemm p = forward_product(k->node, k->x[0].p, k->x[1].p, k->y[0].p);
	nr_gemm_run(&p, k->scratch);
}

static void backward(const struct nr_call *k)
{
	const struct nr_gemm a = left_product(k->node, k->dy[0].p, k->x[1].p, k->dx[0].p, k->add[0]);
	const struct nr_gemm b = right_product(k->node, k->dy[0].p, k->x[0].p, k->dx[1].p, k->add[1]);
	if (k->want & 1) nr_gemm_run(&a, k->scratch);
	if (k->want & 2) nr_gemm_run(&b, k->scratch);
}

static void cost(const struct nr_node *k, double *fw, double *bw)
{
	const struct sizes s = sizes(k);
	*fw = 2.0 * (double)s.count * (double)s.m * (double)s.n * (double)s.k;
	*bw = 2 * *fw;
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	return nr_matmul(n, x[0], x[1], strchr(options, 'a') != NULL, strchr(options, 'b') != NULL);
}
static const struct nr_case cases[] = {
	{ "2x5x7 2x7x3", "" }, { "2x7x5 2x7x3", "a" }, { "2x5x7 2x3x7", "b" }, { "2x7x5 2x3x7", "ab" },
	{ "1x1x1 1x1x1", "" },
	{ "4x9 9x2", "" }, { "2x3x4x5 2x3x5x6", "" }, { "1x70x3 1x3x70", "" }, { "70x3 70x2", "a" }, { NULL, NULL },
};
const struct nr_op nr_op_matmul = {
	.name = "matmul", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1),
	.try_case = try_case, .cases = cases,
};

nr_t *nr_matmul(struct nr_net *n, nr_t *a, nr_t *b, int ta, int tb)
{
	const struct matmul o = { ta != 0, tb != 0 };
	return nr_apply(n, &nr_op_matmul, &o, sizeof o, a, b);
}

/* ---- transpose ------------------------------------------------------------------------------------------------- */

static int turn_shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	int64_t d[NR_MAXD];
	if (nr_expect(k, x->nd >= 2, "it needs a matrix, not %d dimensions", x->nd)) return NR_ESHAPE;
	memcpy(d, x->d, sizeof d);
	d[x->nd - 2] = x->d[x->nd - 1], d[x->nd - 1] = x->d[x->nd - 2];
	nr_out(k, 0, NR_REAL, x->nd, d, NULL);
	return 0;
}
/* x (count,rows,cols) to y (count,cols,rows) */
static void turn(const nr_t *x, const real *from, real *to, int add)
{
	const int64_t rows = x->d[x->nd - 2], cols = x->d[x->nd - 1];
	nr_transpose_batch(nr_rows(x) / rows, rows, cols, from, to, add);
}
static void turn_forward(const struct nr_call *k) { turn(k->node->in[0], k->x[0].p, k->y[0].p, 0); }
static void turn_backward(const struct nr_call *k) { turn(k->node->out[0], k->dy[0].p, k->dx[0].p, k->add[0]); }
static nr_t *turn_try(struct nr_net *n, nr_t **x, const char *options)
{
	(void)options;
	return nr_transpose(n, x[0]);
}
static const struct nr_case turn_cases[] = { { "2x5x7", "" }, { "1x1x1", "" }, { "3x17", "" }, { "2x2x33x3", "" },
	{ NULL, NULL } };
const struct nr_op nr_op_transpose = {
	.name = "transpose", .shape = turn_shape, .forward = turn_forward, .backward = turn_backward,
	.flags = NR_CHEAP,
	.try_case = turn_try, .cases = turn_cases,
};

nr_t *nr_transpose(struct nr_net *n, nr_t *x) { return nr_apply(n, &nr_op_transpose, NULL, 0, x); }
