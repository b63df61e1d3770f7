/* See attention_op.h. */
#include "nn/attention_op.h"

#include "nn/stream.h"

struct nr_attention nr_attention_sizes(const struct nr_node *k, int operands)
{
	const struct nr_attention_attr *c = k->attr;
	const nr_t *q = k->in[0], *keys = k->in[operands > 1], *v = k->in[operands - 1];
	const int64_t H = c->heads, width = v->d[2] / H;        /* of a head: of q, k and v; of k and v; of v */
	struct nr_attention a = { .B = q->d[0], .H = H, .Tq = q->d[1], .Tk = keys->d[1], .window = c->window, .causal = c->causal,
		.threads = k->threads, .rows = c->rows };
	a.d = operands > 1 ? q->d[2] / H : c->value ? (width - c->value) / 2 : width / 3;
	a.dv = operands == 1 ? width - 2 * a.d : operands == 2 ? width - a.d : width;
	if (operands == 1 && c->queries) a.Tq = c->queries;
	a.scale = c->scale != 0 ? (real)c->scale : 1 / nr_sqrt((real)a.d);
	if (c->has_bias) a.n_bias = k->in[operands]->nd == 4 ? k->in[operands]->d[0] : 1;
	return a;
}

int nr_attention_check(struct nr_node *k, const struct nr_attention *a, int operands)
{
	const struct nr_attention_attr *c = k->attr;
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

struct nr_attention_parts nr_attention_split(const struct nr_attention *a, const struct nr_attention_attr *c, int operands,
	const struct nr_view *x)
{
	const int64_t H = a->H, d = a->d, e = a->dv;
	if (operands == 3)
		return (struct nr_attention_parts){ x[0].p, x[1].p, x[2].p, { x[0].bs, H * d, d }, { x[1].bs, H * d, d },
			{ x[2].bs, H * e, e } };
	const struct nr_view *last = &x[operands - 1];
	const int64_t before = operands == 1 ? d : 0, all = before + d + e;      /* q stands before k in each head, or nowhere */
	real *p = last->p;
	struct nr_attention_parts s = { .q = x[0].p, .k = p + (c->per_head ? before : H * before),
		.v = p + (c->per_head ? before + d : H * (before + d)), .sk = { last->bs, H * all, c->per_head ? all : d },
		.sv = { last->bs, H * all, c->per_head ? all : e } };
	s.sq = operands == 1 ? s.sk : (struct nr_heads){ x[0].bs, H * d, d };
	return s;
}

struct nr_attention nr_attention_bind(const struct nr_call *k, int operands)
{
	const struct nr_attention_attr *c = k->node->attr;
	struct nr_attention a = nr_attention_sizes(k->node, operands);
	const struct nr_attention_parts s = nr_attention_split(&a, c, operands, k->x);
	a.q = s.q, a.k = s.k, a.v = s.v, a.sq = s.sq, a.sk = s.sk, a.sv = s.sv;
	a.out = k->y[0].p;
	a.so = (struct nr_heads){ k->y[0].bs, a.H * a.dv, a.dv };
	a.lse = k->stash;
	if (c->has_bias) a.bias = k->x[operands].p;
	if (c->has_valid) a.klen = nr_ints(&k->x[operands + c->has_bias]);
	a.scratch = k->scratch;
	if (!k->ex->train || k->ex->no_dropout || c->dropout <= 0) return a;
	a.dropout = (real)c->dropout;
	a.rng = nr_rng_make(k->ex->seed, NR_STREAM_DROPOUT + c->stream, (uint32_t)k->ex->step);
	return a;
}

void nr_attention_op_forward(const struct nr_call *k, int operands)
{
	const struct nr_attention a = nr_attention_bind(k, operands);
	nr_attention_forward(&a);
}

/* Tokens that did not ask: their queries get no gradient. */
static void clear_queries(const struct nr_attention *a, int64_t T)
{
#pragma omp parallel for schedule(static) if (a->B * T * a->H * a->d > 16384)
	for (int64_t r = 0; r < a->B * (T - a->Tq); r++)
		for (int64_t h = 0; h < a->H; h++)
			memset(a->gq + r / (T - a->Tq) * a->sgq.batch + (a->Tq + r % (T - a->Tq)) * a->sgq.row + h * a->sgq.head, 0,
				(size_t)a->d * sizeof(real));
}

void nr_attention_op_backward(const struct nr_call *k, int operands)
{
	const struct nr_attention_attr *c = k->node->attr;
	struct nr_attention a = nr_attention_bind(k, operands);
	const struct nr_attention_parts s = nr_attention_split(&a, c, operands, k->dx);
	const int at_k = operands > 1, at_v = operands - 1;     /* operands that hold k and v */
	a.gout = k->dy[0].p;
	a.sgo = (struct nr_heads){ k->dy[0].bs, a.H * a.dv, a.dv };
	a.gq = k->want & 1 ? s.q : NULL;
	a.gk = k->want >> at_k & 1 ? s.k : NULL;
	a.gv = k->want >> at_v & 1 ? s.v : NULL;
	a.sgq = s.sq, a.sgk = s.sk, a.sgv = s.sv;
	if (k->add[0]) a.add |= NR_ATTENTION_ADD_Q;
	if (k->add[at_k]) a.add |= NR_ATTENTION_ADD_K;
	if (k->add[at_v]) a.add |= NR_ATTENTION_ADD_V;
	if (c->has_bias && k->want >> operands & 1) {
		a.gbias = k->dx[operands].p;
		if (k->add[operands]) a.add |= NR_ATTENTION_ADD_BIAS;
	}
	if (a.gq && !k->add[0] && a.Tq < k->dx[0].t) clear_queries(&a, k->dx[0].t);
	nr_attention_backward(&a);
}

size_t nr_attention_op_scratch(struct nr_attention a)
{
	static real wanted;
	if (a.n_bias) a.gbias = &wanted;
	return (nr_attention_scratch(&a, a.threads) + 63) / 64 * 64;
}

void nr_attention_op_cost(struct nr_attention a, double *forward, double *backward)
{
	const double pairs = (double)a.B * (double)a.H * (double)a.Tq * (double)a.Tk;
	*forward = pairs * (double)(2 * a.d + 2 * a.dv);
	*backward = pairs * (double)(6 * a.d + 4 * a.dv);
}

const void *nr_attention_narrowed(const struct nr_node *k, int64_t tokens, struct nr_arena *arena)
{
	struct nr_attention_attr *c = nr_arena_alloc(arena, sizeof *c);
	if (!c) return NULL;
	*c = *(const struct nr_attention_attr *)k->attr;
	c->queries = tokens;
	c->rows = k->out[0]->d[1];
	return c;
}

nr_t *nr_attention_apply(struct nr_net *n, const struct nr_op *op, int operands, nr_t *const *operand, struct nr_attention_options o)
{
	for (int i = 0; i < operands; i++)
		if (!operand[i]) return NULL;
	nr_t *in[NR_MAXIN];
	memcpy(in, operand, (size_t)operands * sizeof *in);
	const struct nr_tokens *tok = operand[operands > 1]->tok;
	nr_t *valid = o.valid ? o.valid : tok ? tok->valid : NULL;
	const struct nr_attention_attr a = {
		.heads = o.heads ? o.heads : tok ? tok->heads : 0, .window = o.window, .causal = o.causal, .scale = o.scale,
		.value = o.value, .per_head = o.per_head,
		.dropout = o.dropout, .has_bias = o.bias != NULL, .has_valid = valid != NULL,
		.stream = nr_stream_next(n),
	};
	int count = operands;
	if (o.bias) in[count++] = o.bias;
	if (valid) in[count++] = valid;
	return nr_apply_list(n, op, &a, sizeof a, count, in);
}

struct try { int64_t heads, window, first, value; bool causal, bias, valid, per_head; float scale, dropout; };
static const struct nr_option try_options[] = {
	NR_OPT_INT(struct try, heads, 1, 1, 1e6, "heads"),
	NR_OPT_INT(struct try, window, 0, 0, 1e9, "reach of a query"),
	NR_OPT_INT(struct try, first, 0, 0, 1e9, "tokens of the output that are used; 0: all"),
	NR_OPT_INT(struct try, value, 0, 0, 1e6, "width of a head of v; 0: as q"),
	NR_OPT_BOOL(struct try, per_head, "0", "q, k and v of each head together"),
	NR_OPT_BOOL(struct try, causal, "0", "no later keys"),
	NR_OPT_BOOL(struct try, bias, "0", "a bias is given"),
	NR_OPT_BOOL(struct try, valid, "0", "lengths are given"),
	NR_OPT_FLOAT(struct try, scale, 0, 0, 100, "of the scores"),
	NR_OPT_FLOAT(struct try, dropout, 0, 0, 1, "of the probabilities"),
	NR_OPT_END
};

nr_t *nr_attention_try(struct nr_net *n, const struct nr_op *op, int operands, nr_t **x, const char *text)
{
	struct try t;
	nr_option_defaults(try_options, &t);
	nr_option_parse(try_options, &t, text, nr_net_arena(n), NULL);
	const struct nr_attention_options o = {
		.heads = t.heads, .window = t.window, .causal = t.causal, .scale = t.scale, .dropout = t.dropout,
		.value = t.value, .per_head = t.per_head,
		.bias = t.bias ? x[operands] : NULL, .valid = t.valid ? x[operands + t.bias] : NULL,
	};
	nr_t *y = nr_attention_apply(n, op, operands, x, o);
	return t.first ? nr_span(n, y, 0, t.first) : y;
}
