/* nGPT's block: hidden states and rows of weights on the unit sphere. Loshchilov et al. 2024, arXiv:2410.01131, sections 2.2 - 2.4.
 *
 *   q, k of a head: sqk sqrt(C) u(q), u(k); scores times sqrt(d)
 *   MLP: (p, q) = suv sqrt(C) (x W1^T), W2 (p silu(q))
 *
 * No biases. W_q, W_k, W_v, W_1 have rows of length 1, W_o and W_2 columns: at first and after each step of the optimizer. The residual
 * step is the plan's residual=ngpt. Of the model only the blocks are on the sphere: embeddings, the final norm and the head are the model's
 * own. */
#include <math.h>

#include "graph/net.h"
#include "models/block.h"
#include "norma/norm.h"
#include "norms/plan.h"

static nr_t *layer(struct nr_net *n, const char *name, nr_t *x, int64_t outputs, int unit)
{
	return nr_linear_tied_no_bias(n, x, nr_param(n, name, NR_XAVIER | unit, NR_SHAPE(outputs, nr_cols(x))));
}

/* (rows,heads,d) to length 1, then sqk times sqrt(C). */
static nr_t *on_sphere(struct nr_net *n, nr_t *x, nr_t *sqk)
{
	const int64_t rows = x ? x->d[0] : 0, heads = x ? x->d[1] : 0, d = x ? x->d[2] : 0;
	x = nr_reshape(n, nr_unit_rows(n, x), NR_SHAPE(rows, 1, heads * d));
	return nr_reshape(n, nr_scale_channels(n, x, sqk), NR_SHAPE(rows, heads, d));
}

static nr_t *attention(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t B = x->d[0], T = x->d[1], C = x->d[2], H = b->heads;
	const double first = 1 / sqrt((double)C);
	nr_t *sqk = nr_param(n, "attn.sqk", NR_ONES | NR_NO_DECAY, NR_SHAPE(C));
	if (sqk) sqk->entry->value = first;
	sqk = nr_scale(n, sqk, 1 / first);
	nr_t *r = nr_reshape(n, layer(n, "attn.qkv.weight", x, 3 * C, NR_UNIT_ROWS), NR_SHAPE(B * T, 3 * H, C / H));
	nr_t *q = on_sphere(n, nr_span(n, r, 0, H), sqk), *k = on_sphere(n, nr_span(n, r, H, 2 * H), sqk);
	nr_t *qkv = nr_reshape(n, nr_join(n, nr_join(n, q, k), nr_span(n, r, 2 * H, NR_END)), NR_SHAPE(B, T, 3 * C));
	if (qkv && x->tok) nr_with_tokens(n, qkv, *x->tok);
	const struct nr_attention_options o = { .heads = H, .dropout = (float)b->attention_dropout, .valid = x->tok ? x->tok->valid : NULL,
		.bias = b->bias, .scale = (float)sqrt((double)(C / H)) };
	nr_t *y = nr_attention_with(n, qkv, o);
	return y ? nr_dropout(n, layer(n, "attn.proj.weight", y, C, NR_UNIT_COLUMNS), b->dropout) : NULL;
}

static nr_t *mlp(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	const int64_t C = nr_cols(x), hidden = b->hidden;
	nr_t *suv = nr_scale(n, nr_param(n, "mlp.suv", NR_ONES | NR_NO_DECAY, NR_SHAPE(2 * hidden)), sqrt((double)C));
	nr_t *y = nr_scale_channels(n, layer(n, "mlp.fc1.weight", x, 2 * hidden, NR_UNIT_ROWS), suv);
	y = nr_mul(n, nr_channels(n, y, 0, hidden), nr_activate(n, "silu", nr_channels(n, y, hidden, 2 * hidden)));
	return y ? nr_dropout(n, layer(n, "mlp.fc2.weight", y, C, NR_UNIT_COLUMNS), b->dropout) : NULL;
}

nr_t *nr_ngpt_block(struct nr_net *n, nr_t *x, const struct nr_block *b)
{
	if (b->lsh || b->blocks || b->rope || b->position_bias)
		return nr_net_fail(n, NR_EVALUE, "placement=ngpt",
			"it has plain attention alone: no buckets, windows, rotary positions or position bias");
	n->norms->block_seen = true;
	x = nr_residual(n, "attn", x, attention(n, x, b), b->drop_path);
	return x ? nr_residual(n, "mlp", x, mlp(n, x, b), b->drop_path) : NULL;
}
