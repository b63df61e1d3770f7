/* Trustworthiness of a layout (Venna & Kaski 2001): are neighbours of the picture neighbours of the data?
 *   T(k) = 1 - 2 / (N k (2N - 3k - 1)) sum_i sum_{j in U_k(i)} (r(i,j) - k)
 * U_k(i): rows among the k nearest of i in the layout but not in the data; r(i,j): rank of j by distance from i in the data.
 * 1: all are; about .5: the layout is random. A rank counts the rows that are strictly nearer, so equal rows cost nothing; equal
 * distances in the layout go to the earlier row. */
#ifndef NR_TRUSTWORTHINESS_H
#define NR_TRUSTWORTHINESS_H

#include "base/real.h"
#include "norma/err.h"

struct nr_trustworthiness { double value; int64_t k; }; /* k as used: at most (N - 1) / 2; 0 when N < 3, the value is 1 then */

/* x (N,C), y (N,D) its layout; k of the usual report: 5 or 12. NR_EVALUE (k < 1), NR_ESHAPE, NR_EMEMORY or 0. */
int nr_trustworthiness(int64_t N, int64_t C, const real *x, int64_t D, const double *y, int64_t k, struct nr_trustworthiness *,
	struct nr_error *);

#endif
