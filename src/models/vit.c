/* vit: Vision Transformers of timm's class VisionTransformer (also DeiT, CLIP, SigLIP, DINOv2) and their twins of Hugging Face. The model
 * itself is in vit_graph.c. */
#include "models/vit.h"

static const struct nr_preset presets[] = {
	{ "ti/16", "patch=16,dim=192,depth=12,heads=3" }, { "s/32", "patch=32,dim=384,depth=12,heads=6" },
	{ "s/16", "patch=16,dim=384,depth=12,heads=6" }, { "b/32", "patch=32,dim=768,depth=12,heads=12" },
	{ "b/16", "patch=16,dim=768,depth=12,heads=12" }, { "l/16", "patch=16,dim=1024,depth=24,heads=16" },
	{ "vit_tiny_patch16_224", "patch=16,dim=192,depth=12,heads=3" }, { "vit_small_patch32_224", "patch=32,dim=384,depth=12,heads=6" },
	{ "vit_small_patch16_224", "patch=16,dim=384,depth=12,heads=6" }, { "vit_base_patch32_224", "patch=32,dim=768,depth=12,heads=12" },
	{ "vit_base_patch16_224", "patch=16,dim=768,depth=12,heads=12" },
	{ "vit_large_patch16_224", "patch=16,dim=1024,depth=24,heads=16" },
	{ "vit_tiny_patch16_384", "image=384,patch=16,dim=192,depth=12,heads=3" },
	{ "vit_small_patch16_384", "image=384,patch=16,dim=384,depth=12,heads=6" },
	{ "vit_base_patch16_384", "image=384,patch=16,dim=768,depth=12,heads=12" },
	{ "deit_tiny_patch16_224", "patch=16,dim=192,depth=12,heads=3" }, { "deit_small_patch16_224", "patch=16,dim=384,depth=12,heads=6" },
	{ "deit_base_patch16_224", "patch=16,dim=768,depth=12,heads=12" },
	/* the ViTs of the DTN paper; a star means more heads, a late class token goes with the plan "blocks[0:10].*=dtn" */
	{ "dtn/t", "patch=16,dim=192,depth=12,heads=3,qkv_bias=0,class_at=10" },
	{ "dtn/t*", "patch=16,dim=192,depth=12,heads=4,qkv_bias=0,class_at=10" },
	{ "dtn/s", "patch=16,dim=384,depth=12,heads=6,qkv_bias=0,class_at=10" },
	{ "dtn/s*", "patch=16,dim=432,depth=12,heads=9,qkv_bias=0,class_at=10" },
	{ "dtn/b", "patch=16,dim=768,depth=12,heads=12,qkv_bias=0,class_at=10" },
	{ "dtn/b*", "patch=16,dim=768,depth=12,heads=16,qkv_bias=0,class_at=10" },
	/* for 28 to 64 pixels on a CPU */
	{ "vit_nano", "image=28,channels=1,patch=4,dim=96,depth=6,heads=3,classes=10" },
	{ "vit_micro", "image=32,patch=4,dim=192,depth=6,heads=3,classes=10" },
	{ NULL, NULL },
};

#define KNOWN(name, text, norms) { name, text, norms },
static const struct nr_architecture known[] = {
#include "models/vit_timm.def"
	{ NULL, NULL, NULL },
};
#undef KNOWN

/* The decoder of MAE, which joins these tables as scope "decoder", comes first: its blocks and norms have other names. */
static const struct nr_rename timm[] = {
	{ "decoder.blocks.", "decoder_blocks." }, { "decoder.final.", "decoder_norm." }, { "decoder.embed.", "decoder_embed." },
	{ "decoder.pred.", "decoder_pred." }, { "decoder.pos_embed", "decoder_pos_embed" }, { "decoder.mask_token", "mask_token" },
	{ "par.attn.in.", "in_norm." }, { "par.attn.qk.q.", "q_norm." }, { "par.attn.qk.k.", "k_norm." }, { "par.attn.scale.", "ls." },
	{ "par.in_proj.", "in_proj." }, { "par.mlp_bias", "mlp_bias" }, { "par.attn_proj.", "attn_out_proj." },
	{ "par.mlp_proj.", "mlp_out_proj." },
	{ "patch.in.", "@patch_embed.norm_pre." }, { "patch.out.", "patch_embed.norm." }, { "patch.pos.", "patch_embed.norm." },
	{ "embed.", "norm_pre." },
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.qk.q.", "attn.q_norm." }, { "attn.qk.k.", "attn.k_norm." },
	{ "attn.inner.", "attn.norm." }, { "mlp.inner.", "mlp.norm." }, { "attn.scale.", "ls1." }, { "mlp.scale.", "ls2." },
	{ "attn_pool.qkv.", "attn_pool.q. 2*attn_pool.kv." }, { "pool.in.", "norm." },
	{ "fc.", "fc_norm." }, { "final.", "norm." }, { "special.", "cls_norm_layer." }, { "rest.", "tok_norm_layer." },
	{ "register_token", "reg_token" }, { NULL, NULL },
};

