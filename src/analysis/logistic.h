/* Multinomial logistic regression, solved until the gradient vanishes:
 *
 *   minimise  1/n sum_i -log softmax(W x_i + b)[label_i]  +  l2/2 |W|^2        the bias is not penalised
 *
 * Convex: with l2 > 0 the weights are one, whatever the start. A loss of "1/2 |W|^2 + C sum_i" is l2 = 1 / (C n). Two classes with
 * one vector w and a sigmoid are W = (-w/2, w/2): the penalty of w then is 2 l2 here. */
#ifndef NR_LOGISTIC_H
#define NR_LOGISTIC_H

#include <stdbool.h>

#include "base/real.h"
#include "norma/err.h"

/* The features of one or more fits: products run on uncorrelated columns z = L^-1 x with L L' near X'X / rows, so that large
 * weights of correlated features cost no digits. */
struct nr_logistic_data {
	int64_t rows, width;
	const real *x;                      /* (rows,width), the caller's; columns of like size converge fastest */
	real *z;                            /* (rows,width) */
	double *gram, *root;                /* (width,width): X'X / rows, and L in the lower triangle */
	struct nr_comm *comm;               /* ranks that share the products, 4096 rows at a time, to the same bits; NULL: one process */
};
/* NR_EMEMORY, or NR_EDIVERGED if a feature is not finite. */
int nr_logistic_data_init(struct nr_logistic_data *, int64_t rows, int64_t width, const real *x, struct nr_comm *, struct nr_error *);
void nr_logistic_data_release(struct nr_logistic_data *);

struct nr_logistic {
	const struct nr_logistic_data *data;
	int64_t classes;
	const int32_t *label;               /* (rows); -1: the row is left out and not counted in n */
	double l2, tolerance;               /* tolerance: of the largest component of the gradient */
	int64_t iterations;                 /* at most */
};
struct nr_logistic_result {
	double loss, gradient;              /* with the penalty; largest component */
	int64_t iterations, evaluations;
	bool converged;
};

/* weight (classes,width+1), the bias last: the start (all zero is fine) and the solution. The same bits at any number of threads. */
int nr_logistic_fit(const struct nr_logistic *, double *weight, struct nr_logistic_result *, struct nr_error *);
/* scores (rows,classes) = W x + b */
int nr_logistic_scores(int64_t rows, int64_t width, int64_t classes, const real *x, const double *weight, real *scores,
	struct nr_error *);

#endif
