/* attention: out = dropout(softmax(scale q k^T + bias + mask)) v per head. Vaswani et al. arXiv:1706.03762 eq. 1.
 *
 * Packed qkv (B,T,3C), separate q k v, and the probabilities alone for analysis; one fused kernel (math/attention.h)
 * serves all. Kept for backward: the inputs, the output and the log-sum-exp of each row; T x T is never stored. */
#include <stdbool.h>

#include "math/attention.h"
#include "nn/op.h"
#include "nn/stream.h"

struct attention {
	int64_t heads, window;
	int causal, has_bias, has_valid;    /* after the operands come bias, then valid */
	uint32_t stream;
	float scale, dropout;
	int64_t queries;                    /* packed: of the first so many tokens only; 0: of all */
	int64_t rows;                       /* queries of the whole, if it was narrowed: bias and dropout are laid out for them; else 0 */
};

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
static size_t reals(int64_t n) { return lines((size_t)n * sizeof(real)); }

/* Sizes and what counts, without pointers; operands: 1 (packed) or 3. */
static struct nr_attention sizes(const struct nr_node *k, int operands)
{
	const struct attention *c = k->attr;
	const nr_t *q = k->in[0], *keys = operands > 1 ? k->in[1] : q, *v = operands > 1 ? k->in[2] : q;
	const int64_t parts = operands > 1 ? 1 : 3;
	struct nr_attention a = {
		.B = q->d[0], .H = c->heads, .Tq = q->d[1], .Tk = keys->d[1], .d = q->d[2] / (c->heads * parts),
		.dv = v->d[2] / (c->heads * parts), .window = c->window, .causal = c->causal, .threads = k->threads,
		.rows = c->rows,
	};
	if (operands == 1 && c->queries) a.Tq = c->queries;
	a.scale = c->scale != 0 ? (real)c->scale : 1 / nr_sqrt((real)a.d);
	if (c->has_bias) a.n_bias = k->in[operands]->nd == 4 ? k->in[operands]->d[0] : 1;
	return a;
}

static int check_extras(struct nr_node *k, const struct nr_attention *a, int operands)
{
	const struct attention *c = k->attr;
	char s[64];
	if (nr_expect(k, c->dropout >= 0 && c->dropout < 1, "dropout %g is not in [0,1)", (double)c->dropout) ||
	    nr_expect(k, c->window >= 0, "window must be at least 0, not %lld", (long long)c->window))
		return NR_ESHAPE;
	if (c->has_bias) {
		const nr_t *b = k->in[operands];
		const int64_t *d = b->d + (b->nd == 4);
		const int fits = b->nd >= 3 && b->nd <= 4 && d[0] == a->H && d[1] == nr_attention_rows(a) && d[2] == a->Tk;
		if (nr_expect(k, fits && b->dtype == NR_REAL,
			      "the bias %s is neither (H,Tq,Tk) nor (n,H,Tq,Tk) for %lld heads, %lld x %lld tokens",
			      nr_shape_text(b, s, sizeof s), (long long)a->H, (long long)nr_attention_rows(a), (long long)a->Tk))
			return NR_ESHAPE;
	}
	const nr_t *v = c->has_valid ? k->in[operands + c->has_bias] : NULL;
	return nr_expect(k, !v || (v->dtype == NR_I32 && nr_len(v) == a->B),
		"key lengths must be %lld int32, one per sample",
			 (long long)a->B);
}

/* What a run adds: bias, lengths, dropout. */
static void bind_extras(const struct nr_call *k, struct nr_attention *a, int operands)
{
	const struct attention *c = k->node->attr;
	if (c->has_bias) a->bias = k->x[operands].p;
	if (c->has_valid) a->klen = nr_ints(&k->x[operands + c->has_bias]);
	a->scratch = k->scratch;
	if (!k->ex->train || k->ex->no_dropout || c->dropout <= 0) return;
	a->dropout = (real)c->dropout;
	a->rng = nr_rng_make(k->ex->seed, NR_STREAM_DROPOUT + c->stream, (uint32_t)k->ex->step);
}

static void want_bias(const struct nr_call *k, struct nr_attention *a, int operands)
{
	const struct attention *c = k->node->attr;
	if (!c->has_bias || !(k->want >> operands & 1)) return;
	a->gbias = k->dx[operands].p;
	if (k->add[operands]) a->add |= NR_ATTENTION_ADD_BIAS;
}

static size_t scratch_of(struct nr_attention a)
{
	static real wanted;
	if (a.n_bias) a.gbias = &wanted;
	return lines(nr_attention_scratch(&a, a.threads));
}

