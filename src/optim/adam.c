/* adam: Kingma & Ba 2015, arXiv:1412.6980, and its forms that differ in how weights decay:
 *
 *   adam     decay is L2: added to the gradient
 *   adamw    w -= lr wd w beside the step. Loshchilov & Hutter 2019, arXiv:1711.05101
 *   adam-bv  w -= schedule (lr adam + wd w): decay without lr, as big_vision */
#include "optim/optimizers.h"

static const struct nr_option options[] = {
	NR_OPT_FLOAT(struct nr_optim, beta1, 0.9, 0, 1, "decay of the first moment"),
	NR_OPT_FLOAT(struct nr_optim, beta2, 0.999, 0, 1, "decay of the second moment"),
	NR_OPTIM_EPS,
	NR_OPT_END
};

static int slots(const struct nr_optim *o) { return 2; }

static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks)
{
	return (size_t)count * sizeof(struct nr_adam_coef);
}

static void apply(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const struct nr_adam_coef *coef = k->scratch;
	nr_update_active->adam(c.n, s->value + c.at, s->grad + c.at, s->m + c.at, s->v + c.at, &coef[c.parameter]);
}

/* l2: decay goes into the gradient; rate: of the decay beside the step. */
static struct nr_adam_coef coef_of(const struct nr_optim_call *k, int64_t i, double lr, double l2, double rate)
{
	const struct nr_optim *o = k->o;
	const double t = (double)(k->t - k->segment[i].still);
	return (struct nr_adam_coef){
		.scale = (real)k->arg[i].scale,
		.l2 = (real)l2,
		.beta1 = (real)o->beta1,
		.rest1 = (real)(1 - o->beta1),
		.beta2 = (real)o->beta2,
		.rest2 = (real)(1 - o->beta2),
		.step = (real)(lr / (1 - pow(o->beta1, t))),
		.root = (real)(1 / sqrt(1 - pow(o->beta2, t))),
		.eps = (real)o->eps,
		.keep = (real)(1 - rate * k->arg[i].decay),
	};
}

struct nr_adam_coef nr_adamw_coef(const struct nr_optim_call *k, int64_t i, double factor)
{
	const double lr = k->arg[i].lr * factor;
	return coef_of(k, i, lr, 0, lr);
}

static void fill(const struct nr_optim_call *k, int64_t i, double l2, double rate)
{
	((struct nr_adam_coef *)k->scratch)[i] = coef_of(k, i, k->arg[i].lr, l2, rate);
}

static void adam(const struct nr_optim_call *k)
{
	for (int64_t i = 0; i < k->count; i++) fill(k, i, k->arg[i].decay, 0);
	nr_optim_each(k, apply);
}

static void adamw(const struct nr_optim_call *k)
{
	for (int64_t i = 0; i < k->count; i++) fill(k, i, 0, k->arg[i].lr);
	nr_optim_each(k, apply);
}

static void adam_bv(const struct nr_optim_call *k)
{
	for (int64_t i = 0; i < k->count; i++) fill(k, i, 0, k->o->lr > 0 ? k->arg[i].lr / k->o->lr : 0);
	nr_optim_each(k, apply);
}

#define MOMENTS "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; a = m' / (sqrt(v') + eps); "
const struct nr_optimizer nr_optimizer_adam = {
	.name = "adam", .title = "Adam, weight decay as L2", .cite = "arXiv:1412.6980", .formula = "g += wd w; " MOMENTS "w -= lr a",
	.options = options, .slots = slots, .scratch = scratch, .step = adam,
};
const struct nr_optimizer nr_optimizer_adamw = {
	.name = "adamw", .title = "Adam, decoupled weight decay", .cite = "arXiv:1711.05101", .formula = MOMENTS "w -= lr (a + wd w)",
	.options = options, .slots = slots, .scratch = scratch, .step = adamw,
};
const struct nr_optimizer nr_optimizer_adam_bv = {
	.name = "adam-bv", .title = "Adam, weight decay independent of the learning rate", .cite = "big_vision",
	.formula = MOMENTS "w -= schedule (lr a + wd w)",
	.options = options, .slots = slots, .scratch = scratch, .step = adam_bv,
};
