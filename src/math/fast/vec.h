/* One vector type for every instruction set, chosen by NR_ISA, which differs in the builds of this folder (see isa.h).
 *
 * vf is VL floats, vi VL int32; + - * / compare and shift are the compiler's own. Tails go through ldn/stn, which touch
 * only the first n values. VMAX(a,b), VMIN(a,b) give b when either is NaN: put the value that may be NaN second.
 *
 * Intrinsics are in the header of a set only, fast/vec_NAME.h, and a set is that header and its line in sets.def. It defines VL (16 floats
 * where 32 registers hold them, 8 in all other cases), includes types.h, and has
 *   VMAX VMIN VSQRT, bc bci bcw           the same value in all lanes (floats, int32, words of 64 bits)
 *   ldn stn                               the first n values (n <= 0: none; n >= VL: all); the other lanes are 0 in ldn and left alone
 *                                         in memory by stn
 *   stream_st stream_end                  stores past the caches (stream.h), and what orders them
 *   hmax hsum H4(max|add, a, b, c, d)     one value of all lanes; four at once, as v4
 *   pick(table, i)                        table[low bits of i], VL entries
 *   widen_low widen_high                  half of the lanes as doubles
 *   from4 low4 join4                      v4 and zeros; the first four lanes; VL/4 rows, n values of four each
 *   bc4 max4 ld4n                         bc, VMAX and ldn of four
 *   mul_low(a, b)                         products of the lower halves of words
 *   odd_from unpack_low unpack_high       int32 lanes of a (even) and b (odd); pairs of words a b inside each 128 bits, lower or upper
 *   widen_bytes st_bytes16 st_bytes4x4    8 bytes as int32; 16 int32, limited to 0..255, as bytes
 *   two_pixels two_weights fold_halves    r g b 0 of two pixels; four times each of two weights; the sum of both halves */
#ifndef NR_VEC_H
#define NR_VEC_H

#ifndef NR_ISA
#error "fast/ files are built with -DNR_ISA=NAME of a set in sets.def"
#endif

/* NR_FAST(row) is nr_row_avx2, nr_row_avx512, ...: the name of this build's table. */
#define NR_PASTE3_(a, b, c) a##b##_##c
#define NR_PASTE3(a, b, c) NR_PASTE3_(a, b, c)
#define NR_FAST(family) NR_PASTE3(nr_, family, NR_ISA)

#define NR_QUOTED_(x) #x
#define NR_QUOTED(x) NR_QUOTED_(x)
#define NR_SET_HEADER_(set) NR_QUOTED(math/fast/vec_##set.h)
#define NR_SET_HEADER(set) NR_SET_HEADER_(set)
#include NR_SET_HEADER(NR_ISA)

INL int64_t up(int64_t n) { return (n + VL - 1) / VL * VL; }
INL int64_t down(int64_t n) { return n / VL * VL; }

/* Lanes 0..n-1 set (all of them from n = VL on). */
INL vi lanes(int64_t n) { return bci(n < VL ? (int32_t)n : VL) > iota(); }

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
 * round. AVX-512 has room, and its compiler takes s from memory. Emulated, the product of two floats is exact in double, as if fused. */
INL vf vplus(vf sum, vf s, vf b)
{
#ifdef NR_EMULATED
	typedef double wide __attribute__((vector_size(VL * 8)));
	const wide product = __builtin_convertvector(s, wide) * __builtin_convertvector(b, wide);
	return __builtin_convertvector(product + __builtin_convertvector(sum, wide), vf);
#elif VL == 8
	__asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(s), "x"(b));
	return sum;
#else
	return sum + s * b;
#endif
}
INL vf vabs(vf x) { return (vf)((vi)x & bci(0x7fffffff)); }

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

/* n values, VL of them when n is the constant VL: one source for the body and the tail of a loop. */
INL vf get(const float *p, int64_t n) { return n == VL ? ld(p) : ldn(p, n); }
INL void set(float *p, vf v, int64_t n)
{
	if (n == VL) st(p, v);
	else stn(p, v, n);
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
