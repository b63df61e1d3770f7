/* Random words in vector form, straight into uniform numbers and dropout. See ../random.h. A group is VL/2 blocks: 2 VL words,
 * two vectors in the order of the stream. */
#include "math/random.h"

#include "math/fast/philox.h"

enum { GROUP = 2 * VL };

/* Lane pair j holds blocks j and j + VL / 4, so that unpacking leaves both halves in order. */
#if VL == 16
#define FIRST_BLOCKS { 0, 4, 1, 5, 2, 6, 3, 7 }
#else
#define FIRST_BLOCKS { 0, 2, 1, 3 }
#endif

/* Two groups from block `block` on: four vectors of words. Two at a time hide the multiplier's latency. */
INL void two_groups(const struct keys *k, uint64_t block, vi out[4])
{
	vw a[2], b[2], c[2], d[2];
	for (int g = 0; g < 2; g++) a[g] = bcw(block + (uint64_t)g * (VL / 2)) + (vw)FIRST_BLOCKS;
	philox(k, a, b, c, d);
	for (int g = 0; g < 2; g++) {
		const vw ab = odd_from(a[g], b[g] << 32), cd = odd_from(c[g], d[g] << 32);
		out[2 * g] = (vi)unpack_low(ab, cd);
		out[2 * g + 1] = (vi)unpack_high(ab, cd);
	}
}

/* [0,1): the 24 upper bits, as nr_rng_unit. */
INL vf unit(vi w) { return __builtin_convertvector((vi)((vu)w >> 8), vf) * 0x1p-24f; }

/* All ones where the word is at least `drop`, unsigned. */
INL vi kept(vi w, vi drop) { return (vi)((vu)w >= (vu)drop); }

/* Values before the first whole block, at most three; the plain kernel does them. */
INL int64_t head(int64_t n, uint64_t index0)
{
	const int64_t h = (int64_t)((4 - index0 % 4) % 4);
	return h < n ? h : n;
}

static void uniform(int64_t n, float *y, float low, float span, struct nr_rng rng, uint64_t index0)
{
	const struct keys k = keys_of(rng);
	int64_t i = head(n, index0);
	nr_random_plain.uniform(i, y, low, span, rng, index0);
	for (; i < n; i += 2 * GROUP) {
		vi w[4];
		two_groups(&k, (index0 + (uint64_t)i) / 4, w);
		for (int v = 0; v < 4; v++) {
			const vf r = bc(low) + bc(span) * unit(w[v]);
			if (i + 2 * GROUP <= n)
				st(y + i + v * VL, r);
			else
				stn(y + i + v * VL, r, n - i - v * VL);
		}
	}
}

INL void dropout_from(int64_t i, int64_t n, const float *x, const float *residual, float *y, uint32_t drop,
	float scale, const struct keys *k, uint64_t index0)
{
	const vi limit = bci((int32_t)drop);
	const vf s = bc(scale);
	vi w[4];
	for (; i + 2 * GROUP <= n; i += 2 * GROUP) {
		two_groups(k, (index0 + (uint64_t)i) / 4, w);
		for (int v = 0; v < 4; v++) {
			const int64_t at = i + v * VL;
			const vf r = (vf)((vi)(ld(x + at) * s) & kept(w[v], limit));
			st(y + at, residual ? ld(residual + at) + r : r);
		}
	}
	if (i >= n) return;
	two_groups(k, (index0 + (uint64_t)i) / 4, w);
	for (int v = 0; v < 4 && i + v * VL < n; v++) {
		const int64_t at = i + v * VL, len = n - at;
		const vf r = (vf)((vi)(ldn(x + at, len) * s) & kept(w[v], limit));
		stn(y + at, residual ? ldn(residual + at, len) + r : r, len);
	}
}

static void dropout(int64_t n, const float *x, const float *residual, float *y, uint32_t drop, float scale,
	struct nr_rng rng, uint64_t index0)
{
	const struct keys k = keys_of(rng);
	const int64_t i = head(n, index0);
	nr_random_plain.dropout(i, x, residual, y, drop, scale, rng, index0);
	if (residual)
		dropout_from(i, n, x, residual, y, drop, scale, &k, index0);
	else
		dropout_from(i, n, x, NULL, y, drop, scale, &k, index0);
}

static void scale_add(int64_t n, const float *x, const float *residual, float *y, float a)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL)
		st(y + i, residual ? ld(residual + i) + bc(a) * ld(x + i) : bc(a) * ld(x + i));
	if (i >= n) return;
	const vf r = bc(a) * ldn(x + i, n - i);
	stn(y + i, residual ? ldn(residual + i, n - i) + r : r, n - i);
}

const struct nr_random_kernels NR_FAST(random) = { uniform, dropout, scale_add };
