/* The reference for products: every sum in double over the whole of k. */
#include "math/chunk.h"
#include "math/gemm.h"

enum { PANEL = 8 };

static void pack(int64_t k, int64_t n, const real *b, int64_t ldb, int tb, real *out)
{
	for (int64_t j = 0; j < n; j += PANEL, out += k * PANEL)
		for (int64_t p = 0; p < k; p++)
			for (int64_t i = 0; i < PANEL; i++)
				out[p * PANEL + i] = j + i >= n ? 0 : tb ? b[(j + i) * ldb + p] : b[p * ldb + j + i];
}

/* acc += A (1,k) times columns j.. of rows p.. of B */
static void add_piece(const struct nr_gemm_tile *t, int64_t i, int64_t j, int64_t p, int64_t k, double acc[PANEL])
{
	const int64_t cols = nr_min64(PANEL, t->n - j), step = t->ta ? t->lda : 1;
	const real *a = t->ta ? t->a + p * t->lda + i : t->a + i * t->lda + p;
	if (t->packed || !t->tb) {
		const real *b = t->packed ? t->packed + p * t->width + (t->first + j) * k : t->b + p * t->ldb + j;
		const int64_t ld = t->packed ? PANEL : t->ldb;
		for (int64_t q = 0; q < k; q++)
			for (int64_t x = 0; x < cols; x++) acc[x] += (double)a[q * step] * (double)b[q * ld + x];
		return;
	}
	for (int64_t x = 0; x < cols; x++) {
		const real *b = t->b + (j + x) * t->ldb + p;
		for (int64_t q = 0; q < k; q++) acc[x] += (double)a[q * step] * (double)b[q];
	}
}

static void tile(const struct nr_gemm_tile *t)
{
	const int64_t piece = nr_gemm_piece(t->k);
	for (int64_t i = 0; i < t->m; i++)
		for (int64_t j = 0; j < t->n; j += PANEL) {
			double acc[PANEL] = { 0 };
			for (int64_t p = 0; p < t->k; p += piece) add_piece(t, i, j, p, nr_min64(piece, t->k - p), acc);
			for (int64_t x = j; x < nr_min64(j + PANEL, t->n); x++)
				t->c[i * t->ldc + x] = (real)acc[x - j] + (t->bias ? t->bias[x] : 0) +
					(t->base ? t->base[i * t->ldbase + x] : 0);
		}
}

const struct nr_gemm_kernels nr_gemm_plain = { .panel = PANEL, .pack = pack, .tile = tile };
const struct nr_gemm_kernels *nr_gemm_active = &nr_gemm_plain;
