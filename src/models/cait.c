/* cait: going deeper with image transformers. Touvron et al. 2021, arXiv:2103.17239; timm's form and names.
 *
 *   blocks        patch tokens alone, talking heads (Shazeer et al. 2020, arXiv:2003.02436): scores and probabilities are mixed across
 * heads
 *   blocks_class  the class token alone changes: x_cls + F([x_cls, x])
 *
 * Both with LayerScale, which is in the preset's norm plan. Sites: blocks.*, blocks_class.* (attn.in, attn.out, attn.res, mlp.*), final. */
#include <math.h>

#include "models/block.h"
#include "models/image_config.h"
#include "models/position.h"
#include "norma/model.h"
#include "norma/nn.h"
#include "norma/safetensors.h"

struct cait {
	int64_t image, channels, patch, dim, depth, class_depth, heads, classes;
	double mlp, class_mlp, drop_path, dropout;
	bool qkv_bias;
	char *act;
};
static const struct nr_option options[] = {
	NR_OPT_INT(struct cait, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct cait, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct cait, patch, 16, 1, 512, "size of a patch"),
	NR_OPT_INT(struct cait, dim, 192, 1, 65536, "width of a token"),
	NR_OPT_INT(struct cait, depth, 24, 1, 1024, "blocks of the patch tokens"),
	NR_OPT_INT(struct cait, class_depth, 2, 1, 1024, "blocks of the class token"),
	NR_OPT_INT(struct cait, heads, 4, 1, 1024, "attention heads"),
	NR_OPT_FLOAT(struct cait, mlp, 4, 0.01, 64, "width of the MLP relative to a token"),
	NR_OPT_FLOAT(struct cait, class_mlp, 4, 0.01, 64, "the same in the class token's blocks"),
	NR_OPT_INT(struct cait, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_BOOL(struct cait, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_STRING(struct cait, act, "gelu", "activation of the MLP"),
	NR_OPT_FLOAT(struct cait, drop_path, 0, 0, 0.99, "share of samples that skip a block of the patch tokens"),
	NR_OPT_FLOAT(struct cait, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_END
};
static const struct nr_preset presets[] = { { "cait/xxs24", "" }, { "cait/s24", "dim=384,heads=8" }, { NULL, NULL } };
static const struct nr_preset plans[] = {
	{ "cait/xxs24", "layer residual=layerscale:init=1e-5" }, { "cait/s24", "layer residual=layerscale:init=1e-5" }, { NULL, NULL },
};
#define KNOWN(name, text, norms) { name, text, norms },
static const struct nr_architecture known[] = {
#include "models/cait_timm.def"
	{ NULL, NULL, NULL },
};
#undef KNOWN

static const struct nr_rename timm[] = {
	{ "blocks_class.", "blocks_token_only." }, { "attn.in.", "norm1." }, { "mlp.in.", "norm2." }, { "attn.scale.gamma", "gamma_1" },
	{ "mlp.scale.gamma", "gamma_2" }, { "final.", "norm." }, { NULL, NULL },
};
static const struct nr_naming namings[] = { { .name = "timm", .rules = timm }, { .name = NULL } };

static nr_t *embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct cait *c = conf;
	if (!in->image) return NULL;
	nr_t *x = nr_norm(n, "patch.in", nr_patches(n, in->image, c->patch, NR_PATCH_CHANNEL_ROW_COL));
	x = nr_norm(n, "patch.out", nr_patch_linear(n, "patch_embed.proj", x, c->patch, c->dim));
	const struct nr_position_table t = { in->image->d[2] / c->patch, in->image->d[3] / c->patch, c->dim, 0, NR_POSITION_LEARNED,
		c->image / c->patch };
	return nr_dropout(n, nr_add_table(n, x, nr_position_table(n, &t)), c->dropout);
}

/* (B, H T, T) through a layer across the heads. */
static nr_t *mix_heads(struct nr_net *n, const char *name, nr_t *x, int64_t heads)
{
	if (!x) return NULL;
	const int64_t B = x->d[0], T = x->d[2];
	nr_t *y = nr_linear(n, name, nr_transpose(n, nr_reshape(n, x, NR_SHAPE(B, heads, T * T))), heads);
	return nr_reshape(n, nr_transpose(n, y), NR_SHAPE(B, heads * T, T));
}

/* Softmax attention with talking heads: all of (H,T,T) is made. */
static nr_t *talking_heads(struct nr_net *n, nr_t *qkv, int64_t heads)
{
	if (!qkv) return NULL;
	const int64_t B = qkv->d[0], T = qkv->d[1], C = qkv->d[2] / 3, d = C / heads;
	const double scale = 1 / sqrt((double)d);
	nr_t *scores = NULL, *y = NULL;
	for (int64_t h = 0; h < heads; h++) {
		nr_t *q = nr_channels(n, qkv, h * d, (h + 1) * d), *k = nr_channels(n, qkv, C + h * d, C + (h + 1) * d);
		nr_t *s = nr_matmul(n, nr_scale(n, q, scale), k, 0, 1);
		scores = h ? nr_join(n, scores, s) : s;
	}
	nr_t *p = nr_softmax(n, mix_heads(n, "attn.proj_l", scores, heads), 1, NULL);
	p = mix_heads(n, "attn.proj_w", p, heads);
	for (int64_t h = 0; h < heads; h++) {
		nr_t *v = nr_channels(n, qkv, 2 * C + h * d, 2 * C + (h + 1) * d);
		nr_t *o = nr_transpose(n, nr_matmul(n, nr_span(n, p, h * T, (h + 1) * T), v, 0, 0));
		y = h ? nr_join(n, y, o) : o;
	}
	y = nr_reshape(n, nr_transpose(n, y), NR_SHAPE(B, T, C));
	return y && qkv->tok ? nr_with_tokens(n, y, *qkv->tok) : y;
}

static nr_t *layer(struct nr_net *n, const char *name, nr_t *x, int64_t out, bool bias)
{
	return bias ? nr_linear(n, name, x, out) : nr_linear_no_bias(n, name, x, out);
}

static nr_t *patch_block(struct nr_net *n, nr_t *x, const struct cait *c)
{
	const struct nr_block b = { .heads = c->heads, .hidden = nr_mlp_width(c->mlp, c->dim), .act = c->act, .dropout = c->dropout };
	nr_t *y = talking_heads(n, nr_norm_qk(n, layer(n, "attn.qkv", nr_norm(n, "attn.in", x), 3 * c->dim, c->qkv_bias), c->heads),
		c->heads);
	y = nr_linear(n, "attn.proj", nr_norm(n, "attn.inner", y), c->dim);
	x = nr_residual(n, "attn", x, nr_dropout(n, y, c->dropout), c->drop_path);
	return nr_residual(n, "mlp", x, nr_block_mlp(n, nr_norm(n, "mlp.in", x), &b), c->drop_path);
}

static nr_t *class_block(struct nr_net *n, nr_t *cls, nr_t *x, const struct cait *c)
{
	const struct nr_block b = { .heads = c->heads, .hidden = nr_mlp_width(c->class_mlp, c->dim), .act = c->act, .dropout = c->dropout };
	nr_t *u = nr_norm(n, "attn.in", nr_join(n, cls, x));
	nr_t *q = layer(n, "attn.q", nr_span(n, u, 0, 1), c->dim, c->qkv_bias), *k = layer(n, "attn.k", u, c->dim, c->qkv_bias);
	nr_t *v = layer(n, "attn.v", u, c->dim, c->qkv_bias);
	nr_t *y = nr_cross_attention(n, q, k, v, (struct nr_attention_options){ .heads = c->heads });
	y = nr_linear(n, "attn.proj", nr_norm(n, "attn.inner", y), c->dim);
	cls = nr_residual(n, "attn", cls, nr_dropout(n, y, c->dropout), 0);
	return nr_residual(n, "mlp", cls, nr_block_mlp(n, nr_norm(n, "mlp.in", cls), &b), 0);
}

static nr_t *encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	const struct cait *c = conf;
	(void)in;
	for (int64_t i = 0; x && i < c->depth; i++) {
		struct nr_tokens tok = *x->tok;
		tok.heads = (int32_t)c->heads;
		nr_push_nth(n, "blocks", i, c->depth);
		x = nr_hidden(n, nr_pop(n, patch_block(n, nr_with_tokens(n, x, tok), c)), "block%lld", (long long)i);
	}
	if (!x) return NULL;
	nr_t *token = nr_param(n, "cls_token", NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, 1, c->dim));
	const struct nr_tokens grid = *x->tok;
	nr_t *cls = nr_span(n, nr_prepend(n, token, x), 0, 1);
	for (int64_t i = 0; i < c->class_depth; i++) {
		nr_push_nth(n, "blocks_class", i, c->class_depth);
		cls = nr_pop(n, class_block(n, cls, x, c));
	}
	x = nr_join(n, cls, x);
	if (!x) return NULL;
	return nr_norm(n, "final", nr_with_tokens(n, x, (struct nr_tokens){ .special = 1, .h = grid.h, .w = grid.w, .heads = grid.heads }));
}

