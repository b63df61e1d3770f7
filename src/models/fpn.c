/* See fpn.h. */
#include "models/fpn.h"

#include <math.h>

#include "models/stages.h"
#include "norma/nn.h"
#include "norms/plan.h"

double nr_level_stride(int64_t size, int64_t n)
{
	int64_t stride = 1;
	while (2 * stride * n <= size) stride *= 2;             /* at most the quotient; the next one is above it */
	for (int i = 0; i < 2; i++, stride *= 2)
		if (size / stride == n || (size + stride - 1) / stride == n) return (double)stride;
	return (double)size / (double)n;
}

void nr_level_strides(int64_t size, nr_t *const *map, int levels, double *stride)
{
	for (int l = 0; l < levels; l++) {
		const double n = map[l] && map[l]->tok && map[l]->tok->h ? map[l]->tok->h : 1;
		const double finer = l && map[l - 1] && map[l - 1]->tok ? map[l - 1]->tok->h : n;
		stride[l] = l ? stride[l - 1] * exp2(nearbyint(log2(finer / n))) : nr_level_stride(size, (int64_t)n);
	}
}

nr_t *nr_map_conv(struct nr_net *n, const char *site, nr_t *map, struct nr_map_conv c)
{
	const bool normed = nr_norm_there(n, site);
	const char *name = nr_arena_printf(nr_net_arena(n), "%s.conv", site);
	if (!name) return nr_net_fail(n, NR_EMEMORY, site, "out of memory");
	nr_t *x = nr_conv(n, name, nr_as_grid(n, map), c.out, c.k, c.stride, c.k / 2, 1, !normed);
	x = nr_norm(n, site, nr_as_tokens(n, x));
	return c.relu ? nr_activate(n, "relu", x) : x;
}

static nr_t *at_level(struct nr_net *n, const char *site, nr_t *map, struct nr_map_conv c, int i, int of)
{
	nr_push_nth(n, "levels", i, of);
	return nr_pop(n, nr_map_conv(n, site, map, c));
}

/* x + the coarser map. */
static nr_t *way_down(struct nr_net *n, nr_t *x, nr_t *coarse)
{
	return nr_as_tokens(n, nr_upsample_add(n, nr_as_grid(n, x), nr_as_grid(n, coarse)));
}

int nr_fpn(struct nr_net *n, const struct nr_fpn *c, nr_t *const *level, int count, nr_t *out[NR_MAXLEVELS])
{
	const int all = count + (c->extra == NR_FPN_NO_EXTRA ? 0 : c->extras);
	nr_t *sum[NR_MAXLEVELS] = { NULL };
	if (count < 1 || all > NR_MAXLEVELS) {
		nr_net_fail(n, NR_EVALUE, "levels", "a pyramid has 1 to %d levels, not %d", NR_MAXLEVELS, all);
		return 0;
	}
	for (int i = count - 1; i >= 0; i--) {
		sum[i] = at_level(n, "neck.lateral", level[i], (struct nr_map_conv){ .out = c->dim, .k = 1, .stride = 1 }, i, all);
		if (i < count - 1) sum[i] = way_down(n, sum[i], sum[i + 1]);
	}
	for (int i = 0; i < count; i++)
		out[i] = at_level(n, "neck.out", sum[i], (struct nr_map_conv){ .out = c->dim, .k = 3, .stride = 1 }, i, all);
	for (int i = count; i < all; i++) {
		nr_t *from = i == count && c->extra == NR_FPN_CONV_INPUT ? level[count - 1] : out[i - 1];
		if (c->extra == NR_FPN_POOL) {
			out[i] = nr_as_tokens(n, nr_pool(n, "max", nr_as_grid(n, from), 1, 2, 0));
			continue;
		}
		if (i > count && c->relu_between) from = nr_activate(n, "relu", from);
		out[i] = at_level(n, "neck.extra", from, (struct nr_map_conv){ .out = c->dim, .k = 3, .stride = 2 }, i, all);
	}
	return out[all - 1] ? all : 0;
}
