/* Focal loss (Lin et al. 2017, arXiv:1708.02002) of logits: alpha_t (1 - p_t)^gamma (-log p_t), value and slope. gamma 0 is plain
 * cross entropy. */
#ifndef NR_FOCAL_H
#define NR_FOCAL_H

#include "math/isa.h"
#include "base/real.h"

struct nr_focal_kernels {
	/* The sum over n logits that should all be low, each times alpha; slope (n) gets its slopes, or NULL. gamma: 0 or more. */
	double (*low)(int64_t n, const real *x, double alpha, double gamma, real *slope);
};
NR_FAMILY_DECLARE(focal);

struct nr_focal_value { double loss, slope; };
/* Of one logit that should be high (of one that should be low: -x, with -slope). */
struct nr_focal_value nr_focal_high(double x, double gamma);

#endif
