/* What the transformers of the cases have in common: the number of patches, and products of a block. */
#include "bench.h"

enum { MLP = 4 }; /* the width of the MLP over that of the tokens */

int64_t bench_patches(const struct bench_size *s)
{
	return s->image / s->patch * (s->image / s->patch);
}

/* qkv 3, proj 1, fc1 and fc2 MLP each, in units of dim^2 per token; then scores and values. */
double bench_block_flops(double batch, double tokens, double dim)
{
	return 2 * batch * tokens * dim * dim * (4 + 2 * MLP) + 4 * batch * tokens * tokens * dim;
}
