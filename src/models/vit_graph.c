/* Vision Transformer. Dosovitskiy et al. 2021, arXiv:2010.11929, Eq. 1 to 4; timm's form and names.
 *
 * With the options of its descendants: Dual PatchNorm (sites patch.in, patch.out), DTN's late class token (class_at), average pooling,
 * registers (arXiv:2309.16588), fixed sin-cos positions, AugReg's tanh layer before the head; DeiT's distillation token (arXiv:2012.12877);
 * CLIP's norm before the first block (site embed; arXiv:2103.00020); SigLIP's attention pooling (arXiv:2303.15343); BEiT's relative
 * positions and biases without keys (arXiv:2106.08254); EVA-02's and DINOv3's rotary positions; ViT-22B's parallel blocks. LayerScale
 * (residual=layerscale), norms of queries and keys (attn.qk) and Sub-LN (attn.inner, mlp.inner) are matters of the norm plan. */
#include "models/block.h"
#include "models/position.h"
#include "models/vit.h"
#include "norma/nn.h"

const char *const nr_vit_pools[] = { "class", "avg", "map", "class_avg", NULL };
const char *const nr_vit_ropes[] = { "none", "eva", "dinov3", NULL };
const char *const nr_vit_relatives[] = { "none", "table", "mlp", NULL };

const struct nr_option nr_vit_options[] = {
	NR_OPT_INT(struct nr_vit, image, 224, 1, 4096, "size of the square picture"),
	NR_OPT_INT(struct nr_vit, channels, 3, 1, 64, "channels of the picture"),
	NR_OPT_INT(struct nr_vit, patch, 16, 1, 512, "size of a patch"),
	NR_OPT_INT(struct nr_vit, dim, 192, 1, 65536, "width of a token"),
	NR_OPT_INT(struct nr_vit, depth, 12, 1, 1024, "number of blocks"),
	NR_OPT_INT(struct nr_vit, heads, 3, 1, 1024, "attention heads"),
	NR_OPT_FLOAT(struct nr_vit, mlp, 4, 0.01, 64, "width of the MLP relative to a token"),
	NR_OPT_INT(struct nr_vit, classes, 1000, 1, 1000000, "outputs of the head"),
	NR_OPT_ENUM(struct nr_vit, pool, "class", nr_vit_pools,
		"what the head reads: the class token, the mean of the patch tokens, a learned query's attention to all (SigLIP), or "
		"class token and mean"),
	NR_OPT_BOOL(struct nr_vit, class_token, "1", "have a class token"),
	NR_OPT_BOOL(struct nr_vit, fc_norm, "1", "with pool=avg: put the final norm after the mean, as in timm"),
	NR_OPT_INT(struct nr_vit, registers, 0, 0, 256, "further special tokens that nothing reads"),
	NR_OPT_INT(struct nr_vit, class_at, 0, 0, 1024,
		"block before which the class token is added (DTN: 10 of 12); it then has no position"),
	NR_OPT_ENUM(struct nr_vit, pos, "learned", nr_position_names,
		"position table; sincos as in MAE, sincos_bv as in big_vision, both fixed"),
	NR_OPT_BOOL(struct nr_vit, class_pos, "1", "the class token has a row in the position table"),
	NR_OPT_BOOL(struct nr_vit, register_pos, "0", "registers have, too"),
	NR_OPT_BOOL(struct nr_vit, qkv_bias, "1", "bias of queries, keys and values"),
	NR_OPT_BOOL(struct nr_vit, key_bias, "1", "with qkv_bias: of keys, too; 0 as in BEiT"),
	NR_OPT_BOOL(struct nr_vit, split_qkv, "0", "queries, keys and values have layers of their own, keys without bias (EVA-02)"),
	NR_OPT_BOOL(struct nr_vit, patch_bias, "1", "bias of the patch embedding"),
	NR_OPT_BOOL(struct nr_vit, head_bias, "1", "bias of the head"),
	NR_OPT_BOOL(struct nr_vit, pre_logits, "0", "a tanh layer before the head (AugReg)"),
	NR_OPT_BOOL(struct nr_vit, distilled, "0", "a distillation token with a head of its own; logits are the mean of both (DeiT)"),
	NR_OPT_ENUM(struct nr_vit, position_bias, "0", nr_position_biases,
		"use DTN's position term R a_h as a bias of attention (DTN, Table 10a): 1: from zero on, eq7: from DTN's own start"),
	NR_OPT_ENUM(struct nr_vit, rope, "none", nr_vit_ropes, "rotary positions of queries and keys: of EVA-02 or of DINOv3"),
	NR_OPT_FLOAT(struct nr_vit, rope_theta, 0, 0, 1e9, "their longest period; 0: 10000 for eva, 100 for dinov3"),
	NR_OPT_INT(struct nr_vit, rope_grid, 0, 0, 4096,
		"rope=eva: rows and columns of the grid that places are counted on; 0: the picture's own"),
	NR_OPT_INT(struct nr_vit, rope_grid_w, 0, 0, 4096, "columns of that grid, where they are not as many as rows; 0: they are"),
	NR_OPT_ENUM(struct nr_vit, rel_pos, "none", nr_vit_relatives,
		"bias of attention for the offset of two tokens: from a table (BEiT), or from an MLP (relpos)"),
	NR_OPT_BOOL(struct nr_vit, rel_pos_shared, "0", "one such bias for all blocks"),
	NR_OPT_BOOL(struct nr_vit, rel_pos_decay, "0", "weight decay acts on the table: not in BEiT and Swin, but in timm's relpos ViTs"),
	NR_OPT_INT(struct nr_vit, rel_pos_dim, 512, 1, 65536, "hidden units of that MLP"),
	NR_OPT_BOOL(struct nr_vit, parallel, "0", "attention and MLP side by side (ViT-22B)"),
	NR_OPT_STRING(struct nr_vit, act, "gelu", "activation of the MLP: gelu, gelu_tanh (big_vision), quick_gelu (CLIP), relu, silu"),
	NR_OPT_ENUM(struct nr_vit, glu, "0", nr_glus, "SwiGLU instead of that MLP, its first layer packed or split"),
	NR_OPT_FLOAT(struct nr_vit, drop_path, 0, 0, 0.99,
		"share of samples that skip the last block; fewer skip earlier ones"),
	NR_OPT_FLOAT(struct nr_vit, dropout, 0, 0, 0.99, "dropout of the branches"),
	NR_OPT_FLOAT(struct nr_vit, attention_dropout, 0, 0, 0.99, "dropout of attention"),
	NR_OPT_END
};

