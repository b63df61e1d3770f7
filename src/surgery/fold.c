/* See fold.h. What reads a norm is found in the recorded graph: nodes bear the scope of the site that they were recorded in. */
#include "surgery/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "base/str.h"
#include "graph/net.h"
#include "norms/norms.h"
#include "norms/plan.h"
#include "norms/row.h"
#include "surgery/affine.h"
#include "surgery/surgery.h"

enum { MOST_READERS = 8 };
struct readers { const struct nr_node *node[MOST_READERS]; int count; const char *why; };

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot fold the norms", NULL, "out of memory"); }

/* ---- the graph ------------------------------------------------------------------------------------------------------------ */

static bool is_op(const struct nr_node *k, const char *name) { return !strcmp(k->op->name, name); }

/* What the nodes of a scope make in the end; NULL: there are none. */
static const nr_t *made_in(const struct nr_net *n, const char *scope)
{
	const size_t len = strlen(scope);
	const nr_t *last = NULL;
	for (int32_t i = 0; i < n->n_node; i++) {
		const char *s = n->node[i]->where.scope;
		if (s && !strncmp(s, scope, len) && (!s[len] || s[len] == '.')) last = n->node[i]->out[0];
	}
	return last;
}

static int reads(const struct nr_node *k, const nr_t *t)    /* which input t is; -1: none */
{
	for (int32_t i = 0; i < k->n_in; i++)
		if (k->in[i] == t) return i;
	return -1;
}

static int64_t users(const struct nr_net *n, const nr_t *t)
{
	int64_t count = 0;
	for (int32_t i = 0; i < n->n_node; i++) count += reads(n->node[i], t) >= 0;
	return count;
}

/* Tokens are cut, averaged or, in training, dropped; channels are not touched: a gain and a bias may as well come later. */
static bool keeps_channels(const struct nr_node *k)
{
	if (is_op(k, "span") || is_op(k, "pack") || is_op(k, "mean_tokens") || is_op(k, "dropout")) return true;
	return is_op(k, "reshape") && nr_cols(k->in[0]) == nr_cols(k->out[0]);
}

static void find_readers(const struct nr_net *n, const nr_t *t, struct readers *r)
{
	int64_t found = 0;
	for (int32_t i = 0; i < n->n_node && !r->why; i++) {
		const struct nr_node *k = n->node[i];
		const int at = reads(k, t);
		if (at < 0) continue;
		found++;
		if (at == 0 && keeps_channels(k)) find_readers(n, k->out[0], r);
		else if (is_op(k, "add") || is_op(k, "add_reversible")) r->why = "the residual stream reads it";
		else if (!is_op(k, "linear") || at != 0)
			r->why = nr_arena_printf(n->arena, "%s reads it, which is not a linear layer", k->op->name);
		else if (!k->in[1]->entry || users(n, k->in[1]) > 1) r->why = "a layer with shared weights reads it";
		else if (r->count == MOST_READERS) r->why = "too many layers read it";
		else r->node[r->count++] = k;
	}
	if (!found && !r->why) r->why = "it is an output of the model";
}

const char nr_fold_bare[] = "it has no gain";

/* ---- the norm in numbers ---------------------------------------------------------------------------------------------------- */

