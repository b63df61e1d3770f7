/* Transposition and permutation of axes. x and y do not overlap. Threaded; bits are copied, so any order is the same. */
#ifndef NR_TRANSPOSE_H
#define NR_TRANSPOSE_H

#include "math/chunk.h"

/* y (cols,rows) = x (rows,cols) transposed; add: y += */
void nr_matrix_transpose(int64_t rows, int64_t cols, const real *x, int64_t ldx, real *y, int64_t ldy, int add);
/* y (B,cols,rows) from x (B,rows,cols), both dense: [B,T,C] to [B,C,T]. */
void nr_transpose_batch(int64_t B, int64_t rows, int64_t cols, const real *x, real *y, int add);

#define NR_PERMUTE_MAX 6
/* Axis i of y is axis perm[i] of x; x is dense with sizes d, y is dense. 1 <= nd <= NR_PERMUTE_MAX. */
void nr_permute(int nd, const int64_t *d, const int *perm, const real *x, real *y, int add);

#endif
