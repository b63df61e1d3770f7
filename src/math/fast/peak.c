/* Multiply-adds and copies at the limit, for AVX2 and AVX-512: see ../peak.h. */
#include "math/peak.h"

#include "math/fast/stream.h"

static float chains(int64_t n, float x, float y)
{
	const vf vx = bc(x), vy = bc(y);
	vf a[NR_PEAK_CHAINS], sum = bc(0);
	for (int i = 0; i < NR_PEAK_CHAINS; i++) a[i] = bc((float)(i + 1));
	for (int64_t k = 0; k < n; k++)
#pragma GCC unroll 12
		for (int i = 0; i < NR_PEAK_CHAINS; i++) a[i] = a[i] * vx + vy;
	for (int i = 0; i < NR_PEAK_CHAINS; i++) sum += a[i];
	return hsum(sum) / (NR_PEAK_CHAINS * VL);
}

static void copy(int64_t n, const float *x, float *y)
{
	for (int64_t i = 0; i < n; i += 64)
#pragma GCC unroll 8
		for (int64_t k = 0; k < 64; k += VL) stream_st(y + i + k, ld(x + i + k));
	stream_end();
}

const struct nr_peak_kernels NR_FAST(peak) = { VL, chains, copy };
