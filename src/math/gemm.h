/* Matrix products, row-major: C = act(op(A) op(B) + bias) + residual, or C = (op(A) op(B)) act'(pre).
 *
 * This is the only place that splits a product over threads: fixed tiles of C (and fixed pieces of K when C is small),
 * decided by the shape alone, so the bits do not depend on the number of threads. Nothing is allocated with the own
 * kernels; oneDNN allocates its packing buffers inside each call. A kernel behind nr_gemm_run may use any inner number
 * format (AMX): f32 in, f32 out. */
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
	int64_t count;                         /* batch: 0 means 1; then element distances: */
	int64_t stride_a, stride_b, stride_c, stride_pre, stride_dact, stride_r;
};

/* m, n, k, ta, tb, count are read; k = 0 gives a zero product. scratch: nr_gemm_scratch bytes, 64-byte aligned is best.
 * add works with act NONE only (the sum of products is what is wanted there, for gradients). */
void nr_gemm_run(const struct nr_gemm *, void *scratch);
size_t nr_gemm_scratch(int64_t m, int64_t n, int64_t k, int ta, int tb);     /* for count <= 1 */
size_t nr_gemm_scratch_of(const struct nr_gemm *);                           /* for any */

/* The two engines. auto: own on plain and AVX2, oneDNN on AVX-512. NORMA_GEMM=own|onednn overrides. */
enum nr_gemm_engine { NR_GEMM_OWN, NR_GEMM_ONEDNN };
enum nr_gemm_engine nr_gemm_engine_active(void);
const char *nr_gemm_reason(void);                        /* one sentence for `norma doctor` */
int nr_gemm_select(const char *name, struct nr_error *); /* "own", "onednn", "auto" */

/* Serial pieces of the own kernel; one table per instruction set. A panel is nr columns of B, k-major, the last one filled
 * with zeros. A is rows (cs = 1, rs apart), a transposed matrix as it lies (rs = 1, cs apart) or one packed by pack_a (rs = k,
 * cs = mr). */
struct nr_gemm_kernels {
	int mr, nr;
	/* out: ceil(m/mr) groups of k*mr, from a transposed (k,m). NULL: this table reads it as it lies. */
	void (*pack_a)(int64_t k, int64_t m, const real *a, int64_t lda, real *out);
	/* out: ceil(n/nr) panels of k*nr, from b (k,n), or (n,k) when tb */
	void (*pack_b)(int64_t k, int64_t n, const real *b, int64_t ldb, int tb, real *out);
	/* c (m,n) = a b + base + bias; base (m,n) and bias (n) may be NULL, base may be c. pb: packed. */
	void (*block)(int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs, const real *pb, const real *base,
		int64_t ldbase, const real *bias, real *c, int64_t ldc);
	/* The same with b (k,n) as it lies; panel: k*nr values, to pack it on the way. */
	void (*block_fresh)(int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs, const real *b, int64_t ldb,
		real *panel, const real *base, int64_t ldbase, const real *bias, real *c, int64_t ldc);
};
NR_FAMILY_DECLARE(gemm);

#endif
