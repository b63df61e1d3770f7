/* Laws of a norm and the linear layer beside it: folding by the code of `norma fold`, weights whose length does not matter, and Dual
 * PatchNorm. See prove.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "laws/prove.h"
#include "norma/nn.h"
#include "surgery/fold.h"

enum { STREAM_X = 41, STREAM_DY, STREAM_WEIGHT, STREAM_BIAS, STREAM_GAIN, STREAM_SHIFT, STREAM_MEAN, STREAM_VAR };
enum { OUT = 7 };                       /* outputs of the layer */

/* ---- nets with a layer ----------------------------------------------------------------------------------------------------- */

struct made { struct nr_store *store; struct nr_net *net; struct nr_plan *plan; nr_t *x, *dy, *y; };

static void unmake(struct made *m)
{
	nr_plan_free(m->plan);
	nr_net_free(m->net);
	nr_store_free(m->store);
}

/* before, the layer, behind: sites of a plan. */
static int make(struct made *m, const char *plan, const char *before, const char *behind, const struct nr_prove_options *o,
	struct nr_error *err)
{
	const struct nr_norm_defaults defaults = { .norm = "none", .placement = "pre", .eps = 1e-5 };
	*m = (struct made){ 0 };
	int code = nr_store_make(&m->store, 1, err);
	if (!code && !(m->net = nr_net_make(m->store))) code = nr_fail(err, NR_EMEMORY, "cannot prove", plan, "out of memory");
	if (!code) code = nr_norms_use(m->net, plan, &defaults, err);
	if (!code) {
		m->x = nr_input(m->net, "x", NR_REAL, NR_SHAPE(o->batch, o->tokens, o->channels));
		m->dy = nr_input(m->net, "dy", NR_REAL, NR_SHAPE(o->batch, o->tokens, (int64_t)OUT));
		m->y = nr_norm(m->net, behind, nr_linear(m->net, "layer", nr_norm(m->net, before, m->x), OUT));
		m->y = nr_tap(m->net, "y", m->y);
		code = nr_plan_make(&m->plan, m->net, nr_weighted_sum(m->net, m->y, m->dy), NR_PLAN_TRAIN, err);
	}
	if (code) unmake(m);
	return code;
}

static void run(const struct made *m) { nr_plan_run(m->plan, &(struct nr_exec){ .train = 1, .seed = 1 }, NR_RUN_FORWARD | NR_RUN_BACKWARD);
	}
static void run_trained(const struct made *m) { nr_plan_run(m->plan, &(struct nr_exec){ .seed = 1 }, NR_RUN_FORWARD); }

/* ---- W n(x) + b = W' m(x) + b' ------------------------------------------------------------------------------------------ */

static void set(const struct made *m, const char *name, double mean, double deviation, uint64_t seed, uint32_t stream)
{
	const struct nr_entry *e = nr_store_find(m->store, name);
	if (e) nr_prove_random(e->count, nr_value(e), mean, deviation, seed, stream);
}

/* The layer; gain, bias and running statistics of all kinds of norm before it. Those it does not have stay out. */
static void fill(const struct made *m, uint64_t seed)
{
	const struct nr_entry *var = nr_store_find(m->store, "before.running_var");
	set(m, "layer.weight", 0, 1, seed, STREAM_WEIGHT);
	set(m, "layer.bias", 0, 1, seed, STREAM_BIAS);
	set(m, "before.weight", 1, .5, seed, STREAM_GAIN);
	set(m, "before.bias", 0, 1, seed, STREAM_SHIFT);
	set(m, "before.running_mean", .5, 1, seed, STREAM_MEAN);
	set(m, "before.running_var", 0, 1, seed, STREAM_VAR);
	for (int64_t i = 0; var && i < var->count; i++) nr_value(var)[i] = nr_value(var)[i] * nr_value(var)[i] + (real).1;
}

