/* lion: the sign of a blend of momentum and gradient. Chen et al. 2023, arXiv:2302.06675, Algorithm 2, as timm has it.
 *
 *   u = sign(beta1 m + (1 - beta1) g), sign(0) = 0; m = beta2 m + (1 - beta2) g; w -= lr (u + wd w)
 *
 * caution (Liang et al. 2024, arXiv:2411.16085): what goes against the gradient is left out, and the rest grows by as much. */
#include "math/chunk.h"
#include "optim/optimizers.h"

struct lion { double lion_beta1, lion_beta2; bool caution; };

static const struct nr_option own[] = {
	NR_OPT_FLOAT(struct lion, lion_beta1, 0.9, 0, 1, "share of the momentum in the sign"),
	NR_OPT_FLOAT(struct lion, lion_beta2, 0.99, 0, 1, "decay of the momentum"),
	NR_OPT_BOOL(struct lion, caution, "0", "leave out what goes against the gradient"),
	NR_OPT_END
};

static int slots(const struct nr_optim *o) { return 1; }

/* By parameter: the factor of u; by chunk: how many values agree with their gradient. */
static size_t scratch(const struct nr_segment *s, int64_t count, int64_t chunks) { return (size_t)(count + chunks) * sizeof(double); }
static double *factors(const struct nr_optim_call *k) { return k->scratch; }
static double *agreeing(const struct nr_optim_call *k) { return (double *)k->scratch + k->count; }

static real sign_of(const struct nr_optim_call *k, const struct nr_segment *s, real scale, int64_t i)
{
	const struct lion *c = k->own;
	const real b = (real)c->lion_beta1, u = b * s->m[i] + (1 - b) * scale * s->grad[i];
	return (real)((u > 0) - (u < 0));
}

static void count_agreeing(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct nr_segment *s = &k->segment[c.parameter];
	const real scale = (real)k->arg[c.parameter].scale;
	int64_t n = 0;
	for (int64_t i = c.at; i < c.at + c.n; i++) n += sign_of(k, s, scale, i) * s->grad[i] > 0;
	agreeing(k)[c.number] = (double)n;
}

static void apply(const struct nr_optim_call *k, struct nr_optim_chunk c)
{
	const struct lion *o = k->own;
	const struct nr_segment *s = &k->segment[c.parameter];
	const struct nr_optim_arg *a = &k->arg[c.parameter];
	const real scale = (real)a->scale, lr = (real)(a->lr * factors(k)[c.parameter]), keep = (real)(1 - a->lr * a->decay);
	const real b = (real)o->lion_beta2;
	for (int64_t i = c.at; i < c.at + c.n; i++) {
		const real g = s->grad[i], u = sign_of(k, s, scale, i);
		s->value[i] = keep * s->value[i] - (o->caution && u * g <= 0 ? 0 : lr * u);
		s->m[i] = b * s->m[i] + (1 - b) * scale * g;
	}
}

static void step(const struct nr_optim_call *k)
{
	const struct lion *o = k->own;
	if (o->caution) nr_optim_each(k, count_agreeing);
	for (int64_t i = 0; i < k->count; i++) {
		const double share = o->caution ? nr_optim_fold(k, i, agreeing(k)) / (double)nr_max64(k->segment[i].count, 1) : 1;
		factors(k)[i] = 1 / fmax(share, 1e-3);
	}
	nr_optim_each(k, apply);
}

const struct nr_optimizer nr_optimizer_lion = {
	.name = "lion", .title = "sign of the momentum", .cite = "arXiv:2302.06675",
	.formula = "u = sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g; w -= lr (u + wd w)",
	.own = own, .own_size = sizeof(struct lion), .slots = slots, .scratch = scratch, .step = step,
};
