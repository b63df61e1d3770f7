/* Philox4x32-10 (Salmon et al. 2011) in vectors: each word of the state sits in the low half of a 64-bit lane. The widening
 * multiply reads only that half, so products are used as they are and no lane is shuffled during the ten rounds. */
#ifndef NR_FAST_PHILOX_H
#define NR_FAST_PHILOX_H

#include "base/rng.h"
#include "math/fast/vec.h"

/* Keys stay scalars: a vector operation takes them from memory for all lanes. */
struct keys { uint64_t k0[NR_PHILOX_ROUNDS], k1[NR_PHILOX_ROUNDS]; vw m0, m1, step, stream; };

INL struct keys keys_of(struct nr_rng r)
{
	struct keys k = { .m0 = bcw(NR_PHILOX_M0),
		.m1 = bcw(NR_PHILOX_M1),
		.step = bcw(r.step),
		.stream = bcw(r.stream) };
	uint32_t a = r.key[0], b = r.key[1];
	for (int i = 0; i < NR_PHILOX_ROUNDS; i++, a += NR_PHILOX_W0, b += NR_PHILOX_W1) {
		k.k0[i] = a;
		k.k1[i] = b;
	}
	return k;
}

/* Blocks a[0], a[1] (their numbers, as 64-bit lanes) to their words: a, b, c, d are words 0 to 3, in the low halves. Two vectors at a
 * time hide the multiplier's latency. */
INL void philox(const struct keys *k, vw a[2], vw b[2], vw c[2], vw d[2])
{
	for (int g = 0; g < 2; g++) {
		b[g] = a[g] >> 32;
		c[g] = k->step;
		d[g] = k->stream;
	}
#pragma GCC unroll 10
	for (int r = 0; r < NR_PHILOX_ROUNDS; r++)
		for (int g = 0; g < 2; g++) {
			const vw p = mul_low(a[g], k->m0), q = mul_low(c[g], k->m1);
			a[g] = q >> 32 ^ (b[g] ^ bcw(k->k0[r])); /* the key first: it is not on the longest path */
			c[g] = p >> 32 ^ (d[g] ^ bcw(k->k1[r]));
			b[g] = q;
			d[g] = p;
		}
}

#endif
