/* Focal loss: one logit in double, and the plain reference of rows. See focal.h. */
#include "math/focal.h"

#include <math.h>

const struct nr_focal_kernels *nr_focal_active = &nr_focal_plain;

/* gamma is mostly 2, or 0 for plain cross entropy. */
static double power(double x, double gamma) { return gamma == 2 ? x * x : gamma == 0 ? 1 : pow(x, gamma); }

struct nr_focal_value nr_focal_high(double x, double gamma)
{
	const double e = exp(-fabs(x)), miss = x >= 0 ? e / (1 + e) : 1 / (1 + e), hit = x >= 0 ? 1 / (1 + e) : e / (1 + e);
	const double log_hit = fmin(x, 0) - log1p(e), modulated = power(miss, gamma);
	return (struct nr_focal_value){ -modulated * log_hit, modulated * (gamma * hit * log_hit - miss) };
}

static double low(int64_t n, const real *x, double alpha, double gamma, real *slope)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) {
		const struct nr_focal_value v = nr_focal_high(-(double)x[i], gamma);
		sum += alpha * v.loss;
		if (slope) slope[i] = (real)(-alpha * v.slope);
	}
	return sum;
}

const struct nr_focal_kernels nr_focal_plain = { low };
