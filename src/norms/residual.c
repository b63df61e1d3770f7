/* The residual connection as the norm plan has it.
 *
 *   plain       x + y
 *   layerscale  x + gamma y, gamma (C) starts small. Touvron et al. 2021, arXiv:2103.17239
 *   rezero      x + alpha y, one alpha that starts at 0. Bachlechner et al. 2020, arXiv:2003.04887
 *   deepnorm    a x + y, a = (2N)^(1/4) for N blocks; weights start smaller by (8N)^(-1/4). Wang et al. 2022,
 *               arXiv:2203.00555 (encoder only)
 *   keel        a x + y where BRANCH.res has a norm, a = 2N unless given. Keel, arXiv:2601.19895
 *   ngpt        u(u(x) + |a| (u(y) - u(x))), u: to length 1, a (C) a step that starts at `init`. Loshchilov et al. 2024,
 *               arXiv:2410.01131; the learned numbers are a / init / sqrt(C)
 *
 * y may have gone through the norm BRANCH.out, the sum goes through BRANCH.res. */
#include <math.h>

#include "graph/net.h"
#include "nn/op.h"
#include "norms/plan.h"

/* Blocks in the stack that is being recorded. */
static int64_t depth_of(const struct nr_net *n)
{
	for (int32_t d = n->depth; d-- > 0;)
		if (n->of[d]) return n->of[d];
	return 1;
}

static nr_t *gain(struct nr_net *n, const char *branch, const char *name, nr_t *y, double first, int64_t count)
{
	nr_push(n, "%s.%s", branch, name);
	nr_t *g = nr_param(n, "gamma", (first != 0 ? NR_ONES : NR_ZEROS) | NR_NO_DECAY, NR_SHAPE(count));
	if (g) g->entry->value = first;
	return nr_pop(n, nr_scale_channels(n, y, g));
}

/* A step of learned length on the sphere from x towards y. */
static nr_t *on_sphere(struct nr_net *n, const char *branch, nr_t *x, nr_t *y, double init)
{
	const int64_t C = nr_cols(x);
	const double first = 1 / sqrt((double)C);
	nr_push(n, "%s", branch);
	nr_t *a = nr_param(n, "alpha", NR_ONES | NR_NO_DECAY, NR_SHAPE(C));
	if (a) a->entry->value = first;
	a = nr_pop(n, nr_scale(n, a, init / first));
	a = nr_add(n, nr_activate(n, "relu", a), nr_activate(n, "relu", nr_scale(n, a, -1)));
	nr_t *from = nr_unit_rows(n, x), *way = nr_add(n, nr_unit_rows(n, y), nr_scale(n, from, -1));
	return nr_unit_rows(n, nr_add(n, from, nr_scale_channels(n, way, a)));
}

typedef nr_t *sum(struct nr_net *, nr_t *, nr_t *);
static nr_t *residual(struct nr_net *n, const char *branch, nr_t *x, nr_t *y, double drop_path, sum *add)
{
	if (!x || !y) return NULL;
	const struct nr_norm_plan *p = n->norms;
	const char *out = nr_arena_printf(n->arena, "%s.out", branch), *res = nr_arena_printf(n->arena, "%s.res", branch);
	if (!out || !res) return nr_net_fail(n, NR_EMEMORY, branch, "out of memory");
	y = nr_norm(n, out, y);
	if (y && p && p->residual == NR_RESIDUAL_LAYERSCALE) y = gain(n, branch, "scale", y, p->residual_number, nr_cols(y));
	if (y && p && p->residual == NR_RESIDUAL_REZERO) y = gain(n, branch, "scale", y, 0, 1);
	if (p && p->residual == NR_RESIDUAL_DEEPNORM) x = nr_scale(n, x, pow(2 * (double)depth_of(n), .25));
	if (p && p->residual == NR_RESIDUAL_KEEL && nr_norm_there(n, res))
		x = nr_scale(n, x, p->residual_number > 0 ? p->residual_number : 2 * (double)depth_of(n));
	y = nr_drop_path(n, y, drop_path);
	const bool sphere = p && p->residual == NR_RESIDUAL_NGPT && x && y;
	return nr_norm(n, res, sphere ? on_sphere(n, branch, x, y, p->residual_number) : add(n, x, y));
}

nr_t *nr_residual(struct nr_net *n, const char *branch, nr_t *x, nr_t *y, double drop_path)
{
	return residual(n, branch, x, y, drop_path, nr_add);
}

nr_t *nr_residual_reversible(struct nr_net *n, const char *branch, nr_t *x, nr_t *y)
{
	return residual(n, branch, x, y, 0, nr_add_reversible);
}

double nr_norms_gain(const struct nr_net *n)
{
	const struct nr_norm_plan *p = n->norms;
	const double N = (double)depth_of(n);
	double g = p && p->subln ? sqrt(log(2 * N)) : 1;
	if (p && p->residual == NR_RESIDUAL_DEEPNORM) g *= pow(8 * N, -.25);
	return g;
}
