/* Convolution and pooling, channels last: x (B,H,W,C). Weights as checkpoints have them: (out,in,k,k), or (C,1,k,k).
 *
 * Backward reads x and the weight again; the maximum keeps the place of each. */
#include "math/conv.h"
#include "math/depthwise.h"
#include "math/pool.h"
#include "nn/op.h"

struct window { int64_t k, stride, pad; };

static struct nr_window window_of(const struct nr_node *k)
{
	const struct window *a = k->attr;
	const int64_t *d = k->in[0]->d;
	return (struct nr_window){
		.B = d[0], .H = d[1], .W = d[2], .C = d[3], .kh = a->k, .kw = a->k, .sh = a->stride,
		.sw = a->stride, .ph = a->pad, .pw = a->pad,
	};
}

static int check_window(struct nr_node *k)
{
	const struct window *a = k->attr;
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 4 && x->dtype == NR_REAL, "pictures are (B,H,W,C) here, not %s",
		nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, a->k > 0 && a->stride > 0 && a->pad >= 0,
		"window %lld and stride %lld must be positive, padding %lld at least 0", (long long)a->k,
		      (long long)a->stride, (long long)a->pad))
		return NR_ESHAPE;
	const struct nr_window w = window_of(k);
	return nr_expect(k, nr_window_h(&w) > 0 && nr_window_w(&w) > 0,
		"a window of %lld does not fit %s with padding %lld", (long long)a->k,
			 nr_shape_text(x, s, sizeof s), (long long)a->pad);
}

static void declare_out(struct nr_node *k, int64_t channels)
{
	const struct nr_window w = window_of(k);
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ w.B, nr_window_h(&w), nr_window_w(&w), channels }, NULL);
}

static int check_weight(struct nr_node *k, int64_t in, const char *what)
{
	const struct window *a = k->attr;
	const nr_t *w = k->in[1];
	char s[64];
	if (nr_expect(k, w->nd == 4 && w->d[1] == in && w->d[2] == a->k && w->d[3] == a->k,
		"the weight %s is not %s of %lld x %lld",
		      nr_shape_text(w, s, sizeof s), what, (long long)a->k, (long long)a->k))
		return NR_ESHAPE;
	return nr_expect(k, k->n_in < 3 || nr_len(k->in[2]) == w->d[0], "one bias per output");
}

static const real *bias_of(const struct nr_call *k) { return k->node->n_in > 2 ? k->x[2].p : NULL; }
static real *dbias_of(const struct nr_call *k) { return k->node->n_in > 2 && k->want & 4 ? k->dx[2].p : NULL; }

static void cost(const struct nr_node *k, double *forward, double *backward)
{
	const nr_t *w = k->in[1];
	*forward = 2.0 * (double)nr_rows(k->out[0]) * (double)nr_len(w);
	*backward = 2 * *forward;
}

/* ---- dense ----------------------------------------------------------------------------------------------------- */

static struct nr_conv conv_of(const struct nr_node *k) { return (struct nr_conv){ window_of(k), k->in[1]->d[0], k->threads }; }

static int dense_shape(struct nr_node *k)
{
	if (check_window(k) || check_weight(k, k->in[0]->d[3], "(out,in) filters")) return NR_ESHAPE;
	const struct nr_conv c = conv_of(k);
	declare_out(k, c.O);
	k->scratch = nr_conv_scratch(&c);
	return 0;
}
static void dense_forward(const struct nr_call *k)
{
	const struct nr_conv c = conv_of(k->node);
	nr_conv_forward(&c, k->x[0].p, k->x[1].p, bias_of(k), k->y[0].p, k->scratch);
}
static void dense_backward(const struct nr_call *k)
{
	const struct nr_conv c = conv_of(k->node);
	if (k->want & 1) nr_conv_backward_data(&c, k->dy[0].p, k->x[1].p, k->dx[0].p, k->add[0], k->scratch);
	if (k->want & 6)
		nr_conv_backward_weight(&c, k->x[0].p, k->dy[0].p, k->dx[1].p, k->add[1], dbias_of(k), k->add[2],
			k->scratch);
}

/* ---- depthwise ------------------------------------------------------------------------------------------------- */

static int depth_shape(struct nr_node *k)
{
	if (check_window(k) || check_weight(k, 1, "(C,1) filters")) return NR_ESHAPE;
	const struct nr_window w = window_of(k);
	if (nr_expect(k, k->in[1]->d[0] == w.C, "%lld filters for %lld channels", (long long)k->in[1]->d[0],
		(long long)w.C))
		return NR_ESHAPE;
	declare_out(k, w.C);
	k->scratch = nr_depthwise_scratch(&w);
	return 0;
}
static void depth_forward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	nr_depthwise_forward(&w, k->x[0].p, k->x[1].p, bias_of(k), k->y[0].p, k->scratch);
}
static void depth_backward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	if (k->want & 1) nr_depthwise_backward_data(&w, k->dy[0].p, k->x[1].p, k->dx[0].p, k->add[0], k->scratch);
	if (k->want & 6)
		nr_depthwise_backward_weight(&w, k->x[0].p, k->dy[0].p, k->dx[1].p, k->add[1], dbias_of(k),
			k->add[2], k->scratch);
}

/* ---- pooling --------------------------------------------------------------------------------------------------- */

