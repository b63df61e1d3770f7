/* Matrix products, row-major: C = act(op(A) op(B) + bias) + residual, or C = (op(A) op(B)) act'(pre).
 *
 * An element of C is a sum over k in a fixed order: neither the number of threads nor the other rows and columns change its
 * bits, so a sample's numbers do not depend on the batch it is in. One exception is made for speed: a single product with a
 * transposed A (a weight's gradient, whose k runs over the batch) may have K cut into pieces by its shape. Nothing is allocated. A kernel
 * behind nr_gemm_run may use any inner number format (AMX): f32 in, f32 out. */
#ifndef NR_GEMM_H
#define NR_GEMM_H

#include <stddef.h>

#include "math/act.h"
#include "math/isa.h"

struct nr_gemm {
	int64_t m, n, k;
	const real *a; int64_t lda; int ta;    /* (m,k); (k,m) when ta */
	const real *b; int64_t ldb; int tb;    /* (k,n); (n,k) when tb */
	real *c; int64_t ldc;                  /* (m,n) */
	int add;                               /* C += instead of C = */
	const real *bias;                      /* (n) or NULL */
	enum nr_act act;                       /* NR_ACT_NONE when zero */
	real *pre; int64_t ldpre;              /* (m,n) receives AB + bias before act, or NULL; may not be C */
	const real *dact; int64_t lddact;      /* (m,n) saved pre: C = AB act'(pre); act says which; or NULL */
	const real *residual; int64_t ldr;     /* (m,n) added at the end, or NULL; may be C */
	int64_t count;                         /* batch; 0: a single product, no batch. Then element distances: */
	int64_t stride_a, stride_b, stride_c, stride_pre, stride_dact, stride_r;
};

/* m, n, k, ta, tb, count are read; k = 0 gives a zero product. scratch: nr_gemm_scratch bytes, 64-byte aligned is best.
 * add works with act NONE only (the sum of products is what is wanted there, for gradients). */
void nr_gemm_run(const struct nr_gemm *, void *scratch);
size_t nr_gemm_scratch(int64_t m, int64_t n, int64_t k, int ta, int tb);     /* of a single product */
size_t nr_gemm_scratch_of(const struct nr_gemm *);                           /* of any; enough for every instruction set */

/* The serial part: one table per instruction set. */
enum { NR_GEMM_K = 256, NR_GEMM_TALL = 196 };   /* k of one pass: a panel of B stays in L1; most rows of a transposed A */

/* c (m,n) = op(a) op(b) + base + bias */
struct nr_gemm_tile {
	int64_t m, n, k;
	const real *a; int64_t lda; int ta;    /* ta: m <= NR_GEMM_TALL */
	const real *b; int64_t ldb; int tb;
	const real *base; int64_t ldbase;      /* (m,n) or NULL; may be c */
	const real *bias;
	real *c; int64_t ldc;
};

struct nr_gemm_kernels {
	void (*tile)(const struct nr_gemm_tile *);
};
NR_FAMILY_DECLARE(gemm);

/* K is cut into pieces of equal length, multiples of 4: a matter of k alone. */
static inline int64_t nr_gemm_piece(int64_t k)
{
	const int64_t pieces = (k + NR_GEMM_K - 1) / NR_GEMM_K;
	return pieces > 1 ? ((k + pieces - 1) / pieces + 3) / 4 * 4 : NR_GEMM_K;
}

#endif
