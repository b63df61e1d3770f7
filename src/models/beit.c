/* beit: BERT pre-training of image transformers. Bao et al. 2022, arXiv:2106.08254; v2: Peng et al. 2022, arXiv:2208.06366. A ViT with
 * relative position biases, LayerScale (residual=layerscale) and keys without bias; see vit_graph.c. */
#include "models/vit.h"

static const struct nr_preset presets[] = {
	{ "beit/b", "dim=768,heads=12,pos=none,rel_pos=table,key_bias=0,pool=avg" },
	{ "beit/l", "dim=1024,depth=24,heads=16,pos=none,rel_pos=table,key_bias=0,pool=avg" }, { NULL, NULL },
};
static const struct nr_preset plans[] = { { "beit/b", "layer residual=layerscale:init=0.1" }, { "beit/l",
	"layer residual=layerscale:init=1e-5" },
	{ NULL, NULL } };

#define KNOWN(name, text, norms) { name, text, norms },
static const struct nr_architecture known[] = {
#include "models/beit_timm.def"
	{ NULL, NULL, NULL },
};
#undef KNOWN

static const struct nr_rename timm[] = {
	{ "attn.rel_pos.table", "attn.relative_position_bias_table" },
	{ "shared_rel_pos.table", "rel_pos_bias.relative_position_bias_table" },
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.inner.", "attn.norm." }, { "mlp.inner.", "mlp.norm." },
	{ "attn.scale.gamma", "gamma_1" }, { "mlp.scale.gamma", "gamma_2" }, { "fc.", "fc_norm." }, { "final.", "norm." }, { NULL, NULL },
};
#define HF_AROUND                                                                                                            \
	{ "cls_token", "beit.embeddings.cls_token" }, { "pos_embed", "beit.embeddings.position_embeddings" },                \
	{ "patch_embed.proj.", "beit.embeddings.patch_embeddings.projection." },                                             \
	{ "attn.in.", "layernorm_before." }, { "mlp.in.", "layernorm_after." },                                              \
	{ "attn.scale.gamma", "lambda_1" }, { "mlp.scale.gamma", "lambda_2" }, { "fc.", "beit.pooler.layernorm." },          \
	{ "final.", "beit.layernorm." }, { "head.", "classifier." }
static const struct nr_rename hf[] = {
	HF_AROUND, { "shared_rel_pos.table", "beit.encoder.relative_position_bias.relative_position_bias_table" },
	{ "attn.rel_pos.table", "attention.attention.relative_position_bias.relative_position_bias_table" },
	{ "attn.qkv.", "attention.attention.query. attention.attention.key. attention.attention.value." },
	{ "attn.q_bias", "attention.attention.query.bias" }, { "attn.v_bias", "attention.attention.value.bias" },
	{ "attn.proj.", "attention.output.dense." }, { "mlp.fc1.", "intermediate.dense." }, { "mlp.fc2.", "output.dense." },
	{ "blocks.", "beit.encoder.layer." }, { NULL, NULL },
};
/* As transformers 5 holds them in memory. */
static const struct nr_rename hf5[] = {
	HF_AROUND, { "shared_rel_pos.table", "beit.relative_position_bias.relative_position_bias_table" },
	{ "attn.rel_pos.table", "relative_position_bias.relative_position_bias_table" },
	{ "attn.qkv.", "attention.q_proj. attention.k_proj. attention.v_proj." }, { "attn.q_bias", "attention.q_proj.bias" },
	{ "attn.v_bias", "attention.v_proj.bias" }, { "attn.proj.", "attention.o_proj." }, { "blocks.", "beit.layers." }, { NULL, NULL },
};
static const char *const unused[] = { "*relative_position_index", "*mask_token", NULL };
static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm, .ignored = unused }, { .name = "huggingface", .rules = hf, .eps = 1e-12, .ignored = unused },
	{ .name = "huggingface_base", .rules = hf, .without = "beit.", .eps = 1e-12, .ignored = unused },
	{ .name = "huggingface5", .rules = hf5, .eps = 1e-12, .ignored = unused }, { .name = NULL },
};

static const char *const classes[] = { "BeitForImageClassification", "BeitModel", NULL };
static const char *const types[] = { "beit", NULL };
static const struct nr_model_file file = {
	.classes = classes, .types = types, .signs = nr_vit_signs, .measure = nr_vit_measure, .config = nr_vit_config,
	.doubt = NR_VIT_DOUBT,
};

const struct nr_model nr_model_beit = {
	.name = "beit", .title = "BEiT", .cite = "arXiv:2106.08254", .presets = presets, .known = known, .plans = plans, .namings = namings,
	.norms = NR_VIT_NORMS, .file = &file, NR_VIT_GRAPH,
};
