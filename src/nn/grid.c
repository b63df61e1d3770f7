/* Grids of tokens (B,H,W,C): windows as rows, another size by cutting, padding, averaging or resampling, some of the channels.
 *
 *   unfold         T2T's soft split (arXiv:2101.11986, section 3.1), Swin's merging (arXiv:2103.14030), LeViT's subset
 *   pool_adaptive  PVT v2's linear attention (arXiv:2106.13797, Eq. 2)
 *   resample       position tables at another picture size */
#include "math/patch.h"
#include "math/pool.h"
#include "math/resample.h"
#include "math/row.h"
#include "nn/op.h"

static int is_grid(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	char s[64];
	return !nr_expect(k, x->nd == 4 && x->dtype == NR_REAL, "grids are (B,H,W,C), not %s", nr_shape_text(x, s, sizeof s));
}

/* ---- unfold -------------------------------------------------------------------------------------------------------- */

struct unfold { int64_t k, stride, pad; enum nr_patch_order order; };

static struct nr_window window_of(const struct nr_node *k)
{
	const struct unfold *a = k->attr;
	const int64_t *d = k->in[0]->d;
	return (struct nr_window){ .B = d[0], .H = d[1], .W = d[2], .C = d[3], .kh = a->k, .kw = a->k, .sh = a->stride, .sw = a->stride,
		.ph = a->pad, .pw = a->pad };
}
static int unfold_shape(struct nr_node *k)
{
	const struct unfold *a = k->attr;
	if (!is_grid(k) || nr_expect(k, a->k > 0 && a->stride > 0 && a->pad >= 0, "no window of %lld with stride %lld", (long long)a->k,
		(long long)a->stride))
		return NR_ESHAPE;
	const struct nr_window w = window_of(k);
	if (nr_expect(k, nr_window_rows(&w) > 0, "a window of %lld does not fit %lld x %lld", (long long)a->k, (long long)w.H,
		(long long)w.W))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ w.B, nr_window_h(&w) * nr_window_w(&w), nr_window_cols(&w) }, NULL);
	return 0;
}
static void unfold_forward(const struct nr_call *k)
{
	const struct unfold *a = k->node->attr;
	const struct nr_window w = window_of(k->node);
	nr_unfold(&w, a->order, k->x[0].p, 0, nr_window_rows(&w), k->y[0].p);
}
static void unfold_backward(const struct nr_call *k)
{
	const struct unfold *a = k->node->attr;
	const struct nr_window w = window_of(k->node);
	if (k->want & 1) nr_fold_windows(&w, a->order, k->dy[0].p, 0, w.B, k->dx[0].p, k->add[0]);
}
/* "311c": window, stride, padding, order */
static nr_t *unfold_try(struct nr_net *n, nr_t **x, const char *o)
{
	const enum nr_patch_order order = o[3] == 'c' ? NR_PATCH_CHANNEL_ROW_COL : o[3] == 's' ? NR_PATCH_COL_ROW_CHANNEL
											   : NR_PATCH_ROW_COL_CHANNEL;
	return nr_unfold_windows(n, x[0], o[0] - '0', o[1] - '0', o[2] - '0', order);
}
static const struct nr_case unfold_cases[] = {
	{ "2x5x4x3", "321c" }, { "1x1x1x1", "110r" }, { "2x4x6x3", "220s" }, { "2x5x7x2", "120r" }, { "1x7x5x2", "312r" }, { NULL, NULL },
};
const struct nr_op nr_op_unfold = {
	.name = "unfold", .shape = unfold_shape, .forward = unfold_forward, .backward = unfold_backward, .try_case = unfold_try,
	.cases = unfold_cases,
};

nr_t *nr_unfold_windows(struct nr_net *n, nr_t *x, int64_t k, int64_t stride, int64_t pad, enum nr_patch_order order)
{
	const struct unfold a = { k, stride, pad, order };
	nr_t *y = nr_apply(n, &nr_op_unfold, &a, sizeof a, x);
	if (!y) return NULL;
	const struct nr_window w = window_of(y->src);
	return nr_with_tokens(n, y, (struct nr_tokens){ .h = (int32_t)nr_window_h(&w), .w = (int32_t)nr_window_w(&w) });
}

