/* The reference for products: every sum in double over the whole of k. */
#include "math/chunk.h"
#include "math/gemm.h"

enum { WIDE = 8 };

/* acc = row i of op(A) times columns j.. of op(B) */
static void sums(const struct nr_gemm_tile *t, int64_t i, int64_t j, double acc[WIDE])
{
	const int64_t cols = nr_min64(WIDE, t->n - j), step = t->ta ? t->lda : 1;
	const real *a = t->ta ? t->a + i : t->a + i * t->lda;
	for (int64_t x = 0; x < cols; x++) acc[x] = 0;
	for (int64_t p = 0; p < t->k && !t->tb; p++)
		for (int64_t x = 0; x < cols; x++) acc[x] += (double)a[p * step] * (double)t->b[p * t->ldb + j + x];
	for (int64_t x = 0; x < cols && t->tb; x++)
		for (int64_t p = 0; p < t->k; p++) acc[x] += (double)a[p * step] * (double)t->b[(j + x) * t->ldb + p];
}

static void tile(const struct nr_gemm_tile *t)
{
	for (int64_t i = 0; i < t->m; i++)
		for (int64_t j = 0; j < t->n; j += WIDE) {
			double acc[WIDE];
			sums(t, i, j, acc);
			for (int64_t x = j; x < nr_min64(j + WIDE, t->n); x++)
				t->c[i * t->ldc + x] = (real)acc[x - j] + (t->bias ? t->bias[x] : 0) +
					(t->base ? t->base[i * t->ldbase + x] : 0);
		}
}

const struct nr_gemm_kernels nr_gemm_plain = { .tile = tile };
const struct nr_gemm_kernels *nr_gemm_active = &nr_gemm_plain;
