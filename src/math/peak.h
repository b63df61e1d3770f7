/* What the CPU can do at most, for norma doctor and norma bench to hold all else against: multiply-adds in registers that do not wait
 * for each other, and a copy that nothing slows down. */
#ifndef NR_PEAK_H
#define NR_PEAK_H

#include <stdint.h>

#include "math/isa.h"
#include "base/real.h"

#define NR_PEAK_CHAINS 12 /* at least the latency of a multiply-add times its ports, and few enough for 16 registers */

NR_FAMILY_DECLARE(peak);

/* Serial. */
struct nr_peak_kernels {
	int64_t lanes;  /* values of a chain */
	/* a = a x + y, n times, for every value; those of chain i start at i + 1. Returns the mean of all of them. */
	real (*chains)(int64_t n, real x, real y);
	/* y (n) = x (n), past the caches; y on a whole line, n a multiple of 64. */
	void (*copy)(int64_t n, const real *x, real *y);
};

#endif
