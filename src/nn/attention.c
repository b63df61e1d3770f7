/* attention: out = dropout(softmax(scale q k^T + bias + mask)) v per head. Vaswani et al. arXiv:1706.03762 eq. 1.
 *
 * Packed qkv (B,T,3C), q with packed kv, separate q k v, and the probabilities alone for analysis; one fused kernel
 * (math/attention.h) serves all. Kept for backward: the inputs, the output and the log-sum-exp of each row; T x T is never
 * stored. */
#include "nn/attention_op.h"

static int finish(struct nr_node *k, int operands)
{
	const struct nr_attention a = nr_attention_sizes(k, operands);
	if (nr_attention_check(k, &a, operands)) return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ a.B, a.Tq, a.H * a.dv }, k->in[0]->tok);
	k->stash = nr_attention_reals(a.B * a.H * a.Tq);
	k->scratch = nr_attention_op_scratch(a);
	return 0;
}

/* ---- packed ---------------------------------------------------------------------------------------------------- */

static int packed_check(struct nr_node *k)
{
	const struct nr_attention_attr *c = k->attr;
	const nr_t *x = k->in[0];
	char s[64];
	const int64_t parts = c->value ? 1 : 3, rest = x->nd == 3 && c->heads > 0 ? x->d[2] / c->heads - c->value : 0;
	if (nr_expect(k, x->nd == 3 && x->d[2] % parts == 0, "%s is not (B,T,3C)", nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, c->heads > 0 && x->d[2] % (parts * c->heads) == 0 && (!c->value || (rest > 0 && rest % 2 == 0)),
		"%lld channels cannot be divided into %lld heads", (long long)x->d[2] / parts, (long long)c->heads))
		return NR_ESHAPE;
	return 0;
}
static int packed_shape(struct nr_node *k) { return packed_check(k) ? NR_ESHAPE : finish(k, 1); }
static void packed_forward(const struct nr_call *k) { nr_attention_op_forward(k, 1); }
static void packed_backward(const struct nr_call *k) { nr_attention_op_backward(k, 1); }
static void packed_cost(const struct nr_node *k, double *forward, double *backward)
{
	nr_attention_op_cost(nr_attention_sizes(k, 1), forward, backward);
}

/* ---- queries, and keys with values packed ------------------------------------------------------------------------ */

static int kv_shape(struct nr_node *k)
{
	const struct nr_attention_attr *c = k->attr;
	const nr_t *q = k->in[0], *kv = k->in[1];
	char sq[64], sk[64];
	const int whole = q->nd == 3 && kv->nd == 3 && q->d[0] == kv->d[0] && c->heads > 0 && q->d[2] % c->heads == 0 &&
		kv->d[2] % c->heads == 0 && kv->d[2] > q->d[2];
	if (nr_expect(k, whole, "queries %s do not match keys with values %s for %lld heads", nr_shape_text(q, sq, sizeof sq),
		nr_shape_text(kv, sk, sizeof sk), (long long)c->heads))
		return NR_ESHAPE;
	return finish(k, 2);
}
static void kv_forward(const struct nr_call *k) { nr_attention_op_forward(k, 2); }
static void kv_backward(const struct nr_call *k) { nr_attention_op_backward(k, 2); }
static void kv_cost(const struct nr_node *k, double *forward, double *backward)
{
	nr_attention_op_cost(nr_attention_sizes(k, 2), forward, backward);
}

/* ---- cross ----------------------------------------------------------------------------------------------------- */

static int cross_shape(struct nr_node *k)
{
	const struct nr_attention_attr *c = k->attr;
	const nr_t *q = k->in[0], *p = k->in[1], *v = k->in[2];
	char sq[64], sk[64], sv[64];
	const int same = q->nd == 3 && p->nd == 3 && v->nd == 3 && q->d[0] == p->d[0] && p->d[0] == v->d[0];
	const int fits = p->d[1] == v->d[1] && q->d[2] == p->d[2];
	const int whole = c->heads > 0 && q->d[2] % c->heads == 0 && v->d[2] % c->heads == 0;
	if (nr_expect(k, same && fits && whole, "queries %s, keys %s and values %s do not match for %lld heads",
		      nr_shape_text(q, sq, sizeof sq),
		      nr_shape_text(p, sk, sizeof sk), nr_shape_text(v, sv, sizeof sv), (long long)c->heads))
		return NR_ESHAPE;
	return finish(k, 3);
}
static void cross_forward(const struct nr_call *k) { nr_attention_op_forward(k, 3); }
static void cross_backward(const struct nr_call *k) { nr_attention_op_backward(k, 3); }
static void cross_cost(const struct nr_node *k, double *forward, double *backward)
{
	nr_attention_op_cost(nr_attention_sizes(k, 3), forward, backward);
}

