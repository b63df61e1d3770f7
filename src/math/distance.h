/* Squared Euclidean distances by differences, so that near rows far from 0 keep their digits. */
#ifndef NR_DISTANCE_H
#define NR_DISTANCE_H

#include "base/real.h"

/* out (n): from x (C) to each row of rows (n,C). Serial. */
void nr_distance_rows(int64_t n, int64_t C, const real *x, const real *rows, real *out);
double nr_distance_double(int64_t C, const real *x, const real *y);

#endif