/* ---- another size ----------------------------------------------------------------------------------------------------- */

struct size { int64_t h, w; };

static int size_shape(struct nr_node *k)
{
	const struct size *a = k->attr;
	const int64_t *d = k->in[0]->d;
	if (!is_grid(k) || nr_expect(k, a->h > 0 && a->w > 0, "no grid of %lld x %lld", (long long)a->h, (long long)a->w))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 4, (int64_t[]){ d[0], a->h, a->w, d[3] }, NULL);
	return 0;
}
static struct size try_size(const char *o) { return (struct size){ o[0] - '0', o[1] - '0' }; }

/* Rows of the smaller grid are copied, the rest of y is zero. */
static void fit(int64_t B, struct size from, struct size to, int64_t C, const real *x, real *y, int add)
{
	const int64_t w = nr_min64(from.w, to.w);
#pragma omp parallel for schedule(static) if (B * to.h * to.w * C > 16384)
	for (int64_t r = 0; r < B * to.h; r++) {
		real *o = y + r * to.w * C;
		const int64_t row = r % to.h, copied = row < from.h ? w * C : 0;
		if (copied) nr_row_put(copied, x + (r / to.h * from.h + row) * from.w * C, o, add);
		if (!add) memset(o + copied, 0, (size_t)(to.w * C - copied) * sizeof(real));
	}
}
static struct size size_of(const nr_t *x) { return (struct size){ x->d[1], x->d[2] }; }
static void fit_forward(const struct nr_call *k)
{
	const nr_t *x = k->node->in[0], *y = k->node->out[0];
	fit(x->d[0], size_of(x), size_of(y), x->d[3], k->x[0].p, k->y[0].p, 0);
}
static void fit_backward(const struct nr_call *k)
{
	const nr_t *x = k->node->in[0], *y = k->node->out[0];
	if (k->want & 1) fit(x->d[0], size_of(y), size_of(x), x->d[3], k->dy[0].p, k->dx[0].p, k->add[0]);
}
static nr_t *fit_try(struct nr_net *n, nr_t **x, const char *o) { return nr_fit_grid(n, x[0], try_size(o).h, try_size(o).w); }
static const struct nr_case fit_cases[] = { { "2x3x4x2", "55" }, { "2x5x4x3", "23" }, { "1x2x5x3", "43" }, { "1x1x1x1", "12" },
	{ NULL, NULL } };
const struct nr_op nr_op_fit_grid = {
	.name = "fit_grid", .shape = size_shape, .forward = fit_forward, .backward = fit_backward, .try_case = fit_try, .cases = fit_cases,
};
nr_t *nr_fit_grid(struct nr_net *n, nr_t *x, int64_t h, int64_t w)
{
	const struct size a = { h, w };
	return x && x->nd == 4 && x->d[1] == h && x->d[2] == w ? x : nr_apply(n, &nr_op_fit_grid, &a, sizeof a, x);
}

static struct nr_bins bins_of(const struct nr_node *k)
{
	const int64_t *d = k->in[0]->d, *o = k->out[0]->d;
	return (struct nr_bins){ d[0], d[1], d[2], d[3], o[1], o[2] };
}
static void adaptive_forward(const struct nr_call *k)
{
	const struct nr_bins b = bins_of(k->node);
	nr_pool_adaptive_forward(&b, k->x[0].p, k->y[0].p);
}
static void adaptive_backward(const struct nr_call *k)
{
	const struct nr_bins b = bins_of(k->node);
	if (k->want & 1) nr_pool_adaptive_backward(&b, k->dy[0].p, k->dx[0].p, k->add[0]);
}
static nr_t *adaptive_try(struct nr_net *n, nr_t **x, const char *o) { return nr_pool_to(n, x[0], try_size(o).h, try_size(o).w); }
static const struct nr_case adaptive_cases[] = { { "2x5x4x3", "23" }, { "1x2x3x2", "77" }, { "2x7x7x1", "33" }, { "1x1x1x1", "11" },
	{ NULL, NULL } };
