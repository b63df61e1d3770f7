/* The config.json that timm and Hugging Face want beside the weights of a Vision Transformer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/image_config.h"
#include "models/mae.h"
#include "models/vit.h"

/* ---- Hugging Face ---------------------------------------------------------------------------------------------------------- */

/* What the class of some names is called: with a head and, if it has another name then, without one. */
static const struct hf_class { const char *family, *naming, *type, *with_head, *without; } hf_classes[] = {
	{ "vit", "huggingface", "vit", "ViTForImageClassification", "ViTModel" },
	{ "vit", "huggingface_base", "vit", "ViTForImageClassification", "ViTModel" },
	{ "vit", "huggingface5", "vit", "ViTForImageClassification", "ViTModel" },
	{ "vit", "huggingface5_mae", "vit", "ViTForImageClassification", "ViTModel" },
	{ "vit", "huggingface_deit", "deit", "DeiTForImageClassificationWithTeacher", "DeiTModel" },
	{ "vit", "huggingface_deit_plain", "deit", "DeiTForImageClassification", "DeiTModel" },
	{ "vit", "huggingface_deit_base", "deit", "DeiTForImageClassification", "DeiTModel" },
	{ "vit", "huggingface_dinov2", "dinov2", "Dinov2ForImageClassification", "Dinov2Model" },
	{ "vit", "huggingface_dinov2_swiglu", "dinov2", "Dinov2ForImageClassification", "Dinov2Model" },
	{ "vit", "huggingface_dinov2_base", "dinov2", "Dinov2Model", "Dinov2Model" },
	{ "vit", "huggingface_dinov2_base_swiglu", "dinov2", "Dinov2Model", "Dinov2Model" },
	{ "vit", "huggingface_dinov2_registers", "dinov2_with_registers", "Dinov2WithRegistersForImageClassification",
		"Dinov2WithRegistersModel" },
	{ "vit", "huggingface_dinov2_registers_swiglu", "dinov2_with_registers", "Dinov2WithRegistersForImageClassification",
		"Dinov2WithRegistersModel" },
	{ "vit", "huggingface_clip", "clip_vision_model", "CLIPVisionModelWithProjection", "CLIPVisionModel" },
	{ "vit", "huggingface_clip_base", "clip_vision_model", "CLIPVisionModelWithProjection", "CLIPVisionModel" },
	{ "vit", "huggingface_siglip", "siglip_vision_model", "SiglipForImageClassification", "SiglipVisionModel" },
	{ "vit", "huggingface_siglip_base", "siglip_vision_model", "SiglipForImageClassification", "SiglipVisionModel" },
	{ "vit", "huggingface_siglip_classifier", "siglip_vision_model", "SiglipForImageClassification", "SiglipVisionModel" },
	{ "beit", "huggingface", "beit", "BeitForImageClassification", "BeitModel" },
	{ "beit", "huggingface_base", "beit", "BeitForImageClassification", "BeitModel" },
	{ "beit", "huggingface5", "beit", "BeitForImageClassification", "BeitModel" },
	{ "eva", "huggingface_dinov3", "dinov3_vit", "DINOv3ViTModel", "DINOv3ViTModel" }, { NULL, NULL, NULL, NULL, NULL },
};

static void add_dinov2(json_t *j, const struct nr_vit *c, const struct hf_class *k)
{
	if (c->registers && !strcmp(k->type, "dinov2")) {       /* names without a prefix are those of both */
		json_object_set_new(j, "model_type", json_string("dinov2_with_registers"));
		json_object_set_new(j, "architectures", json_pack("[s]", "Dinov2WithRegistersModel"));
	}
	/* it counts the units of SwiGLU in its own way: two thirds, in steps of 8 */
	json_object_set_new(j, "mlp_ratio", json_integer((json_int_t)lround(c->glu ? 1.5 * c->mlp : c->mlp)));
	json_object_set_new(j, "use_swiglu_ffn", json_boolean(c->glu));
	if (c->registers) json_object_set_new(j, "num_register_tokens", json_integer((json_int_t)c->registers));
}

static void add_beit(json_t *j, const struct nr_saved *w, const struct nr_vit *c)
{
	const bool scaled = nr_store_find(w->store, "blocks.0.attn.scale.gamma") != NULL, table = c->rel_pos == NR_VIT_RELATIVE_TABLE;
	json_object_set_new(j, "use_mean_pooling", json_boolean(c->pool == NR_VIT_AVG));
	json_object_set_new(j, "use_absolute_position_embeddings", json_boolean(nr_store_find(w->store, "pos_embed") != NULL));
	json_object_set_new(j, "use_relative_position_bias", json_boolean(table && !c->rel_pos_shared));
	json_object_set_new(j, "use_shared_relative_position_bias", json_boolean(table && c->rel_pos_shared));
	json_object_set_new(j, "layer_scale_init_value", json_real(scaled ? 0.1 : 0));
}

