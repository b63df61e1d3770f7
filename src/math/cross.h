/* Products of features over samples in double, for covariances: X'Y of (N,A) and (N,B). */
#ifndef NR_CROSS_H
#define NR_CROSS_H

#include "base/real.h"

/* mean (C) of the columns of x (N,C), and out (N,C) = x - mean. False when a value is not finite. */
int nr_centre_columns(int64_t N, int64_t C, const real *x, double *mean, double *out);
/* out (A,B) = sum over n of x[n][a] y[n][b]; x (N,A), y (N,B). Each entry is summed in the order of n: the same bits for any
 * number of threads. */
void nr_cross_product(int64_t N, int64_t A, const double *x, int64_t B, const double *y, double *out);
/* out (N,N) = x x', x (N,C). */
void nr_row_products(int64_t N, int64_t C, const double *x, double *out);

#endif
