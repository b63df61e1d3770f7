/* Small products and copies for fast/attention.c: everything of one head sits in L1/L2, so nothing is
 * prepacked but K^T, V^T.
 *
 * One routine does every product: C[MxN] (+)= alpha A[MxK] B[KxN], A read by scalar broadcast with any
 * two strides (so P and P^T need no copies), B and C as rows of whole vectors or, where masks are free, of
 * less than one, m x n accumulators in registers. */
#ifndef NR_ATTENTION_MM_H
#define NR_ATTENTION_MM_H

#include "math/fast/vec.h"

#ifdef __clang__
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL_(x) _Pragma(#x)
#define UNROLL(n) UNROLL_(GCC unroll n)
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* Rows are addressed as base + {0,1,2} * stride, one base per three rows, hidden from the optimiser:
 * otherwise gcc keeps one pointer per element and spills them. Arrays of constant size: with a VLA the
 * sums stay in memory. */
#define HIDE(p) __asm__("" \
			: "+r"(p))

/* w floats, VL of them when w is the constant VL. */
INL vf ldw(const float *p, int64_t w) { return w == VL ? ld(p) : ldn(p, w); }
INL void stw(float *p, vf v, int64_t w)
{
	if (w == VL) st(p, v);
	else stn(p, v, w);
}

/* W: floats of a vector of B and C, VL or less. */
INL void mm_block(const int MR, const int NR, const int64_t W, int64_t K, const float *A, int64_t ars, int64_t acs,
	const float *B, int64_t ldb, float *C, int64_t ldc, float alpha, int add)
{
	vf c[15][4];
	const float *a[5];
	UNROLL(5)
	for (int i = 0; i < (MR + 2) / 3; i++) {
		a[i] = A + 3 * i * ars;
		HIDE(a[i]);
	}
	UNROLL(15)
	for (int i = 0; i < MR; i++) UNROLL(4)
	for (int j = 0; j < NR; j++) c[i][j] = (vf){ 0 };
	ROLLED
	for (int64_t k = 0; k < K; k++) {
		vf b[4];
		UNROLL(4)
		for (int j = 0; j < NR; j++) b[j] = ldw(B + j * VL, W);
		UNROLL(15)
		for (int i = 0; i < MR; i++) {
			const vf s = bc(a[i / 3][i % 3 * ars]);
			UNROLL(4)
			for (int j = 0; j < NR; j++) c[i][j] = vplus(c[i][j], s, b[j]);
		}
		UNROLL(5)
		for (int i = 0; i < (MR + 2) / 3; i++) {
			a[i] += acs;
			HIDE(a[i]);
		}
		B += ldb;
	}
	const vf al = bc(alpha);
	if (add) {
		UNROLL(15)
		for (int i = 0; i < MR; i++) {
			UNROLL(4)
			for (int j = 0; j < NR; j++) stw(C + j * VL, ldw(C + j * VL, W) + c[i][j] * al, W);
			C += ldc;
			HIDE(C);
		}
	} else {
		UNROLL(15)
		for (int i = 0; i < MR; i++) {
			UNROLL(4)
			for (int j = 0; j < NR; j++) stw(C + j * VL, c[i][j] * al, W);
			C += ldc;
			HIDE(C);
		}
	}
}

/* MM_ROWS[n]: rows of accumulators beside n vectors, by the number of registers (32 or 16). */
#if VL == 16
#define MM_COLS 4
static const int mm_rows[] = { 0, 14, 12, 8, 6 };
#else
#define MM_COLS 2
static const int mm_rows[] = { 0, 10, 6 };
#endif

#define U(m, n) \
	case m: \
		mm_block(m, n, W, K, A + i * ars, ars, acs, B, ldb, C + i * ldc, ldc, alpha, add); \
		break;
