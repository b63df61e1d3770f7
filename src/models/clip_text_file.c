/* Text towers in files, mostly beside an image tower: their names, what tensors and a config.json say of the options, and the config.json
 * of others. */
#include <stdio.h>
#include <string.h>

#include "models/clip_text.h"
#include "models/hf_config.h"
#include "models/image_config.h"
#include "norma/safetensors.h"

#define HF_BLOCKS                                                                                                              \
	{ "word.", "text_model.embeddings.token_embedding." }, { "position.", "text_model.embeddings.position_embedding." },    \
	{ "attn.in.", "layer_norm1." }, { "mlp.in.", "layer_norm2." },                                                          \
	{ "attn.qkv.", "self_attn.q_proj. self_attn.k_proj. self_attn.v_proj." }, { "attn.proj.", "self_attn.out_proj." },      \
	{ "blocks.", "text_model.encoder.layers." }, { "final.", "text_model.final_layer_norm." }
static const struct nr_rename hf_clip[] = { HF_BLOCKS, { "head.", "text_projection." }, { NULL, NULL } };
static const struct nr_rename hf_siglip[] = { HF_BLOCKS, { "head.", "text_model.head." }, { NULL, NULL } };
/* open_clip and OpenAI; the projection is a matrix of its own, (width, outputs). With a bias it is a layer. */
#define OPEN_BLOCKS                                                                                                            \
	{ "word.", "token_embedding." }, { "position.weight", "positional_embedding" }, { "attn.in.", "ln_1." },                \
	{ "mlp.in.", "ln_2." }, { "attn.qkv.", "attn.in_proj_" }, { "attn.proj.", "attn.out_proj." },                           \
	{ "mlp.fc1.", "mlp.c_fc." }, { "mlp.fc2.", "mlp.c_proj." }, { "blocks.", "transformer.resblocks." }, { "final.", "ln_final." }
static const struct nr_rename open_clip[] = { OPEN_BLOCKS, { "head.weight", "!text_projection" }, { NULL, NULL } };
static const struct nr_rename open_layer[] = { OPEN_BLOCKS, { "head.", "text_projection." }, { NULL, NULL } };

static const char *const of_images[] = { "*position_ids", "vision_model.*", "visual_projection.weight", "visual.*", "logit_scale",
	"logit_bias", "*attn_mask", NULL };
const struct nr_naming nr_clip_text_namings[] = {
	{ .name = "huggingface_clip", .rules = hf_clip, .eps = 1e-5, .ignored = of_images },
	{ .name = "huggingface_siglip", .rules = hf_siglip, .eps = 1e-6, .ignored = of_images },
	{ .name = "open_clip", .rules = open_clip, .eps = 1e-5, .ignored = of_images },
	{ .name = "open_clip_text", .rules = open_clip, .prefix = "text.", .eps = 1e-5, .ignored = of_images },
	{ .name = "open_clip_siglip", .rules = open_layer, .prefix = "text.", .eps = 1e-6, .ignored = of_images },
	{ .name = NULL },
};

/* ---- in a file ----------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "word.weight", "position.weight", "blocks.0.attn.in.weight", "blocks.0.attn.qkv.weight",
	"blocks.0.mlp.fc1.weight", "head.weight", NULL };

static bool is_open(const struct nr_look *l) { return !strncmp(l->naming->name, "open_clip", 9); }
static bool is_siglip(const struct nr_look *l) { return strstr(l->naming->name, "siglip") != NULL; }

/* The part of a config.json that is about this tower; NULL: there is none. */
static const json_t *config_of(const struct nr_look *l)
{
	const json_t *text = json_object_get(l->config, "text_config"), *open = json_object_get(json_object_get(l->config, "model_cfg"),
		"text_cfg");
	const char *type = nr_hf_text(l->config, "model_type");
	if (is_open(l)) return open;
	return text ? text : type && strstr(type, "text_model") ? l->config : NULL;
}

