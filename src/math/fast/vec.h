/* One vector type for AVX2 and AVX-512, chosen by NR_ISA, which differs in this file's two builds (see isa.h).
 *
 * vf is VL floats, vi VL int32; + - * / compare and shift are the compiler's own. Tails go through ldn/stn, which touch
 * only the first n values. VMAX(a,b), VMIN(a,b) give b when either is NaN: put the value that may be NaN second. */
#ifndef NR_VEC_H
#define NR_VEC_H

#ifdef NR_EMULATED
#include "math/fast/emulated.h"
#else
#include <immintrin.h>
#endif
#include <stdint.h>

#ifndef NR_ISA
#error "fast/ files are built with -DNR_ISA=avx2 or -DNR_ISA=avx512"
#endif

/* NR_FAST(row) is nr_row_avx2 or nr_row_avx512: the name of this build's table. */
#define NR_PASTE3_(a, b, c) a##b##_##c
#define NR_PASTE3(a, b, c) NR_PASTE3_(a, b, c)
#define NR_FAST(family) NR_PASTE3(nr_, family, NR_ISA)

#define INL static inline __attribute__((always_inline))

#define NR_LANES_avx2 8
#define NR_LANES_avx512 16
#define VL NR_PASTE3(NR_, LANES, NR_ISA)
#if VL == 16
#define VMAX(a, b) ((vf)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define VMIN(a, b) ((vf)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define VSQRT(a) ((vf)_mm512_sqrt_ps((__m512)(a)))
#define bc(x) ((vf)_mm512_set1_ps(x)) /* not (vf){} + x: that is an addition and a shuffle on the FMA port */
#define bci(x) ((vi)_mm512_set1_epi32(x))
#else
#define VMAX(a, b) ((vf)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define VMIN(a, b) ((vf)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define VSQRT(a) ((vf)_mm256_sqrt_ps((__m256)(a)))
#define bc(x) ((vf)_mm256_set1_ps(x))
#define bci(x) ((vi)_mm256_set1_epi32(x))
#endif

typedef float vf __attribute__((vector_size(VL * 4)));
typedef float vfu __attribute__((vector_size(VL * 4), aligned(4), may_alias)); /* unaligned access */
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4))); /* bits that may wrap */

INL vf ld(const float *p) { return *(const vfu *)p; }
INL void st(float *p, vf v) { *(vfu *)p = v; }
INL int64_t up(int64_t n) { return (n + VL - 1) / VL * VL; }
INL int64_t down(int64_t n) { return n / VL * VL; }

/* Lanes 0..n-1 set (all of them from n = VL on). */
INL vi lanes(int64_t n)
{
#if VL == 16
	return bci(n < VL ? (int32_t)n : VL) > (vi){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#else
	return bci(n < VL ? (int32_t)n : VL) > (vi){ 0, 1, 2, 3, 4, 5, 6, 7 };
#endif
}

/* The first n values (n <= 0: none; n >= VL: all); the other lanes are 0 in ldn and left alone in memory by stn. */
INL vf ldn(const float *p, int64_t n)
{
#if VL == 16
	return (vf)_mm512_maskz_loadu_ps((__mmask16)(n >= VL ? 0xffff : n > 0 ? (1 << n) - 1 : 0), p);
#else
	return (vf)_mm256_maskload_ps(p, (__m256i)lanes(n));
#endif
}
INL void stn(float *p, vf v, int64_t n)
{
#if VL == 16
	_mm512_mask_storeu_ps(p, (__mmask16)(n >= VL ? 0xffff : n > 0 ? (1 << n) - 1 : 0), (__m512)v);
#else
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
#endif
}

/* m is a comparison's result: a where true, b elsewhere. */
INL vf vsel(vi m, vf a, vf b) { return (vf)(((vi)a & m) | ((vi)b & ~m)); }
/* A product that stays one: the compiler does not contract it with a sum that follows. */
INL vf rounded(vf x)
{
#ifndef NR_EMULATED /* whose target cannot */
	__asm__("" : "+v"(x));
#endif
	return x;
}
/* sum + s b for kernels whose sums fill the 16 registers of AVX2: gcc, left to itself, moves one of them through memory in every
 * round. AVX-512 has room, and its compiler takes s from memory. */
INL vf vplus(vf sum, vf s, vf b)
{
#if VL == 8 && !defined NR_EMULATED
	__asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(s), "x"(b));
	return sum;
#else
	return sum + s * b;
#endif
}
INL vf vabs(vf x) { return (vf)((vi)x & bci(0x7fffffff)); }