/* b: the net with what is left of the norm, after `norma fold` has changed the layer of a; false: it left something else. */
static bool fold_into(const struct made *a, const struct made *b, const char *bare, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_folding f;
	if (nr_fold_recorded(a->net, a->store, NULL, arena, &f, err)) return false;
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *to = nr_store_at(b->store, i), *from = nr_store_find(a->store, to->name);
		if (from) memcpy(nr_value(to), nr_value(from), (size_t)to->count * sizeof(real));
	}
	return f.folded == 1 && !strcmp(f.site[0].name, "before") && !strcmp(f.site[0].became, bare);
}

/* bare: what is left of the norm. Batch norms are those of evaluation. */
static int folds(const char *whole, const char *bare, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	char plan[2][64];
	struct made a, b;
	bool as_said = true;
	snprintf(plan[0], sizeof plan[0], "before=%s", whole);
	snprintf(plan[1], sizeof plan[1], "before=%s", bare);
	if (make(&a, plan[0], "before", "behind", o, err)) return err->code;
	if (make(&b, plan[1], "before", "behind", o, err)) {
		unmake(&a);
		return err->code;
	}
	const int64_t n = nr_len(a.x), outputs = nr_len(a.y);
	struct nr_arena *arena = nr_arena_make();
	if (!arena) nr_fail(err, NR_EMEMORY, "cannot prove", whole, "out of memory");
	for (uint64_t seed = 1; !err->code && seed <= (uint64_t)o->seeds; seed++) {
		nr_prove_random(n, nr_plan_data(a.plan, a.x), .5, 1.5, seed, STREAM_X);
		memcpy(nr_plan_data(b.plan, b.x), nr_plan_data(a.plan, a.x), (size_t)n * sizeof(real));
		fill(&a, seed);
		run_trained(&a);
		as_said &= fold_into(&a, &b, bare, arena, err);
		run_trained(&b);
		nr_proof_compare(p, "y", outputs, nr_plan_data(a.plan, a.y), nr_plan_data(b.plan, b.y));
	}
	nr_arena_free(arena);
	unmake(&b);
	unmake(&a);
	nr_proof_close(p, o->tolerance);
	if (!as_said) p->holds = 0, snprintf(p->note, sizeof p->note, "norma fold leaves something else than %s", bare);
	return err->code;
}

static int layer_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return folds("layer", "layer:affine=0,eps=1e-05", o, p, err);
}
static int rms_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return folds("rms", "rms:affine=0,eps=1e-05", o, p, err);
}
static int batch_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return folds("batch", "none", o, p,
	err); }
static int repbn_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return folds("repbn", "none", o, p,
	err); }

/* ---- <W, dW> + <b, db> = 0 before a norm -------------------------------------------------------------------------------------- */

/* The norm does not see how long W and b are, so that no gradient points along them. What goes up and what goes down are compared. */
static int scale_free(const char *norm, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct made m;
	char plan[64];
	snprintf(plan, sizeof plan, "behind=%s:eps=0", norm);
	if (make(&m, plan, "before", "behind", o, err)) return err->code;
	const struct nr_entry *part[] = { nr_store_find(m.store, "layer.weight"), nr_store_find(m.store, "layer.bias") };
	for (uint64_t seed = 1; seed <= (uint64_t)o->seeds; seed++) {
		double up = 0, down = 0;
		nr_prove_random(nr_len(m.x), nr_plan_data(m.plan, m.x), .5, 1.5, seed, STREAM_X);
		nr_prove_random(nr_len(m.dy), nr_plan_data(m.plan, m.dy), 0, 1, seed, STREAM_DY);
		for (uint32_t k = 0; k < 2; k++) nr_prove_random(part[k]->count, nr_value(part[k]), 0, 1, seed, STREAM_WEIGHT + k);
		run(&m);
		for (int k = 0; k < 2; k++)
			for (int64_t i = 0; i < part[k]->count; i++) {
				const double d = (double)nr_value(part[k])[i] * (double)nr_grad(part[k])[i];
				*(d > 0 ? &up : &down) += fabs(d);
			}
		nr_proof_compare(p, "d length", 1, &(real){ (real)up }, &(real){ (real)down });
	}
	unmake(&m);
	nr_proof_close(p, o->tolerance);
	return NR_OK;
}

