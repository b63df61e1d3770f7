/* none: y = x. What a plan says to take a norm away. */
#include "norma/norm.h"

static const struct nr_option options[] = { NR_OPT_END };

static nr_t *build(struct nr_net *n, nr_t *x, const void *conf)
{
	(void)n, (void)conf;
	return x;
}

const struct nr_norm nr_norm_none = {
	.name = "none", .title = "no normalization", .cite = "", .equation = "y = x", .options = options, .build = build,
};
