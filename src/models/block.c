/* The transformer block (Vaswani et al. 2017, arXiv:1706.03762) with timm's names and every site of the norm plan.
 *
 *   sites   attn.carry (on the stream itself), attn.in, attn.qk, attn.v, attn.heads, attn.inner, attn.out, attn.res
 *           mlp.carry, mlp.in, mlp.hidden (before the activation), mlp.inner (after it), mlp.out, mlp.res */
#include "models/block.h"

#include <string.h>

#include "graph/net.h"
#include "norma/nn.h"
#include "norma/norm.h"
#include "norms/dtn.h"
#include "norms/norms.h"
#include "norms/plan.h"

/* A gain (and bias) of its own for each head. */
static nr_t *norm_with_gains(struct nr_net *n, const char *scope, const char *text, nr_t *x)
{
	struct nr_error err = { 0 };
	struct nr_arena *arena = nr_net_arena(n);
	const struct nr_norm *norm;
	void *conf;
	char value[16] = "";
	const int64_t BT = x->d[0], heads = x->d[1], d = x->d[2];
	const char *bare = nr_arena_printf(arena, "%s%saffine=0", text, strchr(text, ':') ? "," : ":");
	if (!bare || nr_norm_parse(text, 0, arena, &norm, &conf, &err)) return nr_net_fail(n, NR_EMEMORY, text, "out of memory");
	const struct nr_option *bias = nr_option_find(norm->options, "bias"), *offset = nr_option_find(norm->options, "offset");
	if (!nr_option_find(norm->options, "affine"))
		return nr_net_fail(n, NR_EVALUE, text, "qk=heads needs a norm with the option 'affine'");
	const int from_one = offset && strcmp(nr_option_text(offset, conf, value, sizeof value), "true") == 0;
	const int biased = bias && strcmp(nr_option_text(bias, conf, value, sizeof value), "true") == 0;
	x = nr_reshape(n, nr_norm_make(n, scope, bare, x), NR_SHAPE(BT, 1, heads * d));
	nr_push(n, "%s", scope);
	nr_t *scaled = nr_scale_channels(n, x, nr_param(n, "weight", (from_one ? NR_ZEROS : NR_ONES) | NR_NO_DECAY, NR_SHAPE(heads, d)));
	x = from_one ? nr_add(n, x, scaled) : scaled;
	if (biased) x = nr_shift_channels(n, x, nr_param(n, "bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(heads, d)));
	return nr_pop(n, nr_reshape(n, x, NR_SHAPE(BT, heads, d)));
}

nr_t *nr_norm_scoped(struct nr_net *n, const char *scope, const char *text, nr_t *x)
{
	const enum nr_qk qk = n->norms->qk;
	if (!x || qk == NR_QK_HEAD) return nr_norm_make(n, scope, text, x);
	if (qk == NR_QK_HEADS) return norm_with_gains(n, scope, text, x);
	const int64_t BT = x->d[0], heads = x->d[1], d = x->d[2];
	return nr_reshape(n, nr_norm_make(n, scope, text, nr_reshape(n, x, NR_SHAPE(BT, 1, heads * d))), NR_SHAPE(BT, heads, d));
}

nr_t *nr_norm_heads(struct nr_net *n, const char *scope, const char *norm, nr_t *x, int64_t heads)
{
	if (!norm || !x) return x;
	const int64_t B = x->d[0], T = x->d[1], C = x->d[2];
	nr_t *y = nr_reshape(n, nr_norm_scoped(n, scope, norm, nr_reshape(n, x, NR_SHAPE(B * T, heads, C / heads))), NR_SHAPE(B, T, C));
	return y && x->tok ? nr_with_tokens(n, y, *x->tok) : y;
}

/* Packed: (B T, 3 H, d), first H of them queries. */
nr_t *nr_norm_qk(struct nr_net *n, nr_t *qkv, int64_t heads)
{
	const char *norm = qkv ? nr_norm_at(n, "attn.qk") : NULL, *of_v = qkv ? nr_norm_at(n, "attn.v") : NULL;
	if (!norm && !of_v) return qkv;
	const int64_t B = qkv->d[0], T = qkv->d[1], C = qkv->d[2];
	nr_t *r = nr_reshape(n, qkv, NR_SHAPE(B * T, 3 * heads, C / (3 * heads)));
	nr_t *q = nr_span(n, r, 0, heads), *k = nr_span(n, r, heads, 2 * heads), *v = nr_span(n, r, 2 * heads, NR_END);
	if (norm) q = nr_norm_scoped(n, "attn.qk.q", norm, q), k = nr_norm_scoped(n, "attn.qk.k", norm, k);
	if (of_v) v = nr_norm_scoped(n, "attn.v", of_v, v);
	nr_t *y = nr_reshape(n, nr_join(n, nr_join(n, q, k), v), NR_SHAPE(B, T, C));
	return y && qkv->tok ? nr_with_tokens(n, y, *qkv->tok) : y;
}

const char *const nr_position_biases[] = { "0", "1", "eq7", NULL };

nr_t *nr_block_position_bias(struct nr_net *n, const nr_t *x, int32_t kind, int64_t heads, int64_t stride)
{
	if (!x || !x->tok || !kind) return NULL;
	nr_t *a = nr_param(n, "attn.position", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(heads, 3));
	struct nr_error err = { 0 };
	if (a && kind == NR_POSITION_BIAS_EQ7 && nr_entry_fill(a->entry, nr_dtn_start, NULL, 0, &err))
		return nr_net_fail(n, NR_EMEMORY, "position_bias", "out of memory");
	return nr_position_bias(n, a, x->tok->h, x->tok->w, x->tok->special, stride);
}

/* The first `turned` heads of x, if the block has rotary positions. */
static nr_t *turn(struct nr_net *n, nr_t *x, const struct nr_block *b, int64_t heads, int64_t turned)
{
	if (!b->rope || !x) return x;
	struct nr_rope r = *b->rope;
	r.width = nr_cols(x) / heads;
	r.turned = turned;
	return nr_rope(n, x, r);
}

/* (3C): a bias of queries, nothing for keys, a bias of values. */
static nr_t *bias_without_keys(struct nr_net *n, int64_t C)
{
	nr_t *q = nr_param(n, "attn.q_bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(C)), *v = nr_param(n, "attn.v_bias", NR_ZEROS | NR_NO_DECAY,
		NR_SHAPE(C));
	q = nr_reshape(n, q, NR_SHAPE(1, C, 1));
	return nr_reshape(n, nr_join(n, nr_join(n, q, nr_scale(n, q, 0)), nr_reshape(n, v, NR_SHAPE(1, C, 1))), NR_SHAPE(3 * C));
}

static nr_t *packed_qkv(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	if (b->no_qkv_bias) return nr_linear_no_bias(n, "attn.qkv", x, 3 * C);
	if (!b->no_key_bias) return nr_linear(n, "attn.qkv", x, 3 * C);
	nr_t *weight = nr_param(n, "attn.qkv.weight", NR_XAVIER, NR_SHAPE(3 * C, C));
	return nr_linear_tied(n, x, weight, bias_without_keys(n, C));
}

/* Queries, keys and values of layers of their own. */
static nr_t *attend_split(struct nr_net *n, nr_t *x, const struct nr_block *b, struct nr_attention_options o)
{
	const int64_t C = x ? nr_cols(x) : 0;
	const char *norm = x ? nr_norm_at(n, "attn.qk") : NULL, *of_v = x ? nr_norm_at(n, "attn.v") : NULL;
	nr_t *(*layer)(struct nr_net *, const char *, nr_t *, int64_t) = b->no_qkv_bias ? nr_linear_no_bias : nr_linear;
	nr_t *q = nr_norm_heads(n, "attn.qk.q", norm, layer(n, "attn.q", x, C), b->heads);
	nr_t *k = nr_norm_heads(n, "attn.qk.k", norm, nr_linear_no_bias(n, "attn.k", x, C), b->heads);
	nr_t *v = nr_norm_heads(n, "attn.v_norm", of_v, layer(n, "attn.v", x, C), b->heads);
	return nr_cross_attention(n, turn(n, q, b, b->heads, b->heads), turn(n, k, b, b->heads, b->heads), v, o);
}

/* What attention makes of the normalised tokens, before the output projection. */
static nr_t *attend(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	if (b->lsh) return nr_lsh_attention(n, nr_linear_no_bias(n, "attn.qkv", x, 2 * C), *b->lsh, b->buckets);
	const struct nr_attention_options o = { .heads = b->heads, .causal = b->causal, .dropout = (float)b->attention_dropout,
		.valid = x && x->tok ? x->tok->valid : NULL, .bias = b->position_bias
			? nr_block_position_bias(n, x, b->position_bias, b->heads, 1) : b->bias };
	if (b->split_qkv) return attend_split(n, x, b, o);
	nr_t *qkv = turn(n, nr_norm_qk(n, packed_qkv(n, x, b), b->heads), b, 3 * b->heads, 2 * b->heads);
	return b->blocks ? nr_block_attention(n, qkv, *b->blocks) : nr_attention_with(n, qkv, o);
}

static nr_t *attention(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	x = nr_norm(n, "attn.inner", nr_norm(n, "attn.heads", attend(n, x, b)));
	if (b->no_proj_bias) x = nr_linear_no_bias(n, "attn.proj", x, C);
	else if (!b->lsh) x = nr_linear(n, "attn.proj", x, C);
	return nr_dropout(n, x, b->dropout);
}

const char *const nr_glus[] = { "0", "packed", "split", NULL };

/* SwiGLU: silu(gate) times values. Shazeer 2020, arXiv:2002.05202, Eq. 5; gates are the first half of a packed layer. */
static nr_t *gated(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	nr_t *gate, *value;
	if (b->glu == NR_GLU_SPLIT) {
		gate = nr_linear(n, "mlp.fc1_g", x, b->hidden);
		value = nr_linear(n, "mlp.fc1_x", x, b->hidden);
	} else {
		x = nr_linear(n, "mlp.fc1", x, 2 * b->hidden);
		gate = nr_channels(n, x, 0, b->hidden);
		value = nr_channels(n, x, b->hidden, 2 * b->hidden);
	}
	return nr_mul(n, nr_activate(n, "silu", nr_norm(n, "mlp.hidden", gate)), value);
}

nr_t *nr_block_mlp(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	if (b->glu) x = gated(n, x, b);
	else x = nr_activate(n, b->act ? b->act : "gelu", nr_norm(n, "mlp.hidden", nr_linear(n, "mlp.fc1", x, b->hidden)));
	x = nr_dropout(n, nr_norm(n, "mlp.inner", x), b->no_hidden_dropout ? b->hidden_dropout : b->dropout);
	return nr_dropout(n, nr_linear(n, "mlp.fc2", x, C), b->dropout);
}

/* Sub-LN and DeepNorm scale the initial values of all but queries and keys. */
static void scale_weights(struct nr_net *n, int64_t C, const struct nr_block *b)
{
	const double gain = nr_norms_gain(n);
	if (gain == 1) return;
	if (b->split_qkv) nr_init_gain(n, "attn.v.weight", 0, gain);
	else nr_init_gain(n, "attn.qkv.weight", (b->lsh ? 1 : 2) * C * C, gain);
	if (!b->lsh) nr_init_gain(n, "attn.proj.weight", 0, gain);
	if (b->glu == NR_GLU_SPLIT) nr_init_gain(n, "mlp.fc1_g.weight", 0, gain);
	nr_init_gain(n, b->glu == NR_GLU_SPLIT ? "mlp.fc1_x.weight" : "mlp.fc1.weight", 0, gain);
	nr_init_gain(n, "mlp.fc2.weight", 0, gain);
}

/* Norms that go by heads (DTN, group) take them from the tokens. */
static void tell_heads(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	struct nr_tokens tok = x->tok ? *x->tok : (struct nr_tokens){ 0 };
	tok.heads = (int32_t)b->heads;
	nr_with_tokens(n, x, tok);
}

nr_t *nr_block(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	if (!x) return NULL;
	const int64_t C = nr_cols(x);
	const enum nr_block_layout layout = n->norms ? n->norms->layout : NR_LAYOUT_SERIAL;
	tell_heads(n, x, b);
	if (layout == NR_LAYOUT_NGPT) return nr_ngpt_block(n, x, b);
	nr_t *in = nr_branch(n, "attn", &x);
	if (layout == NR_LAYOUT_PARALLEL) {
		x = nr_residual(n, "attn", x, nr_add(n, attention(n, in, b), nr_block_mlp(n, in, b)), b->drop_path);
	} else {
		x = nr_residual(n, "attn", x, attention(n, in, b), b->drop_path);
		in = nr_branch(n, "mlp", &x);
		x = nr_residual(n, "mlp", x, nr_block_mlp(n, in, b), b->drop_path);
	}
	if (x) scale_weights(n, C, b);
	return x;
}

/* Dehghani et al. 2023 (ViT-22B), arXiv:2302.05442, section 2. in_proj makes the MLP's hidden units, then queries, keys and values; where
 * these have no bias, that of the hidden units is mlp_bias. */
nr_t *nr_parallel_block(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	if (!x) return NULL;
	const int64_t C = nr_cols(x), all = b->hidden + 3 * C;
	const struct nr_tokens tok = x->tok ? *x->tok : (struct nr_tokens){ 0 };
	tell_heads(n, x, b);
	nr_push(n, "par");
	nr_t *y = nr_norm(n, "attn.in", x);
	y = b->no_qkv_bias ? nr_linear_no_bias(n, "in_proj", y, all) : nr_linear(n, "in_proj", y, all);
	nr_t *mlp = nr_channels(n, y, 0, b->hidden), *qkv = nr_channels(n, y, b->hidden, all);
	if (b->no_qkv_bias) mlp = nr_shift_channels(n, mlp, nr_param(n, "mlp_bias", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(b->hidden)));
	mlp = nr_norm(n, "mlp.inner", nr_activate(n, b->act ? b->act : "gelu", nr_norm(n, "mlp.hidden", mlp)));
	qkv = turn(n, nr_norm_qk(n, qkv, b->heads), b, 3 * b->heads, 2 * b->heads);
	nr_t *attended = nr_attention_with(n, qkv, (struct nr_attention_options){ .heads = b->heads, .dropout = (float)b->attention_dropout,
		.valid = tok.valid, .bias = b->bias });
	attended = nr_linear(n, "attn_proj", nr_norm(n, "attn.inner", nr_norm(n, "attn.heads", attended)), C);
	mlp = nr_linear(n, "mlp_proj", nr_dropout(n, mlp, b->dropout), C);
	return nr_pop(n, nr_residual(n, "attn", x, nr_dropout(n, nr_add(n, attended, mlp), b->dropout), b->drop_path));
}
