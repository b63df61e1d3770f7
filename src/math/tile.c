/* See tile.h. */
#include "math/tile.h"

#include "math/chunk.h"

static size_t lines(int64_t n) { return ((size_t)n * sizeof(real) + 63) / 64 * 64; }

/* The kernel's need is not monotone in the sizes, which it cuts into even blocks: the sum of the largest blocks' and the largest
 * sizes' needs is enough for all. */
size_t nr_tile_dense_bytes(int64_t d, int64_t queries, int64_t keys)
{
	const struct nr_attention whole = { .B = 1, .H = 1, .Tq = queries, .Tk = keys, .d = d, .dv = d };
	struct nr_attention block = whole;
	block.Tq = nr_min64(queries, NR_ATTENTION_QB);
	block.Tk = nr_min64(keys, NR_ATTENTION_KB);
	return (nr_attention_scratch(&whole, 1) + nr_attention_scratch(&block, 1) + 63) / 64 * 64;
}

size_t nr_tile_bytes(int64_t d, int64_t queries, int64_t keys)
{
	const size_t rows = 4 * lines(queries * d) + 4 * lines(keys * d) + lines(queries) + lines(queries * keys);
	return rows + nr_tile_dense_bytes(d, queries, keys);
}

static real *cut(char **at, int64_t n)
{
	real *p = (real *)*at;
	*at += lines(n);
	return p;
}

struct nr_attention_tile nr_tile_at(int64_t d, int64_t queries, int64_t keys, void *memory)
{
	char *at = memory;
	struct nr_attention_tile t = { .d = d };
	t.q = cut(&at, queries * d), t.out = cut(&at, queries * d), t.gout = cut(&at, queries * d), t.gq = cut(&at, queries * d);
	t.k = cut(&at, keys * d), t.v = cut(&at, keys * d), t.gk = cut(&at, keys * d), t.gv = cut(&at, keys * d);
	t.lse = cut(&at, queries);
	t.mask = cut(&at, queries * keys);
	t.dense = at;
	return t;
}

struct nr_attention nr_tile_attention(const struct nr_attention_tile *t, int64_t queries, int64_t keys, real scale)
{
	const struct nr_heads s = { 0, t->d, 0 };
	return (struct nr_attention){
		.B = 1, .H = 1, .Tq = queries, .Tk = keys, .d = t->d, .dv = t->d, .scale = scale,
		.q = t->q, .k = t->k, .v = t->v, .out = t->out, .lse = t->lse, .sq = s, .sk = s, .sv = s, .so = s,
		.gout = t->gout, .gq = t->gq, .gk = t->gk, .gv = t->gv, .sgo = s, .sgq = s, .sgk = s, .sgv = s,
		.threads = 1,
	};
}

void nr_tile_forward(const struct nr_attention *a, void *dense) { nr_attention_active->forward(a, 0, 0, dense); }
void nr_tile_backward(const struct nr_attention *a, void *dense) { nr_attention_active->backward(a, 0, 0, NULL, 0, dense); }

struct nr_rng nr_tile_rng(struct nr_rng rng, uint64_t number)
{
	rng.key[0] += (uint32_t)number * UINT32_C(0x9e3779b1);
	rng.key[1] ^= (uint32_t)(number >> 32) + (uint32_t)number * UINT32_C(0x85ebca6b);
	return rng;
}
