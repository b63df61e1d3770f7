/* AVX2 and FMA: 8 floats, 16 registers. vec.h says what each function does. */
#define VL 8
#include "math/fast/x86.h"

#define VMAX(a, b) ((vf)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define VMIN(a, b) ((vf)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define VSQRT(a) ((vf)_mm256_sqrt_ps((__m256)(a)))
#define bc(x) ((vf)_mm256_set1_ps(x))
#define bci(x) ((vi)_mm256_set1_epi32(x))
#define bcw(x) ((vw)_mm256_set1_epi64x((long long)(x)))

INL vf ldn(const float *p, int64_t n) { return (vf)_mm256_maskload_ps(p, (__m256i)(vi)(bci(n < VL ? (int32_t)n : VL) > iota())); }
INL void stn(float *p, vf v, int64_t n)
{
	/* in pieces: a masked store costs a dozen cycles on AMD */
	__m128 x = _mm256_castps256_ps128((__m256)v);
	if (n <= 0) return;
	if (n >= VL) {
		st(p, v);
		return;
	}
	if (n & 4) {
		_mm_storeu_ps(p, x);
		x = _mm256_extractf128_ps((__m256)v, 1);
		p += 4;
	}
	if (n & 2) {
		_mm_storel_pi((__m64 *)p, x);
		x = _mm_movehl_ps(x, x);
		p += 2;
	}
	if (n & 1) _mm_store_ss(p, x);
}
INL void stream_st(float *p, vf v) { _mm256_stream_ps(p, (__m256)v); }

INL float hmax(vf v)
{
	__m128 a = _mm_max_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
	a = _mm_max_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}
INL float hsum(vf v)
{
	__m128 a = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
	a = _mm_add_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
#define H4(op, a, b, c, d)                                                                                             \
	({                                                                                                             \
		__m256 x_ = _mm256_unpacklo_ps((__m256)(a), (__m256)(b));                                              \
		__m256 y_ = _mm256_unpackhi_ps((__m256)(a), (__m256)(b));                                              \
		__m256 z_ = _mm256_unpacklo_ps((__m256)(c), (__m256)(d));                                              \
		__m256 w_ = _mm256_unpackhi_ps((__m256)(c), (__m256)(d));                                              \
		x_ = _mm256_##op##_ps(x_, y_);                                                                         \
		z_ = _mm256_##op##_ps(z_, w_);                                                                         \
		x_ = _mm256_##op##_ps(_mm256_shuffle_ps(x_, z_, 0x44), _mm256_shuffle_ps(x_, z_, 0xee));               \
		(v4)_mm_##op##_ps(_mm256_castps256_ps128(x_), _mm256_extractf128_ps(x_, 1));                           \
	})

INL vf pick(const float table[VL], vf index) { return (vf)_mm256_permutevar8x32_ps((__m256)ld(table), (__m256i)index); }
INL vd widen_low(vf x) { return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x)); }
INL vd widen_high(vf x) { return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1)); }
INL vf from4(v4 x) { return (vf)_mm256_zextps128_ps256((__m128)x); }
INL v4 low4(vf x) { return (v4)_mm256_castps256_ps128((__m256)x); }
INL vf join4(const float *const p[4], int64_t n)
{
	return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256((__m128)ld4n(p[0], n)), (__m128)ld4n(p[1], n), 1);
}

INL vw mul_low(vw a, vw b) { return (vw)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
INL vw odd_from(vw even, vw odd) { return (vw)_mm256_blend_epi32((__m256i)even, (__m256i)odd, 0xaa); }
INL vw unpack_low(vw a, vw b) { return (vw)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b); }
INL vw unpack_high(vw a, vw b) { return (vw)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b); }
