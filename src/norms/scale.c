/* scale: y = scale x / max(|x|, eps), |x| the length of one token. Nguyen & Salazar 2019, Eq. 5.
 *
 * Backward: g = dy scale, u = x / |x|: dx = (g - u sum(g u)) / |x|; a token shorter than eps has the constant divisor eps.
 * After a residual sum the pair becomes add_scale, which writes the sum and the norm in one pass. */
#include <math.h>
#include <stdbool.h>

#include "nn/op.h"
#include "norms/norms.h"
#include "norms/row.h"

struct scale { float eps; bool per_channel; };

/* Without a scale: rows of length 1. */
static nr_t *unit_try(struct nr_net *n, nr_t **x, const char *text)
{
	(void)text;
	return nr_unit_rows(n, x[0]);
}
static const struct nr_case unit_cases[] = { { "5x7", "" }, { "2x3x12", "" }, { "70x3", "" }, { "1x1", "" }, { NULL, NULL } };
static const struct nr_op op_unit = { .name = "unit", NR_ROW_NORM_OP, .try_case = unit_try, .cases = unit_cases };

nr_t *nr_unit_rows(struct nr_net *n, nr_t *x)
{
	const struct nr_row_norm norm = { NR_NORM_LENGTH, (real)1e-12, .times = 1 };
	return nr_apply(n, &op_unit, &norm, sizeof norm, x);
}

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct scale, eps, 1e-5, 0, 1, "lower bound of the length to divide by"),
	NR_OPT_BOOL(struct scale, per_channel, "0", "learn a scale per channel instead of one"),
	NR_OPT_END
};

static const struct nr_op op_add_scale = { .name = "add_scale", NR_ADD_ROW_NORM_OP };
static const struct nr_fuse fuse[] = { { "add", &op_add_scale }, { NULL, NULL } };

static nr_t *try_case(struct nr_net *n, nr_t **x, const char *text) { return nr_norm_try(n, &nr_norm_scale, x, text); }

static const struct nr_case cases[] = {
	{ "2x5x12", "" }, { "2x5x12", "per_channel=1" }, { "3x1x7", "eps=1" }, { "1x70x3", "per_channel=1,eps=1" },
	{ "1x1x1", "eps=1" }, { "2x5x12 2x5x12", "sum | eps=0" }, { "1x70x3 1x70x3", "sum | per_channel=1" },
	{ "3x37x5 3:i1-37", "valid | eps=0.1" }, { NULL, NULL },
};

static const struct nr_op op = { .name = "scale", NR_ROW_NORM_OP, .fuse = fuse, .try_case = try_case, .cases = cases };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct scale *c = conf;
	const struct nr_row_norm norm = { NR_NORM_LENGTH, c->eps, .times = 1 };
	nr_t *scale = nr_param(n, "scale", NR_ONES | NR_NO_DECAY, NR_SHAPE(c->per_channel ? nr_cols(x) : (int64_t)1));
	if (scale) scale->entry->value = sqrt((double)nr_cols(x));
	return nr_apply(n, &op, &norm, sizeof norm, x, scale);
}

static const char *const laws[] = { "scale:per_channel=1 = scale", NULL };

const struct nr_norm nr_norm_scale = {
	.name = "scale", .title = "ScaleNorm", .cite = "arXiv:1910.05895", .equation = "y = scale x / max(|x|_2, eps)",
	.about = "A token is scaled to a learned length: divided by its own Euclidean length and multiplied by one number, which "
		 "starts at sqrt(C). eps only guards tokens of length zero; it is a lower bound, not a summand. The paper has "
		 "one number per norm; the released code of DTN learns one per channel (per_channel=1).",
	.laws = laws, .conf_size = sizeof(struct scale), .options = options, .build = build, .op = { &op, &op_add_scale, &op_unit },
};