INL float hmax(vf v)
{
#if VL == 16
	return _mm512_reduce_max_ps((__m512)v);
#else
	__m128 a = _mm_max_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
	a = _mm_max_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
#endif
}
INL float hsum(vf v)
{
#if VL == 16
	return _mm512_reduce_add_ps((__m512)v);
#else
	__m128 a = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
	a = _mm_add_ps(a, _mm_movehl_ps(a, a));
	return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
#endif
}

/* Four horizontal reductions at once, as an __m128: 4x4 transposition inside the lanes, then across lanes. op is max
 * or add. */
#if VL == 16
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
		_mm_##op##_ps(_mm256_castps256_ps128(h_), _mm256_extractf128_ps(h_, 1));                               \
	})
#else
#define H4(op, a, b, c, d)                                                                                             \
	({                                                                                                             \
		__m256 x_ = _mm256_unpacklo_ps((__m256)(a), (__m256)(b));                                              \
		__m256 y_ = _mm256_unpackhi_ps((__m256)(a), (__m256)(b));                                              \
		__m256 z_ = _mm256_unpacklo_ps((__m256)(c), (__m256)(d));                                              \
		__m256 w_ = _mm256_unpackhi_ps((__m256)(c), (__m256)(d));                                              \
		x_ = _mm256_##op##_ps(x_, y_);                                                                         \
		z_ = _mm256_##op##_ps(z_, w_);                                                                         \
		x_ = _mm256_##op##_ps(_mm256_shuffle_ps(x_, z_, 0x44), _mm256_shuffle_ps(x_, z_, 0xee));               \
		_mm_##op##_ps(_mm256_castps256_ps128(x_), _mm256_extractf128_ps(x_, 1));                               \
	})
#endif

/* r[i][j] = r[j][i]: pairs, pairs of pairs, ... are exchanged. Inside 128 bits first, which is cheap; then whole quarters. */
#if VL == 16
#define V_SHUFFLE(a, b, w, x, y, z)                                                                                    \
	__builtin_shufflevector(a, b, w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, w + 12,      \
		x + 12, y + 12, z + 12)
#else
#define V_SHUFFLE(a, b, w, x, y, z) __builtin_shufflevector(a, b, w, x, y, z, w + 4, x + 4, y + 4, z + 4)
#endif
INL void vtranspose(vf r[VL])
{
	vf t[VL];
#pragma GCC unroll 8
	for (int i = 0; i < VL; i += 2) {
		t[i] = V_SHUFFLE(r[i], r[i + 1], 0, VL, 1, VL + 1);
		t[i + 1] = V_SHUFFLE(r[i], r[i + 1], 2, VL + 2, 3, VL + 3);
	}
#pragma GCC unroll 4
	for (int i = 0; i < VL; i += 4) {
		r[i] = V_SHUFFLE(t[i], t[i + 2], 0, 1, VL, VL + 1);
		r[i + 1] = V_SHUFFLE(t[i], t[i + 2], 2, 3, VL + 2, VL + 3);
		r[i + 2] = V_SHUFFLE(t[i + 1], t[i + 3], 0, 1, VL, VL + 1);
		r[i + 3] = V_SHUFFLE(t[i + 1], t[i + 3], 2, 3, VL + 2, VL + 3);
	}
#pragma GCC unroll 4
	for (int c = 0; c < 4; c++) {
#if VL == 16
		/* quarters 0 2 of both, quarters 1 3 of both */
#define V_EVEN(a, b)                                                                                                   \
	__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define V_ODD(a, b)                                                                                                    \
	__builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
		const vf lo = V_EVEN(r[c], r[4 + c]), hi = V_ODD(r[c], r[4 + c]);
		const vf lo2 = V_EVEN(r[8 + c], r[12 + c]), hi2 = V_ODD(r[8 + c], r[12 + c]);
		t[c] = V_EVEN(lo, lo2);
		t[4 + c] = V_EVEN(hi, hi2);
		t[8 + c] = V_ODD(lo, lo2);
		t[12 + c] = V_ODD(hi, hi2);
#else
		t[c] = __builtin_shufflevector(r[c], r[4 + c], 0, 1, 2, 3, 8, 9, 10, 11);
		t[4 + c] = __builtin_shufflevector(r[c], r[4 + c], 4, 5, 6, 7, 12, 13, 14, 15);
#endif
	}
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) r[i] = t[i];
}