/* The released code of DINO: timm's names below "backbone", and a head. `p`: in a file of a whole training, which of its two networks. */
#define DINO(p)                                                                                                              \
	{ "patch.in.", "@" p "backbone.patch_embed.norm_pre." }, { "patch.out.", p "backbone.patch_embed.norm." },           \
	{ "patch.pos.", p "backbone.patch_embed.norm." }, { "patch_embed.proj.", p "backbone.patch_embed.proj." },           \
	{ "embed.", p "backbone.norm_pre." }, { "final.", p "backbone.norm." }, { "fc.", p "backbone.fc_norm." },            \
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.qk.q.", "attn.q_norm." },                                 \
	{ "attn.qk.k.", "attn.k_norm." }, { "attn.inner.", "attn.norm." }, { "mlp.inner.", "mlp.norm." },                    \
	{ "attn.scale.", "ls1." }, { "mlp.scale.", "ls2." }, { "special.", "cls_norm_layer." },                              \
	{ "rest.", "tok_norm_layer." }, { "register_token", p "backbone.reg_token" },                                        \
	{ "cls_token", p "backbone.cls_token" }, { "pos_embed", p "backbone.pos_embed" },                                    \
	{ "blocks.", p "backbone.blocks." }, { "head.", p "backbone.head." }, { "dino.", p "head." }, { NULL, NULL }
static const struct nr_rename dino[] = { DINO("") };
static const struct nr_rename dino_teacher[] = { DINO("teacher.") };
static const struct nr_rename dino_student[] = { DINO("student.module.") };
static const struct nr_rename dino_module[] = { DINO("module.") };
static const char *const dino_rest[] = { "student.*", "teacher.*", "dino_loss.*", "optimizer.*", NULL };

/* Hugging Face: `p` is the prefix of the encoder. */
#define HF_EMBED(p)                                                                                                          \
	{ "cls_token", p "embeddings.cls_token" }, { "pos_embed", p "embeddings.position_embeddings" },                      \
	{ "patch_embed.proj.", p "embeddings.patch_embeddings.projection." },                                                \
	{ "patch.in.", "@" p "embeddings.norm_pre." }, { "patch.out.", p "embeddings.norm." },                               \
	{ "patch.pos.", p "embeddings.norm." }, { "special.", "cls_norm_layer." }, { "rest.", "tok_norm_layer." },           \
	{ "final.", p "layernorm." }, { "pre_logits.", p "pooler.dense." }
#define HF_DECODER(blocks)                                                                                                   \
	{ "decoder.blocks.", blocks }, { "decoder.final.", "decoder.decoder_norm." },                                        \
	{ "decoder.embed.", "decoder.decoder_embed." }, { "decoder.pred.", "decoder.decoder_pred." },                        \
	{ "decoder.pos_embed", "decoder.decoder_pos_embed" }
#define HF_NORMS { "attn.in.", "layernorm_before." }, { "mlp.in.", "layernorm_after." }
#define HF_ATTENTION                                                                                                         \
	{ "attn.qkv.", "attention.attention.query. attention.attention.key. attention.attention.value." },                   \
	{ "attn.proj.", "attention.output.dense." }
#define HF_BLOCK(p)                                                                                                          \
	HF_NORMS, HF_ATTENTION, { "mlp.fc1.", "intermediate.dense." }, { "mlp.fc2.", "output.dense." },                      \
	{ "blocks.", p "encoder.layer." }
/* As transformers 5 holds them in memory, and writes them from some versions on. */
#define HF5_BLOCK(p)                                                                                                         \
	HF_NORMS, { "attn.qkv.", "attention.q_proj. attention.k_proj. attention.v_proj." },                                  \
	{ "attn.proj.", "attention.o_proj." }, { "blocks.", p "layers." }
