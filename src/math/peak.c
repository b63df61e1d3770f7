/* Multiply-adds and copies at the limit: the plain reference. See peak.h. */
#include "math/peak.h"

#include <string.h>

enum { LANES = 4 };

static real chains(int64_t n, real x, real y)
{
	real a[NR_PEAK_CHAINS * LANES], sum = 0;
	for (int i = 0; i < NR_PEAK_CHAINS * LANES; i++) a[i] = (real)(i / LANES + 1);
	for (int64_t k = 0; k < n; k++)
		for (int i = 0; i < NR_PEAK_CHAINS * LANES; i++) a[i] = a[i] * x + y;
	for (int i = 0; i < NR_PEAK_CHAINS * LANES; i++) sum += a[i];
	return sum / (NR_PEAK_CHAINS * LANES);
}

static void copy(int64_t n, const real *x, real *y) { memcpy(y, x, (size_t)n * sizeof *y); }

const struct nr_peak_kernels nr_peak_plain = { LANES, chains, copy };
const struct nr_peak_kernels *nr_peak_active = &nr_peak_plain;