/* e^r - 1: x = n ln2 + r, |r| <= ln2/2, polynomial of degree 7 (Cephes coefficients); n is in the low bits of *t. Short
 * chains, as latency and not count of operations limits loops over it. */
INL vf vexpm1_core(vf x, vf *t)
{
	*t = x * 1.44269504f + 12582912.f; /* 1.5 * 2^23 */
	vf n = *t - 12582912.f;
	vf r = x - n * 0.693359375f;
	r = r + n * 2.12194440e-4f;
	vf rr = r * r;
	vf p = (r * 1.9875691500e-4f + 1.3981999507e-3f) * rr + (r * 8.3334519073e-3f + 4.1665795894e-2f);
	p = p * rr + (r * 1.6666665459e-1f + 5.0000001201e-1f);
	return p * rr + r;
}

/* e^r: e^x without its power of two. */
INL vf vexp_core(vf x, vf *t) { return vexpm1_core(x, t) + 1.f; }

/* e^x for x in [-87.3, 88]; below it is clamped (1e-38), above 88.3 it is wrong: for arguments that are known to be
 * small, as in softmax. Relative error < 1e-7 (test/unit/act.c). */
INL vf vexp(vf x)
{
	vf t, p = vexp_core(VMAX(bc(-87.3f), x), &t);
	return (vf)((vu)p + ((vu)t << 23));
}

/* e^x for all x, to 0 and to inf: the power of two goes in as two factors. */
INL vf vexp_all(vf x)
{
	vf t, p = vexp_core(VMIN(bc(89), VMAX(bc(-104), x)), &t);
	vi n = (vi)t - 0x4b400000, half = n >> 1;
	return (vf)((vu)p + ((vu)half << 23)) * (vf)((vu)(n - half + 127) << 23);
}

/* vexp, but exactly 0 below -87.3: for softmax, where -inf masks. */
INL vf vexpz(vf x) { return (vf)((vi)vexp(x) & ~(vi)(x < bc(-87.3f))); }

/* Natural logarithm of positive normal floats (polynomial of the Cephes library). Error < 1e-7 relative, or absolute
 * below 1. */
INL vf vlog(vf x)
{
	vi ix = (vi)((vu)x - 0x3f3504f3u); /* mantissa to [sqrt(1/2), sqrt(2)) */
	vi e = ix >> 23;
	vf m = (vf)((vu)x - ((vu)e << 23)) - 1.f, z = m * m, n = __builtin_convertvector(e, vf);
	vf p = bc(7.0376836292e-2f);
	p = p * m - 1.1514610310e-1f;
	p = p * m + 1.1676998740e-1f;
	p = p * m - 1.2420140846e-1f;
	p = p * m + 1.4249322787e-1f;
	p = p * m - 1.6668057665e-1f;
	p = p * m + 2.0000714765e-1f;
	p = p * m - 2.4999993993e-1f;
	p = p * m + 3.3333331174e-1f;
	return m + (m * z * p - z * .5f - n * 2.12194440e-4f) + n * 0.693359375f;
}

/* log(1 + u) for u >= 0 with small relative error: what 1 + u rounds away is added back. */
INL vf vlog1p(vf u)
{
	vf w = u + 1.f;
	return vlog(w) + (u - (w - 1.f)) / w;
}

/* tanh: m/(m + 2) with m = e^2|x| - 1 = 2^n (e^r - 1) + (2^n - 1), so that small |x| keeps its digits and rounding of m
 * does not show near 1. Relative error < 3e-7; from 10 on it is 1. */
INL vf vtanh(vf x)
{
	vf a = VMIN(bc(10.f), vabs(x)), t, p = vexpm1_core(a + a, &t), power = (vf)(((vu)t + 127) << 23);
	vf m = power * p + (power - 1.f);
	return (vf)((vi)(m / (m + 2.f)) | ((vi)x & bci((int32_t)0x80000000)));
}

#endif