static const char *act_of(const struct nr_look *l, const json_t *config)
{
	const char *act = nr_hf_text(config, "hidden_act"), *usual = is_siglip(l) ? "gelu_tanh" : is_open(l) ? "gelu" : "quick_gelu";
	if (is_open(l) && json_is_true(json_object_get(json_object_get(l->config, "model_cfg"), "quick_gelu"))) return "quick_gelu";
	return act ? nr_hf_act(act) : usual;
}

/* Hugging Face: 2 stands for the largest id, as in the first files. */
static int64_t end_of(const json_t *config)
{
	const double id = nr_hf_number(config, "eos_token_id");
	return id >= 0 && id != 2 ? (int64_t)id : -1;
}

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *word = nr_look_find(l, "word.weight");
	if (!word || word->nd != 2 || word->shape[1] < 1 || word->shape[1] > 65536) return false;
	const int64_t C = word->shape[1], positions = nr_look_rows(l, "position.weight", C), depth = nr_look_depth(l, "mlp.fc1.weight");
	const int64_t hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", C);
	const bool siglip = is_siglip(l);
	if (positions < 1 || hidden < 1 || depth < 1) return false;
	const json_t *config = config_of(l);
	const double heads = nr_hf_number(config, is_open(l) ? "heads" : "num_attention_heads");
	const double eps = nr_hf_number(config, "layer_norm_eps");
	const char *act = act_of(l, config);
	nr_saw_key(s, "vocab", word->shape[0]);
	nr_saw_key(s, "dim", C);
	nr_saw_key(s, "depth", depth);
	nr_saw_key(s, "hidden", hidden);
	if (heads > 0) nr_saw(s, "heads", (int64_t)heads);
	else nr_assumed(s, "heads", nr_heads_assumed(C));
	nr_saw(s, "positions", positions);
	if (siglip) nr_saw(s, "length", positions);
	else nr_saw_at_most(s, "length", positions);
	nr_saw_text(s, "act", act);
	nr_saw(s, "causal", !siglip);
	nr_saw(s, "ends", !siglip);
	nr_saw(s, "end", siglip || is_open(l) ? -1 : end_of(config));
	nr_saw(s, "pad", siglip ? 1 : -1);
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", C));
	nr_saw(s, "head_bias", nr_look_find(l, "head.bias") != NULL);
	const double own = eps > 0 ? eps : l->naming->eps;
	nr_saw_norms(s, own == l->model->norms.eps || !(own > 0) ? "" : nr_arena_printf(l->arena, "eps=%.9g", own));
	if (config && heads > 0 && act) nr_saw_all(s);
	return true;
}

/* ---- for others ---------------------------------------------------------------------------------------------------------- */

static json_t *config(const struct nr_saved *w)
{
	const struct nr_clip_text *c = w->model->conf;
	const bool siglip = !strcmp(w->naming->name, "huggingface_siglip"), head = nr_store_find(w->store, "head.weight") != NULL;
	if (!siglip && strcmp(w->naming->name, "huggingface_clip")) return NULL;
	return json_pack("{s:[s], s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f}", "architectures",
		siglip ? "SiglipTextModel" : head ? "CLIPTextModelWithProjection" : "CLIPTextModel", "model_type",
		siglip ? "siglip_text_model" : "clip_text_model", "vocab_size", (json_int_t)c->vocab, "hidden_size", (json_int_t)c->dim,
		"num_hidden_layers", (json_int_t)c->depth, "num_attention_heads", (json_int_t)c->heads, "intermediate_size",
		(json_int_t)c->hidden, "max_position_embeddings", (json_int_t)c->positions, "pad_token_id", (json_int_t)c->pad,
		"eos_token_id", (json_int_t)(c->end < 0 ? 2 : c->end), siglip ? "projection_size" : "projection_dim",
		(json_int_t)c->classes, "hidden_act", nr_hf_image_act(c->act), "layer_norm_eps", w->eps);
}

static const char *const classes[] = { "CLIPModel", "CLIPTextModel", "CLIPTextModelWithProjection", "SiglipModel", "SiglipTextModel",
	NULL };
const struct nr_model_file nr_clip_text_file = {
	.classes = classes, .signs = signs, .measure = measure, .config = config,
	.doubt = "the number of heads is unknown: a width of 64 is assumed",
};
