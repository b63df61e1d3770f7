/* dyt: y = weight tanh(alpha x) + bias, no statistics at all. Zhu, Chen, He, LeCun & Liu 2025, Eq. 1.
 *
 * Backward: t = tanh(alpha x), s = dy weight (1 - t^2): dx = alpha s, dalpha = sum(s x), dweight = sum(dy t), dbias =
 * sum(dy). t is made again from x. */
#include <stdbool.h>

#include "norms/norms.h"
#include "norms/squash.h"

struct dyt { float alpha; bool affine; };

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct dyt, alpha, 0.5, -1e6, 1e6, "initial slope before the tanh; one learned number"),
	NR_OPT_BOOL(struct dyt, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_END
};

static void cost(const struct nr_node *k, double *there, double *back)
{
	*there = 4 * (double)nr_len(k->in[0]);          /* tanh counted as one */
	*back = 11 * (double)nr_len(k->in[0]);
}

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_dyt, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "3x1x7", "alpha=2" }, { "1x70x3", "affine=0" }, { "1x1x1", "alpha=0" }, { "3x70x5", "alpha=-0.7" },
	{ "3x37x5 3:i1-37", "valid | alpha=1" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "dyt", NR_SQUASH_OP, .cost = cost, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct dyt *c = conf;
	return nr_squash_apply(n, &op, x, (struct nr_squash_start){ NR_CURVE_TANH, .alpha = c->alpha, .affine = c->affine });
}

const struct nr_norm nr_norm_dyt = {
	.name = "dyt", .title = "dynamic tanh", .cite = "arXiv:2503.10622", .equation = "y = weight tanh(alpha x) + bias",
	.about = "Not a norm: each value is squashed independently, with one learned slope for the whole layer; it uses no statistics "
		 "of tokens, samples or batches. It mimics the S-shaped curve of trained layer norms and is the baseline "
		 "for whether statistics are needed at all. The paper starts alpha at 0.5 outside language models.",
	.conf_size = sizeof(struct dyt), .options = options, .build = build, .op = { &op },
};