static void cost_of(struct nr_attention a, double *forward, double *backward)
{
	const double pairs = (double)a.B * (double)a.H * (double)a.Tq * (double)a.Tk;
	*forward = pairs * (double)(2 * a.d + 2 * a.dv);
	*backward = pairs * (double)(6 * a.d + 4 * a.dv);
}

static const void *narrowed(const struct nr_node *k, int64_t tokens, struct nr_arena *arena)
{
	struct attention *c = nr_arena_alloc(arena, sizeof *c);
	if (!c) return NULL;
	*c = *(const struct attention *)k->attr;
	c->queries = tokens;
	c->rows = k->out[0]->d[1];
	return c;
}

/* ---- packed ---------------------------------------------------------------------------------------------------- */

static int packed_check(struct nr_node *k)
{
	const struct attention *c = k->attr;
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 3 && x->d[2] % 3 == 0, "%s is not (B,T,3C)", nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, c->heads > 0 && x->d[2] % (3 * c->heads) == 0,
	    	"%lld channels cannot be divided into %lld heads",
		      (long long)x->d[2] / 3, (long long)c->heads))
		return NR_ESHAPE;
	const struct nr_attention a = sizes(k, 1);
	return check_extras(k, &a, 1);
}

static int packed_shape(struct nr_node *k)
{
	if (packed_check(k)) return NR_ESHAPE;
	const struct nr_attention a = sizes(k, 1);
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ a.B, a.Tq, a.H * a.dv }, k->in[0]->tok);
	k->stash = reals(a.B * a.H * a.Tq);
	k->scratch = scratch_of(a);
	return 0;
}

static struct nr_attention packed_bind(const struct nr_call *k)
{
	struct nr_attention a = sizes(k->node, 1);
	const int64_t C = a.H * a.d;
	const real *x = k->x[0].p;
	a.q = x, a.k = x + C, a.v = x + 2 * C;
	a.sq = a.sk = a.sv = (struct nr_heads){ k->x[0].bs, 3 * C, a.d };
	bind_extras(k, &a, 1);
	return a;
}

static void packed_forward(const struct nr_call *k)
{
	struct nr_attention a = packed_bind(k);
	a.out = k->y[0].p;
	a.so = (struct nr_heads){ k->y[0].bs, a.H * a.dv, a.dv };
	a.lse = k->stash;
	nr_attention_forward(&a);
}

/* Tokens that did not ask: their queries get no gradient. */
static void clear_queries(const struct nr_view *dx, int64_t asked, int64_t C)
{
#pragma omp parallel for schedule(static) if (dx->rows * C > 16384)
	for (int64_t r = 0; r < dx->rows; r++)
		if (r % dx->t >= asked) memset(nr_row(dx, r), 0, (size_t)C * sizeof(real));
}

static void packed_backward(const struct nr_call *k)
{
	struct nr_attention a = packed_bind(k);
	const int64_t C = a.H * a.d;
	real *dx = k->dx[0].p;
	a.out = k->y[0].p;
	a.so = (struct nr_heads){ k->y[0].bs, C, a.dv };
	a.lse = k->stash;
	a.gout = k->dy[0].p;
	a.sgo = (struct nr_heads){ k->dy[0].bs, C, a.dv };
	if (k->want & 1) a.gq = dx, a.gk = dx + C, a.gv = dx + 2 * C;
	a.sgq = a.sgk = a.sgv = (struct nr_heads){ k->dx[0].bs, 3 * C, a.d };
	if (k->add[0]) a.add = NR_ATTENTION_ADD_Q | NR_ATTENTION_ADD_K | NR_ATTENTION_ADD_V;
	want_bias(k, &a, 1);
	if (k->want & 1 && !k->add[0] && a.Tq < k->dx[0].t) clear_queries(&k->dx[0], a.Tq, C);
	nr_attention_backward(&a);
}

static void packed_cost(const struct nr_node *k, double *forward, double *backward)
{
	cost_of(sizes(k, 1), forward, backward);
}

/* ---- cross ----------------------------------------------------------------------------------------------------- */