const struct nr_op nr_op_pool_adaptive = {
	.name = "pool_adaptive", .shape = size_shape, .forward = adaptive_forward, .backward = adaptive_backward, .try_case = adaptive_try,
	.cases = adaptive_cases,
};
nr_t *nr_pool_to(struct nr_net *n, nr_t *x, int64_t h, int64_t w)
{
	const struct size a = { h, w };
	return nr_apply(n, &nr_op_pool_adaptive, &a, sizeof a, x);
}

/* ---- resample: each sample on its own --------------------------------------------------------------------------------- */

struct resampling { struct size to; enum nr_resample how; };    /* the size first, as size_shape reads it */

static size_t eights(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Scratch: the weights of both axes, then rows on their way. */
static size_t axes_bytes(const nr_t *x, const struct size *a)
{
	return eights(nr_axis_bytes(x->d[1], a->h)) + eights(nr_axis_bytes(x->d[2], a->w));
}
static int resample_shape(struct nr_node *k)
{
	if (size_shape(k)) return NR_ESHAPE;
	const struct size *a = &((const struct resampling *)k->attr)->to;
	const nr_t *x = k->in[0];
	k->scratch = axes_bytes(x, a) + (size_t)(a->h * x->d[2] * x->d[3]) * sizeof(real);
	return 0;
}
static real *axes(const struct nr_call *k, struct nr_axis *rows, struct nr_axis *cols)
{
	const struct resampling *r = k->node->attr;
	const struct size *a = &r->to;
	const nr_t *x = k->node->in[0];
	char *s = k->scratch;
	*rows = nr_axis_init(r->how, x->d[1], a->h, s);
	*cols = nr_axis_init(r->how, x->d[2], a->w, s + eights(nr_axis_bytes(x->d[1], a->h)));
	return (real *)(s + axes_bytes(x, a));
}
static void resample_forward(const struct nr_call *k)
{
	struct nr_axis rows, cols;
	real *tmp = axes(k, &rows, &cols);
	const nr_t *x = k->node->in[0], *y = k->node->out[0];
	for (int64_t b = 0; b < x->d[0]; b++)
		nr_resample_forward(&rows, &cols, x->d[3], (const real *)k->x[0].p + b * (nr_len(x) / x->d[0]),
			(real *)k->y[0].p + b * (nr_len(y) / y->d[0]), tmp);
}
static void resample_backward(const struct nr_call *k)
{
	struct nr_axis rows, cols;
	real *tmp = axes(k, &rows, &cols);
	const nr_t *x = k->node->in[0], *y = k->node->out[0];
	for (int64_t b = 0; b < x->d[0] && k->want & 1; b++)
		nr_resample_backward(&rows, &cols, x->d[3], (const real *)k->dy[0].p + b * (nr_len(y) / y->d[0]),
			(real *)k->dx[0].p + b * (nr_len(x) / x->d[0]), k->add[0], tmp);
}
static nr_t *resample_try(struct nr_net *n, nr_t **x, const char *o)
{
	const struct size to = try_size(o);
	return strchr(o, 'd') ? nr_resample_dino(n, x[0], to.h, to.w) : nr_resample(n, x[0], to.h, to.w);
}
static const struct nr_case resample_cases[] = {
	{ "1x4x4x3", "46" }, { "2x5x3x2", "34" }, { "1x1x1x2", "23" }, { "1x4x4x3", "22d" }, { "1x5x3x2", "47d" }, { NULL, NULL },
};
const struct nr_op nr_op_resample = {
	.name = "resample", .shape = resample_shape, .forward = resample_forward, .backward = resample_backward, .try_case = resample_try,
	.cases = resample_cases,
};
static nr_t *resample(struct nr_net *n, nr_t *x, const struct resampling *r)
{
	return x && x->nd == 4 && x->d[1] == r->to.h && x->d[2] == r->to.w ? x : nr_apply(n, &nr_op_resample, r, sizeof *r, x);
}
nr_t *nr_resample(struct nr_net *n, nr_t *x, int64_t h, int64_t w)
{
	return resample(n, x, &(struct resampling){ { h, w }, NR_RESAMPLE_BILINEAR });
}
nr_t *nr_resample_dino(struct nr_net *n, nr_t *x, int64_t h, int64_t w)
{
	return resample(n, x, &(struct resampling){ { h, w }, NR_RESAMPLE_DINO });
}
