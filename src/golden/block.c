/* norma-golden-1, block and patch_embed: residual blocks under every placement, and Dual PatchNorm with its ablations. */
#include <stdlib.h>
#include <string.h>

#include "golden/replay.h"
#include "models/block.h"

static const char *meta(struct golden_case *c, const char *key, const char *otherwise)
{
	const char *text = nr_st_metadata(c->file, key);
	return text ? text : otherwise;
}

static int64_t blocks_of(struct golden_case *c) { return golden_meta_int(c, "blocks", 0); }
static int64_t first_of(struct golden_case *c) { return golden_meta_int(c, "first_block", 0); }

/* Entry i of a list with one word for all blocks or one for each. */
static const char *word(struct golden_case *c, const char *key, int64_t i)
{
	const char *s = meta(c, key, "pre");
	for (; i > 0 && strchr(s, ','); i--) s = strchr(s, ',') + 1;
	return nr_arena_printf(c->arena, "%.*s", (int)strcspn(s, ","), s);
}

/* Sites of a branch by its placement. */
static const char *sites_of(const char *placement)
{
	static const char *const table[][2] = { { "pre", "in" }, { "post", "res" }, { "prepost", "in res" }, { "sandwich", "in out" },
		{ "respost", "out" }, { "carry", "carry" } };
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i][0], placement)) return table[i][1];
	return "";
}

/* scale=depth is for norm1 and norm2, the norms of a branch; all others are without it. */
static const char *undivided(struct golden_case *c, const char *norm)
{
	const char *scale = strstr(norm, "scale=depth");
	return scale ? nr_arena_printf(c->arena, "%.*s", (int)(scale - norm - 1), norm) : norm;
}

/* Whether the norm at this site is the second one of its branch. */
static bool is_second(const char *place, const char *site)
{
	return (!strcmp(place, "prepost") || !strcmp(place, "sandwich")) && strncmp(site, "in", 2);
}

/* A rule for each site of each block. */
static const char *placed_rules(struct golden_case *c, const char *norm)
{
	const int64_t count = blocks_of(c) ? blocks_of(c) : 1;
	const char *text = "";
	for (int64_t i = 0; i < 2 * count; i++) {
		const char *branch = i % 2 ? "mlp" : "attn", *place = word(c, i % 2 ? "mlp" : "sa", i / 2), *s = sites_of(place);
		for (; *s; s += strcspn(s, " "), s += strspn(s, " "))
			text = nr_arena_printf(c->arena, "%s blocks[%d].%s.%.*s=%s", text, (int)(first_of(c) + i / 2), branch,
				(int)strcspn(s, " "), s, is_second(place, s) ? undivided(c, norm) : norm);
	}
	return text;
}

static const char *around(struct golden_case *c, const char *norm)
{
	norm = undivided(c, norm);
	const char *text = golden_meta_int(c, "embed", 0) ? nr_arena_printf(c->arena, " embed=%s", norm) : "";
	return golden_meta_int(c, "final", 0) ? nr_arena_printf(c->arena, "%s final=%s", text, norm) : text;
}

static const char *residual_of(struct golden_case *c)
{
	const char *kind = meta(c, "residual", "plain");
	if (!strcmp(kind, "keel")) return nr_arena_printf(c->arena, " residual=keel:alpha=%s", meta(c, "alpha", "0"));
	if (!strcmp(kind, "ngpt")) return nr_arena_printf(c->arena, " residual=ngpt:init=%s", meta(c, "alpha_init", "0.05"));
	return "";
}

static const char *qk_of(struct golden_case *c)
{
	const char *scope = nr_st_metadata(c->file, "qk");
	if (!scope) return "";
	const char *inner = undivided(c, golden_norm_text(c, nr_st_metadata(c->file, "qk.norm") ? "qk." : "inner."));
	return nr_arena_printf(c->arena, " qk=%s attn.qk=%s%s%s", scope, inner, golden_meta_int(c, "v", 0) ? " attn.v=" : "",
		golden_meta_int(c, "v", 0) ? inner : "");
}

/* The plan's text for the file's kind of block. */
static const char *block_plan(struct golden_case *c)
{
	const char *kind = meta(c, "kind", "placed");
	if (!strcmp(kind, "ngpt"))
		return nr_arena_printf(c->arena, "placement=ngpt final=none residual=ngpt:init=%s", meta(c, "alpha_init", "0.05"));
	const char *norm = nr_st_metadata(c->file, "inner.norm") ? golden_norm_text(c, "inner.") : "none";
	if (!strcmp(kind, "normformer"))
		return nr_arena_printf(c->arena, "%s placement=normformer final=none%s", norm,
			golden_meta_int(c, "head_scale", 1) ? "" : " attn.heads=none");
	if (!strcmp(kind, "subln"))
		return nr_arena_printf(c->arena, "%s placement=subln%s final=none", norm,
			strcmp(meta(c, "ffn_inner", "after_act"), "before_act") ? "" : "_before_act");
	if (!strcmp(kind, "parallel"))
		return nr_arena_printf(c->arena, "placement=parallel **=none attn.in=%s%s%s", norm, around(c, norm), qk_of(c));
	return nr_arena_printf(c->arena, "placement=none **=none%s%s%s%s", placed_rules(c, norm), around(c, norm), residual_of(c),
		qk_of(c));
}