/* ---- tokens ----------------------------------------------------------------------------------------------------------- */

/* Rows of the position table before those of the grid: class and distillation token, registers. */
static int64_t class_rows(const struct nr_vit *c) { return c->class_token && c->class_pos && !c->class_at ? 1 + c->distilled : 0; }
static int64_t special_rows(const struct nr_vit *c) { return class_rows(c) + (c->register_pos ? c->registers : 0); }

static nr_t *position_table(struct nr_net *n, const struct nr_inputs *in, const struct nr_vit *c)
{
	const struct nr_position_table t = { in->image->d[2] / c->patch, in->image->d[3] / c->patch, c->dim, special_rows(c), c->pos,
		c->image / c->patch };
	return nr_position_table(n, &t);
}

nr_t *nr_vit_embed(struct nr_net *n, const struct nr_inputs *in, const void *conf)
{
	const struct nr_vit *c = conf;
	if (!in->image) return NULL;
	nr_t *x = nr_norm(n, "patch.in", nr_patches(n, in->image, c->patch, NR_PATCH_CHANNEL_ROW_COL));
	x = c->patch_bias ? nr_patch_linear(n, "patch_embed.proj", x, c->patch, c->dim)
			  : nr_patch_linear_no_bias(n, "patch_embed.proj", x, c->patch, c->dim);
	x = nr_norm(n, "patch.out", x);
	if (c->pos != NR_POSITION_NONE) x = nr_add_table(n, x, nr_span(n, position_table(n, in, c), special_rows(c), NR_END));
	return nr_dropout(n, nr_norm(n, "patch.pos", x), c->dropout);
}

/* Tokens of that name before the others; row >= 0: the first of their rows in the position table. */
static nr_t *add_special(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const struct nr_vit *c, const char *name, int64_t count,
	int64_t row)
{
	nr_t *t = nr_param(n, name, NR_TRUNC_02 | NR_NO_DECAY, NR_SHAPE(1, count, c->dim));
	if (row >= 0 && c->pos != NR_POSITION_NONE) t = nr_add(n, t, nr_span(n, position_table(n, in, c), row, row + count));
	return nr_prepend(n, t, x);
}

