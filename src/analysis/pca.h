/* Principal components in double: mean, leading directions, how much each explains, projections.
 *
 * From the eigenvectors of the covariance (C,C), or of the products of rows (N,N) when N < C. A component's entry of largest
 * size is positive (the first of equals), so that two runs and two programs draw the same picture. */
#ifndef NR_PCA_H
#define NR_PCA_H

#include "base/real.h"
#include "norma/err.h"

struct nr_pca {
	int64_t C, K;
	double *mean;           /* (C) */
	double *component;      /* (K,C), unit rows, the one that explains most first; zeros past the rank of x when N < C */
	double *variance;       /* (K), divided by N - 1; variance[k] / total is the share explained */
	double total;           /* of all channels */
};
enum { NR_PCA_LIMIT = 4096 };   /* of min(N,C): above, the eigenvectors take too long */

/* x (N,C); K at most min(N,C). Release it even after an error. NR_ESHAPE, NR_EVALUE (not finite), NR_ELIMIT, NR_EMEMORY or 0. */
int nr_pca_init(struct nr_pca *, int64_t N, int64_t C, const real *x, int64_t K, struct nr_error *);
void nr_pca_release(struct nr_pca *);
/* out (N,K) = (x - mean) component^T; x (N,C), of the same C. */
void nr_pca_project(const struct nr_pca *, int64_t N, const real *x, double *out);

#endif
