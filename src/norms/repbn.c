/* repbn: y = batch(x) + eta x, a batch norm with a learned share of its input. SLAB, Guo et al. 2024, Eq. 4.
 *
 * Statistics, masks and running values are batch's. In evaluation it is one batch norm with weight + eta sqrt(var + eps) and bias + eta
 * mean, which folds into the next linear layer (Eq. 5). The released vision models start eta at 1; their LLaMA starts eta and the weight at
 * 0. */
#include "norms/repbn.h"

#include "norms/column.h"

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct nr_repbn, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_FLOAT(struct nr_repbn, momentum, 0.1, 0, 1, "weight of this batch in the running statistics"),
	NR_OPT_FLOAT(struct nr_repbn, eta, 1, -1e3, 1e3, "initial share of the input that is added; one learned number"),
	NR_OPT_BOOL(struct nr_repbn, sync, "0", NR_SYNC_HELP),
	NR_OPT_END
};

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_repbn, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-3" }, { "3x4x7 3:i1-4", "valid | eps=0.01" }, { "9x1x3", "momentum=0.5,eta=0" }, { "1x1x5", "" },
	{ NULL, NULL },
};

static const struct nr_op op = { .name = "repbn", NR_COLUMN_BATCH_OP, .try_case = try_case, .cases = cases };

nr_t *nr_repbn(struct nr_net *n, nr_t *x, const struct nr_repbn *c, nr_t *steps, int64_t warm)
{
	nr_t *eta = nr_param(n, "eta", NR_ONES | NR_NO_DECAY, NR_SHAPE(1));
	if (eta) eta->entry->value = c->eta;
	return nr_column_apply(n, &op, x, (struct nr_column_attr){ .eps = c->eps, .momentum = c->momentum, .batch = 1, .sync = c->sync,
		.groups = nr_cols(x), .warm = warm }, 1, eta, steps);
}

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf) { return nr_repbn(n, x, conf, NULL, 0); }

static const char *const laws[] = { "repbn:eta=0 = batch", NULL };

const struct nr_norm nr_norm_repbn = {
	.name = "repbn", .title = "re-parameterized batch normalization", .cite = "arXiv:2405.11582",
	.equation = "y = batch(x) + eta x",
	.about = "A batch norm that lets a learned share of its input pass, which steadies transformers that batch norm alone would let "
		 "diverge. It sees what batch sees; in evaluation it is a fixed linear map of each channel and folds into the next "
		 "layer, so that nothing of it remains at run time.",
	.laws = laws, .needs = NR_NEED_BATCH, .conf_size = sizeof(struct nr_repbn), .options = options, .build = build, .op = { &op },
};
