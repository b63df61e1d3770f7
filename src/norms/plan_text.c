/* Reading a norm plan: items to rules. See norm.h for the grammar. */
#include "base/str.h"
#include "norms/choice.h"
#include "norms/norms.h"
#include "norms/plan.h"

/* ---- placements: which sites are the default ones ---------------------------------------------------------------- */

/* Of one branch, `@` standing for attn or mlp. open: the residual stream leaves the block without a norm, so that a final
 * one is wanted. */
static const struct placement { const char *name, *sites; bool open; } placements[] = {
	{ "pre", "@.in", true },                     /* x + F(N(x)) */
	{ "post", "@.res", false },                  /* N(x + F(x)) */
	{ "prepost", "@.in @.res", false },          /* N(x + F(N(x))) */
	{ "sandwich", "@.in @.out", true },          /* x + N(F(N(x))) */
	{ "respost", "@.out", true },                /* x + N(F(x)) */
	{ "none", "", true },
	{ NULL, NULL, false },
};
/* Of whole blocks, with rules of their own. */
static const struct whole {
	const char *name, *sites, *rule;
	bool subln, closed;                     /* closed: no final norm */
	enum nr_residual_kind residual;         /* PLAIN: as it was */
	enum nr_qk qk;
	enum nr_block_layout layout;
} wholes[] = {
	{ "normformer", "attn.in attn.out mlp.in mlp.inner", "attn.heads=none:gain=head" },
	{ "subln", "attn.in attn.inner mlp.in mlp.inner", .subln = true },
	{ "subln_before_act", "attn.in attn.inner mlp.in mlp.hidden", .subln = true },
	/* Peri-LN, arXiv:2502.02732: sandwich by another name; with the norm of the embedding that it leaves open */
	{ "peri", "attn.in attn.out mlp.in mlp.out" },
	{ "peri_embed", "embed attn.in attn.out mlp.in mlp.out" },
	/* Mix-LN, arXiv:2412.13795: post in the first blocks, pre in the others; mix:post=K says in how many */
	{ "mix", "blocks[:25%].attn.res blocks[:25%].mlp.res blocks[25%:].attn.in blocks[25%:].mlp.in" },
	/* HybridNorm, arXiv:2503.04598: x + attn(x) with q, k and v normed, then z = N(y), z + MLP(z); star: block 0 is pre */
	{ "hybrid", "attn.qk attn.v mlp.carry" },
	{ "hybrid_star", "attn.qk attn.v blocks[0].attn.in blocks[0].mlp.in blocks[1:].mlp.carry" },
	/* Keel, arXiv:2601.19895: N(a x + F(N(x))) */
	{ "keel", "attn.in attn.res mlp.in mlp.res", .closed = true, .residual = NR_RESIDUAL_KEEL },
	/* nGPT, arXiv:2410.01131: hidden states and rows of weights on the sphere */
	{ "ngpt", "", .residual = NR_RESIDUAL_NGPT, .layout = NR_LAYOUT_NGPT },
	/* x + attn(N(x)) + MLP(N(x)) with one norm: PaLM, ViT-22B, Cohere */
	{ "parallel", "attn.in", .layout = NR_LAYOUT_PARALLEL },
	/* OLMo 2: x + N(F(x)), queries and keys normed over their whole width. Gemma 2: sandwich, with rms:offset=1 */
	{ "olmo2", "attn.out mlp.out attn.qk", .qk = NR_QK_WIDTH },
	{ "gemma2", "attn.in attn.out mlp.in mlp.out" },
	{ NULL },
};
static const struct patch { const char *name, *in, *out, *pos; } patches[] = {
	{ "none", "none", "none", "none" },
	{ "dual", "layer", "layer", "none" },
	{ "pre", "layer", "none", "none" },
	{ "post", "none", "layer", "none" },
	{ "post_posemb", "none", "none", "layer" },
	{ "rms", "rms", "rms", "none" },
	{ "only_learnable", "none:gain=channel,bias=1", "none:gain=channel,bias=1", "none" },
	{ "no_learnable", "layer:affine=0", "layer:affine=0", "none" },
	{ NULL, NULL, NULL, NULL },
};
static const char *const residuals[] = { "plain", "layerscale", "rezero", "deepnorm", "keel", "ngpt", NULL };
static const char *const scopes[] = { "head", "heads", "width", NULL };         /* of qk=, by enum nr_qk */

