/* The transformer block that both models are made of, with timm's names. Vaswani et al. arXiv:1706.03762, pre-norm.
 *
 *   x = x + proj(attention(qkv(norm1(x))));  x = x + fc2(gelu(fc1(norm2(x)))) */
#include "bench.h"
#include "norma/nn.h"
#include "norma/norm.h"

enum { MLP = 4 }; /* the width of the MLP over that of the tokens */

int64_t bench_patches(const struct bench_size *s)
{
	return s->image / s->patch * (s->image / s->patch);
}

static nr_t *attention(struct nr_net *n, nr_t *x, int64_t heads)
{
	const int64_t dim = x ? nr_cols(x) : 0;
	nr_t *y = nr_attention(n, nr_linear(n, "attn.qkv", x, 3 * dim), heads);
	return nr_linear(n, "attn.proj", y, dim);
}

static nr_t *mlp(struct nr_net *n, nr_t *x)
{
	const int64_t dim = x ? nr_cols(x) : 0;
	return nr_linear(n, "mlp.fc2", nr_linear_gelu(n, "mlp.fc1", x, MLP * dim), dim);
}

nr_t *bench_block(struct nr_net *n, const char *norm, nr_t *x, int64_t heads)
{
	x = nr_add(n, x, attention(n, nr_norm_make(n, "norm1", norm, x), heads));
	return nr_add(n, x, mlp(n, nr_norm_make(n, "norm2", norm, x)));
}

/* qkv 3, proj 1, fc1 and fc2 MLP each, in units of dim^2 per token; then scores and values. */
double bench_block_flops(double batch, double tokens, double dim)
{
	return 2 * batch * tokens * dim * dim * (4 + 2 * MLP) + 4 * batch * tokens * tokens * dim;
}
