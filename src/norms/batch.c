/* batch: y = weight (x - mean) / sqrt(var + eps) + bias, per channel over all real tokens of the batch. Ioffe &
 * Szegedy 2015, Algorithm 1; running statistics take the place of the batch's in evaluation (Algorithm 2).
 *
 *   running_mean <- (1 - momentum) running_mean + momentum mean
 *   running_var  <- (1 - momentum) running_var  + momentum var n / (n - 1)
 *
 * A single token (n = 1) has variance 0: y = bias, and the running variance takes 0. */
#include <stdbool.h>

#include "norms/column.h"

struct batch { float eps, momentum; bool affine, frozen, sync; };

static const struct nr_option options[] = { NR_OPT_FLOAT(struct batch, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_FLOAT(struct batch, momentum, 0.1, 0, 1, "weight of this batch in the running statistics"),
	NR_OPT_BOOL(struct batch, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_BOOL(
		struct batch, frozen, "0", "train with the running statistics that the initial weights come with; nothing of it changes"),
	NR_OPT_BOOL(struct batch, sync, "0", NR_SYNC_HELP), NR_OPT_END };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	return nr_norm_try(n, &nr_norm_batch, x, text);
}

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-3" }, { "3x4x7 3:i1-4", "valid | eps=0.01" }, { "9x1x3", "momentum=0.5" },
	{ "7x5", "eps=1e-3" }, { "1x1x5", "" }, { "1x150x2", "affine=0" }, { "2x70x3 2:i1-70", "valid | affine=0" },
	{ "2x3x1", "eps=0.1" }, { "2x5x6", "affine=0,frozen=1" }, { "5x2x133", "eps=0.1" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "batch", NR_COLUMN_BATCH_OP, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct batch *c = conf;
	return nr_column_apply(n, &op, x, (struct nr_column_attr){ .eps = c->eps, .momentum = c->momentum, .batch = 1, .frozen = c->frozen,
		.sync = c->sync,
		.groups = nr_cols(x) }, c->affine, NULL, NULL);
}

const struct nr_norm nr_norm_batch = {
	.name = "batch", .alias = "bn", .title = "batch normalization", .cite = "arXiv:1502.03167",
	.equation = "y = weight (x - mean_BT x) / sqrt(var_BT x + eps) + bias; "
		    "in evaluation the running mean and variance",
	.about = "Each channel is normalised over every real token of every sample, so a token keeps its length "
		 "relative to the others and the batch sets the scale. Padding never counts. Evaluation uses running "
		 "statistics, which are updated once per training step; gradients then treat them as constants. With "
		 "accumulation the batch is one part of a step, with shards or ranks one shard; sync=1 takes the statistics from "
		 "all shards.",
	.needs = NR_NEED_BATCH, .conf_size = sizeof(struct batch), .options = options, .build = build, .op = { &op },
};
