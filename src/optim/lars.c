/* lars: momentum with a ratio |w| / |g| for each parameter. You et al. 2017, arXiv:1708.03888.
 *
 *   lars       MAE's: ratio trust |w| / |g + wd w|; vectors: no ratio, no decay; neither dampening nor a look ahead
 *   lars-timm  ratio trust |w| / (|g| + wd |w| + eps), only where wd > 0 */
#include "optim/optimizers.h"

#define TRUST NR_OPT_FLOAT(struct nr_optim, trust, 1e-3, 0, 1e6, "trust coefficient")
static const struct nr_option options[] = { NR_OPTIM_MOMENTUM, TRUST, NR_OPT_END };
static const struct nr_option timm_options[] = { NR_OPTIM_MOMENTUM, NR_OPTIM_DAMPENING, NR_OPTIM_NESTEROV, NR_OPTIM_EPS, TRUST,
	NR_OPT_END };

/* What the scratch holds: coefficients, the decay that the gradient's norm is taken with, squares of values and gradients by chunk. */
struct room { struct nr_sgd_coef *coef; double *with, *value, *grad; };
_Static_assert(sizeof(struct nr_sgd_coef) % sizeof(double) == 0, "numbers can follow the coefficients");

static struct room room_of(const struct nr_optim_call *k)
{
	struct room r = { .coef = k->scratch };
	r.with = (double *)(r.coef + k->count);
	r.value = r.with + k->count;
	r.grad = r.value + k->chunks;
	return r;
}

static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks)
{
	return (size_t)count * sizeof(struct nr_sgd_coef) + (size_t)(count + 2 * chunks) * sizeof(double);
}

static void squares(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const struct room r = room_of(k);
	r.value[c.number] = nr_update_active->sum_sq(c.n, s->value + c.at);
	r.grad[c.number] = nr_update_active->sum_sq_mix(c.n, k->arg[c.parameter].scale, s->grad + c.at, r.with[c.parameter],
		s->value + c.at);
}

/* The parameter's coefficients with gradient and decay times the ratio. */
static struct nr_sgd_coef times(const struct nr_optim_call *k, struct nr_optim_arg a, double ratio)
{
	a.scale *= ratio;
	a.decay *= ratio;
	return nr_momentum_coef(k, &a);
}

static void lars(const struct nr_optim_call *k)
{
	const struct room r = room_of(k);
	struct nr_optim plain = *k->o;
	struct nr_optim_call undamped = *k;
	plain.dampening = 0, plain.nesterov = false;
	undamped.o = &plain;
	for (int64_t i = 0; i < k->count; i++) r.with[i] = k->segment[i].nd <= 1 ? 0 : k->arg[i].decay;
	nr_optim_each(k, squares);
	for (int64_t i = 0; i < k->count; i++) {
		const double value = sqrt(nr_optim_fold(k, i, r.value)), grad = sqrt(nr_optim_fold(k, i, r.grad));
		struct nr_optim_arg a = k->arg[i];
		a.decay = r.with[i];
		r.coef[i] = times(&undamped, a, k->segment[i].nd <= 1 || value == 0 || grad == 0 ? 1 : k->o->trust * value / grad);
	}
	nr_optim_each(k, nr_momentum_apply);
}

static void lars_timm(const struct nr_optim_call *k)
{
	const struct room r = room_of(k);
	for (int64_t i = 0; i < k->count; i++) r.with[i] = 0;
	nr_optim_each(k, squares);
	for (int64_t i = 0; i < k->count; i++) {
		const double value = sqrt(nr_optim_fold(k, i, r.value)), grad = sqrt(nr_optim_fold(k, i, r.grad)), wd = k->arg[i].decay;
		r.coef[i] = times(k, k->arg[i], wd == 0 || value == 0 || grad == 0
			? 1 : k->o->trust * value / (grad + wd * value + k->o->eps));
	}
	nr_optim_each(k, nr_momentum_apply);
}

const struct nr_optimizer nr_optimizer_lars = {
	.name = "lars", .title = "layer-wise adaptive rates, as in MAE's linear probe", .cite = "arXiv:1708.03888",
	.formula = "g = trust |w| / |g + wd w| (g + wd w), vectors: g; m = momentum m + g; w -= lr m",
	.options = options, .slots = nr_momentum_slots, .scratch = scratch, .step = lars,
};
const struct nr_optimizer nr_optimizer_lars_timm = {
	.name = "lars-timm", .title = "layer-wise adaptive rates, as in timm", .cite = "arXiv:1708.03888",
	.formula = "g = trust |w| / (|g| + wd |w| + eps) (g + wd w); then as sgd",
	.options = timm_options, .slots = nr_momentum_slots, .scratch = scratch, .step = lars_timm,
};