/* What folds of the norm at a site, whose output is y, and what it becomes; NULL: nothing, and *why. */
static const char *affine_of(const struct nr_net *n, const struct nr_store *store, const struct nr_site *site,
	const struct nr_affine_norm *p, const nr_t *y, struct nr_affine *a, const char **why)
{
	const int64_t C = nr_cols(y);
	const struct nr_entry *weight = nr_affine_part(store, site->name, "weight"), *bias = nr_affine_part(store, site->name, "bias");
	const bool batch = nr_affine_is(p, "batch") || nr_affine_is(p, "repbn"), later = nr_affine_is(p, "prepbn");
	if (batch || later) {
		nr_affine_running(store, later ? nr_arena_printf(n->arena, "%s.norm2", site->name) : site->name,
			nr_affine_number(p, "eps", 1e-5), C, a);
		return "none";
	}
	if (nr_affine_is(p, "taper")) {
		const struct nr_entry *factor = nr_affine_part(store, site->name, "c");
		const struct nr_entry *scale = nr_affine_part(store, site->name, "scale_weight");
		if (nr_affine_value(nr_affine_part(store, site->name, "gate"), 0, nr_affine_number(p, "gate", 1)) > 0)
			return *why = "its gate is not 0: the training was not long enough", NULL;
		for (int64_t i = 0; i < C; i++) a->s[i] = nr_affine_value(factor, 0, 1) * nr_affine_value(scale, i, 1), a->t[i] = 0;
		return "none";
	}
	if (nr_affine_is(p, "sep")) return *why = "special tokens and others have norms of their own, but share the next layer", NULL;
	const bool constant = nr_affine_is(p, "none") && !nr_affine_has(p, "gain", "head");
	if (!constant && !nr_affine_is(p, "layer") && !nr_affine_is(p, "rms") && !nr_affine_is(p, "dyt") && !nr_affine_is(p, "derf"))
		return *why = "its gain depends on the tokens, or is one for each head", NULL;
	if (!weight && !bias) return *why = nr_fold_bare, NULL;
	const struct nr_row_norm *row = nr_affine_is(p, "layer") || nr_affine_is(p, "rms") ? y->src->attr : NULL;
	for (int64_t i = 0; i < C; i++) {
		a->s[i] = (row ? (double)row->offset : 0) + nr_affine_value(weight, i, 1);
		a->t[i] = (row ? (double)row->times : 1) * nr_affine_value(bias, i, 0);
	}
	if (constant) return "none";
	if (!row) return nr_arena_printf(n->arena, "%s:affine=0", p->norm->name);
	return nr_arena_printf(n->arena, "%s:affine=0,eps=%.9g%s", p->norm->name, nr_affine_number(p, "eps", 0),
		nr_affine_has(p, "scale", "depth") ? ",scale=depth" : "");
}

static bool has_shift(const struct nr_affine *a, int64_t C)
{
	for (int64_t i = 0; i < C; i++)
		if (a->t[i] != 0) return true;
	return false;
}

/* ---- one site --------------------------------------------------------------------------------------------------------------- */

static struct nr_affine_layer layer_of(const struct nr_node *k)
{
	return (struct nr_affine_layer){ k->in[1]->entry, k->n_in > 2 ? k->in[2]->entry : NULL };
}

/* Into the columns of each reader; values of the store change. */
static void into_columns(const struct readers *r, const struct nr_affine *a)
{
	for (int k = 0; k < r->count; k++) {
		const struct nr_affine_layer l = layer_of(r->node[k]);
		nr_affine_before(a, &l, &l);
	}
}

static int fold_site(const struct nr_net *n, struct nr_store *store, const struct nr_site *site, struct nr_fold_site *out,
	struct nr_error *err)
{
	struct readers r = { .count = 0 };
	struct nr_affine_norm p;
	const nr_t *y = made_in(n, site->name);
	if (nr_affine_parse(n, site->norm, &p, err)) return err->code;
	if (!y) return out->why = "it does nothing", NR_OK;
	const int64_t C = nr_cols(y);
	struct nr_affine a;
	if (nr_affine_make(&a, C, n->arena, err)) return err->code;
	find_readers(n, y, &r);
	if ((out->why = r.why)) return NR_OK;
	const char *became = affine_of(n, store, site, &p, y, &a, &out->why);
	if (!became) return out->why ? NR_OK : out_of_memory(err);
	for (int k = 0; k < r.count; k++) {
		const struct nr_node *l = r.node[k];
		if (l->in[1]->entry->count / l->in[1]->entry->d[0] != C) return out->why = "its width is not that of the next layer", NR_OK;
		if (has_shift(&a, C) && (l->n_in < 3 || !l->in[2]->entry))
			return out->why = "the next layer has no bias to take the norm's", NR_OK;
	}
	into_columns(&r, &a);
	out->became = became;
	return NR_OK;
}

/* gamma of a LayerScale into the rows of the layer before it. */
static int fold_gamma(const struct nr_net *n, const struct nr_node *k, struct nr_fold_site *out, struct nr_error *err)
{
	const nr_t *x = k->in[0];
	const struct nr_node *l = NULL;
	for (int32_t i = 0; i < n->n_node; i++)
		if (n->node[i]->out[0] == x) l = n->node[i];
	if (!l || !is_op(l, "linear") || !l->in[1]->entry || users(n, x) > 1 || users(n, l->in[1]) > 1) {
		out->why = "no linear layer of its own stands before it";
		return NR_OK;
	}
	const struct nr_affine_layer layer = layer_of(l);
	const int64_t rows = layer.weight->d[0];
	struct nr_affine a;
	if (nr_affine_make(&a, rows, n->arena, err)) return err->code;
	for (int64_t i = 0; i < rows; i++) a.s[i] = nr_affine_value(k->in[1]->entry, i, 1), a.t[i] = 0;
	nr_affine_behind(&a, &layer, &layer);
	out->became = "none";
	return NR_OK;
}

