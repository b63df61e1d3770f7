/* Few-shot evaluation of frozen features by ridge regression, as in big_vision: standardise with the training
 * mean and population deviation, append a constant, regress on -1/+1 targets, arg-max. */
#ifndef NR_FEWSHOT_H
#define NR_FEWSHOT_H

#include "base/real.h"
#include "norma/err.h"

struct nr_fewshot {
	int64_t dim, classes;
	double bias_feature, std_eps, l2;
};

/* x (N,dim) features with labels; z (M,dim) features to score. weights (dim+1,classes; may be NULL), scores
 * (M,classes). N < dim + 1 is solved in the dual form X'(XX' + l2 I)^-1 Y, else (X'X + l2 I)^-1 X'Y.
 * NR_EMEMORY, or NR_EVALUE when the system is singular (l2 = 0). */
int nr_fewshot_fit(const struct nr_fewshot *, int64_t N, const real *x, const int32_t *label, int64_t M,
	const real *z, real *weights, real *scores, struct nr_error *);

#endif
