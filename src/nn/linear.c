/* linear: y = x W^T + b, and the pair linear + activation in one pass over the tiles of the product.
 *
 * Backward: dx = dy W, dW = dy^T x, db = column sums of dy. */
#include "math/act.h"
#include "math/gemm.h"
#include "math/row.h"
#include "nn/op.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Scratch: the products' own, then column sums, then (fused) the gradient before the activation. */
static size_t product_scratch(int64_t m, int64_t out, int64_t in)
{
	const size_t there = larger(nr_gemm_scratch(m, out, in, 0, 1), nr_gemm_scratch(m, out, in, 0, 0));
	const size_t back = larger(nr_gemm_scratch(m, in, out, 0, 0), nr_gemm_scratch(out, in, m, 1, 0));
	return (larger(there, back) + 63) / 64 * 64;
}
static size_t sum_scratch(int64_t m, int64_t out) { return (nr_col_sum_scratch(m, out) * sizeof(real) + 63) / 64 * 64; }

static int check(struct nr_node *k)
{
	const nr_t *x = k->in[0], *w = k->in[1];
	char sx[64], sw[64];
	if (nr_expect(k, w->nd >= 2 && nr_len(w) == w->d[0] * nr_cols(x), "%s does not match the weight %s",
		      nr_shape_text(x, sx, sizeof sx), nr_shape_text(w, sw, sizeof sw)))
		return NR_ESHAPE;
	const int bias = k->n_in > 2 && k->in[2]->nd == 1;
	return nr_expect(k, !bias || nr_len(k->in[2]) == w->d[0], "one bias per output");
}

static nr_t *out_of(struct nr_node *k, int j)
{
	int64_t d[NR_MAXD];
	memcpy(d, k->in[0]->d, sizeof d);
	d[k->in[0]->nd - 1] = k->in[1]->d[0];
	return nr_out(k, j, NR_REAL, k->in[0]->nd, d, k->in[0]->tok);
}

/* The weight may be of any rank (timm's patch embedding is (D,C,p,p)): what counts is (out, rest). */
static int64_t width(const struct nr_call *k) { return k->node->in[1]->d[0]; }

/* x W^T; the weight may lie turned, (in,out). */
static struct nr_gemm product(const struct nr_call *k)
{
	const int64_t in = k->x[0].c, out = width(k);
	const int turned = k->turned >> 1 & 1;
	return (struct nr_gemm){ .m = k->x[0].rows, .n = out, .k = in, .a = k->x[0].p, .lda = in, .b = k->x[1].p, .ldb = turned ? out : in,
				 .tb = !turned, .ldc = out, .bias = k->node->n_in > 2 ? k->x[2].p : NULL };
}

static void cost(const struct nr_node *k, double *forward, double *backward)
{
	*forward = 2.0 * (double)nr_rows(k->in[0]) * (double)nr_len(k->in[1]);
	*backward = 2 * *forward;
}

/* Gradients of the product, from dy (rows,out) packed. */
static void product_backward(const struct nr_call *k, const real *dy, const real *w)
{
	const int64_t m = k->x[0].rows, in = k->x[0].c, out = width(k);
	if (k->want & 1)
		nr_gemm_run(&(struct nr_gemm){ .m = m, .n = in, .k = out, .a = dy, .lda = out, .b = w, .ldb = in, .c = k->dx[0].p,
					       .ldc = in, .add = k->add[0] }, k->scratch);
	if (k->want & 2)
		nr_gemm_run(&(struct nr_gemm){ .m = out, .n = in, .k = m, .a = dy, .lda = out, .ta = 1, .b = k->x[0].p, .ldb = in,
					       .c = k->dx[1].p, .ldc = in, .add = k->add[1] }, k->scratch);
}

/* ---- linear ----------------------------------------------------------------------------------------------------- */

static int shape(struct nr_node *k)
{
	if (check(k)) return NR_ESHAPE;
	const int64_t m = nr_rows(k->in[0]), out = k->in[1]->d[0], in = nr_cols(k->in[0]);
	out_of(k, 0);
	k->scratch = product_scratch(m, out, in) + sum_scratch(m, out);
	return 0;
}

static void forward(const struct nr_call *k)
{
	struct nr_gemm g = product(k);
	g.c = k->y[0].p;
	nr_gemm_run(&g, k->scratch);
}

static void backward(const struct nr_call *k)
{
	const int64_t m = k->x[0].rows, out = width(k);
	real *sums = (real *)((char *)k->scratch + product_scratch(m, out, k->x[0].c));
	product_backward(k, k->dy[0].p, k->x[1].p);
	if (k->node->n_in > 2 && k->want & 4) nr_col_sum(m, out, k->dy[0].p, out, k->dx[2].p, k->add[2], sums);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	if (!strcmp(options, "no_bias")) return nr_apply(n, &nr_op_linear, NULL, 0, x[0], x[1]);
	return nr_apply(n, &nr_op_linear, NULL, 0, x[0], x[1], x[2]);
}
static const struct nr_case cases[] = {
	{ "2x5x7 3x7 3", "" }, { "1x1x1 1x1 1", "" }, { "70x3 4x3 4", "" }, { "2x3x5 6x5", "no_bias" }, { NULL, NULL },
};
const struct nr_op nr_op_linear = {
	.name = "linear", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .turns = 1 << 1, .flags = NR_NARROW, .tokenwise = 1, .try_case = try_case, .cases = cases,
};

/* ---- linear + activation: y[0] the product, y[1] its activation -------------------------------------------------- */

