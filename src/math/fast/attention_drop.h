/* Dropout of probabilities with lanes = keys. One block of four words serves eight rows of a key column, 16 bits each;
 * nr_attention_keep is the same in plain. */
#ifndef NR_ATTENTION_DROP_H
#define NR_ATTENTION_DROP_H

#include "math/attention.h"
#include "math/fast/philox.h"

#if VL == 16
#define EVEN_KEYS { 0, 2, 4, 6, 8, 10, 12, 14 }
#else
#define EVEN_KEYS { 0, 2, 4, 6 }
#endif

/* Words of rows i .. i + 7 (i a multiple of 8) and keys j .. j + n: to[w * ld + k], n whole vectors. Even and odd keys are
 * blocks of their own vectors. */
static void drop_words(const struct nr_attention *a, const struct keys *keys, int64_t b, int64_t h, int64_t i, int64_t j,
	int64_t n, float *to, int64_t ldw)
{
	const vw even = EVEN_KEYS;
	const uint64_t block = nr_attention_drop_block(a, b, h, i) + (uint64_t)j;
	for (int64_t k = 0; k < n; k += VL) {
		vw w[4][2];
		for (int g = 0; g < 2; g++) w[0][g] = bcw(block + (uint64_t)(k + g)) + even;
		philox(keys, w[0], w[1], w[2], w[3]);
		for (int q = 0; q < 4; q++) st(to + q * ldw + k, (vf)odd_from(w[q][0], w[q][1] << 32));
	}
}

/* All ones where the row (its number modulo 8) keeps the key at these words. */
INL vi drop_keep(const float *words, int64_t ldw, int64_t row, vi threshold)
{
	const vi w = (vi)(*(const vfu *)(words + row / 2 % 4 * ldw));
	const vi u = row & 1 ? (vi)((vu)w >> 16) : w & bci(0xffff);
	return ~(vi)(threshold > u);
}

#endif
