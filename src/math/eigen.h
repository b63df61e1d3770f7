/* Eigenvalues and eigenvectors of a symmetric matrix in double: Householder's reduction to a tridiagonal matrix, then QL steps with
 * implicit shifts (Bowdler et al. 1968). About 6 n^3 operations. Errors are of the size 1e-16 of the largest eigenvalue; where the
 * small ones matter, svd.h keeps them. */
#ifndef NR_EIGEN_H
#define NR_EIGEN_H

#include <stdint.h>

/* a (n,n), n >= 1, both triangles set, becomes the eigenvectors: row k is that of value[k], values falling. scratch: n values.
 * False when the QL steps do not settle, as with values that are not finite. */
int nr_eigen_symmetric(int64_t n, double *a, double *value, double *scratch);

#endif
