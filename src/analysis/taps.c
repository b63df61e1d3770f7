/* Recording with taps. See taps.h. */
#include "analysis/taps.h"

#include <stdio.h>

#include "base/real.h"
#include "base/str.h"
#include "graph/net.h"
#include "models/text_heads.h"
#include "nn/op.h"
#include "nn/sparse.h"
#include "norms/norms.h"

struct recording {
	struct nr_taps *t;
	const struct nr_weights *w;
	const char *patterns;
	uint64_t used;                      /* bit i: pattern i matched */
	unsigned want;
	int64_t room, in_blocks;            /* of sites; norms of the blocks seen so far */
};

/* Its values stay readable; a tensor that is a tap already keeps its name. */
static nr_t *keep(struct nr_net *n, nr_t *x) { return x && x->flags & NR_TAP ? x : nr_tap(n, "kept", x); }

/* The i-th of the words, into buf; false: there are fewer. */
static bool word_at(const char *words, int i, char *buf, size_t size)
{
	for (;; i--) {
		words += strspn(words, " ");
		const size_t n = strcspn(words, " ");
		if (!n) return false;
		if (!i) return snprintf(buf, size, "%.*s", (int)n, words), true;
		words += n;
	}
}

static bool chosen(struct recording *r, struct nr_net *n, const char *site, const char *full)
{
	char pattern[128];
	bool wanted = false;
	if (!r->patterns) return strncmp(full, "blocks.", 7) ? r->in_blocks > 0 : !r->in_blocks++;
	for (int i = 0; i < 64 && word_at(r->patterns, i, pattern, sizeof pattern); i++) {
		if (!nr_site_matches(n, pattern, site, full)) continue;
		r->used |= (uint64_t)1 << i;
		wanted = true;
	}
	return wanted;
}

static nr_t *at_site(void *context, struct nr_net *n, const char *site, const char *full, nr_t *before, nr_t *after)
{
	struct recording *r = context;
	struct nr_taps *t = r->t;
	if (!(r->want & NR_TAPS_SITES) || before->nd != 3 || !chosen(r, n, site, full)) return after;
	if (t->sites == r->room) return nr_net_fail(n, NR_ELIMIT, full, "more than %lld sites", (long long)r->room);
	nr_t *kept = keep(n, after);
	t->site[t->sites++] = (struct nr_site_tap){ full, keep(n, before), kept };
	return kept;
}

static int check_patterns(const struct recording *r, struct nr_error *err)
{
	char pattern[128];
	for (int i = 0; r->patterns && r->want & NR_TAPS_SITES && i < 64 && word_at(r->patterns, i, pattern, sizeof pattern); i++) {
		if (r->used >> i & 1) continue;
		nr_fail(err, NR_ENAME, "no norm at the site", pattern, "the model has no norm over tokens there");
		struct nr_near near = { .word = pattern };
		int64_t count;
		const struct nr_site *s = nr_sites(r->t->net, &count);
		for (int64_t k = 0; k < count; k++)
			if (s[k].norm) nr_near_try(&near, s[k].name);
		if (near.best) return nr_hint(err, "did you mean '%s'?", near.best);
		return nr_hint(err, "`norma plan --sites` lists the sites of a model");
	}
	return NR_OK;
}

bool nr_taps_has_cls(const struct nr_weights *w, const nr_t *x)
{
	const int64_t registers = nr_model_int(&w->model, "registers");
	if (w->model.of->reads != NR_PICTURES) return x->tok && x->tok->special > 0;
	return nr_model_int(&w->model, "class_token") > 0 && x->tok && x->tok->special > (registers > 0 ? registers : 0);
}

static void add_layer(struct nr_taps *t, const struct nr_weights *w, const char *name, nr_t *x)
{
	if (!x || x->nd != 3) return;
	t->layer[t->layers++] = (struct nr_layer_tap){ name, x, x->tok ? x->tok->special : 0, nr_taps_has_cls(w, x) };
}

