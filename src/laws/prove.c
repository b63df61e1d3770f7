/* Equations between normalizations, tried on random inputs. See prove.h. */
#include "laws/prove.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "laws/norm_card.h"
#include "laws/norm_trial.h"

enum { STREAM_X = 21, STREAM_DY, STREAM_PARAM };
static const double common_eps = 1e-5, least_scale = 1e-3;

const struct nr_prove_options nr_prove_default = {
	.batch = 3, .tokens = 12, .channels = 12, .special = -1, .seeds = 3, .tolerance = 1e-5,
};

void nr_prove_random(int64_t n, real *x, double mean, double deviation, uint64_t seed, uint32_t stream)
{
	const struct nr_rng rng = nr_rng_make(seed, stream, 0);
	for (int64_t i = 0; i < n; i++) x[i] = (real)(mean + deviation * nr_rng_normal(rng, (uint64_t)i));
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* NaN if either is. */
static double larger(double a, double b) { return a >= b || isnan(a) ? a : b; }

void nr_proof_compare(struct nr_proof *p, const char *name, int64_t n, const real *got, const real *want)
{
	double most = 0, scale = least_scale;
	for (int64_t i = 0; i < n; i++) {
		most = larger(most, fabs((double)got[i] - (double)want[i]));
		scale = fmax(scale, fmax(fabs((double)got[i]), fabs((double)want[i])));
	}
	int32_t k = 0;
	while (k < p->parts && strcmp(p->part[k].name, name)) k++;
	if (k == NR_PROOF_PARTS) return;
	if (k == p->parts) {
		snprintf(p->part[k].name, sizeof p->part[k].name, "%s", name);
		p->part[k].difference = 0;
		p->parts++;
	}
	p->part[k].difference = larger(p->part[k].difference, most / scale);
}

void nr_proof_close(struct nr_proof *p, double tolerance)
{
	bool any[2] = { false, false };
	p->values = p->gradients = NAN;
	p->holds = 1;
	for (int32_t i = 0; i < p->parts; i++) {
		const double d = p->part[i].difference;
		double *to = strcmp(p->part[i].name, "y") ? &p->gradients : &p->values;
		*to = any[to == &p->values] ? larger(*to, d) : d;
		any[to == &p->values] = true;
		if (!(d <= tolerance)) p->holds = 0;
	}
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* "rest.weight" -> "weight" */
static const char *last_name(const struct nr_entry *e)
{
	const char *dot = strrchr(e->name, '.');
	return dot ? dot + 1 : e->name;
}

/* Does the store have parameters of that last name, all with so many values? */
static bool has(const struct nr_store *s, const char *name, int64_t count)
{
	bool any = false;
	for (int64_t i = 0; i < nr_store_count(s); i++) {
		const struct nr_entry *e = nr_store_at(s, i);
		if (e->buffer || strcmp(last_name(e), name)) continue;
		if (e->count != count) return false;
		any = true;
	}
	return any;
}

static bool shared(const struct nr_trial *a, const struct nr_trial *b, const struct nr_entry *e)
{
	return !e->buffer && has(a->store, last_name(e), e->count) && has(b->store, last_name(e), e->count);
}

/* weight and bias where both sides have them: the same random numbers. */
static void set_affine(const struct nr_trial *t, const struct nr_trial *other, uint64_t seed)
{
	for (int64_t i = 0; i < nr_store_count(t->store); i++) {
		const struct nr_entry *e = nr_store_at(t->store, i);
		const bool weight = !strcmp(last_name(e), "weight"), bias = !strcmp(last_name(e), "bias");
		if ((weight || bias) && shared(t, other, e))
			nr_prove_random(e->count, nr_value(e), weight, .5, seed, STREAM_PARAM + bias);
	}
}

/* The gradients of all parameters of that last name, summed: sep(layer,layer) has two weights where layer has one. */
static void gradient(const struct nr_trial *t, const char *name, int64_t count, real *sum)
{
	for (int64_t k = 0; k < count; k++) sum[k] = 0;
	for (int64_t i = 0; i < nr_store_count(t->store); i++) {
		const struct nr_entry *e = nr_store_at(t->store, i);
		if (e->buffer || strcmp(last_name(e), name)) continue;
		for (int64_t k = 0; k < count; k++) sum[k] += nr_grad(e)[k];
	}
}

/* ---- equations ---------------------------------------------------------------------------------------------------- */

static void compare_sides(struct nr_proof *p, const struct nr_trial *a, const struct nr_trial *b, struct nr_arena *arena)
{
	nr_proof_compare(p, "y", nr_len(a->x), nr_trial_y(a), nr_trial_y(b));
	nr_proof_compare(p, "dx", nr_len(a->x), nr_trial_dx(a), nr_trial_dx(b));
	for (int64_t i = 0; i < nr_store_count(b->store); i++) {
		const struct nr_entry *e = nr_store_at(b->store, i);
		char name[64];
		real *sum = nr_arena_alloc(arena, 2 * (size_t)e->count * sizeof *sum);
		if (!sum || !shared(a, b, e)) continue;
		gradient(a, last_name(e), e->count, sum);
		gradient(b, last_name(e), e->count, sum + e->count);
		snprintf(name, sizeof name, "d %s", last_name(e));
		nr_proof_compare(p, name, e->count, sum, sum + e->count);
	}
}

static int compare_texts(const char *left, const char *right, const struct nr_prove_options *o, struct nr_arena *arena,
	struct nr_proof *p, struct nr_error *err)
{
	const struct nr_norm *l = nr_norm_of_text(left, err), *r = l ? nr_norm_of_text(right, err) : NULL;
	if (!r) return err->code;
	const int composite = nr_norm_composite(l) || nr_norm_composite(r);
	const struct nr_trial_shape shape = { .batch = o->batch, .tokens = o->tokens, .channels = o->channels,
		.special = o->special < 0 ? composite : o->special, .heads = o->heads, .eps = common_eps };
	struct nr_trial a, b;
	if (nr_trial_open(&a, left, &shape, err)) return err->code;
	if (nr_trial_open(&b, right, &shape, err)) {
		nr_trial_close(&a);
		return err->code;
	}
	const int64_t n = nr_len(a.x);
	for (int32_t s = 0; s < o->seeds; s++) {
		const uint64_t seed = (uint64_t)s + 1;
		nr_prove_random(n, nr_trial_x(&a), .5, 1.5, seed, STREAM_X);
		nr_prove_random(n, nr_trial_dy(&a), 0, 1, seed, STREAM_DY);
		memcpy(nr_trial_x(&b), nr_trial_x(&a), (size_t)n * sizeof(real));
		memcpy(nr_trial_dy(&b), nr_trial_dy(&a), (size_t)n * sizeof(real));
		set_affine(&a, &b, seed);
		set_affine(&b, &a, seed);
		nr_trial_run(&a);
		nr_trial_run(&b);
		compare_sides(p, &a, &b, arena);
	}
	nr_trial_close(&b);
	nr_trial_close(&a);
	return NR_OK;
}

static char *without_spaces(struct nr_arena *arena, const char *s, size_t n)
{
	while (n && *s == ' ') s++, n--;
	while (n && s[n - 1] == ' ') n--;
	return nr_arena_printf(arena, "%.*s", (int)n, s);
}

int nr_prove_equation(const char *text, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	*p = (struct nr_proof){ .parts = 0 };
	const char *equals = strstr(text, " = ");
	if (!equals || strstr(equals + 3, " = ")) {
		nr_fail(err, NR_EUSAGE, "not an equation", text, NULL);
		return nr_hint(err, "two norms with ' = ' between them, as in \"dtn:lam=1 = layer\"");
	}
	struct nr_arena *arena = nr_arena_make();
	char *left = arena ? without_spaces(arena, text, (size_t)(equals - text)) : NULL;
	char *right = left ? without_spaces(arena, equals + 3, strlen(equals + 3)) : NULL;
	const int code = right ? compare_texts(left, right, o, arena, p, err)
			       : nr_fail(err, NR_EMEMORY, "cannot prove", text, "out of memory");
	nr_arena_free(arena);
	if (!code) nr_proof_close(p, o->tolerance);
	return code;
}

/* ---- all of them -------------------------------------------------------------------------------------------------- */

int nr_laws(struct nr_law *out, int most)
{
	int n = 0;
	for (const struct nr_norm *const *k = nr_norms(); *k; k++)
		for (const char *const *law = (*k)->laws; law && *law && n < most; law++)
			out[n++] = (struct nr_law){ .text = *law, .source = (*k)->cite };
	const struct nr_law *const others[] = { nr_laws_other, nr_laws_of_tokens, nr_laws_of_layers };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		for (const struct nr_law *law = others[i]; law->text && n < most; law++) out[n++] = *law;
	return n;
}

int nr_law_prove(const struct nr_law *law, const struct nr_prove_options *o, struct nr_proof *p, struct nr_error *err)
{
	if (!law->prove) return nr_prove_equation(law->text, o, p, err);
	*p = (struct nr_proof){ .values = NAN, .gradients = NAN };
	return law->prove(o, p, err);
}
