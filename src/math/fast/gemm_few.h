/* Products of a few rows: B is read once, so it is not packed. Sums run over k as in the micro kernels of gemm.c: the same bits.
 *
 * A vector is VL columns of C. B (k,n) is read by rows where it lies; of a turned one, VL x VL values at a time are turned in registers. */
#ifndef NR_GEMM_FEW_H
#define NR_GEMM_FEW_H

#include "math/chunk.h"
#include "math/fast/vec.h"
#include "math/gemm.h"

#if VL == 16
enum { FEW = 8 };
#define EACH_FEW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
enum { FEW = 4 };
#define EACH_FEW(X) X(1) X(2) X(3) X(4)
#endif
enum {
	FEW_VECTORS = 4,  /* most vectors of columns at a time */
	FEW_AHEAD = 24,   /* rows of B asked for in advance */
};

/* Vectors at a time for mr rows: enough sums to hide the latency of an addition, and few enough for the registers. */
INL int few_vectors(const int mr) { return VL == 16 && mr <= 4 ? 4 : 2; }

/* The sums of a piece of K that began at p: rows of C from column j on, `left` columns remain. */
INL void few_put(const int mr, const struct nr_gemm_tile *t, int64_t p, int64_t j, int64_t left, const vf *sum)
{
	const float *base = p ? t->c : t->base;
	const int64_t ldbase = p ? t->ldc : t->ldbase;
#pragma GCC unroll 8
	for (int i = 0; i < mr; i++) {
		vf v = sum[i];
		if (!p && t->bias) v += get(t->bias + j, left);
		if (base) v += get(base + i * ldbase + j, left);
		set(t->c + i * t->ldc + j, v, left);
	}
}

/* nv vectors of columns, or a single one of `left`. */
INL void few_columns(const int mr, const int nv, const struct nr_gemm_tile *t, int64_t j, int64_t left)
{
	const int64_t piece = nr_gemm_piece(t->k), ldb = t->ldb, lda = t->lda;
	for (int64_t p = 0; p == 0 || p < t->k; p += piece) {
		vf sum[FEW_VECTORS][FEW] = { { { 0 } } };
		const float *a = t->a + p, *b = t->b + p * ldb + j;
		for (int64_t k = nr_min64(piece, t->k - p); k > 0; k--, a++, b += ldb) {
			vf r[FEW_VECTORS];
#pragma GCC unroll 4
			for (int v = 0; v < nv; v++) {
				r[v] = get(b + v * VL, left);
				if (v * VL % 16 == 0) __builtin_prefetch(b + FEW_AHEAD * ldb + v * VL, 0, 2);
			}
#pragma GCC unroll 8
			for (int i = 0; i < mr; i++) {
				const vf s = bc(a[i * lda]);
#pragma GCC unroll 4
				for (int v = 0; v < nv; v++) sum[v][i] = vplus(sum[v][i], s, r[v]);
			}
		}
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++) few_put(mr, t, p, j + v * VL, left, sum[v]);
	}
}

/* few_columns of a turned B, one vector; the rows of B for the next are asked for. */
INL void few_turned(const int mr, const struct nr_gemm_tile *t, int64_t j, int64_t left)
{
	const int64_t piece = nr_gemm_piece(t->k), ldb = t->ldb, lda = t->lda;
	for (int64_t p = 0; p == 0 || p < t->k; p += piece) {
		vf sum[FEW];
		const float *a = t->a + p, *b = t->b + j * ldb + p;
#pragma GCC unroll 8
		for (int i = 0; i < mr; i++) sum[i] = (vf){ 0 };
		for (int64_t k = nr_min64(piece, t->k - p), n; k > 0; k -= n, a += n, b += n) {
			vf r[VL];
			n = nr_min64(VL, k);
			if (n == VL && left == VL) {
#pragma GCC unroll 16
				for (int i = 0; i < VL; i++) {
					r[i] = ld(b + i * ldb);
					__builtin_prefetch(b + (VL + i) * ldb, 0, 2);
				}
			} else {
#pragma GCC unroll 16
				for (int i = 0; i < VL; i++) r[i] = i < left ? ldn(b + i * ldb, n) : (vf){ 0 };
			}
			vtranspose(r);
#pragma GCC unroll 16
			for (int u = 0; u < VL; u++) {
				if (u >= n) break;
#pragma GCC unroll 8
				for (int i = 0; i < mr; i++) sum[i] = vplus(sum[i], bc(a[i * lda + u]), r[u]);
			}
		}
		few_put(mr, t, p, j, left, sum);
	}
}

/* The kernels of mr rows: as many vectors as there may be; one, of a turned B; the last columns. */
#define FEW_ROWS_OF(mr)                                                                                                \
	static void few_columns_##mr(const struct nr_gemm_tile *t, int64_t j) { few_columns(mr, few_vectors(mr), t, j, VL); } \
	static void few_turned_##mr(const struct nr_gemm_tile *t, int64_t j) { few_turned(mr, t, j, VL); }             \
	static void few_last_##mr(const struct nr_gemm_tile *t, int64_t j)                                             \
	{                                                                                                              \
		const int64_t left = nr_min64(VL, t->n - j);                                                           \
		if (t->tb) few_turned(mr, t, j, left);                                                                 \
		else few_columns(mr, 1, t, j, left);                                                                   \
	}
EACH_FEW(FEW_ROWS_OF)

#define FEW_ENTRY(mr) { few_columns_##mr, few_turned_##mr, few_last_##mr },
static void (*const few_kernels[FEW][3])(const struct nr_gemm_tile *, int64_t j) = { EACH_FEW(FEW_ENTRY) };

static void few_rows(const struct nr_gemm_tile *t)
{
	const int turned = t->tb != 0;
	const int64_t step = turned ? VL : few_vectors((int)t->m) * VL;
	int64_t j = 0;
	for (; j + step <= t->n; j += step) few_kernels[t->m - 1][turned](t, j);
	for (; j < t->n; j += VL) few_kernels[t->m - 1][2](t, j);
}

#endif
