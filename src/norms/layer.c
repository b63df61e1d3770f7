/* layer: y = weight (x - mean) / sqrt(var + eps) + bias over the channels of one token. Ba, Kiros & Hinton 2016, Eq. 3.
 *
 * offset=1: the weight is kept as its distance from 1 and starts at 0 (Gemma, x-transformers). scale=depth: in block l the whole is divided
 * by sqrt(l), LayerNorm Scaling of Sun et al. 2025, Eq. 3.
 *
 * Backward: g = dy weight; dx = (g - mean(g) - xhat mean(g xhat)) / sqrt(var + eps). After a residual sum the pair becomes
 * add_layer, which writes the sum and the norm in one pass. */
#include <stdbool.h>

#include "norms/norms.h"
#include "norms/row.h"

struct layer { float eps; bool affine, bias, offset; int32_t scale; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct layer, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_BOOL(struct layer, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_BOOL(struct layer, bias, "1", "learn a bias beside the weight"),
	NR_OPT_BOOL(struct layer, offset, "0", "keep the weight as its distance from 1: it starts at 0"),
	NR_OPT_ENUM(struct layer, scale, "none", nr_row_scales, "depth: divide by the root of the block's number, from 1"),
	NR_OPT_END
};

static const struct nr_op op_add_layer = { .name = "add_layer", NR_ADD_ROW_NORM_OP };
static const struct nr_fuse fuse[] = { { "add", &op_add_layer }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_layer, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-6" }, { "3x1x7", "eps=0.1" }, { "1x70x3", "affine=0" }, { "1x1x2", "eps=0.5" },
	{ "2x5x12 2x5x12", "sum | eps=1e-3" }, { "3x37x5 3:i1-37", "valid | eps=1e-3" }, { "2x5x12", "bias=0" },
	{ "3x70x5", "offset=1" }, { "2x5x12 2x5x12", "sum | offset=1,bias=0" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "layer", NR_ROW_NORM_OP, .fuse = fuse, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct layer *c = conf;
	const struct nr_row_norm norm = { NR_NORM_LAYER, c->eps, c->offset, nr_row_times(n, c->scale) };
	if (!c->affine) return nr_apply(n, &op, &norm, sizeof norm, x);
	nr_t *weight = nr_param(n, "weight", (c->offset ? NR_ZEROS : NR_ONES) | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	if (!c->bias) return nr_apply(n, &op, &norm, sizeof norm, x, weight);
	nr_t *bias = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	return nr_apply(n, &op, &norm, sizeof norm, x, weight, bias);
}

const struct nr_norm nr_norm_layer = {
	.name = "layer", .alias = "ln", .title = "layer normalization", .cite = "arXiv:1607.06450",
	.equation = "y = weight (x - mean_C x) / sqrt(var_C x + eps) + bias",
	.about = "Mean and variance are taken over the channels of one token, so neither the batch nor the other tokens matter and "
		 "training and evaluation are the same function. It is the usual norm of transformers; libraries differ in eps "
		 "(torch 1e-5, timm and Flax 1e-6, BERT 1e-12). With a single channel only the bias remains. bias=0 is "
		 "Cohere's form, offset=1 keeps the weight as its distance from 1, scale=depth divides by the root of the block's number.",
	.conf_size = sizeof(struct layer), .options = options, .build = build, .op = { &op, &op_add_layer },
};
