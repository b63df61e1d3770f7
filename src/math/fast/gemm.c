/* The inner parts of the matrix product: an mr x nr block of C is held in registers while k runs (12 accumulators of 8
 * floats on AVX2: 6 x 16; 24 of 16 on AVX-512: 12 x 32). Goto & van de Geijn 2008; Van Zee & van de Geijn 2015 (BLIS).
 * B is read from packed panels; A as it lies in memory, transposed or not, or packed: one broadcast per row and k. */
#include <string.h>

#include "math/fast/vec.h"
#include "math/gemm.h"

#if VL == 16
enum { MR = 12, NR = 32 };
#else
enum { MR = 6, NR = 16 };
#endif
enum { AHEAD = 16 };           /* rows of an unpacked B asked for in advance */

/* mr <= MR rows and one panel: c = a b + base + bias. a(i,p) = a[i * rs + p * cs]; mr, cs and fresh are constants once
 * inlined. fresh: b has rows ldb apart, and is packed into panel on the way (the two stores hide behind the
 * multiplications); else it is a panel, ldb = NR. */
INL void micro(const int mr, int64_t k, const float *restrict a, int64_t rs, int64_t cs, const float *restrict b,
	const int fresh, int64_t ldb, float *restrict panel, const float *base, int64_t ldbase, const float *bias, float *c,
	int64_t ldc)
{
	vf acc[MR][2];
#pragma GCC unroll 12
	for (int i = 0; i < mr; i++) {
		acc[i][0] = acc[i][1] = (vf){ 0 };
		__builtin_prefetch(c + i * ldc, 1);
	}
	const float *row[MR];
#pragma GCC unroll 12
	for (int i = 0; i < mr; i++) row[i] = a + i * rs;
#pragma GCC unroll 4
	for (int64_t p = 0; p < k; p++) {
		const vf b0 = ld(b + p * ldb), b1 = ld(b + p * ldb + VL);
		if (fresh) {
			st(panel + p * NR, b0);
			st(panel + p * NR + VL, b1);
			__builtin_prefetch(b + (p + AHEAD) * ldb);
		}
#pragma GCC unroll 12
		for (int i = 0; i < mr; i++) {
			const vf s = bc(row[i][p * cs]);
			acc[i][0] += s * b0;
			acc[i][1] += s * b1;
		}
	}
	if (bias) {
		const vf s0 = ld(bias), s1 = ld(bias + VL);
#pragma GCC unroll 12
		for (int i = 0; i < mr; i++) {
			acc[i][0] += s0;
			acc[i][1] += s1;
		}
	}
	if (base) {
#pragma GCC unroll 12
		for (int i = 0; i < mr; i++) {
			acc[i][0] += ld(base + i * ldbase);
			acc[i][1] += ld(base + i * ldbase + VL);
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < mr; i++) {
		st(c + i * ldc, acc[i][0]);
		st(c + i * ldc + VL, acc[i][1]);
	}
}

/* The last rows, fewer than MR: 8, 4, 2, 1 of them at a time. */
#define REST(r)                                                                                                        \
	for (; m >= r; m -= r, a += r * rs, base = base ? base + r * ldbase : NULL, c += r * ldc)                      \
		micro(r, k, a, rs, cs, b, 0, NR, NULL, base, ldbase, bias, c, ldc)
static __attribute__((noinline)) void rest(int64_t m, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b,
	const float *base, int64_t ldbase, const float *bias, float *c, int64_t ldc)
{
#if VL == 16
	REST(8);
#endif
	REST(4);
	REST(2);
	REST(1);
}

/* Rows i.. of A times one whole panel. */
static __attribute__((noinline)) void column(int64_t i, int64_t m, int64_t k, const float *a, int64_t rs, int64_t cs,
	const float *b, const float *base, int64_t ldbase, const float *bias, float *c, int64_t ldc)
{
	for (; i + MR <= m; i += MR) {
		const float *r = base ? base + i * ldbase : NULL;
		if (cs == 1)
			micro(MR, k, a + i * rs, rs, 1, b, 0, NR, NULL, r, ldbase, bias, c + i * ldc, ldc);
		else if (cs == MR)
			micro(MR, k, a + i * rs, 1, MR, b, 0, NR, NULL, r, ldbase, bias, c + i * ldc, ldc);
		else
			micro(MR, k, a + i * rs, 1, cs, b, 0, NR, NULL, r, ldbase, bias, c + i * ldc, ldc);
	}
	if (i < m)
		rest(m - i, k, a + i * rs, cs == 1 ? rs : 1, cs, b, base ? base + i * ldbase : NULL, ldbase, bias, c + i * ldc,
			ldc);
}

/* The last panel, of which only n < NR columns exist in C. */
static void column_part(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b,
	const float *base, int64_t ldbase, const float *bias, float *c, int64_t ldc)
{
	_Alignas(64) float t[MR * NR];
	for (int64_t i = 0; i < m; i += MR) {
		const int64_t rows = m - i < MR ? m - i : MR;
		column(0, rows, k, a + i * rs, rs, cs, b, NULL, 0, NULL, t, NR);
		for (int64_t r = 0; r < rows; r++)
			for (int64_t j = 0; j < n; j++)
				c[(i + r) * ldc + j] = t[r * NR + j] + (bias ? bias[j] : 0) +
					(base ? base[(i + r) * ldbase + j] : 0);
	}
}

/* Panels of B outside, rows of A inside: a panel (k x nr) stays in L1, the rows of A in L2. */
static void block(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *pb,
	const float *base, int64_t ldbase, const float *bias, float *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j += NR) {
		const float *b = pb + j * k, *from = base ? base + j : NULL, *s = bias ? bias + j : NULL;
		if (n - j >= NR)
			column(0, m, k, a, rs, cs, b, from, ldbase, s, c + j, ldc);
		else
			column_part(m, n - j, k, a, rs, cs, b, from, ldbase, s, c + j, ldc);
	}
}

