/* instance: y = weight (x - mean) / sqrt(var + eps) + bias, per sample and channel over its tokens. Ulyanov,
 * Vedaldi & Lempitsky 2016; DTN, Eq. 3.
 *
 * unbiased=1 divides the variance by T - 1, as the code released with DTN does (a single token keeps the factor
 * 1). scope=token takes the statistics of a token over its channels, as the short text on normalization words it:
 * that is layer normalization, and layer is what is built. */
#include <stdbool.h>

#include "base/mem.h"
#include "norms/column.h"

enum { SAMPLE, TOKEN };
struct instance { float eps; bool affine, unbiased; int32_t scope; };

static const char *const scopes[] = { "sample", "token", NULL };
static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct instance, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_BOOL(struct instance, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_BOOL(struct instance, unbiased, "0", "divide the variance by n - 1 instead of n"),
	NR_OPT_ENUM(struct instance, scope, "sample", scopes,
		"over the tokens of a sample, or the channels of a token (= layer)"),
	NR_OPT_END
};

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	return nr_norm_try(n, &nr_norm_instance, x, text);
}

static const struct nr_case cases[] = {
	{ "2x5x12", "eps=1e-3" }, { "3x4x7 3:i1-4", "valid | eps=0.1" }, { "2x5x6", "unbiased=1,eps=1e-3" },
	{ "3x6x3 3:i1-6", "valid | unbiased=1,eps=0.1,affine=0" }, { "3x1x5", "" }, { "3x1x5", "unbiased=1" },
	{ "4x3", "" }, { "9x3x4", "eps=0.1" }, { "11x2x3 11:i1-2", "valid | eps=0.1" }, { "1x150x2", "affine=0" },
	{ "2x3x1", "eps=0.1" }, { "2x4x6", "scope=token,eps=0.01" }, { NULL, NULL },
};

static const struct nr_op op = {
	.name = "instance", .shape = nr_column_shape, .forward = nr_column_forward, .backward = nr_column_backward,
	.rebuild = nr_column_rebuild, .cost = nr_column_cost, .keeps = NR_COLUMN_KEEPS, .cheap = 1,
	.rebuild_keeps = NR_COLUMN_KEEPS, .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD, .try_case = try_case,
	.cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct instance *c = conf;
	if (c->scope == TOKEN && c->unbiased)
		return nr_net_fail(n, NR_EVALUE, "instance",
			"unbiased=1 needs scope=sample: layer has no unbiased variance");
	if (c->scope == TOKEN)
		return nr_norm_make(n, "", nr_arena_printf(nr_net_arena(n), "layer:eps=%.9g,affine=%d", (double)c->eps,
			c->affine), x);
	return nr_column_apply(n, &op, x, (struct nr_column_attr){ .eps = c->eps, .unbiased = c->unbiased,
		.groups = nr_cols(x) }, c->affine, NULL, NULL);
}

static const char *const laws[] = { "instance:scope=token = layer", NULL };

const struct nr_norm nr_norm_instance = {
	.name = "instance", .alias = "in", .title = "instance normalization", .cite = "arXiv:1607.08022",
	.equation = "y = weight (x - mean_T x) / sqrt(var_T x + eps) + bias",
	.about = "Each channel is normalised over the real tokens of its own sample, so the contrast and brightness of a "
		 "picture vanish while differences between its places remain. Other samples do not matter, and training "
		 "and evaluation agree. A single token becomes the bias. The code released with DTN divides the variance by "
		 "T - 1 (unbiased=1); scope=token is another reading in the literature, which equals layer.",
	.laws = laws, .conf_size = sizeof(struct instance), .options = options, .build = build, .op = { &op },
};
