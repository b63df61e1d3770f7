/* Laws of a norm and the linear layer beside it: folding, weights whose length does not matter, and Dual PatchNorm. See prove.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "laws/norm_trial.h"
#include "laws/prove.h"
#include "norma/nn.h"

enum { STREAM_X = 41, STREAM_DY, STREAM_WEIGHT, STREAM_BIAS, STREAM_GAIN, STREAM_SHIFT, STREAM_MEAN, STREAM_VAR };
enum { OUT = 7 };                       /* outputs of the layer */

/* ---- W n(x) + b = W' m(x) + b' ------------------------------------------------------------------------------------------ */

/* A layer (OUT,C) and what it becomes when the norm before it is s m(x) + t per channel: W' = W s, b' = b + W t. */
struct layer { int64_t C; double *w, *b, *folded_w, *folded_b, *s, *t; };

static bool make_layer(struct layer *l, int64_t C, struct nr_arena *arena)
{
	double *room = arena ? nr_arena_alloc(arena, (size_t)(2 * (OUT * C + OUT) + 2 * C) * sizeof *room) : NULL;
	*l = (struct layer){ .C = C, .w = room };
	if (!room) return false;
	l->b = l->w + OUT * C;
	l->folded_w = l->b + OUT;
	l->folded_b = l->folded_w + OUT * C;
	l->s = l->folded_b + OUT;
	l->t = l->s + C;
	return true;
}

static void fill_layer(const struct layer *l, uint64_t seed)
{
	const struct nr_rng w = nr_rng_make(seed, STREAM_WEIGHT, 0), b = nr_rng_make(seed, STREAM_BIAS, 0);
	for (int64_t i = 0; i < OUT; i++) {
		l->folded_b[i] = l->b[i] = nr_rng_normal(b, (uint64_t)i);
		for (int64_t j = 0; j < l->C; j++) {
			const double v = l->w[i * l->C + j] = nr_rng_normal(w, (uint64_t)(i * l->C + j));
			l->folded_w[i * l->C + j] = v * l->s[j];
			l->folded_b[i] += v * l->t[j];
		}
	}
}

static void apply(const struct layer *l, bool folded, int64_t rows, const real *x, real *y)
{
	const double *w = folded ? l->folded_w : l->w, *b = folded ? l->folded_b : l->b;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t i = 0; i < OUT; i++) {
			double sum = b[i];
			for (int64_t j = 0; j < l->C; j++) sum += w[i * l->C + j] * (double)x[r * l->C + j];
			y[r * OUT + i] = (real)sum;
		}
}

static double at(const struct nr_trial *t, const char *name, int64_t i, double otherwise)
{
	const struct nr_entry *e = nr_store_find(t->store, name);
	return e ? (double)nr_value(e)[e->count == 1 ? 0 : i] : otherwise;
}

static void set(const struct nr_trial *t, const char *name, double mean, double deviation, uint64_t seed, uint32_t stream)
{
	const struct nr_entry *e = nr_store_find(t->store, name);
	if (e) nr_prove_random(e->count, nr_value(e), mean, deviation, seed, stream);
}

/* Gain, bias and running statistics of all kinds of norm; those it does not have stay out. */
static void fill_norm(const struct nr_trial *t, uint64_t seed)
{
	const struct nr_entry *var = nr_store_find(t->store, "running_var");
	set(t, "weight", 1, .5, seed, STREAM_GAIN);
	set(t, "bias", 0, 1, seed, STREAM_SHIFT);
	set(t, "running_mean", .5, 1, seed, STREAM_MEAN);
	set(t, "running_var", 0, 1, seed, STREAM_VAR);
	for (int64_t i = 0; var && i < var->count; i++) nr_value(var)[i] = nr_value(var)[i] * nr_value(var)[i] + (real).1;
}

/* bare: what is left of the norm. Batch norms are those of evaluation. */
static int folds(const char *whole, const char *bare, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	const struct nr_trial_shape s = { .batch = o->batch, .tokens = o->tokens, .channels = o->channels, .eps = 1e-5 };
	struct nr_trial a, b;
	if (nr_trial_open(&a, whole, &s, err)) return err->code;
	if (nr_trial_open(&b, bare, &s, err)) {
		nr_trial_close(&a);
		return err->code;
	}
	const int64_t n = nr_len(a.x), C = nr_cols(a.x), rows = n / C;
	const bool running = nr_store_find(a.store, "running_mean") != NULL;
	struct nr_arena *arena = nr_arena_make();
	struct layer l;
	real *y = make_layer(&l, C, arena) ? nr_arena_alloc(arena, (size_t)(2 * rows * OUT) * sizeof *y) : NULL;
	if (!y) nr_fail(err, NR_EMEMORY, "cannot prove", whole, "out of memory");
	for (uint64_t seed = 1; y && seed <= (uint64_t)o->seeds; seed++) {
		const struct nr_exec ex = { .seed = 1 };
		nr_prove_random(n, nr_trial_x(&a), .5, 1.5, seed, STREAM_X);
		memcpy(nr_trial_x(&b), nr_trial_x(&a), (size_t)n * sizeof(real));
		fill_norm(&a, seed);
		for (int64_t i = 0; i < C; i++) {
			const double k = running ? at(&a, "weight", i, 1) / sqrt(at(&a, "running_var", i, 1) + 1e-5) : at(&a, "weight", i,
				1);
			l.s[i] = k + at(&a, "eta", i, 0);
			l.t[i] = at(&a, "bias", i, 0) - (running ? k * at(&a, "running_mean", i, 0) : 0);
		}
		fill_layer(&l, seed);
		nr_plan_run(a.plan, &ex, NR_RUN_FORWARD);
		nr_plan_run(b.plan, &ex, NR_RUN_FORWARD);
		apply(&l, false, rows, nr_trial_y(&a), y);
		apply(&l, true, rows, nr_trial_y(&b), y + rows * OUT);
		nr_proof_compare(p, "y", rows * OUT, y, y + rows * OUT);
	}
	nr_arena_free(arena);
	nr_trial_close(&b);
	nr_trial_close(&a);
	nr_proof_close(p, o->tolerance);
	return err->code;
}

static int layer_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return folds("layer", "layer:affine=0", o, p, err);
}
static int rms_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	return folds("rms", "rms:affine=0", o, p, err);
}
static int batch_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return folds("batch", "none", o, p,
	err); }
static int repbn_folds(const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err) { return folds("repbn", "none", o, p,
	err); }

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