const char *const *nr_placements(void)
{
	static const char *const names[] = { "pre", "post", "prepost", "sandwich", "respost", "none", "normformer", "subln",
		"subln_before_act", "peri", "peri_embed", "mix", "hybrid", "hybrid_star", "keel", "ngpt", "parallel", "olmo2",
		"gemma2", NULL };
	return names;
}
const char *const *nr_patch_norms(void)
{
	static const char *const names[] = { "none", "dual", "pre", "post", "post_posemb", "rms", "only_learnable", "no_learnable",
		NULL };
	return names;
}
const char *const *nr_residuals(void) { return residuals; }

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static int unknown(const char *what, const char *name, const char *const *names, struct nr_error *err)
{
	const char *near = nr_nearest(name, names);
	nr_fail(err, NR_ENAME, what, name, "no such name");
	return near ? nr_hint(err, "did you mean '%s'?", near) : err->code;
}

/* ---- items -------------------------------------------------------------------------------------------------------- */

static int add_rule(struct nr_norm_plan *p, const char *text, size_t left, struct nr_error *err)
{
	if (p->rules == NR_MAXRULES) return nr_fail(err, NR_ELIMIT, "norm plan", text, "more than %d rules", NR_MAXRULES);
	struct nr_rule *r = &p->rule[p->rules];
	r->text = nr_arena_strdup(p->arena, text);
	r->pattern = nr_arena_printf(p->arena, "%.*s", (int)left, text);
	r->norm = nr_arena_strdup(p->arena, text + left + 1);
	if (!r->text || !r->pattern || !r->norm) return nr_fail(err, NR_EMEMORY, "norm plan", text, "out of memory");
	p->rules++;
	const struct nr_norm *norm;
	void *conf;
	if (nr_pattern_check(r->pattern, err)) return err->code;
	return nr_norm_parse(r->norm, 0, p->arena, &norm, &conf, err);
}

static int add_sites(struct nr_norm_plan *p, const char *sites, const char *branch)
{
	for (const char *s = sites + strspn(sites, " "); *s; s += strspn(s, " ")) {
		const size_t len = strcspn(s, " ");
		if (p->n_sites == NR_MAXSITES) return NR_ELIMIT;
		p->sites[p->n_sites++] = *s == '@' ? nr_arena_printf(p->arena, "%s%.*s", branch, (int)len - 1, s + 1)
						   : nr_arena_printf(p->arena, "%.*s", (int)len, s);
		s += len;
	}
	return NR_OK;
}

static const struct placement *placement_of(const char *name, size_t len)
{
	for (const struct placement *a = placements; a->name; a++)
		if (strlen(a->name) == len && !strncmp(a->name, name, len)) return a;
	return NULL;
}

static int set_whole(struct nr_norm_plan *p, const struct whole *w, struct nr_error *err)
{
	add_sites(p, w->sites, "");
	if (!w->closed) add_sites(p, "final", "");
	p->subln = w->subln;
	p->qk = w->qk;
	p->layout = w->layout;
	p->residual_of_placement = w->residual;
	return w->rule ? add_rule(p, w->rule, strcspn(w->rule, "="), err) : NR_OK;
}

/* "mix:post=3" */
static int set_mix(struct nr_norm_plan *p, const char *text, struct nr_error *err)
{
	struct mix { int64_t post; } conf = { 0 };
	static const struct nr_option options[] = {
		NR_OPT_INT(struct mix, post, 0, 0, 1000000, "blocks with post-norm, from the first on"), NR_OPT_END
	};
	if (nr_option_parse(options, &conf, text, p->arena, err)) return err->code;
	const long long k = conf.post;
	const char *sites = nr_arena_printf(p->arena,
		"blocks[:%lld].attn.res blocks[:%lld].mlp.res blocks[%lld:].attn.in blocks[%lld:].mlp.in",
		k, k, k, k);
	return sites ? set_whole(p, &(struct whole){ .sites = sites }, err) : nr_fail(err, NR_EMEMORY, "norm plan", text, "out of memory");
}