static struct nr_attention_tap attention_of(struct nr_net *n, const struct nr_node *k)
{
	struct nr_attention_tap t = { .name = k->where.scope, .sparse = nr_is_sparse(k->op) ? k : NULL };
	for (int i = 0; t.sparse && i < k->n_in; i++) t.in[i] = keep(n, k->in[i]);
	t.qkv = keep(n, k->in[0]);
	if (!t.sparse && k->n_in > 1 && k->in[1]->dtype == NR_REAL) t.bias = keep(n, k->in[1]);
	return t;
}

/* Attention and DTN are told by their ops; the scope says where they stand. */
static void find_ops(struct recording *r, int32_t recorded)
{
	struct nr_taps *t = r->t;
	for (int32_t i = 0; i < recorded; i++) {
		const struct nr_node *k = t->net->node[i];
		for (int j = 0; nr_norm_dtn.op[j]; j++)
			if (k->op == nr_norm_dtn.op[j]) t->dtn[t->dtns++] = k;
		if (!(r->want & NR_TAPS_ATTENTION) || (k->op != &nr_op_attention && !nr_is_sparse(k->op))) continue;
		t->attention[t->attentions++] = attention_of(t->net, k);
	}
}

static int record(struct recording *r, int64_t batch, struct nr_error *err)
{
	struct nr_taps *t = r->t;
	const struct nr_model_spec *m = &r->w->model;
	const int64_t depth = nr_model_int(m, "depth");
	struct nr_net *n = t->net;
	if (nr_norms_use(n, r->w->norms, &m->norms, err)) return err->code;
	nr_norms_watch(n, (struct nr_norm_watch){ at_site, r });
	nr_net_keep_hidden(n, 1);
	struct nr_inputs in;
	if (t->graphs) {
		nr_mol_inputs(&t->inputs, n, t->graphs->form, batch, t->graphs->nodes, false);
		in = t->inputs.in;
	} else {
		in = nr_model_inputs(n, m, batch);
	}
	t->image = in.image, t->ids = in.ids, t->valid = in.valid;
	nr_t *embed = nr_tap(n, "embed", m->of->embed(n, &in, m->conf));
	nr_t *x = m->of->encode(n, &in, embed, m->conf);
	const bool pools = !in.ids || nr_store_find(r->w->store, "pooler.dense.weight");       /* a text model need not */
	t->pooled = pools ? m->of->pool(n, x, m->conf) : nr_first_token(n, x);
	if (nr_norms_done(n, err)) return err->code;
	const int32_t recorded = n->n_node;
	struct nr_arena *a = n->arena;
	t->layer = nr_arena_alloc(a, (size_t)(depth + 2) * sizeof *t->layer);
	t->attention = nr_arena_alloc(a, (size_t)recorded * sizeof *t->attention);
	t->dtn = nr_arena_alloc(a, (size_t)recorded * sizeof *t->dtn);
	if (!t->layer || !t->attention || !t->dtn) return nr_fail(err, NR_EMEMORY, "cannot record the model", m->text, "out of memory");
	find_ops(r, recorded);
	add_layer(t, r->w, "embed", embed);
	nr_t *last = NULL;
	for (int64_t i = 0; i < depth; i++) {
		const char *name = nr_arena_printf(a, "block%lld", (long long)i);
		for (int32_t k = 0; name && k < n->n_tensor; k++)
			if (n->tensor[k]->flags & NR_TAP && !strcmp(n->tensor[k]->name, name)) last = n->tensor[k];
		if (last) add_layer(t, r->w, name, last);
	}
	if (x != last) add_layer(t, r->w, "final", keep(n, x));
	if (!n->error.code && check_patterns(r, err)) return err->code;
	return nr_plan_make(&t->plan, n, t->pooled, 0, err);
}

