/* Linear CKA (Kornblith et al. 2019, arXiv:1905.00414): how alike two sets of features of the same N samples are.
 *   CKA = |Y'X|^2 / (|X'X| |Y'Y|), Frobenius norms, columns centred
 * All samples at once, in double. 1: equal but for a rotation and one scale. Independent features give about
 * sqrt(d1 d2) / N with the effective numbers of dimensions, so N should be well above C. */
#ifndef NR_CKA_H
#define NR_CKA_H

#include "base/real.h"
#include "norma/err.h"

/* x (N,C1), y (N,C2). NR_ESHAPE (N < 2), NR_EVALUE (not finite, or no variance at all: CKA is not defined), NR_EMEMORY or 0. */
int nr_cka(int64_t N, int64_t C1, const real *x, int64_t C2, const real *y, double *cka, struct nr_error *);

#endif
