/* Vision Transformers in files: what tensors and a config.json say of the options. */
#include "models/vit.h"

#include <stdio.h>
#include <string.h>

#include "models/block.h"
#include "models/image_config.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

const char *const nr_vit_signs[] = { "patch_embed.proj.weight", "cls_token", "pos_embed", "blocks.0.attn.in.weight",
	"blocks.0.attn.qkv.weight", "blocks.0.mlp.in.weight", "blocks.0.mlp.fc1.weight", "final.weight", "fc.weight", "head.weight", NULL };

static bool has(const struct nr_look *l, const char *entry) { return nr_look_find(l, entry) != NULL; }
static int64_t size_at(const struct nr_look *l, const char *entry, int axis)    /* axis < 0: from the end; -1: there is none */
{
	const struct nr_st_tensor *t = nr_look_find(l, entry);
	const int i = t && axis < 0 ? t->nd + axis : axis;
	return t && i >= 0 && i < t->nd ? t->shape[i] : -1;
}

/* What stands in the position table before the grid: nothing, class and distillation token, registers too. */
struct places { int64_t side; bool class_rows, register_rows; };
static struct places places_of(const struct nr_look *l, int64_t special, int64_t registers)
{
	const int64_t rows = size_at(l, "pos_embed", -2);
	const int64_t before[] = { special, 0, special + registers };
	for (int i = 0; i < 3; i++)
		if (rows > before[i] && nr_root(rows - before[i]))
			return (struct places){ nr_root(rows - before[i]), i != 1 || !special, i == 2 && registers };
	return (struct places){ 0 };
}

/* Rows of the grid that a table of relative positions is for; 0: there is none, or it is not square. */
static int64_t relative_side(const struct nr_look *l, bool special)
{
	int64_t rows = size_at(l, "blocks.0.attn.rel_pos.table", 0);
	if (rows < 0) rows = size_at(l, "shared_rel_pos.table", 0);
	const int64_t width = rows > 0 ? nr_root(rows - (special ? 3 : 0)) : 0;
	return width % 2 ? (width + 1) / 2 : 0;
}

/* The family's own marks: files of its relatives have the same names otherwise. */
static bool is_of_family(const struct nr_look *l, bool relative, bool table)
{
	const char *family = l->model->name;
	const bool keyless = has(l, "blocks.0.attn.q_bias") || has(l, "blocks.0.attn.q.weight");
	if (!strcmp(family, "vit")) return !relative && !keyless;
	if (!strcmp(family, "beit")) return table || (keyless && !strncmp(l->naming->name, "huggingface", 11));        /* or none there */
	return !strcmp(family, "eva") ? !relative : relative;
}

static const char *kind_at(const struct nr_look *l, const char *site)
{
	char name[128];
	snprintf(name, sizeof name, "%s.weight", site);
	if (!has(l, name)) return NULL;
	snprintf(name, sizeof name, "%s.bias", site);
	return has(l, name) ? "layer" : "rms";
}

/* The norm plan that the tensors show: "" if it is the family's own. */
static const char *norms_seen(const struct nr_look *l)
{
	static const char *const sites[][2] = { { "embed", "embed" }, { "blocks.0.attn.qk.q", "attn.qk" }, { "blocks.0.par.attn.qk.q",
		"attn.qk" },
		{ "blocks.0.attn.inner", "attn.inner" }, { "blocks.0.mlp.inner", "mlp.inner" } };
	const bool in = has(l, "patch.in.weight"), out = has(l, "patch.out.weight");
	const char *norm = kind_at(l, "blocks.0.attn.in"), *par = kind_at(l, "blocks.0.par.attn.in"), *text = "";
	const char *usual = norm ? norm : par ? par : "layer";
	for (size_t i = 0; i < sizeof sites / sizeof *sites && text; i++) {
		const char *kind = kind_at(l, sites[i][0]);
		if (kind) text = nr_arena_printf(l->arena, "%s %s=%s", text, sites[i][1], kind);
	}
	if (text && (*text || strcmp(usual, "layer"))) text = nr_arena_printf(l->arena, "%s%s", usual, text);
	const char *more[] = { in && out ? "patch=dual" : in ? "patch=pre" : out ? "patch=post" : NULL,
		has(l, "blocks.0.attn.scale.gamma") || has(l, "blocks.0.par.attn.scale.gamma") ? "residual=layerscale" : NULL };
	for (int i = 0; i < 2 && text; i++)
		if (more[i]) text = nr_arena_printf(l->arena, "%s%s%s", text, *text ? " " : "", more[i]);
	return text;
}