static nr_t *build_block(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre" };
	struct nr_error err = { 0 };
	char line[1024];
	if (nr_norms_use(n, block_plan(c), &d, &err)) golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	const struct nr_block b = { .heads = golden_meta_int(c, "heads", 1), .hidden = golden_meta_int(c, "hidden", 1),
		.act = strcmp(meta(c, "gelu", "erf"), "tanh") ? "gelu" : "gelu_tanh" };
	nr_with_tokens(n, x, (struct nr_tokens){ .special = (int32_t)golden_meta_int(c, "inner.special_tokens", 0), .valid = valid });
	const int64_t count = blocks_of(c) ? blocks_of(c) : 1, first = first_of(c);
	x = nr_norm(n, "embed", x);
	for (int64_t i = 0; i < count; i++) {
		nr_push_nth(n, "blocks", first + i, first + count);
		x = nr_pop(n, nr_block(n, x, &b));
	}
	return nr_norm(n, "final", x);
}

/* Each word of names behind a prefix. */
static const char *with_prefix(struct golden_case *c, const char *prefix, const char *names)
{
	const char *text = nr_arena_printf(c->arena, "%s%.*s", prefix, (int)strcspn(names, " "), names);
	for (names += strcspn(names, " "); *names; names += strcspn(names, " ")) {
		names++;
		text = nr_arena_printf(c->arena, "%s %s%.*s", text, prefix, (int)strcspn(names, " "), names);
	}
	return text;
}

/* "attn.in.weight" is norm1.weight, or norm1b.weight where two norms stand in the branch. */
static const char *in_block(struct golden_case *c, const char *entry, int64_t block)
{
	static const char *const fixed[][2] = {
		{ "attn.qkv.weight", "wq wk wv" }, { "attn.qkv.bias", "bq bk bv" },
		{ "attn.proj.weight", "wo" }, { "attn.proj.bias", "bo" },
		{ "mlp.fc1.weight", "w1" }, { "mlp.fc1.bias", "b1" }, { "mlp.fc2.weight", "w2" }, { "mlp.fc2.bias", "b2" },
		{ "attn.heads.weight", "head_scale" },
		{ "attn.alpha", "attn_alpha" }, { "mlp.alpha", "mlp_alpha" }, { "attn.sqk", "sqk" }, { "mlp.suv", "suv" },
	};
	static const char *const beginning[][2] = { { "attn.qk.q.", "q_norm." }, { "attn.qk.k.", "k_norm." }, { "attn.v.", "v_norm." } };
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!strcmp(fixed[i][0], entry)) return fixed[i][1];
	for (size_t i = 0; i < sizeof beginning / sizeof *beginning; i++) {
		const size_t len = strlen(beginning[i][0]);
		if (!strncmp(entry, beginning[i][0], len)) return nr_arena_printf(c->arena, "%s%s", beginning[i][1], entry + len);
	}
	const bool attn = !strncmp(entry, "attn.", 5);
	const char *site = strchr(entry, '.') + 1, *rest = strchr(site, '.') + 1;
	const char *kind = meta(c, "kind", "placed"), *place = word(c, attn ? "sa" : "mlp", block - first_of(c));
	if (!strncmp(site, "inner.", 6) || !strncmp(site, "hidden.", 7) || (!strcmp(kind, "normformer") && !strncmp(site, "out.", 4)))
		return nr_arena_printf(c->arena, "%s_norm.%s", attn ? "attn" : "ffn", rest);
	return nr_arena_printf(c->arena, "norm%d%s.%s", attn ? 1 : 2, is_second(place, site) ? "b" : "", rest);
}

static const char *block_name(struct golden_case *c, const char *entry)
{
	char *end;
	if (strncmp(entry, "blocks.", 7)) return entry;         /* embed and final */
	const int64_t block = strtoll(entry + 7, &end, 10);
	const char *prefix = blocks_of(c) ? nr_arena_printf(c->arena, "blocks.%d.", (int)(block - first_of(c))) : "";
	return with_prefix(c, prefix, in_block(c, end + 1, block));
}

int golden_norm_block(struct golden_case *c) { return golden_replay(c, &(struct replay){ build_block, block_name }); }

/* ---- patch_embed --------------------------------------------------------------------------------------------------- */

static nr_t *build_patches(struct golden_case *c, struct nr_net *n, nr_t *x, nr_t *valid)
{
	(void)valid;
	const char *variant = meta(c, "variant", "none");
	if (!strcmp(variant, "dpn")) variant = "dual";
	if (!strcmp(variant, "rmsnorm")) variant = "rms";
	const char *eps = nr_st_metadata(c->file, "eps");
	double value = 1e-6;
	if (eps) sscanf(eps, "%lf", &value);
	const struct nr_norm_defaults d = { .norm = "layer", .placement = "pre", .eps = value };
	struct nr_error err = { 0 };
	char line[1024];
	if (nr_norms_use(n, nr_arena_printf(c->arena, "patch=%s", variant), &d, &err))
		golden_stop(c, NULL, "%s", nr_error_text(&err, line, sizeof line));
	const int64_t patch = golden_meta_int(c, "patch", 1), dim = golden_meta_int(c, "dim", 1);
	x = nr_norm(n, "patch.in", nr_patches(n, x, patch, NR_PATCH_ROW_COL_CHANNEL));
	x = nr_norm(n, "patch.out", nr_linear(n, "proj", x, dim));
	nr_t *pos = x ? nr_param(n, "pos", NR_TRUNC_02, NR_SHAPE(x->d[1], dim)) : NULL;
	return nr_norm(n, "patch.pos", nr_add_table(n, x, pos));
}

static const char *patch_name(struct golden_case *c, const char *entry)
{
	if (!strncmp(entry, "patch.", 6))
		return nr_arena_printf(c->arena, "%s_norm.%s", strncmp(entry, "patch.in", 8) ? "post" : "pre", strrchr(entry, '.') + 1);
	return entry;
}

int golden_norm_patch_embed(struct golden_case *c) { return golden_replay(c, &(struct replay){ build_patches, patch_name }); }