/* ---- map: P (B,H,T,T) ------------------------------------------------------------------------------------------ */

static int map_shape(struct nr_node *k)
{
	if (packed_check(k)) return NR_ESHAPE;
	const struct nr_attention a = nr_attention_sizes(k, 1);
	if (nr_attention_check(k, &a, 1)) return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ a.B, a.H, a.Tq, a.Tk }, NULL);
	k->scratch = nr_attention_op_scratch(a) + nr_attention_reals(a.B * a.Tq * a.H * a.dv) + nr_attention_reals(a.B * a.H * a.Tq);
	return 0;
}

static void map_forward(const struct nr_call *k)
{
	struct nr_attention a = nr_attention_bind(k, 1);
	char *at = (char *)k->scratch + nr_attention_op_scratch(nr_attention_sizes(k->node, 1));
	a.out = (real *)at;     /* not wanted, but the log-sum-exp comes with it */
	a.lse = (real *)(at + nr_attention_reals(a.B * a.Tq * a.H * a.dv));
	a.so = (struct nr_heads){ a.Tq * a.H * a.dv, a.H * a.dv, a.dv };
	a.dropout = 0;
	nr_attention_forward(&a);
	nr_attention_probs(&a, k->y[0].p);
}

/* ---- tests' entries, descriptors ------------------------------------------------------------------------------- */

static nr_t *packed_try(struct nr_net *n, nr_t **x, const char *text) { return nr_attention_try(n, &nr_op_attention, 1, x, text); }
static nr_t *kv_try(struct nr_net *n, nr_t **x, const char *text) { return nr_attention_try(n, &nr_op_kv_attention, 2, x, text); }
static nr_t *cross_try(struct nr_net *n, nr_t **x, const char *text) { return nr_attention_try(n, &nr_op_cross_attention, 3, x, text); }

