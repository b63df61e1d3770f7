/* Mean and population variance of each column of x (N,D), in double, two passes. */
#ifndef NR_MOMENTS_H
#define NR_MOMENTS_H

#include "norma/real.h"

void nr_column_moments(int64_t N, int64_t D, const real *x, double *mean, double *var);

#endif
