/* eva: EVA, EVA-02 and DINOv3, timm's class Eva. Fang et al. 2023, arXiv:2211.07636 and arXiv:2303.11331; Simeoni et al. 2025,
 * arXiv:2508.10104. A ViT with rotary positions, SwiGLU and norms inside attention and MLP (Sub-LN); see vit_graph.c. */
#include "models/vit.h"

static const struct nr_preset presets[] = {
	{ "eva02/ti", "image=336,patch=14,dim=192,heads=3,mlp=2.66666667,key_bias=0,glu=packed,rope=eva,rope_grid=16,pool=avg" },
	{ "dinov3/s", "image=256,dim=384,heads=6,pos=none,registers=4,qkv_bias=0,rope=dinov3,pool=avg,fc_norm=0" }, { NULL, NULL },
};
static const struct nr_preset plans[] = { { "dinov3/s", "layer residual=layerscale:init=1e-5 eps=1e-5" }, { NULL, NULL } };

#define KNOWN(name, text, norms) { name, text, norms },
static const struct nr_architecture known[] = {
#include "models/eva_timm.def"
	{ NULL, NULL, NULL },
};
#undef KNOWN

static const struct nr_rename timm[] = {
	{ "embed.", "norm_pre." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.out.", "norm1." }, { "mlp.out.", "norm2." },
	{ "attn.qk.q.", "attn.q_norm." }, { "attn.qk.k.", "attn.k_norm." }, { "attn.inner.", "attn.norm." }, { "mlp.inner.", "mlp.norm." },
	{ "attn.q.", "attn.q_proj." }, { "attn.k.", "attn.k_proj." }, { "attn.v.", "attn.v_proj." },
	{ "attn.scale.gamma", "gamma_1" }, { "mlp.scale.gamma", "gamma_2" },
	{ "attn_pool.qkv.", "attn_pool.q. 2*attn_pool.kv." }, { "pool.in.", "norm." }, { "fc.", "fc_norm." }, { "final.", "norm." },
	{ "register_token", "reg_token" }, { NULL, NULL },
};
/* DINOv3: queries, keys and values have layers of their own. */
static const struct nr_rename hf_dinov3[] = {
	{ "cls_token", "embeddings.cls_token" }, { "register_token", "embeddings.register_tokens" },
	{ "patch_embed.proj.", "embeddings.patch_embeddings." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." },
	{ "attn.scale.gamma", "layer_scale1.lambda1" }, { "mlp.scale.gamma", "layer_scale2.lambda1" },
	{ "attn.qkv.", "attention.q_proj. attention.k_proj. attention.v_proj." }, { "attn.q.", "attention.q_proj." },
	{ "attn.k.", "attention.k_proj." }, { "attn.v.", "attention.v_proj." }, { "attn.proj.", "attention.o_proj." },
	{ "mlp.fc1.", "mlp.up_proj." }, { "mlp.fc1_g.", "mlp.gate_proj." }, { "mlp.fc1_x.", "mlp.up_proj." },
	{ "mlp.fc2.", "mlp.down_proj." }, { "blocks.", "layer." }, { "final.", "norm." }, { NULL, NULL },
};
static const char *const unused[] = { "*rope.freqs_cos", "*rope.freqs_sin", "*rope.freqs", "*mask_token", "rope_embeddings.*", NULL };
static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm, .ignored = unused }, { .name = "huggingface_dinov3", .rules = hf_dinov3, .eps = 1e-5,
		.ignored = unused },
	{ .name = NULL },
};

static const char *const classes[] = { "DINOv3ViTModel", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = (const char *const[]){ "dinov3_vit", NULL },
	.signs = nr_vit_signs, .measure = nr_vit_measure, .config = nr_vit_config, .doubt = NR_VIT_DOUBT,
};

const struct nr_model nr_model_eva = {
	.name = "eva", .title = "EVA-02 and DINOv3", .cite = "arXiv:2303.11331", .presets = presets, .known = known, .plans = plans,
		.namings = namings,
	.norms = NR_VIT_NORMS, .file = &file, NR_VIT_GRAPH,
};
