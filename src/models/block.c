/* The transformer block (Vaswani et al. 2017, arXiv:1706.03762) with timm's names and every site of the norm plan.
 *
 *   sites   attn.in, attn.qk, attn.heads, attn.inner, attn.out, attn.res
 *           mlp.in, mlp.hidden (before the activation), mlp.inner (after it), mlp.out, mlp.res */
#include "models/block.h"

#include "norma/nn.h"
#include "norma/norm.h"
#include "norms/dtn.h"

/* Queries and keys normalised per head: rows of the head's width, (B T, 3 H, d), first H of them queries. */
nr_t *nr_norm_qk(struct nr_net *n, nr_t *qkv, int64_t heads)
{
	const char *norm = qkv ? nr_norm_at(n, "attn.qk") : NULL;
	if (!norm) return qkv;
	const int64_t B = qkv->d[0], T = qkv->d[1], C = qkv->d[2];
	nr_t *r = nr_reshape(n, qkv, NR_SHAPE(B * T, 3 * heads, C / (3 * heads)));
	nr_t *q = nr_norm_make(n, "attn.qk.q", norm, nr_span(n, r, 0, heads));
	nr_t *k = nr_norm_make(n, "attn.qk.k", norm, nr_span(n, r, heads, 2 * heads));
	nr_t *y = nr_reshape(n, nr_join(n, nr_join(n, q, k), nr_span(n, r, 2 * heads, NR_END)), NR_SHAPE(B, T, C));
	return y && qkv->tok ? nr_with_tokens(n, y, *qkv->tok) : y;
}

const char *const nr_position_biases[] = { "0", "1", "eq7", NULL };

static nr_t *position_bias(struct nr_net *n, const nr_t *x, const struct nr_block *b)
{
	if (!x || !x->tok) return NULL;
	nr_t *a = nr_param(n, "attn.position", NR_ZEROS | NR_NO_DECAY, NR_SHAPE(b->heads, 3));
	struct nr_error err = { 0 };
	if (a && b->position_bias == NR_POSITION_BIAS_EQ7 && nr_entry_fill(a->entry, nr_dtn_start, NULL, 0, &err))
		return nr_net_fail(n, NR_EMEMORY, "position_bias", "out of memory");
	return nr_position_bias(n, a, x->tok->h, x->tok->w, x->tok->special);
}

/* What attention makes of the normalised tokens, before the output projection. */
static nr_t *attend(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	if (b->lsh) return nr_lsh_attention(n, nr_linear_no_bias(n, "attn.qkv", x, 2 * C), *b->lsh, b->buckets);
	nr_t *qkv = b->no_qkv_bias ? nr_linear_no_bias(n, "attn.qkv", x, 3 * C) : nr_linear(n, "attn.qkv", x, 3 * C);
	const struct nr_attention_options o = { .heads = b->heads, .dropout = (float)b->attention_dropout,
		.valid = x && x->tok ? x->tok->valid : NULL, .bias = b->position_bias ? position_bias(n, x, b) : b->bias };
	qkv = nr_norm_qk(n, qkv, b->heads);
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

nr_t *nr_block_mlp(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = x ? nr_cols(x) : 0;
	x = nr_norm(n, "mlp.hidden", nr_linear(n, "mlp.fc1", x, b->hidden));
	x = nr_norm(n, "mlp.inner", nr_activate(n, b->act ? b->act : "gelu", x));
	x = nr_dropout(n, x, b->no_hidden_dropout ? b->hidden_dropout : b->dropout);
	return nr_dropout(n, nr_linear(n, "mlp.fc2", x, C), b->dropout);
}

/* Sub-LN and DeepNorm scale the initial values of all but queries and keys. */
static void scale_weights(struct nr_net *n, int64_t C, const struct nr_block *b)
{
	const double gain = nr_norms_gain(n);
	if (gain == 1) return;
	nr_init_gain(n, "attn.qkv.weight", (b->lsh ? 1 : 2) * C * C, gain);
	if (!b->lsh) nr_init_gain(n, "attn.proj.weight", 0, gain);
	nr_init_gain(n, "mlp.fc1.weight", 0, gain);
	nr_init_gain(n, "mlp.fc2.weight", 0, gain);
}

nr_t *nr_block(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	if (!x) return NULL;
	const int64_t C = nr_cols(x);
	struct nr_tokens tok = x->tok ? *x->tok : (struct nr_tokens){ 0 };
	tok.heads = (int32_t)b->heads;                  /* norms that go by heads (DTN, group) take them from the tokens */
	nr_with_tokens(n, x, tok);
	x = nr_residual(n, "attn", x, attention(n, nr_norm(n, "attn.in", x), b), b->drop_path);
	x = nr_residual(n, "mlp", x, nr_block_mlp(n, nr_norm(n, "mlp.in", x), b), b->drop_path);
	if (x) scale_weights(n, C, b);
	return x;
}