static int pool_shape(struct nr_node *k)
{
	const struct window *a = k->attr;
	if (check_window(k) ||
		nr_expect(k, 2 * a->pad <= a->k, "padding %lld is more than half of a window of %lld",
			(long long)a->pad, (long long)a->k))
		return NR_ESHAPE;
	declare_out(k, k->in[0]->d[3]);
	return 0;
}
static int max_shape(struct nr_node *k)
{
	if (pool_shape(k)) return NR_ESHAPE;
	k->stash = (size_t)nr_len(k->out[0]) * sizeof(int32_t);         /* where each maximum was */
	return nr_expect(k, k->in[0]->d[1] * k->in[0]->d[2] <= INT32_MAX, "the picture is too large");
}
static void max_forward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	nr_pool_max_forward(&w, k->x[0].p, k->y[0].p, k->stash);
}
static void max_backward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	nr_pool_max_backward(&w, k->dy[0].p, k->stash, k->dx[0].p, k->add[0]);
}
static void mean_forward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	nr_pool_mean_forward(&w, 1, k->x[0].p, k->y[0].p);
}
static void mean_backward(const struct nr_call *k)
{
	const struct nr_window w = window_of(k->node);
	nr_pool_mean_backward(&w, 1, k->dy[0].p, k->dx[0].p, k->add[0]);
}

/* ---- tests' entries, descriptors ------------------------------------------------------------------------------- */

static nr_t *filter(struct nr_net *n, const struct nr_op *op, nr_t *x, nr_t *weight, nr_t *bias, struct window a)
{
	return bias ? nr_apply(n, op, &a, sizeof a, x, weight, bias) : nr_apply(n, op, &a, sizeof a, x, weight);
}

/* "311": window, stride, padding */
static struct window try_window(const char *options)
{
	return (struct window){ options[0] - '0', options[1] - '0', options[2] - '0' };
}
static nr_t *dense_try(struct nr_net *n, nr_t **x, const char *options)
{
	return filter(n, &nr_op_conv, x[0], x[1], x[2], try_window(options));
}
static nr_t *depth_try(struct nr_net *n, nr_t **x, const char *options)
{
	return filter(n, &nr_op_depthwise, x[0], x[1], x[2], try_window(options));
}
static nr_t *max_try(struct nr_net *n, nr_t **x, const char *options)
{
	const struct window w = try_window(options);
	return nr_pool(n, "max", x[0], w.k, w.stride, w.pad);
}
static nr_t *mean_try(struct nr_net *n, nr_t **x, const char *options)
{
	const struct window w = try_window(options);
	return nr_pool(n, "mean", x[0], w.k, w.stride, w.pad);
}
static const struct nr_case dense_cases[] = {
	{ "2x5x4x3 2x3x3x3 2", "311" }, { "1x1x1x1 1x1x1x1 1", "110" }, { "2x4x4x3 5x3x2x2", "220" },
	{ "1x7x5x2 3x2x3x3", "321" },
	{ "2x3x3x4 3x4x1x1 3", "110" }, { "2x3x4x16 17x16x3x3 17", "311" }, { NULL, NULL },
};
static const struct nr_case depth_cases[] = {
	{ "2x5x4x3 3x1x3x3 3", "311" }, { "1x1x1x1 1x1x1x1", "110" }, { "1x6x7x5 5x1x3x3 5", "321" },
	{ "3x4x4x2 2x1x2x2", "220" },
	{ NULL, NULL },
};
static const struct nr_case pool_cases[] = { { "2x4x4x3", "220" }, { "1x5x7x2", "321" }, { "1x1x1x1", "110" },
	{ "2x3x3x1", "311" }, { NULL, NULL } };

const struct nr_op nr_op_conv = {
	.name = "conv", .shape = dense_shape, .forward = dense_forward, .backward = dense_backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .try_case = dense_try, .cases = dense_cases,
};
const struct nr_op nr_op_depthwise = {
	.name = "depthwise", .shape = depth_shape, .forward = depth_forward, .backward = depth_backward, .cost = cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .try_case = depth_try, .cases = depth_cases,
};
const struct nr_op nr_op_pool_max = {
	.name = "pool_max", .shape = max_shape, .forward = max_forward, .backward = max_backward,
	.try_case = max_try, .cases = pool_cases,
};
const struct nr_op nr_op_pool_mean = {
	.name = "pool_mean", .shape = pool_shape, .forward = mean_forward, .backward = mean_backward,
	.try_case = mean_try, .cases = pool_cases,
};

/* ---- builders -------------------------------------------------------------------------------------------------- */

nr_t *nr_conv(struct nr_net *n, const char *name, nr_t *x, int64_t out, int64_t k, int64_t stride, int64_t pad,
	int64_t groups, int bias)
{
	if (!x) return NULL;
	const int64_t in = nr_cols(x);
	if (groups != 1 && (groups != in || out != in))
		return nr_net_fail(n, NR_ESHAPE, name,
			"%lld groups for %lld inputs and %lld outputs: 1, or depthwise as many as both",
				   (long long)groups, (long long)in, (long long)out);
	nr_push(n, "%s", name);
	nr_t *w = nr_param(n, "weight", NR_XAVIER, NR_SHAPE(out, in / groups, k, k));
	nr_t *b = bias ? nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(out)) : NULL;
	const struct window a = { k, stride, pad };
	return nr_pop(n, filter(n, groups == 1 ? &nr_op_conv : &nr_op_depthwise, x, w, b, a));
}

nr_t *nr_pool(struct nr_net *n, const char *kind, nr_t *x, int64_t k, int64_t stride, int64_t pad)
{
	const struct window a = { k, stride, pad };
	const int max = !strcmp(kind, "max");
	if (!max && strcmp(kind, "mean")) return nr_net_fail(n, NR_ENAME, kind, "no such pooling: mean or max");
	return nr_apply(n, max ? &nr_op_pool_max : &nr_op_pool_mean, &a, sizeof a, x);
}