static void saw_attention(const struct nr_look *l, struct nr_sighting *s, int64_t dim, bool *sure)
{
	int64_t heads = size_at(l, "blocks.0.attn.rel_pos.table", 1);
	const bool par = has(l, "blocks.0.par.in_proj.weight"), split = has(l, "blocks.0.attn.q.weight"), qv = has(l,
		"blocks.0.attn.q_bias");
	const int64_t of_norm = size_at(l, par ? "blocks.0.par.attn.qk.q.weight" : "blocks.0.attn.qk.q.weight", 0);
	if (heads < 0) heads = size_at(l, "shared_rel_pos.table", 1);
	if (heads < 0) heads = size_at(l, "blocks.0.attn.rel_pos.mlp.fc2.weight", 0);
	if (heads < 0) heads = size_at(l, "shared_rel_pos.mlp.fc2.weight", 0);
	if (heads < 0 && of_norm > 0) heads = dim / of_norm;
	if (heads > 0) nr_saw(s, "heads", heads);
	else if (!nr_config_saw_number(l, s, "heads", "num_attention_heads", "num_heads") && !nr_config_saw_clip_heads(l, s)) {
		nr_assumed(s, "heads", nr_heads_assumed(dim));
		*sure = false;
	}
	nr_saw(s, "parallel", par);
	nr_saw(s, "split_qkv", split);
	nr_saw(s, "qkv_bias", qv || has(l, "blocks.0.attn.qkv.bias") || has(l, "blocks.0.attn.q.bias") || has(l,
		"blocks.0.par.in_proj.bias"));
	nr_saw(s, "key_bias", split || qv ? 0 : -1);
}

static bool saw_mlp(const struct nr_look *l, struct nr_sighting *s, int64_t dim)
{
	const char *act = nr_config_act(l), *ours = act ? nr_hf_act(act) : NULL;
	int64_t hidden = size_at(l, "blocks.0.mlp.fc2.weight", 1);
	if (hidden < 0) hidden = size_at(l, "blocks.0.par.mlp_proj.weight", 1);
	if (hidden < 1) return false;
	const int64_t first = size_at(l, "blocks.0.mlp.fc1.weight", 0);
	nr_saw_text(s, "act", ours);
	if (ours && has(l, "blocks.0.mlp.fc1_g.weight") && strcmp(ours, "silu") != 0)
		nr_saw_misfit(s, nr_arena_printf(l->arena, "its config.json wants gates of %s, and only those of silu are known", ours));
	nr_saw_text(s, "glu", has(l, "blocks.0.mlp.fc1_g.weight") ? "split" : first == 2 * hidden ? "packed" : "0");
	nr_saw_text(s, "mlp", nr_arena_printf(l->arena, "%.9g", (double)hidden / (double)dim));
	return true;
}

/* Hugging Face's classifier reads the mean of SigLIP's tokens, also where the file has the attention pooling of the tower. */
static bool is_siglip_classifier(const struct nr_look *l) { return !strcmp(l->naming->name, "huggingface_siglip_classifier"); }
static bool is_other_siglip(const struct nr_look *l, bool cls)
{
	const bool head = has(l, "head.weight");
	if (strncmp(l->naming->name, "huggingface_siglip", 18) != 0) return false;
	return cls || (is_siglip_classifier(l) ? !head : head && has(l, "attn_pool.latent"));  /* a class token: CLIP's */
}

static void saw_pool(const struct nr_look *l, struct nr_sighting *s, int64_t dim, bool cls)
{
	const bool fc = has(l, "fc.weight"), map = has(l, "attn_pool.latent") && !is_siglip_classifier(l);
	const bool both = nr_look_rows(l, "head.weight", 2 * dim) > 0 &&
		!has(l, "dist_token");
	const char *said = json_string_value(json_object_get(l->config, "global_pool"));
	const bool avg = fc || !cls || (said && !strcmp(said, "avg"));
	if (fc && said && !strcmp(said, "token")) nr_saw_misfit(s, "it has a norm after pooling, but its config.json pools no tokens");
	const char *act = nr_hf_text(l->config, "pooler_act");
	if (has(l, "pre_logits.weight") && act && strcmp(act, "tanh") != 0)
		nr_saw_misfit(s,
			nr_arena_printf(l->arena, "its config.json wants a pooler of %.40s, and only those of tanh are known", act));
	nr_saw_text(s, "pool", map ? "map" : both ? "class_avg" : avg ? "avg" : said && !strcmp(said, "token") ? "class" : NULL);
	nr_saw(s, "fc_norm", map || both || fc || !avg ? -1 : 0);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	const bool projection = strstr(l->naming->name, "clip") || !strcmp(l->naming->name, "norma");      /* CLIP's has no bias */
	nr_saw(s, "head_bias", projection && has(l, "head.weight") && !has(l, "head.bias") ? 0 : -1);
	nr_saw(s, "pre_logits", has(l, "pre_logits.weight"));
}