#define MM_PANEL(n, ...) \
	INL void mm_panel_of##n(const int64_t W, int64_t M, int64_t K, const float *A, int64_t ars, int64_t acs, \
		const float *B, int64_t ldb, float *C, int64_t ldc, float alpha, int add) \
	{ \
		int64_t nb = \
			(M + mm_rows[n] - 1) / mm_rows[n]; /* rows split evenly, so that no block is thin */ \
		for (int64_t i = 0, m; nb > 0; nb--, i += m) { \
			m = (M - i + nb - 1) / nb; \
			switch (m) { \
				__VA_ARGS__ \
			} \
		} \
	} \
	static void mm_panel##n(int64_t M, int64_t K, const float *A, int64_t ars, int64_t acs, \
		const float *B, int64_t ldb, float *C, int64_t ldc, float alpha, int add) \
	{ \
		mm_panel_of##n(VL, M, K, A, ars, acs, B, ldb, C, ldc, alpha, add); \
	}
#if VL == 16
MM_PANEL(1,
	U(1, 1) U(2, 1) U(3, 1) U(4, 1) U(5, 1) U(6, 1) U(7, 1) U(8, 1) U(9, 1) U(10, 1) U(11, 1) U(12, 1)
		U(13, 1) U(14, 1))
MM_PANEL(
	2, U(1, 2) U(2, 2) U(3, 2) U(4, 2) U(5, 2) U(6, 2) U(7, 2) U(8, 2) U(9, 2) U(10, 2) U(11, 2) U(12, 2))
MM_PANEL(3, U(1, 3) U(2, 3) U(3, 3) U(4, 3) U(5, 3) U(6, 3) U(7, 3) U(8, 3))
MM_PANEL(4, U(1, 4) U(2, 4) U(3, 4) U(4, 4) U(5, 4) U(6, 4))
#else
MM_PANEL(1, U(1, 1) U(2, 1) U(3, 1) U(4, 1) U(5, 1) U(6, 1) U(7, 1) U(8, 1) U(9, 1) U(10, 1))
MM_PANEL(2, U(1, 2) U(2, 2) U(3, 2) U(4, 2) U(5, 2) U(6, 2))
#endif
#undef U

/* Rows of d floats can be read and written where they lie; AVX2 has no cheap masks. */
INL int mm_fits(int64_t d) { return d % VL == 0 || (VL == 16 && d < VL); }

#if VL == 16
static void mm_part(int64_t W, int64_t M, int64_t K, const float *A, int64_t ars, int64_t acs, const float *B,
	int64_t ldb, float *C, int64_t ldc, float alpha, int add)
{
	mm_panel_of1(W, M, K, A, ars, acs, B, ldb, C, ldc, alpha, add);
}
#endif

/* N floats wide: see mm_fits. */
static void mm(int64_t M, int64_t N, int64_t K, const float *A, int64_t ars, int64_t acs, const float *B,
	int64_t ldb, float *C, int64_t ldc, float alpha, int add)
{
#if VL == 16
	if (N < VL) {
		mm_part(N, M, K, A, ars, acs, B, ldb, C, ldc, alpha, add);
		return;
	}
#endif
	const int64_t nv = N / VL;
	int64_t nb = (nv + MM_COLS - 1) / MM_COLS;
	for (int64_t j = 0, n; nb > 0; nb--, j += n) {
		const float *b = B + j * VL;
		float *c = C + j * VL;
		n = (nv - j + nb - 1) / nb;
		switch (n) {
		case 1: mm_panel1(M, K, A, ars, acs, b, ldb, c, ldc, alpha, add); break;
		case 2: mm_panel2(M, K, A, ars, acs, b, ldb, c, ldc, alpha, add); break;
#if VL == 16
		case 3: mm_panel3(M, K, A, ars, acs, b, ldb, c, ldc, alpha, add); break;
		case 4: mm_panel4(M, K, A, ars, acs, b, ldb, c, ldc, alpha, add); break;
#endif
		}
	}
}

