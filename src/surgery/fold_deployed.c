/* LeViT and its like: see fold.h.
 *
 *   norm after a layer:   s (W x) + t                  W' = s W (rows),     b' = t
 *   norm before a head:   W (s x + t) + b              W' = W s (columns),  b' = b + W t
 *   s = weight / sqrt(running_var + eps), t = bias - running_mean s
 *
 * A layer without a bias has its norm behind it, one with a bias (a head) before it. */
#include "surgery/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "norms/norms.h"
#include "surgery/affine.h"
#include "surgery/surgery.h"

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot fold the norms", NULL, "out of memory"); }

/* The norm of a layer in numbers, in the arena of the weights. */
static int affine_of(const struct nr_weights *w, const char *site, double eps, struct nr_affine *a, struct nr_error *err)
{
	const struct nr_entry *mean = nr_affine_part(w->store, site, "running_mean");
	if (!mean || !nr_affine_part(w->store, site, "running_var"))
		return nr_fail(err, NR_EVALUE, "cannot fold the norm at", site, "it has no running statistics");
	if (nr_affine_make(a, mean->count, w->arena, err)) return err->code;
	nr_affine_running(w->store, site, eps, mean->count, a);
	return NR_OK;
}

/* weight and bias of the new store from those of the old one and the norm. */
static int fold(const struct nr_weights *w, struct nr_store *store, const char *layer, const struct nr_affine *a, struct nr_error *err)
{
	const struct nr_entry *from = nr_affine_part(w->store, layer, "weight"), *had = nr_affine_part(w->store, layer, "bias");
	const struct nr_entry *to = nr_affine_part(store, layer, "weight"), *bias = nr_affine_part(store, layer, "bias");
	if (!from || !to || !bias) return nr_fail(err, NR_EVALUE, "cannot fold the norm of", layer, "there is no layer of that name");
	(had ? nr_affine_before : nr_affine_behind)(a, &(struct nr_affine_layer){ from, had }, &(struct nr_affine_layer){ to, bias });
	return NR_OK;
}

/* LAYER of a site LAYER.norm that has a batch norm. */
static int layer_of(const struct nr_site *site, const struct nr_affine_norm *p, char *layer, size_t size, struct nr_error *err)
{
	const size_t n = strlen(site->name);
	snprintf(layer, size, "%.*s", n > 5 ? (int)n - 5 : 0, site->name);
	if (n > 5 && !strcmp(site->name + n - 5, ".norm") && nr_affine_is(p, "batch")) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot fold the norm at", site->name, "it is '%s'", site->norm);
	return nr_hint(err, "only batch norms right after a layer, or before a head, are the same for every sample");
}

static int fill(const struct nr_weights *w, struct nr_store *store, const struct nr_net *was, int64_t *folded, struct nr_error *err)
{
	int64_t sites;
	const struct nr_site *site = nr_sites(was, &sites);
	for (int64_t i = 0; i < nr_store_count(store); i++) {
		const struct nr_entry *e = nr_store_at(store, i), *old = nr_store_find(w->store, e->name);
		if (old) memcpy(nr_value(e), nr_value(old), (size_t)e->count * sizeof(real));
	}
	*folded = 0;
	for (int64_t i = 0; i < sites; i++) {
		char layer[256];
		struct nr_affine a = { 0 };
		struct nr_affine_norm p;
		if (!site[i].norm) continue;
		if (nr_affine_parse(was, site[i].norm, &p, err) || layer_of(&site[i], &p, layer, sizeof layer, err) ||
		    affine_of(w, site[i].name, nr_affine_number(&p, "eps", 1e-5), &a, err) || fold(w, store, layer, &a, err))
			return err->code;
		++*folded;
	}
	return NR_OK;
}

int nr_fold_deployed(struct nr_weights *w, int64_t *folded, struct nr_error *err)
{
	struct nr_store *store = NULL;
	const struct nr_model_spec old = w->model;
	const int64_t is = nr_model_int(&old, "folded");
	if (is != 0) return nr_fail(err, NR_EUSAGE, "cannot fold the norms of", old.text,
		is < 0 ? "they depend on the sample, or stand before no layer" : "they are folded already");
	const char *text = nr_arena_printf(w->arena, "%s%cfolded=1", old.text, strchr(old.text, ':') ? ',' : ':');
	if (!text) return out_of_memory(err);
	struct nr_net *was = nr_surgery_record(w, w->store, w->norms, err), *now = NULL;
	int code = was ? nr_model_parse(&w->model, text, w->arena, err) : (int)err->code;
	if (!code) code = nr_store_make(&store, 0, err);
	if (!code && !(now = nr_surgery_record(w, store, "none", err))) code = err->code;
	if (!code) code = nr_store_seal(store, err);
	if (!code) code = fill(w, store, was, folded, err);
	nr_net_free(now);
	nr_net_free(was);
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