static nr_t *pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct cait *c = conf;
	return x ? nr_reshape(n, nr_span(n, x, 0, 1), NR_SHAPE(x->d[0], c->dim)) : NULL;
}

/* ---- in a file ---------------------------------------------------------------------------------------------------------- */

static const char *const signs[] = { "patch_embed.proj.weight", "pos_embed", "blocks.0.attn.proj_l.weight", "blocks.0.attn.proj_w.weight",
	"blocks_class.0.attn.q.weight", "blocks_class.0.attn.k.weight", "blocks.0.attn.qkv.weight", "blocks.0.mlp.fc1.weight",
	"blocks.0.attn.in.weight", "final.weight", "head.weight", NULL };

static bool measure(const struct nr_look *l, struct nr_sighting *s)
{
	const struct nr_st_tensor *proj = nr_look_find(l, "patch_embed.proj.weight"), *pos = nr_look_find(l, "pos_embed");
	const struct nr_st_tensor *heads = nr_look_find(l, "blocks.0.attn.proj_l.weight");
	if (!proj || proj->nd != 4 || proj->shape[0] < 1 || proj->shape[2] != proj->shape[3] || !pos || pos->nd != 3
		|| !heads) return false;
	const int64_t dim = proj->shape[0], side = nr_root(pos->shape[1]);
	const int64_t hidden = nr_look_rows(l, "blocks.0.mlp.fc1.weight", dim), more = nr_look_rows(l, "blocks_class.0.mlp.fc1.weight",
		dim);
	if (side < 1 || hidden < 1 || more < 1 || dim > 65536 || proj->shape[2] > 512) return false;
	nr_config_saw_side(l, s, side * proj->shape[2]);
	nr_saw(s, "channels", proj->shape[1]);
	nr_saw_key(s, "patch", proj->shape[2]);
	nr_saw_key(s, "dim", dim);
	nr_saw_key(s, "depth", nr_look_depth(l, "mlp.fc1.weight"));
	nr_saw(s, "class_depth", nr_look_depth_at(l, "blocks_class", "mlp.fc1.weight"));
	nr_saw_key(s, "heads", heads->shape[0]);
	nr_saw_text(s, "mlp", nr_arena_printf(l->arena, "%.9g", (double)hidden / (double)dim));
	nr_saw_text(s, "class_mlp", nr_arena_printf(l->arena, "%.9g", (double)more / (double)dim));
	nr_saw(s, "classes", nr_look_rows(l, "head.weight", 0));
	nr_saw(s, "qkv_bias", nr_look_find(l, "blocks.0.attn.qkv.bias") != NULL);
	nr_config_saw_act(l, s);
	if (nr_hf_text(l->config, "global_pool") && strcmp(nr_hf_text(l->config, "global_pool"), "token") != 0)
		nr_saw_misfit(s, "its config.json pools other tokens than the class token");
	nr_saw_norms(s, nr_look_find(l, "blocks.0.attn.scale.gamma") ? "residual=layerscale" : "");
	nr_saw_all(s);
	return true;
}

static json_t *config(const struct nr_saved *w)
{
	const struct cait *c = w->model->conf;
	json_t *args = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:b}", "img_size", (json_int_t)c->image,
		"patch_size", (json_int_t)c->patch, "in_chans", (json_int_t)c->channels, "embed_dim", (json_int_t)c->dim, "depth",
		(json_int_t)c->depth, "depth_token_only", (json_int_t)c->class_depth, "num_heads", (json_int_t)c->heads, "mlp_ratio",
			c->mlp,
		"mlp_ratio_token_only", c->class_mlp, "qkv_bias", (int)c->qkv_bias);
	return nr_timm_config(w, "cait_xxs24_224", c->dim, "token", args);
}

static const struct nr_model_file file = { .signs = signs, .measure = measure, .config = config };

const struct nr_model nr_model_cait = {
	.name = "cait", .title = "CaiT", .cite = "arXiv:2103.17239", .conf_size = sizeof(struct cait), .options = options,
		.presets = presets, .known = known,
	.plans = plans, .namings = namings, .norms = { .norm = "layer", .placement = "pre", .eps = 1e-6 },
	.embed = embed, .encode = encode, .pool = pool, .file = &file,
};
