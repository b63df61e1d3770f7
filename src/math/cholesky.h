/* Solves A X = B for a symmetric positive definite A, in double, in place. */
#ifndef NR_CHOLESKY_H
#define NR_CHOLESKY_H

#include <stdint.h>

/* a (n,n): the lower triangle is read and overwritten; b (n,m) becomes the solution. -1 when a is not
 * positive definite. */
int nr_cholesky_solve(int64_t n, double *a, int64_t m, double *b);

#endif
