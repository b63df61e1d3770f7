/* Vision Transformers in files: what tensors and a config.json say of the options, and the config.json of others. */
#include "models/vit.h"

#include <string.h>

#include "models/image_config.h"
#include "models/mae.h"
#include "norma/safetensors.h"

const char *const nr_vit_signs[] = { "patch_embed.proj.weight", "cls_token", "pos_embed", "blocks.0.attn.in.weight",
	"blocks.0.attn.qkv.weight", "blocks.0.mlp.in.weight", "blocks.0.mlp.fc1.weight", "final.weight", "fc.weight", "head.weight", NULL };

/* What only a config.json tells: heads, activation and eps, as Hugging Face or timm write them. heads 0: nothing. */
struct said { int64_t heads; const char *act, *norms; bool all; };
static struct said config_says(const struct nr_look *l)
{
	const json_t *args = json_object_get(l->config, "model_args");
	const char *act = nr_hf_text(l->config, "hidden_act"), *ours = act ? nr_hf_act(act) : NULL;
	const double heads = nr_hf_number(args ? args : l->config, args ? "num_heads" : "num_attention_heads");
	const double given = nr_hf_number(l->config, "layer_norm_eps"), eps = given > 0 ? given : l->config ? l->naming->eps : 0;
	struct said s = { .heads = heads >= 1 && heads <= 1024 ? (int64_t)heads : 0, .act = ours, .norms = "",
		.all = heads >= 1 && (!act || ours) };
	if (eps > 0 && eps != l->model->norms.eps) s.norms = nr_arena_printf(l->arena, "eps=%.9g", eps);
	return s;
}

bool nr_vit_measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *proj = nr_look_find(l, "patch_embed.proj.weight"), *pos = nr_look_find(l, "pos_embed");
	const struct nr_st_tensor *reg = nr_look_find(l, "register_token");
	if (!proj || proj->nd != 4 || proj->shape[0] < 1 || proj->shape[2] != proj->shape[3] || !pos || pos->nd != 3) return false;
	const int64_t dim = proj->shape[0], patch = proj->shape[2], places = pos->shape[1];
	const int64_t hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", dim), depth = nr_look_depth(l, "mlp.fc1.weight");
	const bool cls = nr_look_find(l, "cls_token"), row = cls && nr_root(places - 1), fc = nr_look_find(l, "fc.weight");
	const bool in = nr_look_find(l, "patch.in.weight"), out = nr_look_find(l, "patch.out.weight");
	const int64_t image = nr_root(row ? places - 1 : places) * patch;
	if (hidden < 0 || dim > 65536 || patch > 512 || depth < 1 || image < 1) return false;
	nr_saw(s, "image", image);
	nr_saw(s, "channels", proj->shape[1]);
	nr_saw_key(s, "patch", patch);
	nr_saw_key(s, "dim", dim);
	nr_saw_key(s, "depth", depth);
	const struct said said = config_says(l);
	if (said.heads > 0) nr_saw(s, "heads", said.heads);
	else nr_assumed(s, "heads", nr_heads_assumed(dim));
	nr_saw_text(s, "act", said.act);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw(s, "registers", reg && reg->nd == 3 ? reg->shape[1] : 0);
	nr_saw(s, "class_at", cls && !row ? 10 : 0);            /* DTN's class token has no position */
	nr_saw(s, "class_token", cls);
	nr_saw(s, "qkv_bias", nr_look_find(l, "blocks.0.attn.qkv.bias") != NULL);
	nr_saw(s, "pre_logits", nr_look_find(l, "pre_logits.weight") != NULL);
	nr_saw_text(s, "mlp", nr_arena_printf(l->arena, "%.9g", (double)hidden / (double)dim));
	nr_saw_text(s, "pool", fc || !cls ? "avg" : NULL);
	nr_saw(s, "fc_norm", fc || cls ? -1 : 0);
	const char *placed = in && out ? "patch=dual" : in ? "patch=pre" : out ? "patch=post" : "";
	nr_saw_norms(s, nr_arena_printf(l->arena, "%s%s%s", placed, *placed && *said.norms ? " " : "", said.norms));
	if (said.all) nr_saw_all(s);
	return true;
}

/* What ViTMAEForPreTraining wants beside a ViT's. */
static json_t *mae_config(json_t *j, const struct nr_mae *o)
{
	json_t *more = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:f, s:b}", "architectures", "ViTMAEForPreTraining", "model_type",
		"vit_mae", "decoder_hidden_size", (json_int_t)o->decoder_dim, "decoder_num_hidden_layers", (json_int_t)o->decoder_depth,
		"decoder_num_attention_heads", (json_int_t)o->decoder_heads, "decoder_intermediate_size",
		(json_int_t)(o->decoder_mlp * (double)o->decoder_dim + .5), "mask_ratio", o->mask_ratio, "norm_pix_loss", (int)o->norm_pix);
	json_object_update(j, more);
	json_decref(more);
	return j;
}

static json_t *hf_config(const struct nr_saved *w)
{
	const struct nr_vit *c = w->model->conf;
	const bool tanh_form = !strcmp(c->act, "gelu_tanh");
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:f}",
		"architectures", "ViTForImageClassification", "model_type", "vit", "hidden_size", (json_int_t)c->dim,
		"num_hidden_layers", (json_int_t)c->depth, "num_attention_heads", (json_int_t)c->heads,
		"intermediate_size", (json_int_t)(c->mlp * (double)c->dim), "image_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "num_channels", (json_int_t)c->channels, "qkv_bias", (int)c->qkv_bias,
		"hidden_act", tanh_form ? "gelu_pytorch_tanh" : c->act, "layer_norm_eps", w->eps);
	if (w->mae) return mae_config(j, w->mae);
	nr_config_labels(j, w, c->classes);
	return j;
}

static json_t *timm_config(const struct nr_saved *w)
{
	const struct nr_vit *c = w->model->conf;
	json_t *args = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b}", "img_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "in_chans", (json_int_t)c->channels, "embed_dim", (json_int_t)c->dim,
		"depth", (json_int_t)c->depth, "num_heads", (json_int_t)c->heads, "reg_tokens", (json_int_t)c->registers,
		"mlp_ratio", c->mlp, "qkv_bias", (int)c->qkv_bias, "class_token", (int)c->class_token);
	return nr_timm_config(w, "vit_base_patch16_224", c->dim, c->pool == NR_VIT_AVG ? "avg" : "token", args);
}

json_t *nr_vit_config(const struct nr_saved *w) { return strcmp(w->naming->name, "timm") ? hf_config(w) : timm_config(w); }
