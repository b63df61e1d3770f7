/* What the instruction sets of x86-64 share: their intrinsics and the pieces of 128 and 256 bits; vec.h says what each function does. */
#ifndef NR_FAST_X86_H
#define NR_FAST_X86_H

#ifdef NR_EMULATED
#include "math/fast/emulated.h"
#else
#include <immintrin.h>
#endif
#include <string.h>

#include "math/fast/types.h"

/* ---- four floats */
INL v4 bc4(float x) { return (v4)_mm_set1_ps(x); }
INL v4 max4(v4 a, v4 b) { return (v4)_mm_max_ps((__m128)a, (__m128)b); }
INL v4 ld4n(const float *p, int64_t n)
{
	if (n >= 4) return ld4(p);
	return (v4)_mm_maskload_ps(p, _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3)));
}

/* ---- bytes */
INL i8 widen_bytes(const uint8_t *p) { return (i8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INL void st_bytes16(uint8_t *p, i8 a, i8 b)
{
	const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)a, (__m256i)b), 0xd8);
	_mm_storeu_si128((__m128i *)p, _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
INL i8 two_pixels(const uint8_t *p)
{
	const __m256i spread = _mm256_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1, -1, /* the first */
		3, -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1, -1);
	int64_t six;
	memcpy(&six, p, sizeof six);
	return (i8)_mm256_shuffle_epi8(_mm256_set1_epi64x(six), spread);
}
INL i8 two_weights(const int32_t *p)
{
	int64_t both;
	memcpy(&both, p, sizeof both);
	return (i8)_mm256_permutevar8x32_epi32(_mm256_set1_epi64x(both), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}
INL i4 fold_halves(i8 x) { return (i4)_mm_add_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1)); }
INL void st_bytes4x4(uint32_t p[4], i4 a, i4 b, i4 c, i4 d)
{
	const __m128i ab = _mm_packs_epi32((__m128i)a, (__m128i)b), cd = _mm_packs_epi32((__m128i)c, (__m128i)d);
	_mm_storeu_si128((__m128i *)p, _mm_packus_epi16(ab, cd));
}

INL void stream_end(void) { _mm_sfence(); }

#endif
