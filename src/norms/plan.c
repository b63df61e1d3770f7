/* The norm plan of a net: which norm a site gets. */
#include "norms/plan.h"

#include "base/str.h"
#include "graph/net.h"
#include "norms/norms.h"

int nr_norms_use(struct nr_net *n, const char *text, const struct nr_norm_defaults *d, struct nr_error *err)
{
	struct nr_norm_plan *p = nr_arena_alloc(n->arena, sizeof *p);
	if (!p) return nr_fail(err, NR_EMEMORY, "norm plan", text, "out of memory");
	*p = (struct nr_norm_plan){ .arena = n->arena, .defaults = *d };
	const int code = nr_norm_plan_parse(p, text ? text : "", err);
	if (!code) n->norms = p;
	return code;
}

double nr_norms_eps(const struct nr_net *n) { return n->norms ? n->norms->defaults.eps : 0; }

/* How many blocks there are of the one whose number stands at `at` in the scope. */
static int64_t count_at(const void *net, int64_t at)
{
	const struct nr_net *n = net;
	int32_t d = n->depth;
	while (d > 0 && n->mark[d - 1] > at) d--;
	return d > 0 ? n->of[d - 1] : 0;
}

/* use: the rules that match have been of use. */
static struct nr_rule *rule_of(struct nr_net *n, const char *site, const char *full, bool use)
{
	struct nr_norm_plan *p = n->norms;
	struct nr_rule *last = NULL;
	const struct nr_site_name name = { full, site, count_at, n };
	for (int32_t i = 0; i < p->rules; i++) {
		if (!nr_pattern_match(p, p->rule[i].pattern, &name)) continue;
		p->rule[i].used += use;
		last = &p->rule[i];
	}
	return last;
}

static const char *full_name(struct nr_net *n, const char *site)
{
	return nr_arena_printf(n->arena, "%s%s%s", n->scope, n->scope[0] ? "." : "", site);
}

bool nr_norm_there(struct nr_net *n, const char *site)
{
	const char *full = n->norms ? full_name(n, site) : NULL;
	const struct nr_rule *r = full ? rule_of(n, site, full, false) : NULL;
	return r && strcmp(r->norm, "none") != 0;
}

static int remember(struct nr_net *n, const char *full, const struct nr_rule *r)
{
	struct nr_norm_plan *p = n->norms;
	if (p->n_seen == p->cap_seen) {
		const int64_t cap = p->cap_seen ? 2 * p->cap_seen : 64;
		struct nr_site *more = nr_arena_alloc(p->arena, (size_t)cap * sizeof *more);
		if (!more) return NR_EMEMORY;
		if (p->n_seen) memcpy(more, p->seen, (size_t)p->n_seen * sizeof *more);
		p->seen = more;
		p->cap_seen = cap;
	}
	p->seen[p->n_seen++] = (struct nr_site){ full, r && strcmp(r->norm, "none") ? r->norm : NULL, r ? r->text : NULL };
	return NR_OK;
}

const char *nr_norm_at(struct nr_net *n, const char *site)
{
	if (!n->norms) {
		nr_net_fail(n, NR_EUSAGE, site, "the net has no norm plan (nr_norms_use)");
		return NULL;
	}
	const char *full = full_name(n, site);
	const struct nr_rule *r = full ? rule_of(n, site, full, true) : NULL;
	if (!full || remember(n, full, r)) nr_net_fail(n, NR_EMEMORY, site, "out of memory");
	return r && strcmp(r->norm, "none") ? r->norm : NULL;
}

nr_t *nr_norm(struct nr_net *n, const char *site, nr_t *x)
{
	if (!x) return NULL;
	const char *text = nr_norm_at(n, site);
	if (!text) return n->error.code ? NULL : x;
	const char *full = n->norms->seen[n->norms->n_seen - 1].name;
	const struct nr_norm_watch *w = &n->norms->watch;
	nr_t *y = nr_norm_make(n, site, text, x);
	return y && w->at ? w->at(w->context, n, site, full, x, y) : y;
}

nr_t *nr_branch(struct nr_net *n, const char *branch, nr_t **x)
{
	const char *carry = nr_arena_printf(n->arena, "%s.carry", branch), *in = nr_arena_printf(n->arena, "%s.in", branch);
	if (!carry || !in) return nr_net_fail(n, NR_EMEMORY, branch, "out of memory");
	if (n->norms) n->norms->block_seen = true;
	*x = nr_norm(n, carry, *x);
	return nr_norm(n, in, *x);
}

void nr_norms_watch(struct nr_net *n, struct nr_norm_watch watch)
{
	if (n->norms) n->norms->watch = watch;
}

int nr_site_matches(struct nr_net *n, const char *pattern, const char *site, const char *full)
{
	return nr_pattern_match(n->norms, pattern, &(struct nr_site_name){ full, site, count_at, n });
}

const struct nr_site *nr_sites(const struct nr_net *n, int64_t *count)
{
	*count = n->norms ? n->norms->n_seen : 0;
	return n->norms ? n->norms->seen : NULL;
}

/* The site's name without scopes and numbers, so that a misspelt one finds its neighbour: "attn.in". */
static const char *local_name(const char *full)
{
	const char *s = full + strlen(full);
	for (int dots = 0; s > full && !(s[-1] == '.' && ++dots == 2);) s--;
	return s;
}

/* Layouts and BRANCH.carry are things of nr_block: other blocks would leave them out without a word. */
static int check_block(const struct nr_norm_plan *p, struct nr_error *err)
{
	bool needed = p->layout != NR_LAYOUT_SERIAL;
	for (int32_t i = 0; i < p->n_sites; i++) needed |= strstr(p->sites[i], ".carry") != NULL;
	if (!needed || p->block_seen) return NR_OK;
	nr_fail(err, NR_EVALUE, "cannot place the norms as in", p->placement, "the blocks of this model are built otherwise");
	return nr_hint(err, "ViT, BERT and Graphormer take it; `norma plan --sites` lists the sites of this model");
}

int nr_norms_done(struct nr_net *n, struct nr_error *err)
{
	const struct nr_norm_plan *p = n->norms;
	if (n->error.code) {
		if (err) *err = n->error;
		return n->error.code;
	}
	for (int32_t i = 0; p && i < p->rules; i++) {
		const struct nr_rule *r = &p->rule[i];
		if (r->used || !strcmp(r->pattern, "*")) continue;
		struct nr_near near = { .word = r->pattern };
		for (int64_t k = 0; k < p->n_seen; k++) {
			nr_near_try(&near, local_name(p->seen[k].name));
			nr_near_try(&near, p->seen[k].name);
		}
		nr_fail(err, NR_ENAME, "no site matches the rule", r->text, "the model has no such site");
		if (near.best) return nr_hint(err, "did you mean '%s'? `norma plan --sites` lists them", near.best);
		return nr_hint(err, "`norma plan --sites` lists the sites");
	}
	return p ? check_block(p, err) : NR_OK;
}
