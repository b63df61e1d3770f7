/* window_attention: softmax attention inside shifted windows of a grid of tokens. Liu et al. 2021 (Swin), arXiv:2103.14030, Eq. 3 and 4.
 *
 * qkv (B,T,3C) on a grid h x w -> (B,T,C). Rows and columns beyond the part that rolls are padding, which takes part as keys, as in
 * the reference. Kept for backward: as in attention.c. */
#include "math/attention_windows.h"
#include "nn/op.h"
#include "nn/stream.h"

struct attr { struct nr_window_attention o; uint32_t stream; };

static struct nr_windows sizes(const struct nr_node *k)
{
	const struct attr *c = k->attr;
	const struct nr_window_attention *o = &c->o;
	const int64_t n = o->window_h * o->window_w, d = k->in[0]->d[2] / (3 * o->heads);
	return (struct nr_windows){ .a = { .B = k->in[0]->d[0], .H = o->heads, .Tq = n, .Tk = n, .d = d, .dv = d, .threads = k->threads,
			.scale = 1 / nr_sqrt((real)d) },
		.h = o->h, .w = o->w, .roll_h = o->roll_h ? o->roll_h : o->h, .roll_w = o->roll_w ? o->roll_w : o->w,
		.wh = o->window_h, .ww = o->window_w, .sh = o->shift_h, .sw = o->shift_w };
}

static int shape(struct nr_node *k)
{
	const struct nr_window_attention *o = &((const struct attr *)k->attr)->o;
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 3 && o->h > 0 && o->w > 0 && x->d[1] == o->h * o->w, "%s are not tokens of a grid of %lld x %lld",
		nr_shape_text(x, s, sizeof s), (long long)o->h, (long long)o->w) ||
	    nr_expect(k, o->window_h > 0 && o->window_w > 0 && o->h % o->window_h == 0 && o->w % o->window_w == 0,
		"windows of %lld x %lld do not tile a grid of %lld x %lld", (long long)o->window_h, (long long)o->window_w,
		(long long)o->h, (long long)o->w) ||
	    nr_expect(k, o->shift_h >= 0 && o->shift_h < o->window_h && o->shift_w >= 0 && o->shift_w < o->window_w,
		"a shift of %lld x %lld is not inside the window", (long long)o->shift_h, (long long)o->shift_w) ||
	    nr_expect(k, o->heads > 0 && x->d[2] % (3 * o->heads) == 0, "%lld channels cannot be divided into %lld heads",
		(long long)x->d[2] / 3, (long long)o->heads))
		return NR_ESHAPE;
	struct nr_windows w = sizes(k);
	const nr_t *b = k->n_in > 1 ? k->in[1] : NULL;
	if (nr_expect(k, !b || (b->nd == 3 && b->d[0] == w.a.H && b->d[1] == w.a.Tq && b->d[2] == w.a.Tq),
		"the bias %s is not (H,n,n) for %lld heads and %lld tokens of a window", b ? nr_shape_text(b, s, sizeof s) : "",
		(long long)w.a.H, (long long)w.a.Tq))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ x->d[0], x->d[1], x->d[2] / 3 }, x->tok);
	static real wanted;
	if (b) w.a.gbias = &wanted;
	k->stash = ((size_t)(x->d[0] * x->d[1] * w.a.H) * sizeof(real) + 63) / 64 * 64;
	k->scratch = nr_windows_scratch(&w);
	return 0;
}

static struct nr_windows bind(const struct nr_call *k)
{
	const struct attr *c = k->node->attr;
	struct nr_windows w = sizes(k->node);
	struct nr_attention *a = &w.a;
	const int64_t C = a->H * a->d;
	const real *x = k->x[0].p;
	a->q = x, a->k = x + C, a->v = x + 2 * C;
	a->sq = a->sk = a->sv = (struct nr_heads){ k->x[0].bs, 3 * C, a->d };
	a->out = k->y[0].p;
	a->so = (struct nr_heads){ k->y[0].bs, C, a->d };
	a->lse = k->stash;
	a->scratch = k->scratch;
	if (k->node->n_in > 1) a->bias = k->x[1].p;
	if (!k->ex->train || k->ex->no_dropout || c->o.dropout <= 0) return w;
	a->dropout = (real)c->o.dropout;
	a->rng = nr_rng_make(k->ex->seed, NR_STREAM_DROPOUT + c->stream, (uint32_t)k->ex->step);
	return w;
}