/* "pre", "pre,post" or the name of a whole block. */
static int set_placement(struct nr_norm_plan *p, const char *text, struct nr_error *err)
{
	p->n_sites = 0;
	p->subln = false;
	p->qk = NR_QK_HEAD;
	p->layout = NR_LAYOUT_SERIAL;
	p->placement = text;
	p->residual_of_placement = NR_RESIDUAL_PLAIN;
	if (p->defaults.sites) add_sites(p, p->defaults.sites, "");
	for (const struct whole *w = wholes; w->name; w++)
		if (!strcmp(w->name, text)) return set_whole(p, w, err);
	if (starts(text, "mix:")) return set_mix(p, text + 4, err);
	const size_t comma = strcspn(text, ",");
	const struct placement *attn = placement_of(text, comma);
	const struct placement *mlp = text[comma] ? placement_of(text + comma + 1, strlen(text + comma + 1)) : attn;
	if (!attn || !mlp) {
		char name[64];
		snprintf(name, sizeof name, "%.*s", attn ? 63 : (int)comma, attn ? text + comma + 1 : text);
		return unknown("no placement", name, nr_placements(), err);
	}
	add_sites(p, attn->sites, "attn");
	add_sites(p, mlp->sites, "mlp");
	if (mlp->open) add_sites(p, "final", "");
	return NR_OK;
}

static int set_patch(struct nr_norm_plan *p, const char *name, struct nr_error *err)
{
	for (const struct patch *v = patches; v->name; v++) {
		if (strcmp(v->name, name)) continue;
		const char *const site[] = { "patch.in", "patch.out", "patch.pos" }, *const norm[] = { v->in, v->out, v->pos };
		for (int i = 0; i < 3; i++) {
			const char *rule = nr_arena_printf(p->arena, "%s=%s", site[i], norm[i]);
			if (!rule) return nr_fail(err, NR_EMEMORY, "norm plan", name, "out of memory");
			if (strcmp(norm[i], "none") && add_rule(p, rule, strlen(site[i]), err)) return err->code;
		}
		return NR_OK;
	}
	return unknown("no patch norm", name, nr_patch_norms(), err);
}

static int set_residual(struct nr_norm_plan *p, const char *text, struct nr_error *err)
{
	struct gain { double init; };
	struct keel { double alpha; };
	static const struct nr_option layerscale[] = {
		NR_OPT_FLOAT(struct gain, init, 1e-4, -1e3, 1e3, "initial value of the gain"), NR_OPT_END
	};
	static const struct nr_option ngpt[] = { NR_OPT_FLOAT(struct gain, init, 0.05, -1e3, 1e3, "initial length of a step"), NR_OPT_END };
	static const struct nr_option keel[] = {
		NR_OPT_FLOAT(struct keel, alpha, 0, 0, 1e6, "factor of the stream; 0: two for each block"), NR_OPT_END
	};
	static const struct nr_option none[] = { NR_OPT_END };
	static const struct nr_option *const options[] = { none, layerscale, none, none, keel, ngpt };       /* by enum nr_residual_kind */
	const size_t len = strcspn(text, ":");
	char name[64];
	snprintf(name, sizeof name, "%.*s", (int)len, text);
	for (int i = 0; residuals[i]; i++) {
		if (strcmp(residuals[i], name)) continue;
		double value = 0;
		if (text[len] && !options[i]->name) return nr_fail(err, NR_EVALUE, "residual", text, "%s has no option", residuals[i]);
		nr_option_defaults(options[i], &value);
		if (nr_option_parse(options[i], &value, text[len] ? text + len + 1 : "", p->arena, err)) return err->code;
		p->residual = (enum nr_residual_kind)i;
		p->residual_number = value;
		p->residual_named = true;
		return NR_OK;
	}
	return unknown("no residual", name, residuals, err);
}

static int set_qk(struct nr_norm_plan *p, const char *name, struct nr_error *err)
{
	for (int i = 0; scopes[i]; i++) {
		if (strcmp(scopes[i], name)) continue;
		p->qk = (enum nr_qk)i;
		return NR_OK;
	}
	return unknown("no scope of attn.qk", name, scopes, err);
}

static int set_eps(struct nr_norm_plan *p, const char *text, struct nr_error *err)
{
	static const struct nr_option options[] = {
		NR_OPT_FLOAT(struct nr_norm_defaults, eps, 0, 0, 1, "for norms that do not give their own"), NR_OPT_END
	};
	return nr_option_set(options, &p->defaults, "eps", text, p->arena, err);
}

