/* Random numbers from counters: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011).
 *
 * No state is kept or saved: every draw is a pure function of (seed, stream, step, index), so threads, ranks
 * and resumed runs agree. The mapping, part of what a checkpoint means:
 *   key     = seed low, seed high
 *   counter = index low, index high (16 bits) | attempt << 16, step, stream
 * where an index below 2^48 names a block of four 32-bit words. Word w of a stream is word w % 4 of block
 * w / 4. The attempt counts redraws of nr_rng_below. A stream is used for one kind of draw only. */
#ifndef NR_RNG_H
#define NR_RNG_H

#include <stdint.h>

#define NR_PHILOX_M0 0xD2511F53u  /* multipliers */
#define NR_PHILOX_M1 0xCD9E8D57u
#define NR_PHILOX_W0 0x9E3779B9u  /* key increments (Weyl) */
#define NR_PHILOX_W1 0xBB67AE85u
#define NR_PHILOX_ROUNDS 10

struct nr_rng { uint32_t key[2], step, stream; };

void nr_philox(const uint32_t ctr[4], const uint32_t key[2], uint32_t out[4]);

struct nr_rng nr_rng_make(uint64_t seed, uint32_t stream, uint32_t step);
void nr_rng_block(struct nr_rng, uint64_t index, uint32_t out[4]);

/* The 24 upper bits as a number in [0,1): every float of that grid is equally likely. */
static inline float nr_rng_unit(uint32_t word)
{
	return (float)(word >> 8) * 0x1p-24f;
}

/* [0,1) from word i. */
float nr_rng_uniform(struct nr_rng, uint64_t i);
/* Box-Muller: numbers 2j and 2j+1 come from words 2j and 2j+1. */
double nr_rng_normal(struct nr_rng, uint64_t i);
/* A whole number in [0,n), n >= 1, from block i: Lemire's multiplication with rejection, so without bias. */
uint64_t nr_rng_below(struct nr_rng, uint64_t i, uint64_t n);
/* Fisher-Yates: p becomes a uniform permutation of 0..n-1; takes blocks first .. first + n. */
void nr_rng_shuffle(struct nr_rng, uint64_t first, int32_t *p, int32_t n);
/* The first `want` of n numbers become a sample of them, without order; takes blocks first .. first + want. */
void nr_rng_sample(struct nr_rng, uint64_t first, int32_t *list, int64_t n, int64_t want);
/* Where a pseudorandom permutation of 0..n-1 sends i, at constant cost and without memory (a Feistel network,
 * cycles walked until inside): for orders too long to store. Takes blocks at random: give it a stream of its
 * own. */
uint64_t nr_rng_permute(struct nr_rng, uint64_t i, uint64_t n);

#endif
