/* Products of a few rows, of a short k, or with one column: B is not packed. Sums run over k as in the micro kernels of gemm.c: the same
 * bits.
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
	FEW_POINTERS = (VL + 2) / 3,
	SHALLOW = 32,     /* a k that is called short */
	SHALLOW_COLS = VL == 16 ? 4 * VL : 2 * VL, /* columns then worked on at a time */
	SHALLOW_B = 8192, /* values of B that stay in L1 */
	FEW_AHEAD = VL == 16 ? 24 : 40, /* rows of B asked for in advance */
};

/* Vectors at a time for mr rows: enough sums to hide the latency of an addition, and few enough for the registers. */
INL int few_vectors(const int mr) { return mr <= VL / 4 ? 4 : VL == 8 ? 3 : 2; }

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

/* Sums of k products: rows of A are `row` apart and its columns `next`. nv vectors of columns, or a single one of `left`. */
INL void few_sums(const int mr, const int nv, int64_t k, const float *a, int64_t row, int64_t next, const float *b, int64_t ldb,
	int64_t left, vf sum[FEW_VECTORS][FEW])
{
	for (; k > 0; k--, a += next, b += ldb) {
		vf r[FEW_VECTORS];
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++) {
			r[v] = get(b + v * VL, left);
			if (v * VL % 16 == 0 && k > FEW_AHEAD) __builtin_prefetch(b + FEW_AHEAD * ldb + v * VL, 0, 2);
		}
#pragma GCC unroll 8
		for (int i = 0; i < mr; i++) {
			const vf s = bc(a[i * row]);
#pragma GCC unroll 4
			for (int v = 0; v < nv; v++) sum[v][i] = vplus(sum[v][i], s, r[v]);
		}
	}
}

INL void few_columns(const int mr, const int nv, const struct nr_gemm_tile *t, int64_t j, int64_t left)
{
	const int64_t piece = nr_gemm_piece(t->k), row = t->ta ? 1 : t->lda, next = t->ta ? t->lda : 1;
	for (int64_t p = 0; p == 0 || p < t->k; p += piece) {
		vf sum[FEW_VECTORS][FEW] = { { { 0 } } };
		few_sums(mr, nv, nr_min64(piece, t->k - p), t->a + p * next, row, next, t->b + p * t->ldb + j, t->ldb, left, sum);
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++) few_put(mr, t, p, j + v * VL, left, sum[v]);
	}
}

/* The products of n columns of A, at most VL, with as many rows r of B. A pointer for every three rows, as in gemm.c. */
INL void few_plus(const int mr, int64_t n, const float *a, int64_t lda, const vf *r, vf *sum)
{
	const float *rows[(FEW + 2) / 3];
#pragma GCC unroll 3
	for (int i = 0; 3 * i < mr; i++) {
		rows[i] = a + 3 * i * lda;
		__asm__ volatile("" : "+r"(rows[i]));
	}
#pragma GCC unroll 16
	for (int u = 0; u < VL; u++) {
		if (u >= n) break;
#pragma GCC unroll 8
		for (int i = 0; i < mr; i++) sum[i] = vplus(sum[i], bc(rows[i / 3][i % 3 * lda + u]), r[u]);
	}
}

/* n more values of k from p on, turned with what is beyond them and beyond `left` columns as 0. */
INL void few_turned_end(const int mr, const struct nr_gemm_tile *t, int64_t p, int64_t n, int64_t j, int64_t left, vf *sum)
{
	for (; n > 0; n -= VL, p += VL) {
		vf r[VL];
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++) r[i] = i < left ? ldn(t->b + (j + i) * t->ldb + p, n) : (vf){ 0 };
		vtranspose(r);
		few_plus(mr, n, t->a + p, t->lda, r, sum);
	}
}

/* VL columns at k = 0 of the VL rows that b[0] begins, turned: their products are added. A pointer for every three rows, as in gemm.c. */
INL void few_block(const int mr, const float *const b[FEW_POINTERS], int64_t ldb, const float *a, int64_t lda, vf *sum)
{
	vf r[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) r[i] = ld(b[i / 3] + i % 3 * ldb);
	vtranspose(r);
	few_plus(mr, VL, a, lda, r, sum);
}

/* Asks for as many values as a block has. */
INL void few_ask(const float *next)
{
#pragma GCC unroll 16
	for (int i = 0; i < VL * VL; i += 16) __builtin_prefetch(next + i);
}

INL void few_move(const float *b[FEW_POINTERS], int64_t by)
{
#pragma GCC unroll 6
	for (int i = 0; i < FEW_POINTERS; i++) {
		b[i] += by;
		__asm__ volatile("" : "+r"(b[i])); /* see gemm.c */
	}
}

