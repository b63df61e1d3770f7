/* Dropout of probabilities: Philox4x32-10 (Salmon et al. 2011) with lanes = keys. One block of four words
 * serves eight rows of a key column, 16 bits each; nr_attention_keep is the same in plain. */
#ifndef NR_ATTENTION_DROP_H
#define NR_ATTENTION_DROP_H

#include "math/attention.h"
#include "math/fast/vec.h"


/* 32 x 32 -> 64 bits in each lane, as high and low words: even and odd lanes apart. */
INL void mul_wide(vu a, uint32_t m, vu *hi, vu *lo)
{
#if VL == 16
	const __m512i f = _mm512_set1_epi32((int)m), e = _mm512_mul_epu32((__m512i)a, f);
	const __m512i o = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), f);
	*lo = (vu)_mm512_mask_mov_epi32(e, 0xaaaa, _mm512_slli_epi64(o, 32));
	*hi = (vu)_mm512_mask_mov_epi32(_mm512_srli_epi64(e, 32), 0xaaaa, o);
#else
	const __m256i f = _mm256_set1_epi32((int)m), e = _mm256_mul_epu32((__m256i)a, f);
	const __m256i o = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), f);
	*lo = (vu)_mm256_blend_epi32(e, _mm256_slli_epi64(o, 32), 0xaa);
	*hi = (vu)_mm256_blend_epi32(_mm256_srli_epi64(e, 32), o, 0xaa);
#endif
}

/* Words of rows i .. i + 7 (i a multiple of 8) and keys j .. j + n: to[w * ld + k], n whole vectors. */
static void drop_words(const struct nr_attention *a, int64_t b, int64_t h, int64_t i, int64_t j, int64_t n,
	float *to, int64_t ldw)
{
#if VL == 16
	const vu first = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#else
	const vu first = { 0, 1, 2, 3, 4, 5, 6, 7 };
#endif
	const uint64_t block = nr_attention_drop_block(a, b, h, i) + (uint64_t)j;
	for (int64_t k = 0; k < n; k += VL) {
		const uint64_t at = block + (uint64_t)k;
		const vu low = (vu)bci((int32_t)(uint32_t)at);
		uint32_t k0 = a->rng.key[0], k1 = a->rng.key[1];
		vu c0 = first + low, c1 = (vu)bci((int32_t)(at >> 32)) - (vu)(c0 < low); /* with the carry */
		vu c2 = (vu)bci((int32_t)a->rng.step), c3 = (vu)bci((int32_t)a->rng.stream);
		for (int r = 0; r < NR_PHILOX_ROUNDS; r++, k0 += NR_PHILOX_W0, k1 += NR_PHILOX_W1) {
			vu h0, l0, h1, l1;
			mul_wide(c0, NR_PHILOX_M0, &h0, &l0);
			mul_wide(c2, NR_PHILOX_M1, &h1, &l1);
			c0 = h1 ^ c1 ^ (vu)bci((int32_t)k0);
			c2 = h0 ^ c3 ^ (vu)bci((int32_t)k1);
			c1 = l1;
			c3 = l0;
		}
		st(to + k, (vf)c0);
		st(to + ldw + k, (vf)c1);
		st(to + 2 * ldw + k, (vf)c2);
		st(to + 3 * ldw + k, (vf)c3);
	}
}

/* All ones where the row (its number modulo 8) keeps the key at these words. */
INL vi drop_keep(const float *words, int64_t ldw, int64_t row, vi threshold)
{
	const vi w = (vi)(*(const vfu *)(words + row / 2 % 4 * ldw));
#if VL == 16
	const vi u = row & 1 ? (vi)_mm512_srli_epi32((__m512i)w, 16) : w & bci(0xffff);
#else
	const vi u = row & 1 ? (vi)_mm256_srli_epi32((__m256i)w, 16) : w & bci(0xffff);
#endif
	return ~(vi)(threshold > u);
}

#endif