#define HF_HEAD { "head.", "classifier." }
static const struct nr_rename hf[] = { HF_DECODER("decoder.decoder_layers."), HF_EMBED("vit."), HF_BLOCK("vit."), HF_HEAD, { NULL, NULL } };
static const struct nr_rename hf5[] = { HF_DECODER("decoder.decoder_layers."), HF_EMBED("vit."), HF5_BLOCK("vit."), HF_HEAD, { NULL,
	NULL } };
/* As transformers 5 saves a MAE that it made itself. */
static const struct nr_rename hf5_mae[] = {
	HF_DECODER("decoder.decoder_encoder.layer."), HF_EMBED("vit."), HF_BLOCK("vit."), HF_HEAD, { NULL, NULL },
};
static const struct nr_rename hf_deit[] = {
	{ "dist_token", "deit.embeddings.distillation_token" }, { "head_dist.", "distillation_classifier." },
	{ "head.", "cls_classifier." },
	HF_EMBED("deit."), HF_BLOCK("deit."), { NULL, NULL },
};
/* With one head: nothing reads the distillation token, which is a register then. */
static const struct nr_rename hf_deit_plain[] = {
	{ "register_token", "deit.embeddings.distillation_token" }, HF_HEAD, HF_EMBED("deit."), HF_BLOCK("deit."), { NULL, NULL },
};
#define HF_DINOV2(p)                                                                                                         \
	HF_EMBED(p), { "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, HF_ATTENTION, { "attn.scale.gamma", "layer_scale1.lambda1" }, \
	{ "mlp.scale.gamma", "layer_scale2.lambda1" }, { "register_token", p "embeddings.register_tokens" },                 \
	{ "blocks.", p "encoder.layer." }, HF_HEAD
static const struct nr_rename hf_dinov2[] = { HF_DINOV2("dinov2."), { NULL, NULL } };
static const struct nr_rename hf_dinov2_registers[] = { HF_DINOV2("dinov2_with_registers."), { NULL, NULL } };
#define HF_SWIGLU { "mlp.fc1.", "mlp.weights_in." }, { "mlp.fc2.", "mlp.weights_out." }
static const struct nr_rename hf_dinov2_swiglu[] = { HF_SWIGLU, HF_DINOV2("dinov2."), { NULL, NULL } };
static const struct nr_rename hf_dinov2_registers_swiglu[] = { HF_SWIGLU, HF_DINOV2("dinov2_with_registers."), { NULL, NULL } };
/* CLIP's and SigLIP's image towers; what stands in for the head is CLIP's projection to the common space. */
#define HF_TOWER                                                                                                             \
	{ "cls_token", "^vision_model.embeddings.class_embedding" },                                                         \
	{ "pos_embed", "^vision_model.embeddings.position_embedding.weight" },                                               \
	{ "patch_embed.proj.", "vision_model.embeddings.patch_embedding." }, { "embed.", "vision_model.pre_layrnorm." },     \
	{ "attn_pool.latent", "vision_model.head.probe" }, { "attn_pool.qkv.", "vision_model.head.attention.in_proj_" },     \
	{ "attn_pool.proj.", "vision_model.head.attention.out_proj." }, { "attn_pool.pool.in.", "vision_model.head.layernorm." }, \
	{ "attn_pool.", "vision_model.head." },                                                                              \
	{ "attn.in.", "layer_norm1." }, { "mlp.in.", "layer_norm2." },                                                       \
	{ "attn.qkv.", "self_attn.q_proj. self_attn.k_proj. self_attn.v_proj." }, { "attn.proj.", "self_attn.out_proj." },   \
	{ "blocks.", "vision_model.encoder.layers." }, { "final.", "vision_model.post_layernorm." }
static const struct nr_rename hf_clip[] = { { "head.", "visual_projection." }, HF_TOWER, { NULL, NULL } };
static const struct nr_rename hf_tower[] = { { "head.", "classifier." }, HF_TOWER, { NULL, NULL } };
/* open_clip's and OpenAI's; the projection is a matrix of its own, (width, outputs). Its SigLIPs have timm's towers. */
static const struct nr_rename open_clip[] = {
	{ "cls_token", "^visual.class_embedding" }, { "pos_embed", "^visual.positional_embedding" },
	{ "patch_embed.proj.", "visual.conv1." }, { "embed.", "visual.ln_pre." }, { "attn.in.", "ln_1." }, { "mlp.in.", "ln_2." },
	{ "attn.qkv.", "attn.in_proj_" }, { "attn.proj.", "attn.out_proj." }, { "mlp.fc1.", "mlp.c_fc." }, { "mlp.fc2.", "mlp.c_proj." },
	{ "blocks.", "visual.transformer.resblocks." }, { "final.", "visual.ln_post." }, { "head.weight", "!visual.proj" }, { NULL, NULL },
};
static const char *const unused[] = { "*position_ids", "*embeddings.mask_token", "text_model.*", "text_projection.weight", "logit_scale",
	"logit_bias", NULL };
static const char *const unused_pool[] = { "*position_ids", "vision_model.head.*", NULL };
static const char *const of_texts[] = { "text.*", "token_embedding.weight", "positional_embedding", "transformer.*", "ln_final.*",
	"text_projection", "logit_scale", "logit_bias", "attn_mask", NULL };

static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm }, { .name = "mae", .rules = timm }, { .name = "dino", .rules = dino },
	{ .name = "dino_teacher", .rules = dino_teacher, .ignored = dino_rest },
	{ .name = "dino_student", .rules = dino_student, .ignored = dino_rest },
	{ .name = "dino_module", .rules = dino_module, .ignored = dino_rest },
	{ .name = "huggingface", .rules = hf, .eps = 1e-12 },
	{ .name = "huggingface_base", .rules = hf, .without = "vit.", .eps = 1e-12 },
	{ .name = "huggingface5", .rules = hf5, .eps = 1e-12 }, { .name = "huggingface5_mae", .rules = hf5_mae, .eps = 1e-12 },
	{ .name = "huggingface_deit", .rules = hf_deit, .eps = 1e-12 }, { .name = "huggingface_deit_plain", .rules = hf_deit_plain,
		.eps = 1e-12 },
	{ .name = "huggingface_deit_base", .rules = hf_deit_plain, .without = "deit.", .eps = 1e-12 },
	{ .name = "huggingface_dinov2", .rules = hf_dinov2, .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_dinov2_registers", .rules = hf_dinov2_registers, .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_dinov2_base", .rules = hf_dinov2, .without = "dinov2.", .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_dinov2_swiglu", .rules = hf_dinov2_swiglu, .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_dinov2_registers_swiglu", .rules = hf_dinov2_registers_swiglu, .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_dinov2_base_swiglu", .rules = hf_dinov2_swiglu, .without = "dinov2.", .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_clip", .rules = hf_clip, .eps = 1e-5, .ignored = unused },
	{ .name = "huggingface_clip_base", .rules = hf_clip, .without = "vision_model.", .eps = 1e-5, .ignored = unused },
	{ .name = "huggingface_siglip", .rules = hf_tower, .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_siglip_base", .rules = hf_tower, .without = "vision_model.", .eps = 1e-6, .ignored = unused },
	{ .name = "huggingface_siglip_classifier", .rules = hf_tower, .eps = 1e-6, .ignored = unused_pool },
	{ .name = "open_clip", .rules = open_clip, .eps = 1e-5, .ignored = of_texts },
	{ .name = "open_clip_timm", .rules = timm, .prefix = "visual.trunk.", .ignored = of_texts },
	{ .name = NULL },
};

static const char *const classes[] = { "ViTForImageClassification", "ViTModel", "ViTMAEForPreTraining", "DeiTForImageClassification",
	"DeiTForImageClassificationWithTeacher", "Dinov2ForImageClassification", "Dinov2Model", "Dinov2WithRegistersForImageClassification",
	"Dinov2WithRegistersModel", "DeiTModel", "CLIPVisionModelWithProjection", "CLIPVisionModel", "CLIPModel", "SiglipVisionModel",
	"SiglipModel", "SiglipForImageClassification", NULL };
static const char *const types[] = { "vit", "vit_mae", "vit_msn", "deit", "dinov2", "dinov2_with_registers", "clip", "clip_vision_model",
	"siglip", "siglip_vision_model", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = types, .signs = nr_vit_signs, .measure = nr_vit_measure, .config = nr_vit_config,
	.doubt = NR_VIT_DOUBT,
};

const struct nr_model nr_model_vit = {
	.name = "vit", .title = "Vision Transformer", .cite = "arXiv:2010.11929", .presets = presets, .known = known, .namings = namings,
	.norms = NR_VIT_NORMS, .file = &file, NR_VIT_GRAPH,
};