static int cross_shape(struct nr_node *k)
{
	const struct attention *c = k->attr;
	const nr_t *q = k->in[0], *p = k->in[1], *v = k->in[2];
	char sq[64], sk[64], sv[64];
	const int same = q->nd == 3 && p->nd == 3 && v->nd == 3 && q->d[0] == p->d[0] && p->d[0] == v->d[0];
	const int fits = p->d[1] == v->d[1] && q->d[2] == p->d[2];
	const int whole = c->heads > 0 && q->d[2] % c->heads == 0 && v->d[2] % c->heads == 0;
	if (nr_expect(k, same && fits && whole, "queries %s, keys %s and values %s do not match for %lld heads",
		      nr_shape_text(q, sq, sizeof sq),
		      nr_shape_text(p, sk, sizeof sk), nr_shape_text(v, sv, sizeof sv), (long long)c->heads))
		return NR_ESHAPE;
	const struct nr_attention a = sizes(k, 3);
	if (check_extras(k, &a, 3)) return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ a.B, a.Tq, a.H * a.dv }, q->tok);
	k->stash = reals(a.B * a.H * a.Tq);
	k->scratch = scratch_of(a);
	return 0;
}

static struct nr_attention cross_bind(const struct nr_call *k)
{
	struct nr_attention a = sizes(k->node, 3);
	a.q = k->x[0].p, a.k = k->x[1].p, a.v = k->x[2].p;
	a.sq = (struct nr_heads){ k->x[0].bs, a.H * a.d, a.d };
	a.sk = (struct nr_heads){ k->x[1].bs, a.H * a.d, a.d };
	a.sv = (struct nr_heads){ k->x[2].bs, a.H * a.dv, a.dv };
	a.out = k->y[0].p;
	a.so = (struct nr_heads){ k->y[0].bs, a.H * a.dv, a.dv };
	a.lse = k->stash;
	bind_extras(k, &a, 3);
	return a;
}

static void cross_forward(const struct nr_call *k)
{
	const struct nr_attention a = cross_bind(k);
	nr_attention_forward(&a);
}

static void cross_backward(const struct nr_call *k)
{
	static const unsigned add[] = { NR_ATTENTION_ADD_Q, NR_ATTENTION_ADD_K, NR_ATTENTION_ADD_V };
	struct nr_attention a = cross_bind(k);
	a.gout = k->dy[0].p;
	a.sgo = (struct nr_heads){ k->dy[0].bs, a.H * a.dv, a.dv };
	a.gq = k->want & 1 ? k->dx[0].p : NULL;
	a.gk = k->want & 2 ? k->dx[1].p : NULL;
	a.gv = k->want & 4 ? k->dx[2].p : NULL;
	a.sgq = (struct nr_heads){ k->dx[0].bs, a.H * a.d, a.d };
	a.sgk = (struct nr_heads){ k->dx[1].bs, a.H * a.d, a.d };
	a.sgv = (struct nr_heads){ k->dx[2].bs, a.H * a.dv, a.dv };
	for (int i = 0; i < 3; i++)
		if (k->add[i]) a.add |= add[i];
	want_bias(k, &a, 3);
	nr_attention_backward(&a);
}

static void cross_cost(const struct nr_node *k, double *forward, double *backward)
{
	cost_of(sizes(k, 3), forward, backward);
}

/* ---- map: P (B,H,T,T) ------------------------------------------------------------------------------------------ */

static int map_shape(struct nr_node *k)
{
	if (packed_check(k)) return NR_ESHAPE;
	const struct nr_attention a = sizes(k, 1);
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ a.B, a.H, a.Tq, a.Tk }, NULL);
	k->scratch = scratch_of(a) + reals(a.B * a.Tq * a.H * a.dv) + reals(a.B * a.H * a.Tq);
	return 0;
}

static void map_forward(const struct nr_call *k)
{
	struct nr_attention a = packed_bind(k);
	char *at = (char *)k->scratch + scratch_of(sizes(k->node, 1));
	a.out = (real *)at;     /* not wanted, but the log-sum-exp comes with it */
	a.lse = (real *)(at + reals(a.B * a.Tq * a.H * a.dv));
	a.so = (struct nr_heads){ a.Tq * a.H * a.dv, a.H * a.dv, a.dv };
	a.dropout = 0;
	nr_attention_forward(&a);
	nr_attention_probs(&a, k->y[0].p);
}

/* ---- tests' entries, descriptors ------------------------------------------------------------------------------- */

