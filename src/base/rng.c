/* Philox and what is drawn from it: see rng.h. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

enum { FEISTEL_ROUNDS = 8 };

void nr_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t a = ctr[0], b = ctr[1], c = ctr[2], d = ctr[3], k0 = key[0], k1 = key[1];
	for (int r = 0; r < NR_PHILOX_ROUNDS; r++) {
		uint64_t p = (uint64_t)NR_PHILOX_M0 * a, q = (uint64_t)NR_PHILOX_M1 * c;
		a = (uint32_t)(q >> 32) ^ b ^ k0;
		b = (uint32_t)q;
		c = (uint32_t)(p >> 32) ^ d ^ k1;
		d = (uint32_t)p;
		k0 += NR_PHILOX_W0;
		k1 += NR_PHILOX_W1;
	}
	out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

struct nr_rng nr_rng_make(uint64_t seed, uint32_t stream, uint32_t step)
{
	return (struct nr_rng){ { (uint32_t)seed, (uint32_t)(seed >> 32) }, step, stream };
}

void nr_rng_block(struct nr_rng r, uint64_t index, uint32_t out[4])
{
	const uint32_t ctr[4] = { (uint32_t)index, (uint32_t)(index >> 32), r.step, r.stream };
	nr_philox(ctr, r.key, out);
}

float nr_rng_uniform(struct nr_rng r, uint64_t i)
{
	uint32_t w[4];
	nr_rng_block(r, i / 4, w);
	return nr_rng_unit(w[i % 4]);
}

double nr_rng_normal(struct nr_rng r, uint64_t i)
{
	uint32_t w[4];
	nr_rng_block(r, i / 4, w);
	const uint32_t *pair = w + (i % 4 & 2);
	double u = (pair[0] + 1.0) * 0x1p-32;  /* (0,1]: the logarithm must not meet 0 */
	double angle = 2 * M_PI * (pair[1] * 0x1p-32), radius = sqrt(-2 * log(u));
	return radius * (i & 1 ? sin(angle) : cos(angle));
}

uint64_t nr_rng_below(struct nr_rng r, uint64_t i, uint64_t n)
{
	assert(n >= 1);
	uint64_t floor = -n % n;  /* low halves under 2^64 mod n would favour small results */
	for (uint64_t attempt = 0;; attempt++) {
		uint32_t w[4];
		nr_rng_block(r, i ^ attempt << 48, w);
		for (int k = 0; k < 4; k += 2) {
			unsigned __int128 m = (unsigned __int128)((uint64_t)w[k + 1] << 32 | w[k]) * n;
			if ((uint64_t)m >= floor)
				return (uint64_t)(m >> 64);
		}
	}
}

void nr_rng_shuffle(struct nr_rng r, uint64_t first, int32_t *p, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		int32_t j = (int32_t)nr_rng_below(r, first + (uint64_t)i, (uint64_t)i + 1);
		p[i] = p[j];  /* the inside-out form fills and shuffles in one pass; i == j is harmless */
		p[j] = i;
	}
}

void nr_rng_sample(struct nr_rng r, uint64_t first, int32_t *list, int64_t n, int64_t want)
{
	for (int64_t i = 0; i < want; i++) {
		const int64_t j = i + (int64_t)nr_rng_below(r, first + (uint64_t)i, (uint64_t)(n - i));
		const int32_t other = list[j];
		list[j] = list[i];
		list[i] = other;
	}
}

/* One pass over 2 * bits: halves swap, one of them masked by Philox of the other and the round. */
static uint64_t feistel(struct nr_rng r, uint64_t v, int bits)
{
	const uint64_t mask = (1ull << bits) - 1;
	uint64_t left = v >> bits, right = v & mask;
	for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
		uint32_t w[4];
		nr_rng_block(r, right | (uint64_t)round << 48, w);
		uint64_t next = left ^ (w[0] & mask);
		left = right;
		right = next;
	}
	return left << bits | right;
}

uint64_t nr_rng_permute(struct nr_rng r, uint64_t i, uint64_t n)
{
	assert(i < n);
	int bits = 1;
	while (bits < 32 && n > 1ull << 2 * bits)
		bits++;
	/* the domain is less than 4 n, so the walk comes back inside soon; a permutation's cycles end where
	 * they began */
	do
		i = feistel(r, i, bits);
	while (i >= n);
	return i;
}
