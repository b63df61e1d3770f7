/* rms: y = weight x / sqrt(mean(x^2) + eps), one token at a time. Zhang & Sennrich 2019, Eq. 4.
 *
 * Backward: g = dy weight; dx = r (g - x r^2 mean(g x)), r = 1 / sqrt(mean(x^2) + eps). After a residual sum the pair
 * becomes add_rms, which writes the sum and the norm in one pass. offset and scale are those of layer. */
#include <stdbool.h>

#include "norms/norms.h"
#include "norms/row.h"

struct rms { float eps; bool affine, offset; int32_t scale; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct rms, eps, 1e-6, 0, 1, "added to the mean square"),
	NR_OPT_BOOL(struct rms, affine, "1", "learn a weight per channel"),
	NR_OPT_BOOL(struct rms, offset, "0", "keep the weight as its distance from 1: it starts at 0"),
	NR_OPT_ENUM(struct rms, scale, "none", nr_row_scales, "depth: divide by the root of the block's number, from 1"),
	NR_OPT_END
};

static const struct nr_op op_add_rms = { .name = "add_rms", NR_ADD_ROW_NORM_OP };
static const struct nr_fuse fuse[] = { { "add", &op_add_rms }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_rms, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-6" }, { "3x1x7", "eps=0.1" }, { "1x70x3", "affine=0" }, { "1x1x1", "eps=0.5" },
	{ "2x5x12 2x5x12", "sum | eps=1e-3" }, { "1x70x3 1x70x3", "sum | affine=0" }, { "3x37x5 3:i1-37", "valid | eps=1e-3" },
	{ "3x70x5", "offset=1" }, { "2x5x12 2x5x12", "sum | offset=1" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "rms", NR_ROW_NORM_OP, .fuse = fuse, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct rms *c = conf;
	const struct nr_row_norm norm = { NR_NORM_RMS, c->eps, c->offset, nr_row_times(n, c->scale) };
	if (!c->affine) return nr_apply(n, &op, &norm, sizeof norm, x);
	nr_t *weight = nr_param(n, "weight", (c->offset ? NR_ZEROS : NR_ONES) | NR_NO_DECAY, NR_SHAPE(nr_cols(x)));
	return nr_apply(n, &op, &norm, sizeof norm, x, weight);
}

static const char *const laws[] = { "rms:eps=0 = scale:eps=0", NULL };

const struct nr_norm nr_norm_rms = {
	.name = "rms", .title = "RMS normalization", .cite = "arXiv:1910.07467",
	.equation = "y = weight x / sqrt(mean_C x^2 + eps)",
	.about = "A token is divided by the root mean square of its channels; nothing is subtracted and there is no bias. It "
		 "equals layer normalization for tokens whose mean is zero, at about two thirds of the arithmetic. With eps 0 "
		 "it is ScaleNorm with a weight per channel. Gemma keeps the weight as its distance from 1 (offset=1). Where "
		 "torch has eps=None, eps is 1.1920929e-07.",
	.laws = laws, .conf_size = sizeof(struct rms), .options = options, .build = build, .op = { &op, &op_add_rms },
};