static nr_t *add_class(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const struct nr_vit *c)
{
	const bool rows = class_rows(c) > 0;
	if (c->distilled) x = add_special(n, in, x, c, "dist_token", 1, rows ? 1 : -1);
	return add_special(n, in, x, c, "cls_token", 1, rows ? 0 : -1);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------- */

/* (H,T,T), from parameters of the present scope. */
static nr_t *relative_bias(struct nr_net *n, const nr_t *x, const struct nr_vit *c)
{
	if (!x || !x->tok) return NULL;
	const int64_t h = x->tok->h, w = x->tok->w, special = x->tok->special;
	const bool table = c->rel_pos == NR_VIT_RELATIVE_TABLE;
	nr_t *of;
	nr_push(n, "%s", c->rel_pos_shared ? "shared_rel_pos" : "attn.rel_pos");
	if (table) {
		of = nr_param(n, "table", NR_TRUNC_02 | (c->rel_pos_decay ? 0 : NR_NO_DECAY),
			NR_SHAPE((2 * h - 1) * (2 * w - 1) + (special ? 3 : 0), c->heads));
	} else {
		nr_t *weight = nr_param(n, "mlp.fc1.weight", NR_XAVIER, NR_SHAPE(c->rel_pos_dim, 2));
		nr_t *bias = nr_param(n, "mlp.fc1.bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(c->rel_pos_dim));
		of = nr_linear(n, "mlp.fc2", nr_activate(n, "relu", nr_log_offsets(n, weight, bias, h, w)), c->heads);
	}
	return nr_pop(n, nr_grid_bias(n, of, (struct nr_grid_bias){ h, w, 1, 1, special, table && special }));
}

static nr_t *block(struct nr_net *n, nr_t *x, const struct nr_vit *c, int64_t i, nr_t *shared)
{
	const double theta = c->rope_theta > 0 ? c->rope_theta : c->rope == NR_ROPE_EVA ? 10000 : 100;
	const struct nr_rope rope = { .kind = (enum nr_rope_kind)c->rope, .theta = theta, .reference = c->rope_grid,
		.reference_w = c->rope_grid_w };
	struct nr_block b = { .heads = c->heads, .hidden = nr_mlp_width(c->mlp, c->dim), .act = c->act, .glu = c->glu,
		.no_qkv_bias = !c->qkv_bias, .no_key_bias = !c->key_bias, .split_qkv = c->split_qkv, .position_bias = c->position_bias,
		.rope = c->rope != NR_ROPE_NONE ? &rope : NULL, .bias = shared, .dropout = c->dropout,
		.attention_dropout = c->attention_dropout, .drop_path = c->depth > 1
			? c->drop_path * (double)i / (double)(c->depth - 1) : 0 };
	nr_push_nth(n, "blocks", i, c->depth);
	if (c->rel_pos != NR_VIT_RELATIVE_NONE && !shared) b.bias = relative_bias(n, x, c);
	x = c->parallel ? nr_parallel_block(n, x, &b) : nr_block(n, x, &b);
	return nr_hidden(n, nr_pop(n, x), "block%lld", (long long)i);
}

nr_t *nr_vit_encode(struct nr_net *n, const struct nr_inputs *in, nr_t *x, const void *conf)
{
	const struct nr_vit *c = conf;
	nr_t *shared = NULL;
	if (c->registers) x = add_special(n, in, x, c, "register_token", c->registers, c->register_pos ? class_rows(c) : -1);
	for (int64_t i = 0; i < c->depth; i++) {
		if (c->class_token && i == c->class_at) x = add_class(n, in, x, c);
		if (i == 0) x = nr_norm(n, "embed", x);
		if (i == 0 && c->rel_pos != NR_VIT_RELATIVE_NONE && c->rel_pos_shared) shared = relative_bias(n, x, c);
		x = block(n, x, c, i, shared);
	}
	return c->pool == NR_VIT_AVG && c->fc_norm ? x : nr_norm(n, "final", x);
}

/* ---- what is read of them --------------------------------------------------------------------------------------------- */

/* Rows from .. to-1 of a linear layer. */
static nr_t *part_linear(struct nr_net *n, nr_t *x, nr_t *weight, nr_t *bias, int64_t from, int64_t to)
{
	const int64_t C = x ? nr_cols(x) : 0, all = weight ? weight->d[0] : 0;
	weight = nr_reshape(n, nr_span(n, nr_reshape(n, weight, NR_SHAPE(1, all, C)), from, to), NR_SHAPE(to - from, C));
	bias = nr_reshape(n, nr_span(n, nr_reshape(n, bias, NR_SHAPE(1, all, 1)), from, to), NR_SHAPE(to - from));
	return nr_linear_tied(n, x, weight, bias);
}

/* A learned query's attention to the patches' tokens, then an MLP, which has no gates: those of a packed one count twice. Zhai et al. 2022,
 * arXiv:2106.04560, section 3.2; timm's AttentionPoolLatent. */
static nr_t *attention_pool(struct nr_net *n, nr_t *x, const struct nr_vit *c)
{
	const struct nr_block b = { .hidden = nr_mlp_width(c->mlp * (c->glu == NR_GLU_PACKED ? 2 : 1), c->dim), .act = c->act };
	if (x->tok) x = nr_span(n, x, x->tok->special, NR_END);
	if (!x) return NULL;
	nr_push(n, "attn_pool");
	nr_t *latent = nr_param(n, "latent", NR_TRUNC_02, NR_SHAPE(1, 1, c->dim));
	nr_t *weight = nr_param(n, "qkv.weight", NR_XAVIER, NR_SHAPE(3 * c->dim, c->dim));
	nr_t *bias = nr_param(n, "qkv.bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(3 * c->dim));
	nr_t *q = part_linear(n, nr_span(n, nr_prepend(n, latent, x), 0, 1), weight, bias, 0, c->dim);
	nr_t *kv = part_linear(n, x, weight, bias, c->dim, 3 * c->dim);
	nr_t *y = nr_kv_attention(n, q, kv, (struct nr_attention_options){ .heads = c->heads });
	y = nr_linear(n, "proj", y, c->dim);
	y = nr_add(n, y, nr_block_mlp(n, nr_norm(n, "pool.in", y), &b));
	return nr_pop(n, nr_reshape(n, y, NR_SHAPE(x->d[0], c->dim)));
}

/* The first so many tokens, side by side. */
static nr_t *first_tokens(struct nr_net *n, nr_t *x, int64_t count)
{
	return nr_reshape(n, nr_span(n, x, 0, count), NR_SHAPE(x->d[0], count * nr_cols(x)));
}

nr_t *nr_vit_pool(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_vit *c = conf;
	if (!x) return NULL;
	const bool reads_class = c->pool == NR_VIT_CLASS || c->pool == NR_VIT_CLASS_AVG;
	if ((reads_class || c->distilled) && !c->class_token) return nr_net_fail(n, NR_EUSAGE, "pool=class", "there is no class token");
	if (c->distilled && c->pool != NR_VIT_CLASS)
		return nr_net_fail(n, NR_EUSAGE, "distilled=1", "class and distillation token are read: pool=class");
	nr_t *mean = c->pool == NR_VIT_AVG || c->pool == NR_VIT_CLASS_AVG ? nr_mean_tokens(n, x, x->tok ? x->tok->valid : NULL) : NULL;
	if (c->pool == NR_VIT_MAP) x = attention_pool(n, x, c);
	else if (c->pool == NR_VIT_AVG) x = mean;
	else if (c->pool == NR_VIT_CLASS) x = first_tokens(n, x, 1 + c->distilled);
	else x = first_tokens(n, nr_join(n, nr_span(n, x, 0, 1), nr_reshape(n, mean, NR_SHAPE(x->d[0], 1, c->dim))), 2);
	if (c->pool == NR_VIT_AVG && c->fc_norm) {
		const char *norm = nr_norm_at(n, "final");
		if (norm) x = nr_norm_make(n, "fc", norm, x);
	}
	return c->pre_logits ? nr_activate(n, "tanh", nr_linear(n, "pre_logits", x, c->dim)) : x;
}

nr_t *nr_vit_head(struct nr_net *n, nr_t *x, const void *conf)
{
	const struct nr_vit *c = conf;
	if (!c->distilled) return c->head_bias ? nr_linear(n, "head", x, c->classes) : nr_linear_no_bias(n, "head", x, c->classes);
	nr_t *of_class = nr_hidden(n, nr_linear(n, "head", nr_channels(n, x, 0, c->dim), c->classes), "logits_cls");
	nr_t *of_teacher = nr_hidden(n, nr_linear(n, "head_dist", nr_channels(n, x, c->dim, 2 * c->dim), c->classes), "logits_dist");
	return nr_scale(n, nr_add(n, of_class, of_teacher), .5);
}
