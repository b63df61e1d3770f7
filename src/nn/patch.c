/* patches: pictures (B,C,H,W) cut into p x p squares, one token each, and the patch embedding of ViT (arXiv:2010.11929
 * eq. 1) as a product with timm's convolution weight (D,C,p,p). */
#include "math/patch.h"
#include "nn/op.h"

struct patches { int64_t p; enum nr_patch_order order; };

static int shape(struct nr_node *k)
{
	const struct patches *a = k->attr;
	const nr_t *x = k->in[0];
	char s[64];
	if (nr_expect(k, x->nd == 4 && x->dtype == NR_REAL, "pictures are (B,C,H,W), not %s",
		nr_shape_text(x, s, sizeof s)) ||
	    nr_expect(k, a->p > 0 && x->d[2] % a->p == 0 && x->d[3] % a->p == 0,
		"patches of %lld do not tile a picture of %lld x %lld",
		      (long long)a->p, (long long)x->d[2], (long long)x->d[3]))
		return NR_ESHAPE;
	nr_out(k, 0, NR_REAL, 3, (int64_t[]){ x->d[0], x->d[2] / a->p * (x->d[3] / a->p), a->p * a->p * x->d[1] },
		NULL);
	return 0;
}
static void forward(const struct nr_call *k)
{
	const struct patches *a = k->node->attr;
	const int64_t *d = k->node->in[0]->d;
	nr_patch_split(d[0], d[1], d[2], d[3], a->p, a->order, k->x[0].p, k->y[0].p, 0);
}
static void backward(const struct nr_call *k)
{
	const struct patches *a = k->node->attr;
	const int64_t *d = k->node->in[0]->d;
	if (k->want & 1) nr_patch_merge(d[0], d[1], d[2], d[3], a->p, a->order, k->dy[0].p, k->dx[0].p, k->add[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *options)
{
	const int mixed = strstr(options, "mixed") != NULL;
	return nr_patches(n, x[0], options[0] - '0', mixed ? NR_PATCH_ROW_COL_CHANNEL : NR_PATCH_CHANNEL_ROW_COL);
}
static const struct nr_case cases[] = {
	{ "2x3x4x6", "2" }, { "2x3x6x3", "3 mixed" }, { "1x1x1x1", "1" }, { "1x2x5x5", "5 mixed" }, { NULL, NULL },
};
const struct nr_op nr_op_patches = {
	.name = "patches", .shape = shape, .forward = forward, .backward = backward, .try_case = try_case,
	.cases = cases,
};

nr_t *nr_patches(struct nr_net *n, nr_t *image, int64_t patch, enum nr_patch_order order)
{
	const struct patches a = { patch, order };
	nr_t *y = nr_apply(n, &nr_op_patches, &a, sizeof a, image);
	if (!y) return NULL;
	const int32_t h = (int32_t)(image->d[2] / patch), w = (int32_t)(image->d[3] / patch);
	return nr_with_tokens(n, y, (struct nr_tokens){ .h = h, .w = w });
}

static nr_t *patch_linear(struct nr_net *n, const char *name, nr_t *x, int64_t patch, int64_t dim, int bias)
{
	if (!x) return NULL;
	nr_push(n, "%s", name);
	nr_t *w = nr_param(n, "weight", NR_XAVIER, NR_SHAPE(dim, nr_cols(x) / (patch * patch), patch, patch));
	if (!bias) return nr_pop(n, nr_apply(n, &nr_op_linear, NULL, 0, x, w));
	nr_t *b = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(dim));
	return nr_pop(n, nr_apply(n, &nr_op_linear, NULL, 0, x, w, b));
}
nr_t *nr_patch_linear(struct nr_net *n, const char *name, nr_t *x, int64_t patch, int64_t dim)
{
	return patch_linear(n, name, x, patch, dim, 1);
}
nr_t *nr_patch_linear_no_bias(struct nr_net *n, const char *name, nr_t *x, int64_t patch, int64_t dim)
{
	return patch_linear(n, name, x, patch, dim, 0);
}
