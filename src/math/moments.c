/* Column moments. Columns are independent and each is summed in row order: equal bits at any thread count. */
#include "math/moments.h"

void nr_column_moments(int64_t N, int64_t D, const real *x, double *mean, double *var)
{
#pragma omp parallel for schedule(static) if (N * D > 20000)
	for (int64_t k = 0; k < D; k++) {
		double m = 0, v = 0;
		for (int64_t i = 0; i < N; i++) m += x[i * D + k];
		m /= (double)N;
		for (int64_t i = 0; i < N; i++) v += (x[i * D + k] - m) * (x[i * D + k] - m);
		mean[k] = m;
		var[k] = v / (double)N;
	}
}
