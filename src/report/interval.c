/* Intervals: see interval.h. */
#include "report/interval.h"

#include <math.h>

#include "study/stats.h"

static const double Z = 1.959963984540054;              /* of the normal distribution, 97.5 % */

struct nr_estimate nr_estimate_runs(const double *value, int64_t n)
{
	struct nr_estimate e = { .mean = NAN, .lo = NAN, .hi = NAN, .n = n };
	if (n < 1) return e;
	const struct nr_sample s = nr_sample(value, n);
	e.mean = s.mean;
	if (n < 2) return e;
	e.lo = s.mean - s.half;
	e.hi = s.mean + s.half;
	e.over = NR_OVER_RUNS;
	return e;
}

struct nr_estimate nr_estimate_share(double p, int64_t samples)
{
	struct nr_estimate e = { .mean = p, .lo = NAN, .hi = NAN, .n = samples };
	if (samples < 1 || !(p >= 0 && p <= 1)) return e;
	const double n = (double)samples, scale = 1 + Z * Z / n, centre = (p + Z * Z / (2 * n)) / scale;
	const double half = Z / scale * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
	e.lo = fmax(0, centre - half);
	e.hi = fmin(1, centre + half);
	e.over = NR_OVER_SAMPLES;
	return e;
}