/* few_columns of a turned B, one vector. A sum is a chain of additions that wait for each other: of one or two rows, two pieces of K are
 * summed at a time. The next rows of B are asked for in the order in which they lie, which the caches' own prefetching follows. */
INL void few_turned(const int mr, const struct nr_gemm_tile *t, int64_t j, int64_t left)
{
	const int twice = mr <= 2;
	const int64_t piece = nr_gemm_piece(t->k), ldb = t->ldb, lda = t->lda;
	for (int64_t p = 0, pieces; p == 0 || p < t->k; p += pieces * piece) {
		pieces = twice && t->k - p > piece ? 2 : 1;
		const int64_t last = nr_min64(piece, t->k - p - (pieces - 1) * piece), whole = left == VL ? last / VL * VL : 0;
		vf sum[2][FEW] = { { { 0 } } };
		const float *a = t->a + p, *b[FEW_POINTERS], *next = t->b + (j + VL) * ldb + p * VL;
#pragma GCC unroll 6
		for (int i = 0; i < FEW_POINTERS; i++) b[i] = t->b + (j + 3 * i) * ldb + p;
		if (twice && pieces == 2) {
			for (int64_t k = 0; k < whole; k += VL, next += 2 * VL * VL) {
				few_ask(next);
				few_block(mr, b, ldb, a + k, lda, sum[0]);
				few_move(b, piece);
				few_ask(next + VL * VL);
				few_block(mr, b, ldb, a + k + piece, lda, sum[1]);
				few_move(b, VL - piece);
			}
		} else {
			for (int64_t k = 0; k < whole; k += VL, next += VL * VL) {
				few_ask(next);
				few_block(mr, b, ldb, a + k, lda, sum[0]);
				few_move(b, VL);
			}
		}
		for (int q = 0; q < pieces; q++) {
			const int64_t end = q + 1 < pieces ? piece : last;
			few_turned_end(mr, t, p + q * piece + whole, end - whole, j, left, sum[q]);
			few_put(mr, t, p + q * piece, j, left, sum[q]);
		}
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

/* All rows, columns from j on. A or B may be turned, not both. */
static void few_rest(const struct nr_gemm_tile *t, int64_t j)
{
	const int turned = t->tb != 0;
	const int64_t step = turned ? VL : few_vectors((int)t->m) * VL;
	for (; j + step <= t->n; j += step) few_kernels[t->m - 1][turned](t, j);
	for (; j < t->n; j += VL) few_kernels[t->m - 1][2](t, j);
}

static int is_shallow(const struct nr_gemm_tile *t)
{
	const int even = VL == 16 && t->n % SHALLOW_COLS == 0;
	return !t->tb && t->n >= SHALLOW_COLS && t->k * t->n <= SHALLOW_B && t->k <= (even ? 4 : 1) * SHALLOW;
}

/* A short k: C is written in its order, a few whole rows at a time, which counts more than the products. */
static void shallow(const struct nr_gemm_tile *t)
{
	enum { ROWS_AT_ONCE = 4, VECTORS = SHALLOW_COLS / VL };
	const int64_t row = t->ta ? 1 : t->lda, next = t->ta ? t->lda : 1;
	struct nr_gemm_tile w = *t;
	for (int64_t i = 0; i < t->m; i += w.m) {
		w.m = nr_min64(ROWS_AT_ONCE, t->m - i);
		w.a = t->a + i * row;
		w.c = t->c + i * t->ldc;
		w.base = t->base ? t->base + i * t->ldbase : NULL;
		int64_t j = 0;
		for (; w.m == ROWS_AT_ONCE && j + VECTORS * VL <= t->n; j += VECTORS * VL) {
			vf sum[FEW_VECTORS][FEW] = { { { 0 } } };
			few_sums(ROWS_AT_ONCE, VECTORS, t->k, w.a, row, next, t->b + j, t->ldb, VL, sum);
#pragma GCC unroll 4
			for (int v = 0; v < VECTORS; v++) few_put(ROWS_AT_ONCE, &w, 0, j + v * VL, VL, sum[v]);
		}
		few_rest(&w, j);
	}
}

/* A single column is a row of the turned product: the same sums. */
static int is_column(const struct nr_gemm_tile *t)
{
	return t->n == 1 && t->ldc == 1 && (t->tb || t->ldb == 1) && !t->ta && !t->base && t->k <= NR_GEMM_K;
}

static void column(const struct nr_gemm_tile *t)
{
	few_rest(&(struct nr_gemm_tile){ .m = 1, .n = t->m, .k = t->k, .a = t->b, .b = t->a, .ldb = t->lda, .tb = 1, .c = t->c }, 0);
	if (t->bias)
		for (int64_t i = 0; i < t->m; i++) t->c[i] += *t->bias;
}

#endif
