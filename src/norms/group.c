/* group: y = weight (x - mean) / sqrt(var + eps) + bias over groups of neighbouring channels. Wu & He 2018.
 *
 * scope=sample: over the tokens of a sample and the channels of a group, as in the paper and in the code released
 * with DTN. scope=token: over the channels of a group of one token, as the short text on normalization words it;
 * the row kernels of layer do it, group after group while the rows are in the cache. */
#include <stdbool.h>

#include "graph/blocks.h"
#include "math/row.h"
#include "norms/column.h"

enum { SAMPLE, TOKEN };
struct group { float eps; bool affine; int64_t groups; int32_t scope; };

static const char *const scopes[] = { "sample", "token", NULL };
static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct group, eps, 1e-5, 0, 1, "added to the variance"),
	NR_OPT_INT(struct group, groups, 0, 0, 1 << 20, "groups of channels; 0: the heads of the tokens"),
	NR_OPT_ENUM(struct group, scope, "sample", scopes, "over all tokens of a sample, or each token alone"),
	NR_OPT_BOOL(struct group, affine, "1", "learn a weight and a bias per channel"),
	NR_OPT_END
};

/* ---- each token alone ------------------------------------------------------------------------------------------- */

static int shape(struct nr_node *k)
{
	const nr_t *x = k->in[0];
	const int64_t groups = ((const struct group *)k->attr)->groups;
	nr_out_like(k, 0, x);
	k->stash = (size_t)(2 * groups * nr_rows(x)) * sizeof(real);                    /* mean, rstd */
	k->scratch = (size_t)(2 * nr_blocks_most(x) * nr_cols(x)) * sizeof(real);       /* dweight, dbias */
	return 0;
}

static void forward(const struct nr_call *k)
{
	const struct group *c = k->node->attr;
	const struct nr_view *x = &k->x[0], *y = &k->y[0];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(y));
	const int64_t C = x->c, size = C / c->groups;
	const real *weight = c->affine ? k->x[1].p : NULL, *bias = c->affine ? k->x[2].p : NULL;
	real *mean = k->stash, *rstd = mean + c->groups * x->rows;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		for (int64_t g = 0; g < c->groups; g++) {
			const int64_t i = g * size, at = g * x->rows + r;
			nr_row_active->norm_forward(&(struct nr_norm_forward){
				.kind = NR_NORM_LAYER, .rows = rows, .C = size, .x = nr_row(x, r) + i, .ldx = C,
				.y = nr_row(y, r) + i, .ldy = C, .gain = weight ? weight + i : NULL,
				.bias = bias ? bias + i : NULL, .eps = c->eps, .mean = mean + at, .rstd = rstd + at });
		}
	}
}

static void backward(const struct nr_call *k)
{
	const struct group *c = k->node->attr;
	const struct nr_view *x = &k->x[0], *dy = &k->dy[0], *dx = &k->dx[0];
	const struct nr_blocks b = nr_blocks_of(x, nr_packed(x) && nr_packed(dy) && nr_packed(dx));
	const int64_t C = x->c, size = C / c->groups;
	const real *weight = c->affine ? k->x[1].p : NULL, *mean = k->stash, *rstd = mean + c->groups * x->rows;
	real *dweight = k->scratch, *dbias = dweight + b.count * C;
#pragma omp parallel for schedule(static)
	for (int64_t q = 0; q < b.count; q++) {
		int64_t rows, r = nr_block(&b, q, &rows);
		memset(dweight + q * C, 0, (size_t)C * sizeof(real));
		memset(dbias + q * C, 0, (size_t)C * sizeof(real));
		for (int64_t g = 0; g < c->groups; g++) {
			const int64_t i = g * size, at = g * x->rows + r, to = q * C + i;
			nr_row_active->norm_backward(&(struct nr_norm_backward){
				.kind = NR_NORM_LAYER, .rows = rows, .C = size, .x = nr_row(x, r) + i, .ldx = C,
				.dy = nr_row(dy, r) + i, .lddy = C, .gain = weight ? weight + i : NULL,
				.mean = mean + at, .rstd = rstd + at, .eps = c->eps, .dx = nr_row(dx, r) + i, .lddx = C,
				.add = k->add[0], .dgain = weight ? dweight + to : NULL,
				.dbias = weight ? dbias + to : NULL });
		}
	}
	if (!weight) return;
	if (k->want >> 1 & 1) nr_fold(b.count, C, dweight, k->dx[1].p, k->add[1]);
	if (k->want >> 2 & 1) nr_fold(b.count, C, dbias, k->dx[2].p, k->add[2]);
}

