/* rms: y = weight x / sqrt(mean(x^2) + eps), one token at a time. Zhang & Sennrich 2019, Eq. 4.
 *
 * Backward: g = dy weight; dx = r (g - x r^2 mean(g x)), r = 1 / sqrt(mean(x^2) + eps). After a residual sum the pair
 * becomes add_rms, which writes the sum and the norm in one pass. */
#include <stdbool.h>

#include "norms/norms.h"
#include "norms/row.h"

struct rms { float eps; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct rms, eps, 1e-6, 0, 1, "added to the mean square"),
	NR_OPT_BOOL(struct rms, affine, "1", "learn a weight per channel"),
	NR_OPT_END
};

static const struct nr_op op_add_rms = { .name = "add_rms", NR_ADD_ROW_NORM_OP };
static const struct nr_fuse fuse[] = { { "add", &op_add_rms }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_rms, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-6" }, { "3x1x7", "eps=0.1" }, { "1x70x3", "affine=0" }, { "1x1x1", "eps=0.5" },
	{ "2x5x12 2x5x12", "sum | eps=1e-3" }, { "1x70x3 1x70x3", "sum | affine=0" }, { "3x37x5 3:i1-37", "valid | eps=1e-3" },
	{ NULL, NULL },
};

static const struct nr_op op = { .name = "rms", NR_ROW_NORM_OP, .fuse = fuse, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct rms *c = conf;
	const struct nr_row_norm norm = { NR_NORM_RMS, c->eps };
	if (!c->affine) return nr_apply(n, &op, &norm, sizeof norm, x);
	return nr_apply(n, &op, &norm, sizeof norm, x, nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(nr_cols(x))));
}

static const char *const laws[] = { "rms:eps=0 = scale:eps=0", NULL };

const struct nr_norm nr_norm_rms = {
	.name = "rms", .title = "RMS normalization", .cite = "arXiv:1910.07467",
	.equation = "y = weight x / sqrt(mean_C x^2 + eps)",
	.about = "A token is divided by the root mean square of its channels; nothing is subtracted and there is no bias. It "
		 "equals layer normalization for tokens whose mean is zero, at about two thirds of the arithmetic. With eps 0 "
		 "it is ScaleNorm with a weight per channel.",
	.laws = laws, .conf_size = sizeof(struct rms), .options = options, .build = build, .op = { &op, &op_add_rms },
};
