/* The stack of transformer blocks that both models are made of. */
#include "bench.h"
#include "models/block.h"

enum { MLP = 4 }; /* the width of the MLP over that of the tokens */

int64_t bench_patches(const struct bench_size *s)
{
	return s->image / s->patch * (s->image / s->patch);
}

/* blocks.0, blocks.1, ... and the final norm. */
nr_t *bench_blocks(struct nr_net *n, nr_t *x, int64_t depth, int64_t heads)
{
	const struct nr_block b = { .heads = heads, .hidden = MLP * (x ? nr_cols(x) : 0) };
	for (int64_t i = 0; i < depth; i++) {
		nr_push_nth(n, "blocks", i, depth);
		x = nr_pop(n, nr_block(n, x, &b));
	}
	return nr_norm(n, "final", x);
}

/* qkv 3, proj 1, fc1 and fc2 MLP each, in units of dim^2 per token; then scores and values. */
double bench_block_flops(double batch, double tokens, double dim)
{
	return 2 * batch * tokens * dim * dim * (4 + 2 * MLP) + 4 * batch * tokens * tokens * dim;
}
