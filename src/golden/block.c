/* norma-golden-1, block and patch_embed: residual blocks under every placement, and Dual PatchNorm with its ablations. */
#include <string.h>

#include "golden/replay.h"
#include "models/block.h"

static const char *meta(struct golden_case *c, const char *key, const char *otherwise)
{
	const char *text = nr_st_metadata(c->file, key);
	return text ? text : otherwise;
}

/* The plan's text for the file's kind of block. */
static const char *block_plan(struct golden_case *c)
{
	const char *kind = meta(c, "kind", "placed"), *norm = golden_norm_text(c, "inner.");
	if (!strcmp(kind, "normformer"))
		return nr_arena_printf(c->arena, "%s placement=normformer%s", norm,
			golden_meta_int(c, "head_scale", 1) ? "" : " attn.heads=none");
	if (!strcmp(kind, "subln"))
		return nr_arena_printf(c->arena, "%s placement=subln%s", norm,
			strcmp(meta(c, "ffn_inner", "after_act"), "before_act") ? "" : "_before_act");
	return nr_arena_printf(c->arena, "%s placement=%s,%s", norm, meta(c, "sa", "pre"), meta(c, "mlp", "pre"));
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
	return nr_block(n, x, &b);
}

/* "attn.in.weight" is norm1.weight, or norm1b.weight where two norms stand in the branch. */
static const char *block_name(struct golden_case *c, const char *entry)
{
	static const char *const fixed[][2] = {
		{ "attn.qkv.weight", "wq wk wv" }, { "attn.qkv.bias", "bq bk bv" },
		{ "attn.proj.weight", "wo" }, { "attn.proj.bias", "bo" },
		{ "mlp.fc1.weight", "w1" }, { "mlp.fc1.bias", "b1" }, { "mlp.fc2.weight", "w2" }, { "mlp.fc2.bias", "b2" },
		{ "attn.heads.weight", "head_scale" },
	};
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
		if (!strcmp(fixed[i][0], entry)) return fixed[i][1];
	const bool attn = !strncmp(entry, "attn.", 5);
	const char *site = strchr(entry, '.') + 1, *rest = strchr(site, '.') + 1;
	const char *kind = meta(c, "kind", "placed"), *place = meta(c, attn ? "sa" : "mlp", "pre");
	if (!strncmp(site, "inner.", 6) || !strncmp(site, "hidden.", 7) || (!strcmp(kind, "normformer") && !strncmp(site, "out.", 4)))
		return nr_arena_printf(c->arena, "%s_norm.%s", attn ? "attn" : "ffn", rest);
	const bool second = (!strcmp(place, "prepost") || !strcmp(place, "sandwich")) && strncmp(site, "in.", 3);
	return nr_arena_printf(c->arena, "norm%d%s.%s", attn ? 1 : 2, second ? "b" : "", rest);
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
