/* sgd: with momentum, dampening and Nesterov's look ahead; decay is L2. As PyTorch has it. */
#include "optim/optimizers.h"

static const struct nr_option options[] = { NR_OPTIM_MOMENTUM, NR_OPTIM_DAMPENING, NR_OPTIM_NESTEROV, NR_OPT_END };

int nr_momentum_slots(const struct nr_optim *o) { return o->momentum != 0; }

/* The first step fills the buffer with the gradient, undamped, as PyTorch does. */
struct nr_sgd_coef nr_momentum_coef(const struct nr_optim_call *k, const struct nr_optim_arg *a)
{
	const struct nr_optim *o = k->o;
	const bool ahead = o->nesterov && o->momentum != 0;
	return (struct nr_sgd_coef){
		.scale = (real)a->scale,
		.l2 = (real)a->decay,
		.keep_m = (real)(k->t == 1 ? 0 : o->momentum),
		.add_m = (real)(k->t == 1 ? 1 : 1 - o->dampening),
		.rate_g = (real)(ahead || o->momentum == 0 ? a->lr : 0),
		.rate_m = (real)(ahead ? a->lr * o->momentum : a->lr),
	};
}

void nr_momentum_apply(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const struct nr_sgd_coef *coef = k->scratch;
	nr_update_active->sgd(c.n, s->value + c.at, s->grad + c.at, k->o->momentum != 0 ? s->m + c.at : NULL, &coef[c.parameter]);
}

static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks)
{
	return (size_t)count * sizeof(struct nr_sgd_coef);
}

static void step(const struct nr_optim_call *k)
{
	struct nr_sgd_coef *coef = k->scratch;
	for (int64_t i = 0; i < k->count; i++) coef[i] = nr_momentum_coef(k, &k->arg[i]);
	nr_optim_each(k, nr_momentum_apply);
}

const struct nr_optimizer nr_optimizer_sgd = {
	.name = "sgd", .title = "stochastic gradient descent", .cite = "PyTorch",
	.formula = "g += wd w; m = momentum m + (1 - dampening) g; w -= lr m (nesterov: lr (g + momentum m))",
	.options = options, .slots = nr_momentum_slots, .scratch = scratch, .step = step,
};