/* ---- the norm --------------------------------------------------------------------------------------------------- */

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text)
{
	return nr_norm_try(n, &nr_norm_group, x, text);
}

static const struct nr_case token_cases[] = {
	{ "2x5x12", "groups=3,scope=token,eps=1e-3" }, { "2x3x12", "heads=4 | scope=token,eps=0.1" },
	{ "1x70x6", "groups=2,scope=token,affine=0,eps=0.1" }, { "3x1x7", "groups=1,scope=token,eps=1e-3" },
	{ "2x3x4", "groups=4,scope=token" }, { "5x6", "groups=2,scope=token,eps=0.1" }, { NULL, NULL },
};

static const struct nr_op op_token = {
	.name = "group_token", .shape = shape, .forward = forward, .backward = backward, .cost = nr_column_cost,
	.keeps = NR_KEEP_X(0) | NR_KEEP_X(1), .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD | NR_NARROW, .tokenwise = 1,
	.try_case = try_case, .cases = token_cases,
};

static const struct nr_case cases[] = {
	{ "2x5x12", "groups=3,eps=1e-3" }, { "2x5x12", "heads=4 | eps=1e-3" },
	{ "3x4x6 3:i1-4", "valid | groups=2,eps=0.1" }, { "3x1x6", "groups=2,eps=0.1" },
	{ "2x3x4", "groups=4,eps=0.1" }, { "2x3x5", "groups=1,affine=0" },
	{ "4x6", "groups=3,eps=0.1" }, { "2x1x3", "groups=3" }, { "1x150x4", "groups=2" }, { "9x2x4", "groups=2,eps=0.1" },
	{ NULL, NULL },
};

static const struct nr_op op = {
	.name = "group", .shape = nr_column_shape, .forward = nr_column_forward, .backward = nr_column_backward,
	.rebuild = nr_column_rebuild, .cost = nr_column_cost, .keeps = NR_COLUMN_KEEPS, .cheap = 1,
	.rebuild_keeps = NR_COLUMN_KEEPS, .flags = NR_CHEAP | NR_STRIDED | NR_INPLACE_GRAD, .try_case = try_case,
	.cases = cases,
};

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	struct group c = *(const struct group *)conf;
	const int64_t C = nr_cols(x);
	if (!c.groups && x->tok) c.groups = x->tok->heads;
	if (!c.groups)
		return nr_net_fail(n, NR_EVALUE, "group",
			"the tokens do not say how many heads they have: give groups=N");
	if (C % c.groups)
		return nr_net_fail(n, NR_ESHAPE, "group", "%lld channels cannot be divided into %lld equal groups",
			(long long)C, (long long)c.groups);
	const struct nr_column_attr at = { .eps = c.eps, .groups = c.groups };
	if (c.scope == SAMPLE) return nr_column_apply(n, &op, x, at, c.affine, NULL, NULL);
	if (!c.affine) return nr_apply(n, &op_token, &c, sizeof c, x);
	nr_t *weight = nr_param(n, "weight", NR_ONES | NR_NO_DECAY, NR_SHAPE(C));
	nr_t *bias = nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C));
	return nr_apply(n, &op_token, &c, sizeof c, x, weight, bias);
}

static const char *const laws[] = {
	"group:groups=1,scope=token = layer", "group:groups=12 = instance", "group = group:groups=3", NULL
};

const struct nr_norm nr_norm_group = {
	.name = "group", .alias = "gn", .title = "group normalization", .cite = "arXiv:1803.08494",
	.equation = "y = weight (x - mean_TG x) / sqrt(var_TG x + eps) + bias, G the channels of one group; "
		    "scope=token: mean_G, var_G",
	.about = "Neighbouring channels share one mean and variance over the real tokens of their sample: with as many groups "
		 "as channels it is instance, with one group every sample has a single mean. With scope=token each token is "
		 "normalised alone, and one group is layer. By default there are as many groups as attention heads, as in "
		 "the code released with DTN.",
	.laws = laws, .needs = NR_NEED_HEADS, .conf_size = sizeof(struct group), .options = options, .build = build,
	.op = { &op, &op_token },
};