/* ---- all of them -------------------------------------------------------------------------------------------------------------- */

static bool is_gamma(const struct nr_node *k)
{
	const char *name = is_op(k, "scale_channels") && k->in[1]->entry ? k->in[1]->entry->name : "";
	const size_t n = strlen(name);
	return n > 12 && !strcmp(name + n - 12, ".scale.gamma");
}

/* The scope that makes the last tokens, where these are what the model is for: an encoder of texts without a head. NULL: elsewhere. */
static const char *output_scope(const struct nr_weights *w, struct nr_error *err)
{
	struct nr_store *store = NULL;
	const char *scope = NULL;
	if (w->model.of->reads != NR_TEXTS || nr_weights_has_head(w) || nr_store_make(&store, 0, err)) return NULL;
	struct nr_net *n = nr_net_make(store);
	if (n && !nr_norms_use(n, w->norms, &w->model.norms, err)) {
		const struct nr_inputs in = nr_model_inputs(n, &w->model, 1);
		const nr_t *tokens = nr_model_tokens(n, &w->model, &in);
		for (int32_t i = 0; i < n->n_node; i++)
			if (n->node[i]->out[0] == tokens) scope = nr_arena_strdup(w->arena, n->node[i]->where.scope);
	}
	nr_net_free(n);
	nr_store_free(store);
	return scope;
}

int nr_fold_recorded(const struct nr_net *n, struct nr_store *store, const char *output, struct nr_arena *arena, struct nr_folding *f,
	struct nr_error *err)
{
	int64_t sites, gammas = 0;
	const struct nr_site *site = nr_sites(n, &sites);
	*f = (struct nr_folding){ 0 };
	for (int32_t i = 0; i < n->n_node; i++) gammas += is_gamma(n->node[i]);
	if (!(f->site = nr_arena_alloc(arena, (size_t)(sites + gammas + 1) * sizeof *f->site))) return out_of_memory(err);
	for (int64_t i = 0; i < sites; i++) {
		if (!site[i].norm) continue;
		struct nr_fold_site *out = &f->site[f->sites++];
		*out = (struct nr_fold_site){ .name = nr_arena_strdup(arena, site[i].name),
			.norm = nr_arena_strdup(arena, site[i].norm) };
		if (!out->name || !out->norm) return out_of_memory(err);
		if (output && !strcmp(output, site[i].name)) out->why = "the tokens behind it are the model's output";
		else if (fold_site(n, store, &site[i], out, err)) return err->code;
	}
	for (int32_t i = 0; i < n->n_node; i++) {
		if (!is_gamma(n->node[i])) continue;
		const char *name = n->node[i]->in[1]->entry->name;
		struct nr_fold_site *out = &f->site[f->sites++];
		*out = (struct nr_fold_site){ .name = nr_arena_printf(arena, "%.*s", (int)strlen(name) - 6, name),
			.norm = "LayerScale" };
		if (!out->name) return out_of_memory(err);
		if (fold_gamma(n, n->node[i], out, err)) return err->code;
	}
	for (int64_t i = 0; i < f->sites; i++) {
		struct nr_fold_site *s = &f->site[i];
		if (s->became) s->became = nr_arena_strdup(arena, s->became);
		if (s->why) s->why = nr_arena_strdup(arena, s->why);
		f->folded += s->became != NULL;
	}
	return NR_OK;
}

/* ---- the new plan --------------------------------------------------------------------------------------------------------------- */

/* "blocks.3.attn.in" without its numbers: "attn.in"; "final" is its own. */
static const char *local(const char *name)
{
	const char *from = name;
	for (const char *s = name; *s; s++)
		if (s[0] == '.' && s[1] >= '0' && s[1] <= '9') from = strchr(s + 1, '.') ? strchr(s + 1, '.') + 1 : name;
	return from;
}

static bool is_scale(const struct nr_fold_site *s) { return !strcmp(s->norm, "LayerScale"); }

/* Do all sites of this local name become the same? Then one rule is enough. Not where some have no norm: it would give them one. */
static bool alike(const struct nr_net *n, const struct nr_folding *f, const struct nr_fold_site *s)
{
	int64_t sites;
	const struct nr_site *site = nr_sites(n, &sites);
	for (int64_t i = 0; i < sites; i++)
		if (!site[i].norm && !strcmp(local(site[i].name), local(s->name))) return false;
	for (int64_t i = 0; i < f->sites; i++) {
		const struct nr_fold_site *o = &f->site[i];
		if (strcmp(local(o->name), local(s->name)) != 0) continue;
		if (!o->became || strcmp(o->became, s->became) != 0) return false;
	}
	return true;
}