static int layer_scale_free(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return scale_free("layer", o, p,
	err); }
static int rms_scale_free(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return scale_free("rms", o, p, err);
	}
static int batch_scale_free(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return scale_free("batch", o, p,
	err); }

/* ---- Dual PatchNorm --------------------------------------------------------------------------------------------------------- */

/* Patches a x + b, with a > 0 and b of their own: other light, other contrast. */
static int contrast(const char *plan, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	struct made m;
	if (make(&m, plan, "patch.in", "patch.out", o, err)) return err->code;
	const int64_t n = nr_len(m.x), C = nr_cols(m.x), outputs = nr_len(m.y);
	struct nr_arena *arena = nr_arena_make();
	real *first = arena ? nr_arena_alloc(arena, (size_t)outputs * sizeof *first) : NULL;
	if (!first) nr_fail(err, NR_EMEMORY, "cannot prove", plan, "out of memory");
	for (uint64_t seed = 1; first && seed <= (uint64_t)o->seeds; seed++) {
		const struct nr_rng gain = nr_rng_make(seed, STREAM_GAIN, 0), shift = nr_rng_make(seed, STREAM_SHIFT, 0);
		real *x = nr_plan_data(m.plan, m.x);
		nr_prove_random(n, x, .5, 1.5, seed, STREAM_X);
		run(&m);
		memcpy(first, nr_plan_data(m.plan, m.y), (size_t)outputs * sizeof *first);
		nr_prove_random(n, x, .5, 1.5, seed, STREAM_X);
		for (int64_t i = 0; i < n; i++)
			x[i] = (real)(exp(nr_rng_normal(gain, (uint64_t)(i / C))) * (double)x[i] + nr_rng_normal(shift, (uint64_t)(i / C)));
		run(&m);
		nr_proof_compare(p, "y", outputs, nr_plan_data(m.plan, m.y), first);
	}
	nr_arena_free(arena);
	unmake(&m);
	nr_proof_close(p, o->tolerance);
	return err->code;
}

static int dual_contrast(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return contrast("patch=dual eps=0",
	o, p, err); }
static int learnable_contrast(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	const int code = contrast("patch=only_learnable", o, p, err);
	p->holds = p->values > .01;
	snprintf(p->note, sizeof p->note, "other contrast changes y by %.2f", p->values);
	return code;
}

const struct nr_law nr_laws_of_layers[] = {
	{ "W layer(x) + b = W' layer:affine=0(x) + b': gain and bias fold", "arXiv:1607.06450", layer_folds },
	{ "W rms(x) + b = W' rms:affine=0(x) + b: the gain folds", "arXiv:1910.07467", rms_folds },
	{ "W batch(x) + b = W' x + b' in evaluation: all of it folds", "arXiv:1502.03167", batch_folds },
	{ "W repbn(x) + b = W' x + b' in evaluation: all of it folds", "arXiv:2405.11582", repbn_folds },
	{ "<W, dW> + <b, db> = 0 before layer", "arXiv:1607.06450", layer_scale_free },
	{ "<W, dW> + <b, db> = 0 before rms", "arXiv:1910.07467", rms_scale_free },
	{ "<W, dW> + <b, db> = 0 before batch", "arXiv:1502.03167", batch_scale_free },
	{ "patch=dual(a x + b) = patch=dual(x), a > 0 and b per patch", "arXiv:2302.01327", dual_contrast },
	{ "patch=only_learnable(a x + b) != patch=only_learnable(x)", "arXiv:2302.01327", learnable_contrast },
	{ NULL, NULL, NULL },
};
