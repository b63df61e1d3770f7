/* L-BFGS (Liu & Nocedal 1989) for smooth convex functions, in double, with a preconditioner and steps found by backtracking. */
#ifndef NR_LBFGS_H
#define NR_LBFGS_H

#include <stdbool.h>

#include "norma/err.h"

enum { NR_LBFGS_MEMORY = 12 };              /* pairs of steps kept */

struct nr_lbfgs {
	int64_t n, iterations;              /* values; at most so many steps */
	double tolerance;                   /* done when no component of the gradient is larger than this */
	double noise;                       /* share of the value that is rounding: a rise by so little is none */
	double (*value)(void *context, const double *x, double *gradient);
	void (*precondition)(void *context, double *v);     /* v becomes the inverse of an approximate Hessian times v; or NULL */
	void *context;
};
struct nr_lbfgs_result {
	double value, gradient;             /* gradient: its largest component */
	int64_t iterations, evaluations;
	bool converged;                     /* within tolerance; else the steps ran out, or no step led down any more */
};

/* x holds the start and becomes the solution. NR_EMEMORY, or NR_EDIVERGED if the function is not finite at the start. */
int nr_lbfgs_run(const struct nr_lbfgs *, double *x, struct nr_lbfgs_result *, struct nr_error *);

#endif
