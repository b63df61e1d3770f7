/* vit: Vision Transformer. Dosovitskiy et al. 2021, arXiv:2010.11929, Eq. 1 to 4; timm's form and names.
 *
 * With the options of its descendants: Dual PatchNorm (sites patch.in, patch.out), DTN's late class token (class_at),
 * average pooling, registers (arXiv:2309.16588), fixed sin-cos positions, AugReg's tanh layer before the head. */
#include <stdbool.h>

#include "models/block.h"
#include "models/guess.h"
#include "models/image_config.h"
#include "models/mae.h"
#include "models/position.h"
#include "norma/model.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

enum pool { POOL_CLASS, POOL_AVG };

struct vit {
	int64_t image, channels, patch, dim, depth, heads, classes, registers, class_at;
	double mlp, drop_path, dropout, attention_dropout;
	int32_t pool, pos;
	bool class_token, qkv_bias, fc_norm, pre_logits;
	int32_t position_bias;              /* enum nr_position_bias */
	char *act;
};

static const char *const pools[] = { "class", "avg", NULL };
static const struct nr_option options[] = {
	NR_OPT_INT(struct vit, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct vit, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct vit, patch, 16, 1, 512, "size of a patch"),
	NR_OPT_INT(struct vit, dim, 192, 1, 65536, "width of a token"),
	NR_OPT_INT(struct vit, depth, 12, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct vit, heads, 3, 1, 1024, "attention heads"),
	NR_OPT_FLOAT(struct vit, mlp, 4, 0.01, 64, "width of the MLP relative to a token"),
	NR_OPT_INT(struct vit, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_ENUM(struct vit, pool, "class", pools, "what the head reads: the class token or the mean of the patch tokens"),
	NR_OPT_BOOL(struct vit, class_token, "1", "have a class token"),
	NR_OPT_BOOL(struct vit, fc_norm, "1", "with pool=avg: put the final norm after the mean, as in timm"),
	NR_OPT_INT(struct vit, registers, 0, 0, 256, "further special tokens that nothing reads"),
	NR_OPT_INT(struct vit, class_at, 0, 0, 1024,
		"block before which the class token is added (DTN: 10 of 12); it then has no position"),
	NR_OPT_ENUM(struct vit, pos, "learned", nr_position_names,
		"position table; sincos as in MAE, sincos_bv as in big_vision, both fixed"),
	NR_OPT_BOOL(struct vit, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_BOOL(struct vit, pre_logits, "0", "a tanh layer before the head (AugReg)"),
	NR_OPT_ENUM(struct vit, position_bias, "0", nr_position_biases,
		"use DTN's position term R a_h as a bias of attention (DTN, Table 10a): 1: from zero on, eq7: from DTN's own start"),
	NR_OPT_STRING(struct vit, act, "gelu", "activation of the MLP: gelu, gelu_tanh (big_vision), relu, silu"),
	NR_OPT_FLOAT(struct vit, drop_path, 0, 0, 0.99,
		"share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct vit, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_FLOAT(struct vit, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

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

/* The decoder of MAE, which joins these tables as scope "decoder", comes first: its blocks and norms have other names. */
static const struct nr_rename timm[] = {
	{ "decoder.blocks.", "decoder_blocks." }, { "decoder.final.", "decoder_norm." }, { "decoder.embed.", "decoder_embed." },
	{ "decoder.pred.", "decoder_pred." }, { "decoder.pos_embed", "decoder_pos_embed" }, { "decoder.mask_token", "mask_token" },
	{ "patch.in.", "@patch_embed.norm_pre." }, { "patch.out.", "patch_embed.norm." }, { "patch.pos.", "patch_embed.norm." },
	{ "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.qk.q.", "attn.q_norm." }, { "attn.qk.k.", "attn.k_norm." },
	{ "attn.inner.", "attn.norm." }, { "mlp.inner.", "mlp.norm." }, { "attn.scale.", "ls1." }, { "mlp.scale.", "ls2." },
	{ "fc.", "fc_norm." }, { "final.", "norm." }, { "special.", "cls_norm_layer." }, { "rest.", "tok_norm_layer." },
	{ "register_token", "reg_token" }, { NULL, NULL },
};
#define HF_AROUND(decoder_blocks)                                                                                            \
	{ "decoder.blocks.", decoder_blocks }, { "decoder.final.", "decoder.decoder_norm." },                                \
	{ "decoder.embed.", "decoder.decoder_embed." }, { "decoder.pred.", "decoder.decoder_pred." },                        \
	{ "decoder.pos_embed", "decoder.decoder_pos_embed" },                                                                \
	{ "cls_token", "vit.embeddings.cls_token" }, { "pos_embed", "vit.embeddings.position_embeddings" },                  \
	{ "patch_embed.proj.", "vit.embeddings.patch_embeddings.projection." },                                              \
	{ "patch.in.", "@vit.embeddings.norm_pre." }, { "patch.out.", "vit.embeddings.norm." },                              \
	{ "patch.pos.", "vit.embeddings.norm." }, { "attn.in.", "layernorm_before." }, { "mlp.in.", "layernorm_after." },    \
	{ "special.", "cls_norm_layer." }, { "rest.", "tok_norm_layer." },                                                   \
	{ "final.", "vit.layernorm." }, { "head.", "classifier." }
#define HF_BLOCK                                                                                                             \
	{ "attn.qkv.", "attention.attention.query. attention.attention.key. attention.attention.value." },                   \
	{ "attn.proj.", "attention.output.dense." }, { "mlp.fc1.", "intermediate.dense." }, { "mlp.fc2.", "output.dense." }, \
	{ "blocks.", "vit.encoder.layer." }
static const struct nr_rename hf[] = { HF_AROUND("decoder.decoder_layers."), HF_BLOCK, { NULL, NULL } };
/* As transformers 5 holds them in memory, and writes them from some versions on. */
static const struct nr_rename hf5[] = {
	HF_AROUND("decoder.decoder_layers."),
	{ "attn.qkv.", "attention.q_proj. attention.k_proj. attention.v_proj." }, { "attn.proj.", "attention.o_proj." },
	{ "blocks.", "vit.layers." }, { NULL, NULL },
};
/* As transformers 5 saves a MAE that it made itself. */
static const struct nr_rename hf5_mae[] = { HF_AROUND("decoder.decoder_encoder.layer."), HF_BLOCK, { NULL, NULL } };
static const struct nr_naming namings[] = {
	{ .name = "timm", .rules = timm }, { .name = "mae", .rules = timm }, { .name = "huggingface", .rules = hf, .eps = 1e-12 },
	{ .name = "huggingface5", .rules = hf5, .eps = 1e-12 }, { .name = "huggingface5_mae", .rules = hf5_mae, .eps = 1e-12 },
	{ .name = NULL },
};

/* ---- the model ------------------------------------------------------------------------------------------------------ */

/* Does the class token stand in the position table? */
static bool class_row(const struct vit *c) { return c->class_token && !c->class_at; }

static nr_t *position_table(struct nr_net *n, const struct vit *c)
{
	return nr_position_table(n, &(struct nr_position_table){ c->image / c->patch, c->dim, class_row(c), c->pos });
}

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct vit *c = conf;
	nr_t *x = nr_norm(n, "patch.in", nr_patches(n, in->image, c->patch, NR_PATCH_CHANNEL_ROW_COL));
	x = nr_norm(n, "patch.out", nr_patch_linear(n, "patch_embed.proj", x, c->patch, c->dim));
	if (c->pos != NR_POSITION_NONE) x = nr_add_table(n, x, nr_span(n, position_table(n, c), class_row(c), NR_END));
	return nr_dropout(n, nr_norm(n, "patch.pos", x), c->dropout);
}

static nr_t *add_class(struct nr_net *n, nr_t *x, const struct vit *c)
{
	nr_t *cls = nr_param(n, "cls_token", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, 1, c->dim));
	if (class_row(c) && c->pos != NR_POSITION_NONE) cls = nr_add(n, cls, nr_span(n, position_table(n, c), 0, 1));
	return nr_prepend(n, cls, x);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	const struct vit *c = conf;
	if (c->registers)
		x = nr_prepend(n, nr_param(n, "register_token", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, c->registers, c->dim)), x);
	for (int64_t i = 0; i < c->depth; i++) {
		if (c->class_token && i == c->class_at) x = add_class(n, x, c);
		const struct nr_block b = { .heads = c->heads, .hidden = nr_mlp_width(c->mlp, c->dim), .act = c->act,
			.no_qkv_bias = !c->qkv_bias, .position_bias = c->position_bias, .dropout = c->dropout,
			.attention_dropout = c->attention_dropout,
			.drop_path = c->depth > 1 ? c->drop_path * (double)i / (double)(c->depth - 1) : 0 };
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, nr_block(n, x, &b)), "block%lld", (long long)i);
	}
	return c->pool == POOL_AVG && c->fc_norm ? x : nr_norm(n, "final", x);
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct vit *c = conf;
	if (!x) return NULL;
	if (c->pool == POOL_CLASS && !c->class_token) return nr_net_fail(n, NR_EUSAGE, "pool=class", "there is no class token");
	if (c->pool == POOL_CLASS) x = nr_reshape(n, nr_span(n, x, 0, 1), NR_SHAPE(x->d[0], c->dim));
	else x = nr_mean_tokens(n, x, x->tok ? x->tok->valid : NULL);
	if (c->pool == POOL_AVG && c->fc_norm) {
		const char *norm = nr_norm_at(n, "final");
		if (norm) x = nr_norm_make(n, "fc", norm, x);
	}
	return c->pre_logits ? nr_activate(n, "tanh", nr_linear(n, "pre_logits", x, c->dim)) : x;
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "patch_embed.proj.weight", "cls_token", "pos_embed", "blocks.0.attn.in.weight",
	"blocks.0.attn.qkv.weight", "blocks.0.mlp.in.weight", "blocks.0.mlp.fc1.weight", "final.weight", "fc.weight", "head.weight", NULL };

