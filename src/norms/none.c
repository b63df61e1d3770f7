/* none: y = x. What a plan says to take a norm away. With a gain (and bias) it is the learned part of a norm alone: Dual
 * PatchNorm's "only learnable" (arXiv:2302.01327) and NormFormer's gain per head (arXiv:2110.09456). */
#include <stdbool.h>

#include "nn/op.h"
#include "norms/norms.h"

enum gain { GAIN_NONE, GAIN_CHANNEL, GAIN_HEAD };
struct none { int32_t gain; bool bias; };

static const char *const gains[] = { "none", "channel", "head", NULL };
static const struct nr_option options[] = {
	NR_OPT_ENUM(struct none, gain, "none", gains, "learn a gain per channel or per head"),
	NR_OPT_BOOL(struct none, bias, "0", "learn a bias per channel"),
	NR_OPT_END
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct none *c = conf;
	const int64_t C = nr_cols(x), heads = x->tok ? x->tok->heads : 0;
	if (c->gain == GAIN_HEAD && (!heads || C % heads))
		return nr_net_fail(n, NR_ESHAPE, "none:gain=head", "%lld channels, %lld heads", (long long)C, (long long)heads);
	if (c->gain != GAIN_NONE)
		x = nr_scale_channels(n, x, nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(c->gain == GAIN_HEAD ? heads : C)));
	return c->bias ? nr_shift_channels(n, x, nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C))) : x;
}

const struct nr_norm nr_norm_none = {
	.name = "none", .title = "no normalization", .cite = "", .equation = "y = x, or weight x + bias",
	.about = "Removes a norm where a broader rule has put one. With gain=channel,bias=1 it keeps the learned part of a norm "
		 "and leaves out the statistics: Dual PatchNorm's ablation 'only learnable'. With gain=head it is NormFormer's "
		 "gain per attention head.",
	.conf_size = sizeof(struct none), .options = options, .build = build,
};
