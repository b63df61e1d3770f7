/* AVX-512 (F, BW, DQ, VL): 16 floats, 32 registers. vec.h says what each function does. */
#define VL 16
#include "math/fast/x86.h"

#define VMAX(a, b) ((vf)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VMIN(a, b) ((vf)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define VSQRT(a) ((vf)_mm512_sqrt_ps((__m512)(a)))
#define bc(x) ((vf)_mm512_set1_ps(x)) /* not (vf){} + x: that is an addition and a shuffle on the FMA port */
#define bci(x) ((vi)_mm512_set1_epi32(x))
#define bcw(x) ((vw)_mm512_set1_epi64((long long)(x)))

#define FIRST_LANES(n) ((__mmask16)((n) >= VL ? 0xffff : (n) > 0 ? (1 << (n)) - 1 : 0))
INL vf ldn(const float *p, int64_t n) { return (vf)_mm512_maskz_loadu_ps(FIRST_LANES(n), p); }
INL void stn(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, FIRST_LANES(n), (__m512)v); }
INL void stream_st(float *p, vf v) { _mm512_stream_ps(p, (__m512)v); }

INL float hmax(vf v) { return _mm512_reduce_max_ps((__m512)v); }
INL float hsum(vf v) { return _mm512_reduce_add_ps((__m512)v); }
#define H4(op, a, b, c, d)                                                                                             \
	({                                                                                                             \
		__m512 x_ = _mm512_unpacklo_ps((__m512)(a), (__m512)(b));                                              \
		__m512 y_ = _mm512_unpackhi_ps((__m512)(a), (__m512)(b));                                              \
		__m512 z_ = _mm512_unpacklo_ps((__m512)(c), (__m512)(d));                                              \
		__m512 w_ = _mm512_unpackhi_ps((__m512)(c), (__m512)(d));                                              \
		x_ = _mm512_##op##_ps(x_, y_);                                                                         \
		z_ = _mm512_##op##_ps(z_, w_);                                                                         \
		x_ = _mm512_##op##_ps(_mm512_shuffle_ps(x_, z_, 0x44), _mm512_shuffle_ps(x_, z_, 0xee));               \
		__m256 h_ = _mm256_##op##_ps(_mm512_castps512_ps256(x_),                                               \
			_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x_), 1)));                            \
		(v4)_mm_##op##_ps(_mm256_castps256_ps128(h_), _mm256_extractf128_ps(h_, 1));                           \
	})

INL vf pick(const float table[VL], vf index) { return (vf)_mm512_permutexvar_ps((__m512i)index, (__m512)ld(table)); }
INL vd widen_low(vf x) { return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x)); }
INL vd widen_high(vf x) { return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1)); }
INL vf from4(v4 x) { return (vf)_mm512_zextps128_ps512((__m128)x); }
INL v4 low4(vf x) { return (v4)_mm512_castps512_ps128((__m512)x); }
INL vf join4(const float *const p[4], int64_t n)
{
	__m512 v = _mm512_castps128_ps512((__m128)ld4n(p[0], n));
	v = _mm512_insertf32x4(v, (__m128)ld4n(p[1], n), 1);
	v = _mm512_insertf32x4(v, (__m128)ld4n(p[2], n), 2);
	return (vf)_mm512_insertf32x4(v, (__m128)ld4n(p[3], n), 3);
}

INL vw mul_low(vw a, vw b) { return (vw)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
INL vw odd_from(vw even, vw odd) { return (vw)_mm512_mask_blend_epi32(0xaaaa, (__m512i)even, (__m512i)odd); }
INL vw unpack_low(vw a, vw b) { return (vw)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b); }
INL vw unpack_high(vw a, vw b) { return (vw)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b); }