static void pack_b(int64_t k, int64_t n, const float *b, int64_t ldb, int tb, float *out);

static void block_fresh(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b,
	int64_t ldb, float *panel, const float *base, int64_t ldbase, const float *bias, float *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j += NR) {
		const float *from = base ? base + j : NULL, *s = bias ? bias + j : NULL;
		if (m < MR || n - j < NR) {
			const int64_t cols = n - j < NR ? n - j : NR;
			pack_b(k, cols, b + j, ldb, 0, panel);
			block(m, cols, k, a, rs, cs, panel, from, ldbase, s, c + j, ldc);
			continue;
		}
		if (cs == 1)
			micro(MR, k, a, rs, 1, b + j, 1, ldb, panel, from, ldbase, s, c + j, ldc);
		else
			micro(MR, k, a, 1, cs, b + j, 1, ldb, panel, from, ldbase, s, c + j, ldc);
		column(MR, m, k, a, rs, cs, panel, from, ldbase, s, c + j, ldc);
	}
}

/* 8 rows of 8 (rows beyond `rows` and columns beyond `cols` read as 0) to out[column][row], out rows NR apart. */
INL void transpose8(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *out)
{
	__m256 r[8], t[8];
	if (rows >= 8 && cols >= 8) {
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(x + i * ldx);
	} else {
		const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(cols < 8 ? (int)cols : 8),
			_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) r[i] = i < rows ? _mm256_maskload_ps(x + i * ldx, mask) : _mm256_setzero_ps();
	}
#pragma GCC unroll 4
	for (int i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
		r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
		r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
		t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
	}
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		if (i < cols) _mm256_storeu_ps(out + i * NR, t[i]);
}

static void pack_a(int64_t k, int64_t m, const float *a, int64_t lda, float *out)
{
	const int64_t whole = m / MR * MR;
	for (int64_t p = 0; p < k; p++, a += lda) {
		float *to = out + p * MR;
		int64_t i = 0;
		for (; i < whole; i += MR, to += MR * k) memcpy(to, a + i, MR * sizeof *a);
		if (i < m) memcpy(to, a + i, (size_t)(m - i) * sizeof *a);
	}
}

static void pack_b(int64_t k, int64_t n, const float *b, int64_t ldb, int tb, float *out)
{
	if (tb) {
		for (int64_t j = 0; j < n; j += NR)
			for (int64_t p = 0; p < k; p += 8)
				for (int64_t i = 0; i < NR; i += 8)
					transpose8(n - j - i, k - p, b + (j + i < n ? (j + i) * ldb : 0) + p, ldb,
						out + j * k + p * NR + i);
		return;
	}
	const int64_t whole = n / NR * NR;
	for (int64_t p = 0; p < k; p++) {
		for (int64_t j = 0; j < whole; j += NR) {
			st(out + j * k + p * NR, ld(b + p * ldb + j));
			st(out + j * k + p * NR + VL, ld(b + p * ldb + j + VL));
		}
		if (whole < n) {
			st(out + whole * k + p * NR, ldn(b + p * ldb + whole, n - whole));
			const int64_t left = n - whole - VL;
			st(out + whole * k + p * NR + VL, left > 0 ? ldn(b + p * ldb + whole + VL, left) : (vf){ 0 });
		}
	}
}

const struct nr_gemm_kernels NR_FAST(gemm) = {
	.mr = MR, .nr = NR, .pack_a = pack_a, .pack_b = pack_b, .block = block, .block_fresh = block_fresh,
};
