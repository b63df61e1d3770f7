/* Philox4x32-10 (Salmon et al. 2011) in vectors: each word of the state sits in the low half of a 64-bit lane. The widening
 * multiply reads only that half, so products are used as they are and no lane is shuffled during the ten rounds. */
#ifndef NR_FAST_PHILOX_H
#define NR_FAST_PHILOX_H

#include "base/rng.h"
#include "math/fast/vec.h"

#if VL == 16
typedef __m512i wide;
#define W(op) _mm512_##op
#define wide_set(x) _mm512_set1_epi64((long long)(x))
#define wide_xor(a, b) _mm512_xor_si512(a, b)
#define wide_odd(even, odd) _mm512_mask_blend_epi32(0xaaaa, even, odd)
#else
typedef __m256i wide;
#define W(op) _mm256_##op
#define wide_set(x) _mm256_set1_epi64x((long long)(x))
#define wide_xor(a, b) _mm256_xor_si256(a, b)
#define wide_odd(even, odd) _mm256_blend_epi32(even, odd, 0xaa)
#endif

/* Keys stay scalars: a vector operation takes them from memory for all lanes. */
struct keys { uint64_t k0[NR_PHILOX_ROUNDS], k1[NR_PHILOX_ROUNDS]; wide m0, m1, step, stream; };

INL struct keys keys_of(struct nr_rng r)
{
	struct keys k = { .m0 = wide_set(NR_PHILOX_M0),
		.m1 = wide_set(NR_PHILOX_M1),
		.step = wide_set(r.step),
		.stream = wide_set(r.stream) };
	uint32_t a = r.key[0], b = r.key[1];
	for (int i = 0; i < NR_PHILOX_ROUNDS; i++, a += NR_PHILOX_W0, b += NR_PHILOX_W1) {
		k.k0[i] = a;
		k.k1[i] = b;
	}
	return k;
}

/* Blocks a[0], a[1] (their numbers, as 64-bit lanes) to their words: a, b, c, d are words 0 to 3, in the low halves. Two vectors at a
 * time hide the multiplier's latency. */
INL void philox(const struct keys *k, wide a[2], wide b[2], wide c[2], wide d[2])
{
	for (int g = 0; g < 2; g++) {
		b[g] = W(srli_epi64)(a[g], 32);
		c[g] = k->step;
		d[g] = k->stream;
	}
#pragma GCC unroll 10
	for (int r = 0; r < NR_PHILOX_ROUNDS; r++)
		for (int g = 0; g < 2; g++) {
			const wide p = W(mul_epu32)(a[g], k->m0), q = W(mul_epu32)(c[g], k->m1);
			a[g] = wide_xor(W(srli_epi64)(q, 32),
				wide_xor(b[g], wide_set(k->k0[r]))); /* the key first: it is not on the longest path */
			c[g] = wide_xor(W(srli_epi64)(p, 32), wide_xor(d[g], wide_set(k->k1[r])));
			b[g] = q;
			d[g] = p;
		}
}

#endif
