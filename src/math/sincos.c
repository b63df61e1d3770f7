/* Fixed position tables. See sincos.h. */
#include "math/sincos.h"

#include <string.h>

/* scale: what i is divided by in the exponent. */
static void grid(int64_t h, int64_t w, int64_t dim, double scale, real *out)
{
	const int64_t q = dim / 4;
	for (int64_t i = 0; i < q; i++) {
		const double f = pow(10000, scale > 0 ? -(double)i / scale : 0);
		for (int64_t p = 0; p < h * w; p++) {
			real *row = out + p * dim;
			const double y = (double)(p / w) * f, x = (double)(p % w) * f;
			row[i] = (real)sin(x);
			row[q + i] = (real)cos(x);
			row[2 * q + i] = (real)sin(y);
			row[3 * q + i] = (real)cos(y);
		}
	}
}

void nr_sincos_mae(int64_t h, int64_t w, int64_t dim, int64_t special, real *out)
{
	memset(out, 0, (size_t)(special * dim) * sizeof(real));
	grid(h, w, dim, (double)(dim / 4), out + special * dim);
}

void nr_sincos_bigvision(int64_t h, int64_t w, int64_t dim, real *out)
{
	grid(h, w, dim, (double)(dim / 4 - 1), out);
}

void nr_sincos_1d(int64_t n, int64_t dim, real *out)
{
	for (int64_t j = 0; j < dim; j++) {
		const double f = pow(10000, -(double)(j / 2 * 2) / (double)dim);
		for (int64_t p = 0; p < n; p++)
			out[p * dim + j] = (real)(j % 2 ? cos((double)p * f) : sin((double)p * f));
	}
}