struct try { int64_t heads, window, first; bool causal, bias, valid; float scale, dropout; };
static const struct nr_option try_options[] = {
	NR_OPT_INT(struct try, heads, 1, 1, 1e6, "heads"),
	NR_OPT_INT(struct try, window, 0, 0, 1e9, "reach of a query"),
	NR_OPT_INT(struct try, first, 0, 0, 1e9, "tokens of the output that are used; 0: all"),
	NR_OPT_BOOL(struct try, causal, "0", "no later keys"),
	NR_OPT_BOOL(struct try, bias, "0", "a bias is given"),
	NR_OPT_BOOL(struct try, valid, "0", "lengths are given"),
	NR_OPT_FLOAT(struct try, scale, 0, 0, 100, "of the scores"),
	NR_OPT_FLOAT(struct try, dropout, 0, 0, 1, "of the probabilities"),
	NR_OPT_END
};

static nr_t *try_case(struct nr_net *n, nr_t **x, int operands, const char *text)
{
	struct try t;
	nr_option_defaults(try_options, &t);
	nr_option_parse(try_options, &t, text, nr_net_arena(n), NULL);
	const struct nr_attention_options o = {
		.heads = t.heads, .window = t.window, .causal = t.causal, .scale = t.scale, .dropout = t.dropout,
		.bias = t.bias ? x[operands] : NULL, .valid = t.valid ? x[operands + t.bias] : NULL,
	};
	nr_t *y = operands > 1 ? nr_cross_attention(n, x[0], x[1], x[2], o) : nr_attention_with(n, x[0], o);
	return t.first ? nr_span(n, y, 0, t.first) : y;
}
static nr_t *packed_try(struct nr_net *n, nr_t **x, const char *text) { return try_case(n, x, 1, text); }
static nr_t *cross_try(struct nr_net *n, nr_t **x, const char *text) { return try_case(n, x, 3, text); }

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
	{ "2x6x12 2x6x6 2:i1-6", "heads=2,bias=1,valid=1,causal=1,window=3,dropout=0.2,scale=0.7,first=3" }, { NULL, NULL },
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
	.narrowed = narrowed, .try_case = packed_try,
	.cases = packed_cases,
};
const struct nr_op nr_op_cross_attention = {
	.name = "cross_attention", .shape = cross_shape, .forward = cross_forward, .backward = cross_backward,
	.cost = cross_cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_X(2) | NR_KEEP_X(3) | NR_KEEP_X(4) | NR_KEEP_Y(0),
	.flags = NR_STRIDED | NR_RANDOM | NR_NARROW, .tokenwise = 1, .narrowed = narrowed, .try_case = cross_try,
	.cases = cross_cases,
};
static const struct nr_op op_map = { /* not in ops.def: without a gradient there is nothing to check for free */
	.name = "attention_map", .shape = map_shape, .forward = map_forward, .cost = packed_cost, .flags = NR_STRIDED,
};

/* ---- builders -------------------------------------------------------------------------------------------------- */

/* Lengths of the keys: given, or those of the tokens. */
static nr_t *apply(struct nr_net *n, const struct nr_op *op, int operands, nr_t *const *operand,
	struct nr_attention_options o)
{
	for (int i = 0; i < operands; i++)
		if (!operand[i]) return NULL;
	nr_t *in[NR_MAXIN];
	memcpy(in, operand, (size_t)operands * sizeof *in);
	const struct nr_tokens *tok = operand[operands > 1]->tok;
	nr_t *valid = o.valid ? o.valid : tok ? tok->valid : NULL;
	const struct attention a = {
		.heads = o.heads ? o.heads : tok ? tok->heads : 0, .window = o.window, .causal = o.causal,
		.scale = o.scale,
		.dropout = o.dropout, .has_bias = o.bias != NULL, .has_valid = valid != NULL,
		.stream = nr_stream_next(n),
	};
	int count = operands;
	if (o.bias) in[count++] = o.bias;
	if (valid) in[count++] = valid;
	return nr_apply_list(n, op, &a, sizeof a, count, in);
}

nr_t *nr_attention(struct nr_net *n, nr_t *qkv, int64_t heads)
{
	return nr_attention_with(n, qkv, (struct nr_attention_options){ .heads = heads });
}
nr_t *nr_attention_with(struct nr_net *n, nr_t *qkv, struct nr_attention_options o)
{
	return apply(n, &nr_op_attention, 1, (nr_t *[]){ qkv }, o);
}
nr_t *nr_cross_attention(struct nr_net *n, nr_t *q, nr_t *k, nr_t *v, struct nr_attention_options o)
{
	return apply(n, &nr_op_cross_attention, 3, (nr_t *[]){ q, k, v }, o);
}
nr_t *nr_attention_map(struct nr_net *n, nr_t *qkv, struct nr_attention_options o)
{
	return apply(n, &op_map, 1, (nr_t *[]){ qkv }, o);
}