static void forward(const struct nr_call *k)
{
	const struct nr_windows w = bind(k);
	nr_windows_forward(&w);
}

static void backward(const struct nr_call *k)
{
	struct nr_windows w = bind(k);
	struct nr_attention *a = &w.a;
	const int64_t C = a->H * a->d;
	real *dx = k->dx[0].p;
	a->gout = k->dy[0].p;
	a->sgo = (struct nr_heads){ k->dy[0].bs, C, a->d };
	if (k->want & 1) a->gq = dx, a->gk = dx + C, a->gv = dx + 2 * C;
	a->sgq = a->sgk = a->sgv = (struct nr_heads){ k->dx[0].bs, 3 * C, a->d };
	if (k->add[0]) a->add = NR_ATTENTION_ADD_Q | NR_ATTENTION_ADD_K | NR_ATTENTION_ADD_V;
	if (k->node->n_in > 1 && k->want & 2) a->gbias = k->dx[1].p;
	if (k->add[1]) a->add |= NR_ATTENTION_ADD_BIAS;
	nr_windows_backward(&w);
}

static void cost(const struct nr_node *k, double *forward_flops, double *backward_flops)
{
	const struct nr_windows w = sizes(k);
	*forward_flops = 4.0 * (double)(w.a.B * w.h * w.w) * (double)(w.a.H * w.a.Tq * w.a.d);
	*backward_flops = 2.5 * *forward_flops;
}

/* ---- tests' entries, descriptor, builder ---------------------------------------------------------------------------- */

struct try { int64_t heads, h, w, roll_h, roll_w, window_h, window_w, shift_h, shift_w; float dropout; };
static const struct nr_option try_options[] = {
	NR_OPT_INT(struct try, heads, 1, 1, 99, "heads"), NR_OPT_INT(struct try, h, 4, 1, 99, "rows"),
	NR_OPT_INT(struct try, w, 4, 1, 99, "columns"), NR_OPT_INT(struct try, roll_h, 0, 0, 99, "rows that roll"),
	NR_OPT_INT(struct try, roll_w, 0, 0, 99, "columns that roll"), NR_OPT_INT(struct try, window_h, 2, 1, 99, "rows of a window"),
	NR_OPT_INT(struct try, window_w, 2, 1, 99, "columns of a window"), NR_OPT_INT(struct try, shift_h, 0, 0, 99, "shift of rows"),
	NR_OPT_INT(struct try, shift_w, 0, 0, 99, "shift of columns"), NR_OPT_FLOAT(struct try, dropout, 0, 0, 1, "dropout"), NR_OPT_END
};
static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	struct try t;
	nr_option_defaults(try_options, &t);
	nr_option_parse(try_options, &t, text, nr_net_arena(n), NULL);
	return nr_window_attention(n, x[0], (struct nr_window_attention){ t.heads, t.h, t.w, t.roll_h, t.roll_w, t.window_h, t.window_w,
		t.shift_h, t.shift_w, t.dropout, x[1] });
}
static const struct nr_case cases[] = {
	{ "2x16x12 2x4x4", "heads=2,shift_h=1,shift_w=1" }, { "1x1x3 1x1x1", "h=1,w=1,window_h=1,window_w=1" },
	{ "2x24x6 1x6x6", "h=4,w=6,window_w=3,shift_w=1" }, { "3x16x12", "heads=2" },
	{ "1x36x12 2x9x9", "heads=2,h=6,w=6,roll_h=5,roll_w=4,window_h=3,window_w=3,shift_h=1,shift_w=1" },
	{ "1x48x12 2x8x8", "heads=2,h=8,w=6,roll_h=7,roll_w=5,window_h=4,window_w=2,shift_h=2,shift_w=1" },
	{ "2x16x18 3x4x4", "heads=3,shift_h=1,dropout=0.3" }, { NULL, NULL },
};
const struct nr_op nr_op_window_attention = {
	.name = "window_attention", .shape = shape, .forward = forward, .backward = backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1) | NR_KEEP_Y(0), .flags = NR_STRIDED | NR_RANDOM, .try_case = try_case, .cases = cases,
};

nr_t *nr_window_attention(struct nr_net *n, nr_t *qkv, struct nr_window_attention o)
{
	const struct attr a = { o, nr_stream_next(n) };
	if (!qkv) return NULL;
	return o.bias ? nr_apply(n, &nr_op_window_attention, &a, sizeof a, qkv, o.bias)
		      : nr_apply(n, &nr_op_window_attention, &a, sizeof a, qkv);
}