static void add_dinov3(json_t *j, const struct nr_vit *c)
{
	json_object_set_new(j, "num_register_tokens", json_integer((json_int_t)c->registers));
	json_object_set_new(j, "use_gated_mlp", json_boolean(c->glu));
	json_object_set_new(j, "rope_theta", json_real(c->rope_theta > 0 ? c->rope_theta : 100));
	json_object_set_new(j, "query_bias", json_boolean(c->qkv_bias));
	json_object_set_new(j, "value_bias", json_boolean(c->qkv_bias));
	json_object_set_new(j, "key_bias", json_false());
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

/* The settings of a tower inside those of its classifier. */
static json_t *siglip_classifier(json_t *tower, const struct nr_saved *w, const struct nr_vit *c)
{
	json_object_del(tower, "architectures");
	json_object_set_new(tower, "vision_use_head", json_boolean(c->pool == NR_VIT_MAP));
	json_t *j = json_pack("{s:[s], s:s, s:o}", "architectures", "SiglipForImageClassification", "model_type", "siglip", "vision_config",
		tower);
	return nr_config_labels(j, w, c->classes);
}

static json_t *hf_config(const struct nr_saved *w)
{
	const struct nr_vit *c = w->model->conf;
	const struct hf_class *k = hf_classes;
	const bool head = nr_store_find(w->store, "head.weight") != NULL;
	while (k->family && (strcmp(k->family, w->model->of->name) || strcmp(k->naming, w->naming->name))) k++;
	if (!k->family) return NULL;
	json_t *j = json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:f}",
		"architectures", head ? k->with_head : k->without, "model_type", k->type, "hidden_size", (json_int_t)c->dim,
		"num_hidden_layers", (json_int_t)c->depth, "num_attention_heads", (json_int_t)c->heads,
		"intermediate_size", (json_int_t)(c->mlp * (double)c->dim + 1e-4), "image_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "num_channels", (json_int_t)c->channels, "qkv_bias", (int)c->qkv_bias,
		"hidden_act", nr_hf_image_act(c->act), "layer_norm_eps", w->eps);
	if (w->mae) return mae_config(j, w->mae);
	if (!strncmp(k->type, "dinov2", 6)) add_dinov2(j, c, k);
	if (!strcmp(k->type, "dinov3_vit")) add_dinov3(j, c);
	if (!strcmp(k->type, "beit")) add_beit(j, w, c);
	if (!strcmp(k->type, "siglip_vision_model")) return head ? siglip_classifier(j, w, c) : j;
	if (!strcmp(k->type, "clip_vision_model")) json_object_set_new(j, "projection_dim", json_integer((json_int_t)c->classes));
	else if (strcmp(k->type, "dinov3_vit")) nr_config_labels(j, w, c->classes);
	return j;
}

/* ---- timm -------------------------------------------------------------------------------------------------------------------- */

/* The architecture of timm that the model's text names, if it changes nothing but sizes of the input and the classes; or "". */
static void architecture_of(const struct nr_model_spec *m, char *name, size_t size)
{
	const char *rest = m->text + strcspn(m->text, ":");
	snprintf(name, size, "%.*s", (int)(rest - m->text), m->text);
	bool known = false;
	for (const struct nr_architecture *a = m->of->known; a && a->name && !known; a++) known = !strcmp(a->name, name);
	for (const char *s = rest; *s && known; s += strcspn(s, ",")) {
		s++;
		known = !strncmp(s, "image=", 6) || !strncmp(s, "classes=", 8) || !strncmp(s, "channels=", 9);
	}
	if (!known) *name = 0;
}

/* A ViT that timm's plain one becomes by its arguments. */
static bool is_plain(const struct nr_model_spec *m)
{
	const struct nr_vit *c = m->conf;
	return !strcmp(m->of->name, "vit") && !m->norms.rules && c->key_bias && c->patch_bias && c->head_bias && !c->split_qkv &&
		!c->distilled && !c->rope && !c->rel_pos && !c->parallel && !c->glu && !c->register_pos && c->pool <= NR_VIT_AVG &&
		!strcmp(c->act, "gelu");
}

static json_t *timm_config(const struct nr_saved *w)
{
	const struct nr_vit *c = w->model->conf;
	const char *pools[] = { "token", "avg", "map", "avg" };
	char name[128];
	architecture_of(w->model, name, sizeof name);
	if (*name)
		return nr_timm_config(w, name, c->dim, pools[c->pool], json_pack("{s:I, s:I}", "img_size", (json_int_t)c->image, "in_chans",
			(json_int_t)c->channels));
	if (!is_plain(w->model)) return NULL;
	json_t *args = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b}", "img_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "in_chans", (json_int_t)c->channels, "embed_dim", (json_int_t)c->dim,
		"depth", (json_int_t)c->depth, "num_heads", (json_int_t)c->heads, "reg_tokens", (json_int_t)c->registers,
		"mlp_ratio", c->mlp, "qkv_bias", (int)c->qkv_bias, "class_token", (int)c->class_token);
	return nr_timm_config(w, "vit_base_patch16_224", c->dim, pools[c->pool], args);
}

json_t *nr_vit_config(const struct nr_saved *w) { return strcmp(w->naming->name, "timm") ? hf_config(w) : timm_config(w); }