int nr_taps_open_graphs(struct nr_taps *t, const struct nr_weights *w, const struct nr_mol_view *graphs, int64_t batch, unsigned want,
	const char *patterns, struct nr_error *err)
{
	struct recording r = { .t = t, .w = w, .patterns = patterns, .want = want, .room = 1024 };
	const int64_t N = graphs ? graphs->nodes : 0;
	*t = (struct nr_taps){ .net = nr_net_make(w->store), .batch = batch, .heads = nr_model_int(&w->model, "heads"), .graphs = graphs };
	if (!t->net) return nr_fail(err, NR_EMEMORY, "cannot record the model", w->model.text, "out of memory");
	t->site = nr_arena_alloc(t->net->arena, (size_t)r.room * sizeof *t->site);
	t->nodes = nr_arena_alloc(t->net->arena, (size_t)batch * sizeof *t->nodes);
	t->steps = nr_arena_alloc(t->net->arena, (size_t)(batch * N * N) * sizeof *t->steps + 1);
	const int code = t->site && t->nodes && t->steps ? record(&r, batch, err)
				 : nr_fail(err, NR_EMEMORY, "cannot record the model", w->model.text, "out of memory");
	if (code) nr_taps_close(t);
	return code;
}

int nr_taps_open(struct nr_taps *t, const struct nr_weights *w, int64_t batch, unsigned want, const char *patterns, struct nr_error *err)
{
	return nr_taps_open_graphs(t, w, NULL, batch, want, patterns, err);
}

void nr_taps_run(struct nr_taps *t, const float *image)
{
	const struct nr_exec ex = { .train = 0 };
	nr_from_floats(nr_plan_data(t->plan, t->image), image, nr_len(t->image));
	nr_plan_run(t->plan, &ex, NR_RUN_FORWARD);
}

void nr_taps_run_texts(struct nr_taps *t, const int32_t *ids)
{
	int32_t *valid = nr_plan_data(t->plan, t->valid);
	memcpy(nr_plan_data(t->plan, t->ids), ids, (size_t)nr_len(t->ids) * sizeof *ids);
	for (int64_t i = 0; i < t->batch; i++) valid[i] = (int32_t)t->ids->d[1];
	nr_plan_run(t->plan, &(struct nr_exec){ .train = 0 }, NR_RUN_FORWARD);
}

/* What is read afterwards is copied: the plan may put other things into the place of its inputs. */
void nr_taps_run_graphs(struct nr_taps *t, int64_t first, int64_t count, bool train)
{
	const struct nr_mol_view *g = t->graphs;
	nr_mol_bind_from(g->form, g->list, t->plan, &t->inputs, first, count);
	memcpy(t->nodes, nr_plan_data(t->plan, t->inputs.in.valid), (size_t)t->batch * sizeof *t->nodes);
	memcpy(t->steps, nr_plan_data(t->plan, t->inputs.in.distance), (size_t)nr_len(t->inputs.in.distance) * sizeof *t->steps);
	nr_plan_run(t->plan, &(struct nr_exec){ .train = train, .no_dropout = 1 }, NR_RUN_FORWARD);
}

void nr_taps_close(struct nr_taps *t)
{
	nr_plan_free(t->plan);
	nr_net_free(t->net);
	*t = (struct nr_taps){ 0 };
}

int64_t nr_taps_count(const struct nr_taps *t, const nr_t *x, int64_t special, int64_t i)
{
	return t->graphs ? special + t->nodes[i] : x->d[1];
}

const real *nr_taps_cls(const struct nr_taps *t, const nr_t *x, int64_t i, bool has)
{
	return has ? (const real *)nr_plan_data(t->plan, x) + i * x->d[1] * x->d[2] : NULL;
}

const real *nr_taps_token(const struct nr_taps *t, const nr_t *x, int64_t special, int64_t i, int64_t number)
{
	const int64_t T = x->d[1], C = x->d[2], N = nr_taps_count(t, x, special, i) - special;
	return N > 0 ? (const real *)nr_plan_data(t->plan, x) + (i * T + special + number % N) * C : NULL;
}
