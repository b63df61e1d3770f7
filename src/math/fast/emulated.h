/* The intrinsics of AVX2 and AVX-512 on CPUs without them: SIMDe, for the preset `emulated`. Those that its release 0.7.4 (Debian
 * 12) lacks follow; where a newer one has them, ours stand in their place. The target fuses no product but those of vplus, so values
 * differ from the CPU's by rounding. */
#ifndef NR_FAST_EMULATED_H
#define NR_FAST_EMULATED_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/fma.h>
#include <string.h>

#define EMULATED(type) static inline __attribute__((always_inline, unused)) type

/* SIMDe's read all lanes, also those beyond an array. */
EMULATED(__m256) nr_maskload_8(const float *p, __m256i lanes)
{
	float v[8] = { 0 };
	int32_t mask[8];
	_mm256_storeu_si256((__m256i *)(void *)mask, lanes);
	for (int i = 0; i < 8; i++)
		if (mask[i] < 0) v[i] = p[i];
	return _mm256_loadu_ps(v);
}

EMULATED(__m128) nr_maskload_4(const float *p, __m128i lanes)
{
	float v[4] = { 0 };
	int32_t mask[4];
	_mm_storeu_si128((__m128i *)(void *)mask, lanes);
	for (int i = 0; i < 4; i++)
		if (mask[i] < 0) v[i] = p[i];
	return _mm_loadu_ps(v);
}

EMULATED(__m512) nr_maskz_loadu(uint16_t mask, const float *p)
{
	float v[16] = { 0 };
	for (int i = 0; i < 16; i++)
		if (mask >> i & 1) v[i] = p[i];
	return _mm512_loadu_ps(v);
}

EMULATED(void) nr_mask_storeu(float *p, uint16_t mask, __m512 x)
{
	for (int i = 0; i < 16; i++)
		if (mask >> i & 1) p[i] = x[i];
}

EMULATED(__m256) nr_half(__m512 x, int upper)
{
	float v[16];
	_mm512_storeu_ps(v, x);
	return _mm256_loadu_ps(v + 8 * upper);
}

EMULATED(__m512d) nr_widen(__m256 x)
{
	double v[8];
	for (int i = 0; i < 8; i++) v[i] = (double)x[i];
	return _mm512_loadu_pd(v);
}

EMULATED(__m512) nr_zero_extended(__m128 x)
{
	float v[16] = { 0 };
	_mm_storeu_ps(v, x);
	return _mm512_loadu_ps(v);
}

/* Halves, quarters and so on, as GCC does on the CPU. */
EMULATED(float) nr_reduce_add(__m512 x)
{
	for (int n = 8; n; n /= 2)
		for (int i = 0; i < n; i++) x[i] += x[i + n];
	return x[0];
}

EMULATED(float) nr_reduce_max(__m512 x)
{
	for (int n = 8; n; n /= 2)
		for (int i = 0; i < n; i++) x[i] = x[i] > x[i + n] ? x[i] : x[i + n];
	return x[0];
}

#define __mmask16 uint16_t
#undef _mm256_maskload_ps
#undef _mm_maskload_ps
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_extractf32x8_ps
#undef _mm512_cvtps_pd
#undef _mm512_zextps128_ps512
#undef _mm512_reduce_add_ps
#undef _mm512_reduce_max_ps
#undef _mm512_stream_ps
#undef _mm512_shuffle_f32x4
#define _mm256_maskload_ps(p, lanes) nr_maskload_8(p, lanes)
#define _mm_maskload_ps(p, lanes) nr_maskload_4(p, lanes)
#define _mm512_maskz_loadu_ps(mask, p) nr_maskz_loadu(mask, p)
#define _mm512_mask_storeu_ps(p, mask, x) nr_mask_storeu(p, mask, x)
#define _mm512_extractf32x8_ps(x, upper) nr_half(x, upper)
#define _mm512_cvtps_pd(x) nr_widen(x)
#define _mm512_zextps128_ps512(x) nr_zero_extended(x)
#define _mm512_reduce_add_ps(x) nr_reduce_add(x)
#define _mm512_reduce_max_ps(x) nr_reduce_max(x)
#define _mm512_stream_ps(p, x) _mm512_store_ps(p, x)
#define _mm512_shuffle_f32x4(a, b, pieces) \
	_mm512_castsi512_ps(_mm512_shuffle_i32x4(_mm512_castps_si512(a), _mm512_castps_si512(b), pieces))

#endif