/* Four rows of y from r, in which 128-bit piece l of r[k] holds four columns of row 4 l + k. */
INL void transpose4(const vf r[4], float *y, int64_t ldy)
{
	const vf a = V_SHUFFLE(r[0], r[1], 0, VL, 1, VL + 1), b = V_SHUFFLE(r[2], r[3], 0, VL, 1, VL + 1);
	const vf e = V_SHUFFLE(r[0], r[1], 2, VL + 2, 3, VL + 3), f = V_SHUFFLE(r[2], r[3], 2, VL + 2, 3, VL + 3);
	st(y, V_SHUFFLE(a, b, 0, 1, VL, VL + 1));
	st(y + ldy, V_SHUFFLE(a, b, 2, 3, VL + 2, VL + 3));
	st(y + 2 * ldy, V_SHUFFLE(e, f, 0, 1, VL, VL + 1));
	st(y + 3 * ldy, V_SHUFFLE(e, f, 2, 3, VL + 2, VL + 3));
}

/* Four columns of rows 0 .. last of x, those beyond `left` read as 0, become four rows of VL; rows beyond the last are the last. */
INL void transpose_columns(int64_t last, const float *x, int64_t ldx, int64_t left, float *y, int64_t ldy)
{
	vf r[4];
	const float *p[4];
	UNROLL(4)
	for (int l = 0; l < VL / 4; l++) p[l] = x + (4 * l < last ? 4 * l : last) * ldx;
	UNROLL(4)
	for (int k = 0; k < 4; k++) {
		r[k] = join4(p, left);
		UNROLL(4)
		for (int l = 0; l < VL / 4; l++) {
			p[l] += 4 * l + k < last ? ldx : 0;
			HIDE(p[l]);
		}
	}
	transpose4(r, y, ldy);
}

INL void transpose_rows(int64_t last, int64_t d, const float *x, int64_t ldx, float *y, int64_t ldy)
{
	int64_t c = 0;
	for (; c + 4 <= d; c += 4) transpose_columns(last, x + c, ldx, 4, y + c * ldy, ldy);
	if (c < d) transpose_columns(last, x + c, ldx, d - c, y + c * ldy, ldy);
}

/* y = x (T x d)^T; columns T..up(T) are the last one again, nobody looks at what is made of them. VL rows by 4 columns at a time, so y
 * has (d + 3) / 4 * 4 rows. */
static void transpose(int64_t T, int64_t d, const float *x, int64_t ldx, float *y, int64_t ldy)
{
	for (int64_t t = 0; t < T; t += VL, x += VL * ldx, y += VL) {
		if (t + VL <= T) transpose_rows(VL, d, x, ldx, y, ldy);
		else transpose_rows(T - t - 1, d, x, ldx, y, ldy);
	}
}

/* Rows of d floats copied to rows of dp = up(d), the rest zero. */
static void pack(int64_t T, int64_t d, const float *x, int64_t ldx, float *y)
{
	const int64_t dp = up(d), whole = down(d);
	for (int64_t t = 0; t < T; t++, x += ldx, y += dp) {
		for (int64_t c = 0; c < whole; c += VL) st(y + c, ld(x + c));
		if (whole < d) st(y + whole, ldn(x + whole, d - whole));
	}
}

/* And back, or added. */
static void unpack(int64_t T, int64_t d, const float *x, float *y, int64_t ldy, int add)
{
	const int64_t dp = up(d), whole = down(d);
	for (int64_t t = 0; t < T; t++, x += dp, y += ldy) {
		for (int64_t c = 0; c < whole; c += VL) st(y + c, add ? ld(y + c) + ld(x + c) : ld(x + c));
		if (whole < d)
			stn(y + whole, add ? ldn(y + whole, d - whole) + ld(x + whole) : ld(x + whole),
				d - whole);
	}
}

static void clear(int64_t T, int64_t d, float *y, int64_t ldy)
{
	for (int64_t t = 0; t < T; t++, y += ldy)
		for (int64_t c = 0; c < d; c += VL) stn(y + c, (vf){ 0 }, d - c);
}

#endif