static bool said(const struct nr_folding *f, const struct nr_fold_site *s)
{
	for (const struct nr_fold_site *o = f->site; o < s; o++)
		if (!strcmp(local(o->name), local(s->name))) return true;
	return false;
}

/* The old plan, with the model's own norm where it named none, and a rule for what became of each site. */
static const char *new_plan(const struct nr_weights *w, const struct nr_net *was, const struct nr_folding *f)
{
	struct nr_str text = { 0 };
	const struct nr_norm_defaults *d = &w->model.norms;
	bool own = false, gammas = false, all = true;
	for (const char *s = w->norms; s && *s; s += strcspn(s, " "), s += strspn(s, " "))
		own |= strncmp(s, "placement=", 10) && strncmp(s, "patch=", 6) && strncmp(s, "residual=", 9) && strncmp(s, "eps=", 4) &&
			strncmp(s, "qk=", 3);
	if (!own) nr_str_printf(&text, "%s ", d->plan ? d->plan : d->norm);
	nr_str_add(&text, w->norms ? w->norms : "");
	for (int64_t i = 0; i < f->sites; i++) {
		const struct nr_fold_site *s = &f->site[i];
		if (is_scale(s)) {
			gammas = true;
			all &= s->became != NULL;
			continue;
		}
		if (!s->became) continue;
		const bool one = alike(was, f, s);
		if (one && said(f, s)) continue;
		const char *where = one ? local(s->name) : nr_pattern_of(s->name, w->arena);
		text.failed |= !where;
		if (where) nr_str_printf(&text, " %s=%s", where, s->became);
	}
	if (gammas && all) nr_str_add(&text, " residual=plain");
	const char *out = text.failed ? NULL : nr_arena_strdup(w->arena, nr_str_text(&text) + strspn(nr_str_text(&text), " "));
	nr_str_release(&text);
	return out;
}

static int64_t size_of(const struct nr_store *s)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < nr_store_count(s); i++) sum += nr_store_at(s, i)->count;
	return sum;
}

static void copy_values(const struct nr_store *from, struct nr_store *to)
{
	for (int64_t i = 0; i < nr_store_count(to); i++) {
		const struct nr_entry *e = nr_store_at(to, i), *old = nr_store_find(from, e->name);
		if (old && old->count == e->count) memcpy(nr_value(e), nr_value(old), (size_t)e->count * sizeof(real));
	}
}

/* A LayerScale that stays keeps all of them: those that would fold get a gamma of 1. */
static void keep_gammas(struct nr_folding *f, struct nr_store *store)
{
	bool all = true;
	for (int64_t i = 0; i < f->sites; i++) all &= !is_scale(&f->site[i]) || f->site[i].became;
	for (int64_t i = 0; i < f->sites && !all; i++) {
		const struct nr_fold_site *s = &f->site[i];
		const struct nr_entry *g = is_scale(s) && s->became ? nr_affine_part(store, s->name, "gamma") : NULL;
		for (int64_t k = 0; g && k < g->count; k++) nr_value(g)[k] = 1;
	}
}

int nr_fold_norms(struct nr_weights *w, struct nr_folding *f, struct nr_error *err)
{
	struct nr_store *copy = NULL, *store = NULL;
	struct nr_net *was = NULL, *now = NULL;
	*f = (struct nr_folding){ 0 };
	int code = nr_store_make(&copy, 0, err);
	if (!code && !(was = nr_surgery_record(w, copy, w->norms, err))) code = err->code;
	if (!code) code = nr_store_seal(copy, err);
	if (!code) copy_values(w->store, copy);
	const char *output = code ? NULL : output_scope(w, err);
	if (!code) code = err->code ? (int)err->code : nr_fold_recorded(was, copy, output, w->arena, f, err);
	const char *plan = code ? NULL : new_plan(w, was, f);
	if (!code && !plan) code = out_of_memory(err);
	if (!code) keep_gammas(f, copy);
	if (!code) code = nr_store_make(&store, 0, err);
	if (!code && !(now = nr_surgery_record(w, store, plan, err))) code = err->code;
	if (!code) code = nr_store_seal(store, err);
	if (!code) {
		copy_values(copy, store);
		f->before = size_of(w->store);
		f->after = size_of(store);
		nr_store_free(w->store);
		w->store = store;
		w->norms = plan;
	} else {
		nr_store_free(store);
	}
	nr_net_free(was);
	nr_net_free(now);
	nr_store_free(copy);
	return code;
}
