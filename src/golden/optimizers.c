/* metrics/optimizers: three steps of each rule on a matrix and a vector, and global-norm clipping. */
#include <string.h>

#include "golden/check.h"
#include "norma/optim.h"

enum { TENSORS = 2 };
static const char *const suffix[TENSORS] = { "w", "b" };

static void run(
	struct golden_case *c, const char *name, struct nr_optim o, double sched, const double wd[TENSORS])
{
	char probe[64];
	snprintf(probe, sizeof probe, "%s.step1_w", name);
	if (!golden_has(c, probe)) return;
	struct nr_segment seg[TENSORS];
	for (int i = 0; i < TENSORS; i++) {
		const struct golden_tensor p = golden_tensor(c, -1, "in.%s", suffix[i]);
		seg[i] = (struct nr_segment){ .value = p.x,
			.m = golden_reals(c, p.n),
			.v = golden_reals(c, p.n),
			.count = p.n,
			.nd = p.nd,
			.lr_scale = 1,
			.decay = (float)wd[i] };
	}
	const struct nr_rates r = { o.lr * sched, 1 }; /* the decays differ: they stand in the segments */
	for (int64_t t = 1;; t++) {
		snprintf(probe, sizeof probe, "%s.step%d_w", name, (int)t);
		if (!golden_has(c, probe)) break;
		for (int i = 0; i < TENSORS; i++) {
			const struct golden_tensor g =
				golden_tensor(c, -1, "in.grad%d_%s", (int)t - 1, suffix[i]);
			golden_expect(c, g.n == seg[i].count, "gradient and value");
			seg[i].grad = g.x;
		}
		void *scratch = golden_alloc(c, 1, nr_optim_scratch(&o, seg, TENSORS));
		if (nr_optim_step(&o, &r, t, seg, TENSORS, scratch, NULL))
			golden_fail(c, name, "the step failed");
		for (int i = 0; i < TENSORS; i++)
			golden_check(c, "out", seg[i].value, seg[i].count, "%s.step%d_%s", name, (int)t,
				suffix[i]);
	}
}

static void clip(struct golden_case *c)
{
	if (!golden_has(c, "clip_global.norm")) return;
	struct nr_segment seg[TENSORS];
	for (int i = 0; i < TENSORS; i++) {
		const struct golden_tensor g = golden_tensor(c, -1, "in.grad0_%s", suffix[i]);
		seg[i] = (struct nr_segment){ .grad = g.x, .count = g.n };
	}
	void *scratch = golden_alloc(c, 1, nr_optim_scratch(NULL, seg, TENSORS));
	const double norm = nr_optim_grad_norm(seg, TENSORS, scratch);
	const double s = nr_clip_scale(NR_CLIP_GLOBAL, golden_number(c, "clip_global.max_norm"), norm);
	golden_check_value(c, "out", norm, "clip_global.norm");
	for (int i = 0; i < TENSORS; i++) {
		for (int64_t k = 0; k < seg[i].count; k++) seg[i].grad[k] *= (real)s;
		golden_check(c, "out", seg[i].grad, seg[i].count, "clip_global.%s", suffix[i]);
	}
}

static struct nr_optim adam(struct golden_case *c, int kind, const char *name, double lr)
{
	char key[64];
	struct nr_optim o = { .kind = kind, .lr = lr };
	snprintf(key, sizeof key, "%s.betas", name);
	o.beta1 = golden_item(c, key, 0);
	o.beta2 = golden_item(c, key, 1);
	snprintf(key, sizeof key, "%s.eps", name);
	o.eps = golden_number(c, key);
	return o;
}

int golden_metric_optimizers(struct golden_case *c)
{
	const double lr = golden_number(c, "lr");
	const double wd[TENSORS] = { golden_number(c, "weight_decay_w"), golden_number(c, "weight_decay_b") };
	run(c, "adamw", adam(c, nr_optim_kind("adamw"), "adamw", lr), 1, wd);
	run(c, "adam_l2", adam(c, nr_optim_kind("adam"), "adam_l2", lr), 1, wd);

	struct nr_optim sgd = { .kind = nr_optim_kind("sgd"), .lr = lr, .momentum = golden_number(c, "sgd.momentum"),
		.dampening = golden_number_or(c, "sgd.dampening", 0) };
	run(c, "sgd_momentum", sgd, 1, wd);
	sgd.nesterov = true;
	run(c, "sgd_nesterov", sgd, 1, wd);

	run(c, "lars",
		(struct nr_optim){ .kind = nr_optim_kind("lars"),
			.lr = golden_number(c, "lars.lr"),
			.momentum = golden_number(c, "lars.momentum"),
			.trust = golden_number(c, "lars.trust") },
		1, wd);
	run(c, "lars_timm",
		(struct nr_optim){ .kind = nr_optim_kind("lars-timm"),
			.lr = golden_number(c, "lars_timm.lr"),
			.momentum = golden_number(c, "lars_timm.momentum"),
			.trust = golden_number(c, "lars_timm.trust_coeff"),
			.eps = golden_number(c, "lars_timm.eps") },
		1, wd);

	struct nr_optim bv = adam(c, nr_optim_kind("adam-bv"), "bigvision_adam", lr);
	const double bv_wd[TENSORS] = { golden_number(c, "bigvision_adam.wd"), 0 };
	bv.clip = NR_CLIP_GLOBAL_BV;
	bv.clip_norm = golden_number(c, "bigvision_adam.clip_norm");
	run(c, "bigvision_adam", bv, golden_number(c, "bigvision_adam.schedule_value"), bv_wd);
	clip(c);
	return GOLDEN_RAN;
}
