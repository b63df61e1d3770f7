/* Singular values in double: Householder QR of the tall side, then one-sided Jacobi (Demmel & Veselic 1992),
 * which keeps the small ones accurate. Own code on purpose: LAPACK with OpenBLAS would cost the command
 * threads and start-up time. */
#ifndef NR_SVD_H
#define NR_SVD_H

#include <stddef.h>

#include "base/real.h"

size_t nr_svd_scratch(int64_t rows, int64_t cols); /* bytes */
/* s: min(rows,cols) values, falling. centred: the column means are taken off first. */
void nr_svd_values(int64_t rows, int64_t cols, const real *x, int centred, double *s, void *scratch);

#endif
