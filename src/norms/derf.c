/* derf: y = weight erf(alpha x + shift) + bias, no statistics at all. Chen et al. 2025, Eq. 2.
 *
 * Backward: u = alpha x + shift, s = dy weight 2/sqrt(pi) exp(-u^2): dx = alpha s, dalpha = sum(s x), dshift = sum(s), dweight =
 * sum(dy erf(u)), dbias = sum(dy). erf(u) is made again from x. */
#include <stdbool.h>

#include "norms/norms.h"
#include "norms/squash.h"

struct derf { float alpha, shift; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct derf, alpha, 0.5, -1e6, 1e6, "initial slope before the erf; one learned number"),
	NR_OPT_FLOAT(struct derf, shift, 0, -1e6, 1e6, "initial shift before the erf; one learned number"),
	NR_OPT_BOOL(struct derf, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_END
};

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 5 * (double)nr_len(k->in[0]);          /* erf and exp counted as one each */
	*back = 12 * (double)nr_len(k->in[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_derf, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "3x1x7", "alpha=2,shift=0.3" }, { "1x70x3", "affine=0" }, { "1x1x1", "alpha=0" },
	{ "3x70x5", "alpha=-0.7,shift=-1" }, { "3x37x5 3:i1-37", "valid | alpha=1" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "derf", NR_SQUASH_OP, .cost = cost, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct derf *c = conf;
	return nr_squash_apply(n, &op, x, (struct nr_squash_start){ NR_CURVE_ERF, c->alpha, c->shift, c->affine });
}

const struct nr_norm nr_norm_derf = {
	.name = "derf", .title = "dynamic erf", .cite = "arXiv:2512.10938", .equation = "y = weight erf(alpha x + shift) + bias",
	.about = "The successor of dyt: the same idea with the error function, which is steeper before it saturates, and a learned shift. "
		 "Each value is squashed independently; nothing is seen of other channels, tokens or samples. Its authors start alpha "
		 "at 0.5 (GPT-2: at 1, with a learned factor on the embeddings, which is not part of the norm).",
	.conf_size = sizeof(struct derf), .options = options, .build = build, .op = { &op },
};
