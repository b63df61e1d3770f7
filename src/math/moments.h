/* Moments in double. */
#ifndef NR_MOMENTS_H
#define NR_MOMENTS_H

#include "base/real.h"

/* Mean and population variance of each column of x (N,D), two passes. */
void nr_column_moments(int64_t N, int64_t D, const real *x, double *mean, double *var);

/* n values: their mean and the sums of the second to fourth powers of what is left without it. */
struct nr_moments { double n, mean, m2, m3, m4; };
struct nr_moments nr_moments_of(int64_t n, const real *);
/* The moments of both sets together. */
void nr_moments_join(struct nr_moments *, const struct nr_moments *);
double nr_moments_var(const struct nr_moments *);               /* of the population; NAN without values */
double nr_moments_kurtosis(const struct nr_moments *);          /* 3 for a normal distribution; NAN where all values are one */

/* Tokens, as rows of values: moments of all values and of the rows' Euclidean lengths. All zero is none. */
struct nr_token_moments { struct nr_moments value, length; double longest; };
void nr_token_moments_row(struct nr_token_moments *, int64_t C, const real *row);
void nr_token_moments_join(struct nr_token_moments *, const struct nr_token_moments *);

#endif