bool nr_vit_measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *proj = nr_look_find(l, "patch_embed.proj.weight");
	if (!proj || proj->nd != 4 || proj->shape[0] < 1 || proj->shape[2] != proj->shape[3]) return false;
	const int64_t dim = proj->shape[0], patch = proj->shape[2];
	const bool cls = has(l, "cls_token"), dist = has(l, "dist_token"), mlp_bias = has(l, "blocks.0.attn.rel_pos.mlp.fc1.weight");
	const bool shared = has(l, "shared_rel_pos.table") || has(l, "shared_rel_pos.mlp.fc1.weight");
	const bool table = has(l, "blocks.0.attn.rel_pos.table") || has(l, "shared_rel_pos.table"), relative = table || shared || mlp_bias;
	const int64_t registers = size_at(l, "register_token", 1) > 0 ? size_at(l, "register_token", 1) : 0;
	const int64_t depth = nr_look_depth(l, has(l, "blocks.0.par.in_proj.weight") ? "par.mlp_proj.weight" : "mlp.fc2.weight");
	const struct places at = places_of(l, cls + dist, registers);
	const bool has_pos = has(l, "pos_embed");
	const int64_t side = has_pos ? at.side : relative_side(l, cls);
	const char *type = nr_hf_text(l->config, "model_type");
	const bool dinov3 = type && !strcmp(type, "dinov3_vit");
	bool sure = (dinov3 || strcmp(l->model->name, "eva") != 0) && nr_config_of(l);
	if (is_other_siglip(l, cls)) return false;
	if (dim > 65536 || patch > 512 || depth < 1 || (has_pos && side < 1) || !is_of_family(l, relative, table)) return false;
	if (side > 0) nr_config_saw_side(l, s, side * patch);
	else nr_config_saw_image(l, s);
	nr_saw(s, "channels", proj->shape[1]);
	nr_saw_key(s, "patch", patch);
	nr_saw_key(s, "dim", dim);
	nr_saw_key(s, "depth", depth);
	saw_attention(l, s, dim, &sure);
	if (!saw_mlp(l, s, dim)) return false;
	saw_pool(l, s, dim, cls);
	/* DTN's class token has no position: it joins late; that of others is there from the beginning */
	const bool scaled = has(l, "blocks.0.attn.scale.gamma") || has(l, "blocks.0.par.in_proj.weight") || registers || dist;
	const bool late = cls && has_pos && !at.class_rows && !scaled && !has(l, "blocks.0.attn.qkv.bias");
	nr_saw(s, "class_at", late ? 10 : 0);
	nr_saw(s, "class_token", cls);
	nr_saw(s, "class_pos", cls && has_pos && !late ? at.class_rows : -1);
	nr_saw(s, "registers", registers);
	nr_saw(s, "register_pos", registers && has_pos ? at.register_rows : -1);
	nr_saw(s, "distilled", dist);
	nr_saw(s, "patch_bias", has(l, "patch_embed.proj.bias"));
	nr_saw_text(s, "pos", has_pos ? NULL : "none");
	nr_saw_text(s, "rope", dinov3 ? "dinov3" : NULL);
	if (dinov3) nr_config_saw_number(l, s, "rope_theta", "rope_theta", NULL);
	nr_saw_text(s, "rel_pos", table ? "table" : relative ? "mlp" : NULL);
	nr_saw(s, "rel_pos_shared", relative ? shared : -1);
	nr_saw(s, "rel_pos_decay", table ? !strcmp(l->model->name, "vit_relpos") : -1);
	nr_saw(s, "rel_pos_dim", size_at(l, shared ? "shared_rel_pos.mlp.fc1.weight" : "blocks.0.attn.rel_pos.mlp.fc1.weight", 0));
	const char *norms = norms_seen(l);
	if (norms && !nr_config_saw_eps(l, s, norms)) nr_saw_norms(s, norms);
	if (sure) nr_saw_all(s);
	return norms != NULL;
}