static int64_t root(int64_t n)
{
	int64_t side = 0;
	while ((side + 1) * (side + 1) <= n && side < 4096) side++;
	return side * side == n ? side : 0;
}

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

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *proj = nr_look_find(l, "patch_embed.proj.weight"), *pos = nr_look_find(l, "pos_embed");
	const struct nr_st_tensor *reg = nr_look_find(l, "register_token");
	if (!proj || proj->nd != 4 || proj->shape[0] < 1 || proj->shape[2] != proj->shape[3] || !pos || pos->nd != 3) return false;
	const int64_t dim = proj->shape[0], patch = proj->shape[2], places = pos->shape[1];
	const int64_t hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", dim), depth = nr_look_depth(l, "mlp.fc1.weight");
	const bool cls = nr_look_find(l, "cls_token"), row = cls && root(places - 1), fc = nr_look_find(l, "fc.weight");
	const bool in = nr_look_find(l, "patch.in.weight"), out = nr_look_find(l, "patch.out.weight");
	const int64_t image = root(row ? places - 1 : places) * patch;
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
	const struct vit *c = w->model->conf;
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
	const struct vit *c = w->model->conf;
	json_t *args = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:b}", "img_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "in_chans", (json_int_t)c->channels, "embed_dim", (json_int_t)c->dim,
		"depth", (json_int_t)c->depth, "num_heads", (json_int_t)c->heads, "reg_tokens", (json_int_t)c->registers,
		"mlp_ratio", c->mlp, "qkv_bias", (int)c->qkv_bias, "class_token", (int)c->class_token);
	return nr_timm_config(w, "vit_base_patch16_224", c->dim, c->pool == POOL_AVG ? "avg" : "token", args);
}

static json_t *config(const struct nr_saved *w) { return strcmp(w->naming->name, "timm") ? hf_config(w) : timm_config(w); }

static const struct nr_model_file file = {
	.signs = signs, .measure = measure, .config = config, .doubt = "the number of heads is unknown: a width of "
		"64 is assumed",
};

const struct nr_model nr_model_vit = {
	.name = "vit", .title = "Vision Transformer", .cite = "arXiv:2010.11929", .conf_size = sizeof(struct vit), .options = options,
	.presets = presets, .namings = namings, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 },
	.embed = embed, .encode = encode, .pool = pool, .file = &file,
};
