/* Correlation of two samples: Pearson's, and Spearman's, which is Pearson's of the ranks; equal values share the mean of their ranks. */
#ifndef NR_SPEARMAN_H
#define NR_SPEARMAN_H

#include <stdint.h>

#include "norma/err.h"

/* -1 .. 1; NAN when n < 2, when a sample is constant, or when a value is not finite. */
double nr_pearson(int64_t n, const double *x, const double *y);
/* Ranks from 1 on; equal values share the mean of theirs. All three NR_EMEMORY or 0. */
int nr_ranks(int64_t n, const double *x, double *rank, struct nr_error *);
int nr_spearman(int64_t n, const double *x, const double *y, double *out, struct nr_error *);
/* Its mean over all orders of equal x: what to expect where equal values of x would differ by rounding. */
int nr_spearman_by_chance(int64_t n, const double *x, const double *y, double *out, struct nr_error *);

#endif