/* Length of the left side when the item is PATTERN=NORM or key=value; 0 for a norm alone. Colons in ranges do not count. */
static size_t left_side(const char *item)
{
	int depth = 0;
	for (const char *s = item; *s; s++) {
		if (*s == '[') depth++;
		if (*s == ']') depth--;
		if (!depth && (*s == ':' || *s == '(')) return 0;
		if (*s == '=') return (size_t)(s - item);
	}
	return 0;
}

/* The next item: up to a blank outside parentheses. */
static const char *next_item(struct nr_norm_plan *p, const char **text)
{
	const char *s = *text + strspn(*text, " \t\n"), *from = s;
	for (int depth = 0; *s && (depth || !strchr(" \t\n", *s)); s++) depth += (*s == '(') - (*s == ')');
	*text = s;
	return s > from ? nr_arena_printf(p->arena, "%.*s", (int)(s - from), from) : NULL;
}

/* A key of the plan itself, not a rule. */
static bool is_setting(const char *item)
{
	return starts(item, "placement=") || starts(item, "patch=") || starts(item, "residual=") || starts(item, "qk=") ||
		starts(item, "eps=");
}

static int add_item(struct nr_norm_plan *p, const char *item, struct nr_error *err)
{
	const size_t left = left_side(item);
	const char *right = item + left + 1;
	if (starts(item, "placement=")) return set_placement(p, right, err);
	if (starts(item, "patch=")) return set_patch(p, right, err);
	if (starts(item, "residual=")) return set_residual(p, right, err);
	if (starts(item, "qk=")) return set_qk(p, right, err);
	if (starts(item, "eps=")) return set_eps(p, right, err);
	if (left) return add_rule(p, item, left, err);
	const char *rule = nr_arena_printf(p->arena, "*=%s", item);
	return rule ? add_rule(p, rule, 1, err) : nr_fail(err, NR_EMEMORY, "norm plan", item, "out of memory");
}

int nr_norm_plan_parse(struct nr_norm_plan *p, const char *text, struct nr_error *err)
{
	bool own = false;                               /* does the plan itself say where norms sit? */
	if (set_placement(p, p->defaults.placement, err)) return err->code;
	const char *s = p->defaults.rules ? p->defaults.rules : "", *item;
	while ((item = next_item(p, &s))) {
		if (add_item(p, item, err)) return err->code;
		if (p->rules) p->rule[p->rules - 1].used = 1;   /* not the user's: no complaint where it fits nothing */
	}
	s = text;
	while ((item = next_item(p, &s))) {
		const size_t left = left_side(item);
		own |= !left || !is_setting(item);
	}
	for (s = own ? "" : p->defaults.plan ? p->defaults.plan : p->defaults.norm; (item = next_item(p, &s));) {
		if (add_item(p, item, err)) return err->code;
		if (p->rules) p->rule[p->rules - 1].used = 1;
	}
	for (s = text; (item = next_item(p, &s));)
		if (add_item(p, item, err)) return err->code;
	if (!p->residual_named && p->residual_of_placement != NR_RESIDUAL_PLAIN)
		return set_residual(p, residuals[p->residual_of_placement], err);
	return NR_OK;
}

const char *nr_norm_choice_text(const struct nr_norm_choice *c, struct nr_arena *arena)
{
	const char *const key[] = { " placement=", " patch=", " residual=" }, *const value[] = { c->placement, c->patch, c->residual };
	const char *text = c->norm ? c->norm : "";
	for (int i = 0; i < 3 && text; i++)
		if (value[i] && *value[i]) text = nr_arena_printf(arena, "%s%s%s", text, key[i] + !*text, value[i]);
	return text;
}

const char *nr_norms_without(const char *text, const char *scope, struct nr_arena *arena)
{
	const size_t n = strlen(scope);
	char *out = nr_arena_strdup(arena, text), *to = out;
	if (!out) return NULL;
	for (const char *item = text; *item;) {
		item += strspn(item, " ");
		const char *end = item;
		for (int depth = 0; *end && (depth || *end != ' '); end++) depth += (*end == '(') - (*end == ')');
		const bool theirs = !strncmp(item, scope, n) && (item[n] == '.' || item[n] == '=');
		if (!theirs && end > item) {
			if (to > out) *to++ = ' ';
			memmove(to, item, (size_t)(end - item));
			to += end - item;
		}
		item = end;
	}
	*to = 0;
	return out;
}
