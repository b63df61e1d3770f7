/* See fold.h.
 *
 *   norm after a layer:   s (W x) + t                  W' = s W (rows),     b' = t
 *   norm before a head:   W (s x + t) + b              W' = W s (columns),  b' = b + W t
 *   s = weight / sqrt(running_var + eps), t = bias - running_mean s */
#include "surgery/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"

struct affine { double *s, *t; int64_t count; };

static const struct nr_entry *part(const struct nr_store *store, const char *layer, const char *what)
{
	char name[320];
	snprintf(name, sizeof name, "%s%s", layer, what);
	return nr_store_find(store, name);
}

static double value(const struct nr_entry *e, int64_t i, double otherwise) { return e ? (double)nr_value(e)[i] : otherwise; }

/* The norm of a layer in numbers, in the arena; count 0: it has none. */
static int affine_of(const struct nr_weights *w, const char *layer, double eps, struct affine *a, struct nr_error *err)
{
	const struct nr_entry *mean = part(w->store, layer, ".norm.running_mean"), *var = part(w->store, layer, ".norm.running_var");
	const struct nr_entry *gain = part(w->store, layer, ".norm.weight"), *bias = part(w->store, layer, ".norm.bias");
	*a = (struct affine){ 0 };
	if (!mean || !var) {
		if (!gain) return NR_OK;
		nr_fail(err, NR_EVALUE, "cannot fold the norm of", layer, "it has no running statistics");
		return nr_hint(err, "only batch norm can be folded");
	}
	*a = (struct affine){ nr_arena_alloc(w->arena, (size_t)mean->count * sizeof(double)),
		nr_arena_alloc(w->arena, (size_t)mean->count * sizeof(double)), mean->count };
	if (!a->s || !a->t) return nr_fail(err, NR_EMEMORY, "cannot fold the norms", NULL, "out of memory");
	for (int64_t i = 0; i < mean->count; i++) {
		a->s[i] = value(gain, i, 1) / sqrt(value(var, i, 1) + eps);
		a->t[i] = value(bias, i, 0) - value(mean, i, 0) * a->s[i];
	}
	return NR_OK;
}

/* weight and bias of the new store from those of the old one and the norm. */
static void fold(const struct nr_weights *w, struct nr_store *store, const char *layer, const struct affine *a)
{
	const struct nr_entry *from = part(w->store, layer, ".weight"), *to = part(store, layer, ".weight"), *bias = part(store, layer, ".bias");
	const struct nr_entry *had = part(w->store, layer, ".bias");
	const int64_t rows = from->d[0], cols = from->count / rows;
	const bool before = cols == a->count && had;            /* a head's: it has a bias of its own */
	for (int64_t r = 0; r < rows; r++) {
		double b = value(had, r, 0) + (before ? 0 : a->t[r]);
		for (int64_t c = 0; c < cols; c++) {
			const double x = (double)nr_value(from)[r * cols + c];
			nr_value(to)[r * cols + c] = (real)(x * (before ? a->s[c] : a->s[r]));
			if (before) b += x * a->t[c];
		}
		nr_value(bias)[r] = (real)b;
	}
}

static int fill(const struct nr_weights *w, struct nr_store *store, double eps, int64_t *folded, struct nr_error *err)
{
	*folded = 0;
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i), *was = nr_store_find(w->store, e->name);
		const size_t n = strlen(e->name);
		if (was) memcpy(nr_value(e), nr_value(was), (size_t)e->count * sizeof(real));
		if (n < 8 || strcmp(e->name + n - 7, ".weight")) continue;
		char layer[256];
		struct affine a;
		snprintf(layer, sizeof layer, "%.*s", (int)n - 7, e->name);
		if (affine_of(w, layer, eps, &a, err)) return err->code;
		if (!a.count) continue;
		fold(w, store, layer, &a);
		++*folded;
	}
	return NR_OK;
}

/* eps of the norms: one for all, of the plan or the model's. */
static double eps_of(const struct nr_weights *w)
{
	const char *eps = strstr(w->norms, "eps=");
	return eps ? strtod(eps + 4, NULL) : w->model.norms.eps;
}

int nr_fold_norms(struct nr_weights *w, int64_t *folded, struct nr_error *err)
{
	struct nr_store *store = NULL;
	struct nr_model_spec old = w->model;
	const char *text = nr_arena_printf(w->arena, "%s%cfolded=1", old.text, strchr(old.text, ':') ? ',' : ':');
	if (nr_model_int(&old, "folded") != 0) {
		nr_fail(err, NR_EUSAGE, "cannot fold the norms of", old.text,
			nr_model_int(&old, "folded") < 0 ? "its norms depend on the sample, or stand before no layer" : "they are folded already");
		return err->code;
	}
	if (!text) return nr_fail(err, NR_EMEMORY, "cannot fold the norms of", old.text, "out of memory");
	const double eps = eps_of(w);
	int code = nr_model_parse(&w->model, text, w->arena, err);
	if (!code) code = nr_store_make(&store, 0, err);
	struct nr_net *n = code ? NULL : nr_net_make(store);
	if (!code && !n) code = nr_fail(err, NR_EMEMORY, "cannot fold the norms of", old.text, "out of memory");
	if (!code) code = nr_norms_use(n, "none", &w->model.norms, err);
	if (!code) {
		const struct nr_inputs in = nr_model_inputs(n, &w->model, 1);
		nr_model_logits(n, &w->model, &in);
		code = nr_norms_done(n, err);
	}
	if (!code) code = nr_store_seal(store, err);
	if (!code) code = fill(w, store, eps, folded, err);
	nr_net_free(n);
	if (code) {
		nr_store_free(store);
		w->model = old;
		return code;
	}
	nr_store_free(w->store);
	w->store = store;
	w->norms = "none";
	return NR_OK;
}
