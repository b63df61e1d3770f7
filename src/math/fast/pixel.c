/* Resize passes for AVX2 (256 bits also in the AVX-512 build). See ../pixel.h. */
#include "math/pixel.h"

#include <string.h>

#include "math/fast/vec.h"

/* round + sum of 8 lanes' products, as 8 bytes 0..255 in the low half of each 128 bits. */
INL __m128i bytes16(__m256i a, __m256i b)
{
	a = _mm256_srai_epi32(a, NR_PIXEL_BITS);
	b = _mm256_srai_epi32(b, NR_PIXEL_BITS);
	const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
	return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

INL void down_block(int vectors, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out)
{
	__m256i s[8];
	for (int v = 0; v < vectors; v++) s[v] = _mm256_set1_epi32(1 << (NR_PIXEL_BITS - 1));
	for (int32_t j = 0; j < count; j++, row += stride) {
		const __m256i k = _mm256_set1_epi32(coef[j]);
		for (int v = 0; v < vectors; v++) {
			const __m256i p = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(row + 8 * v)));
			s[v] = _mm256_add_epi32(s[v], _mm256_mullo_epi32(p, k));
		}
	}
	for (int v = 0; v < vectors; v += 2) _mm_storeu_si128((__m128i *)(out + 8 * v), bytes16(s[v], s[v + 1]));
}

static void down_pass(int64_t n, const uint8_t *row, int64_t stride, int32_t count, const int32_t *coef, uint8_t *out)
{
	int64_t i = 0;
	for (; i + 64 <= n; i += 64) down_block(8, row + i, stride, count, coef, out + i);
	for (; i + 16 <= n; i += 16) down_block(2, row + i, stride, count, coef, out + i);
	if (i < n && n >= 16)  /* the last 16 again */
		down_block(2, row + n - 16, stride, count, coef, out + n - 16);
	else if (i < n)
		nr_pixel_plain.down(n - i, row + i, stride, count, coef, out + i);
}

/* Two pixels of three bytes, one in each half: lanes r g b 0. */
INL __m256i two(const uint8_t *p, __m256i spread)
{
	int64_t six;
	memcpy(&six, p, sizeof six);
	return _mm256_shuffle_epi8(_mm256_set1_epi64x(six), spread);
}

INL __m128i fold(__m256i s) { return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)); }

static void across3(const struct nr_pixel_taps *t, const uint8_t *const row[NR_PIXEL_ROWS], uint8_t *const out[NR_PIXEL_ROWS])
{
	const __m256i spread = _mm256_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, -1, -1, -1, -1, /* first */
		3, -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1, -1);
	const __m256i pairs = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
	const __m128i half = _mm_set1_epi32(1 << (NR_PIXEL_BITS - 1));
	for (int32_t i = 0; i < t->n; i++) {
		const int32_t *k = t->coef + (int64_t)i * t->ld;
		const int64_t at = (int64_t)t->first[i] * 3;
		const uint8_t *a = row[0] + at, *b = row[1] + at, *c = row[2] + at, *d = row[3] + at;
		__m256i sa = _mm256_setzero_si256(), sb = sa, sc = sa, sd = sa;
		for (int32_t j = 0; j < t->count[i]; j += 2, a += 6, b += 6, c += 6, d += 6) {
			int64_t both;
			memcpy(&both, k + j, sizeof both);
			const __m256i kk = _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(both), pairs);
			sa = _mm256_add_epi32(sa, _mm256_mullo_epi32(two(a, spread), kk));
			sb = _mm256_add_epi32(sb, _mm256_mullo_epi32(two(b, spread), kk));
			sc = _mm256_add_epi32(sc, _mm256_mullo_epi32(two(c, spread), kk));
			sd = _mm256_add_epi32(sd, _mm256_mullo_epi32(two(d, spread), kk));
		}
		const __m128i ra = _mm_srai_epi32(_mm_add_epi32(fold(sa), half), NR_PIXEL_BITS);
		const __m128i rb = _mm_srai_epi32(_mm_add_epi32(fold(sb), half), NR_PIXEL_BITS);
		const __m128i rc = _mm_srai_epi32(_mm_add_epi32(fold(sc), half), NR_PIXEL_BITS);
		const __m128i rd = _mm_srai_epi32(_mm_add_epi32(fold(sd), half), NR_PIXEL_BITS);
		const __m128i all = _mm_packus_epi16(_mm_packs_epi32(ra, rb), _mm_packs_epi32(rc, rd));
		uint32_t four[NR_PIXEL_ROWS];   /* three bytes and a zero, which the next pixel overwrites */
		_mm_storeu_si128((__m128i *)four, all);
		for (int r = 0; r < NR_PIXEL_ROWS; r++) memcpy(out[r] + 3 * i, &four[r], 4);
	}
}

static void across(const struct nr_pixel_taps *t, int32_t channels, const uint8_t *const row[NR_PIXEL_ROWS],
	uint8_t *const out[NR_PIXEL_ROWS])
{
	if (channels == 3)
		across3(t, row, out);
	else
		nr_pixel_plain.across(t, channels, row, out);
}

const struct nr_pixel_kernels NR_FAST(pixel) = { across, down_pass };