static enum nr_act act_of(const struct nr_node *k) { return *(const enum nr_act *)((const struct nr_fused_attr *)k->attr)->consumer; }
static int has_bias(const struct nr_node *k) { return k->n_in > 2; }

static int act_shape(struct nr_node *k)
{
	if (shape(k)) return NR_ESHAPE;
	out_of(k, 1);
	k->scratch += (size_t)nr_len(k->out[0]) * sizeof(real);
	return 0;
}

static void act_forward(const struct nr_call *k)
{
	struct nr_gemm g = product(k);
	g.c = k->y[1].p;
	g.act = act_of(k->node);
	g.pre = k->y[0].p, g.ldpre = g.n;
	nr_gemm_run(&g, k->scratch);
}

static void act_rebuild(const struct nr_call *k) { nr_act_forward(act_of(k->node), k->y[0].rows * k->y[0].c, k->y[0].p, k->y[1].p); }

static void act_backward(const struct nr_call *k)
{
	const int64_t m = k->x[0].rows, out = width(k);
	char *scratch = (char *)k->scratch + product_scratch(m, out, k->x[0].c);
	real *sums = (real *)scratch, *dpre = (real *)(scratch + sum_scratch(m, out));
	const int bias = has_bias(k->node) && k->want & 4, both = k->dy[0].p != NULL; /* the product itself was used, too */
	if (!k->dy[1].p) dpre = k->dy[0].p;
	else if (k->dy_dead & 2) dpre = k->dy[1].p;
	if (k->dy[1].p)
		nr_act_bias_backward(act_of(k->node), m, out, k->y[0].p, out, k->dy[1].p, out, dpre, out, bias && !both ? k->dx[2].p : NULL,
			k->add[2], sums);
	if (both && k->dy[1].p) nr_array_put(m * out, k->dy[0].p, dpre, 1);
	if (both && bias) nr_col_sum(m, out, dpre, out, k->dx[2].p, k->add[2], sums);
	product_backward(k, dpre, k->x[1].p);
}

static const struct nr_op op_linear_act = {
	.name = "linear_act", .shape = act_shape, .forward = act_forward, .backward = act_backward, .rebuild = act_rebuild, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_Y(0), .cheap = 1 << 1, .rebuild_keeps = NR_KEEP_Y(0), .optional = 1 << 0,
	.turns = 1 << 1,
};

/* ---- activation alone -------------------------------------------------------------------------------------------- */

static int one_shape(struct nr_node *k)
{
	nr_out_like(k, 0, k->in[0]);
	return 0;
}
static void one_forward(const struct nr_call *k)
{
	nr_act_forward(*(const enum nr_act *)k->node->attr, k->x[0].rows * k->x[0].c, k->x[0].p, k->y[0].p);
}
static void one_backward(const struct nr_call *k)
{
	nr_act_backward(*(const enum nr_act *)k->node->attr, k->x[0].rows * k->x[0].c, k->x[0].p, k->dy[0].p, k->dx[0].p, k->add[0]);
}
static nr_t *one_try(struct nr_net *n, nr_t **x, const char *options) { return nr_activate(n, options, x[0]); }
static const struct nr_case one_cases[] = {
	{ "2x5x7", "gelu" }, { "3x11", "gelu_tanh" }, { "40x3", "hard_swish" }, { "5", "tanh" }, { "2x3", "sigmoid" },
	{ "2x3", "silu" }, { "2x9", "exp" }, { "2x5", "quick_gelu" }, { "3x4", "relu" }, { NULL, NULL },
};
static const struct nr_fuse one_fuse[] = { { "linear", &op_linear_act }, { NULL, NULL } };
const struct nr_op nr_op_act = {
	.name = "act", .shape = one_shape, .forward = one_forward, .backward = one_backward, .keeps = NR_KEEP_X(0),
	.flags = NR_CHEAP | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1, .fuse = one_fuse, .try_case = one_try, .cases = one_cases,
};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

static nr_t *linear(struct nr_net *n, const char *name, nr_t *x, int64_t out, int bias)
{
	if (!x) return NULL;
	nr_push(n, "%s", name);
	nr_t *w = nr_param(n, "weight", NR_XAVIER, NR_SHAPE(out, nr_cols(x)));
	nr_t *b = bias ? nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(out)) : NULL;
	return nr_pop(n, bias ? nr_apply(n, &nr_op_linear, NULL, 0, x, w, b) : nr_apply(n, &nr_op_linear, NULL, 0, x, w));
}
nr_t *nr_linear(struct nr_net *n, const char *name, nr_t *x, int64_t out) { return linear(n, name, x, out, 1); }
nr_t *nr_linear_no_bias(struct nr_net *n, const char *name, nr_t *x, int64_t out) { return linear(n, name, x, out, 0); }
nr_t *nr_linear_tied(struct nr_net *n, nr_t *x, nr_t *weight, nr_t *bias)
{
	return nr_apply(n, &nr_op_linear, NULL, 0, x, weight, bias);
}
nr_t *nr_linear_tied_no_bias(struct nr_net *n, nr_t *x, nr_t *weight) { return nr_apply(n, &nr_op_linear, NULL, 0, x, weight); }
nr_t *nr_linear_gelu(struct nr_net *n, const char *name, nr_t *x, int64_t out)
{
	return nr_activate(n, "gelu", nr_linear(n, name, x, out));
}

nr_t *nr_activate(struct nr_net *n, const char *name, nr_t *x)
{
	const int kind = nr_act_find(name);
	if (kind < 0) return nr_net_fail(n, NR_ENAME, name, "no such activation");
	const enum nr_act act = (enum nr_act)kind;
	return nr_apply(n, &nr_op_act, &act, sizeof act, x);
}