static const struct nr_case packed_cases[] = {
	{ "2x5x18", "heads=2" }, { "1x1x3", "heads=1" }, { "1x19x24", "heads=1,scale=0.3" },
	{ "2x7x12", "heads=2,causal=1" },
	{ "1x9x12", "heads=4,window=2" }, { "3x6x12 3:i1-6", "heads=2,valid=1" },
	{ "3x4x12 2x4x4", "heads=2,bias=1" },
	{ "3x4x12 2x2x4x4 3:i1-4", "heads=2,bias=1,valid=1" }, { "2x9x6", "heads=1,dropout=0.3" },
	{ "2x6x12 2x6x6 2:i1-6", "heads=2,bias=1,valid=1,causal=1,window=3,dropout=0.2,scale=0.7" },
	/* narrowed by the planner */
	{ "2x5x18", "heads=2,first=1" }, { "3x17x24", "heads=1,first=3" }, { "3x6x12 3:i1-6", "heads=2,valid=1,first=2" },
	{ "3x4x12 2x4x4", "heads=2,bias=1,first=1" }, { "3x4x12 3x2x4x4 3:i1-4", "heads=2,bias=1,valid=1,first=1" },
	{ "2x19x12", "heads=2,dropout=0.3,first=9" },
	{ "2x6x12 2x6x6 2:i1-6", "heads=2,bias=1,valid=1,causal=1,window=3,dropout=0.2,scale=0.7,first=3" },
	/* LeViT's layouts, and values of another width */
	{ "2x5x20", "heads=2,per_head=1,value=4" }, { "3x4x18 2x3x4x4", "heads=3,per_head=1,value=2,bias=1" },
	{ "2x7x12", "heads=2,per_head=1" }, { "2x5x20", "heads=2,value=6" }, { "1x1x4", "heads=1,per_head=1,value=2" },
	{ "2x6x20", "heads=2,per_head=1,value=4,first=1" }, { NULL, NULL },
};
static const struct nr_case kv_cases[] = {
	{ "2x5x6 2x3x12", "heads=2" }, { "1x1x1 1x1x2", "heads=1" }, { "2x4x6 2x9x18", "heads=3,per_head=1" },
	{ "1x1x4 1x17x10", "heads=2,scale=0.5" }, { "3x3x6 3x5x12 2x3x5 3:i1-5", "heads=2,bias=1,valid=1" },
	{ "2x4x4 2x6x8 3x2x4x6", "heads=2,bias=1,per_head=1" }, { "2x9x4 2x5x8", "heads=2,dropout=0.25,first=2" }, { NULL, NULL },
};
static const struct nr_case cross_cases[] = {
	{ "2x5x6 2x3x6 2x3x8", "heads=2" }, { "1x1x1 1x1x1 1x1x1", "heads=1" },
	{ "1x1x4 1x17x4 1x17x2", "heads=2,scale=0.5" },
	{ "3x3x6 3x5x6 3x5x6 2x3x5 3:i1-5", "heads=2,bias=1,valid=1" },
	{ "2x4x4 2x6x4 2x6x4 3x1x4x6", "heads=1,bias=1,causal=1" },
	{ "2x6x4 2x5x4 2x5x4", "heads=2,window=1,dropout=0.25" },
	{ "3x4x6 3x5x6 3x5x6 2x4x5 3:i1-5", "heads=2,bias=1,valid=1,first=1" },
	{ "2x9x4 2x5x4 2x5x4", "heads=2,window=1,dropout=0.25,first=2" }, { NULL, NULL },
};
const struct nr_op nr_op_attention = {
	.name = "attention", .shape = packed_shape, .forward = packed_forward, .backward = packed_backward,
	.cost = packed_cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_Y(0), .flags = NR_STRIDED | NR_RANDOM | NR_NARROW,
	.narrowed = nr_attention_narrowed, .try_case = packed_try,
	.cases = packed_cases,
};
const struct nr_op nr_op_kv_attention = {
	.name = "kv_attention", .shape = kv_shape, .forward = kv_forward, .backward = kv_backward, .cost = kv_cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_Y(0),
	.flags = NR_STRIDED | NR_RANDOM | NR_NARROW, .tokenwise = 1, .narrowed = nr_attention_narrowed, .try_case = kv_try,
	.cases = kv_cases,
};
const struct nr_op nr_op_cross_attention = {
	.name = "cross_attention", .shape = cross_shape, .forward = cross_forward, .backward = cross_backward,
	.cost = cross_cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_X(4) | NR_KEEP_Y(0),
	.flags = NR_STRIDED | NR_RANDOM | NR_NARROW, .tokenwise = 1, .narrowed = nr_attention_narrowed, .try_case = cross_try,
	.cases = cross_cases,
};
static const struct nr_op op_map = { /* not in ops.def: without a gradient there is nothing to check for free */
	.name = "attention_map", .shape = map_shape, .forward = map_forward, .cost = packed_cost, .flags = NR_STRIDED,
};

/* ---- builders -------------------------------------------------------------------------------------------------- */

nr_t *nr_attention(struct nr_net *n, nr_t *qkv, int64_t heads)
{
	return nr_attention_with(n, qkv, (struct nr_attention_options){ .heads = heads });
}
nr_t *nr_attention_with(struct nr_net *n, nr_t *qkv, struct nr_attention_options o)
{
	return nr_attention_apply(n, &nr_op_attention, 1, (nr_t *[]){ qkv }, o);
}
nr_t *nr_kv_attention(struct nr_net *n, nr_t *q, nr_t *kv, struct nr_attention_options o)
{
	return nr_attention_apply(n, &nr_op_kv_attention, 2, (nr_t *[]){ q, kv }, o);
}
nr_t *nr_cross_attention(struct nr_net *n, nr_t *q, nr_t *k, nr_t *v, struct nr_attention_options o)
{
	return nr_attention_apply(n, &nr_op_cross_attention, 3, (nr_t *[]){ q, k, v }, o);
}
nr_t *nr_attention_map(struct nr_net *n, nr_t *qkv, struct nr_attention_options o)
{
	return nr_attention_apply(n, &op_map, 1, (nr_t *[]){ qkv }, o);
}
