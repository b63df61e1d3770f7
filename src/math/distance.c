/* Squared distances. See distance.h. */
#include "math/distance.h"

static real one(int64_t C, const real *x, const real *y)
{
	real s = 0;
#pragma omp simd reduction(+ : s)
	for (int64_t c = 0; c < C; c++) s += (x[c] - y[c]) * (x[c] - y[c]);
	return s;
}

/* Four rows at a time: their sums do not wait for each other. */
void nr_distance_rows(int64_t n, int64_t C, const real *x, const real *rows, real *out)
{
	int64_t r = 0;
	for (; r + 4 <= n; r += 4) {
		const real *y = rows + r * C;
		real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
		for (int64_t c = 0; c < C; c++) {
			const real a = x[c] - y[c], b = x[c] - y[C + c], d = x[c] - y[2 * C + c], e = x[c] - y[3 * C + c];
			s0 += a * a;
			s1 += b * b;
			s2 += d * d;
			s3 += e * e;
		}
		out[r] = s0;
		out[r + 1] = s1;
		out[r + 2] = s2;
		out[r + 3] = s3;
	}
	for (; r < n; r++) out[r] = one(C, x, rows + r * C);
}

double nr_distance_double(int64_t C, const real *x, const real *y)
{
	double s = 0;
#pragma omp simd reduction(+ : s)
	for (int64_t c = 0; c < C; c++) s += ((double)x[c] - (double)y[c]) * ((double)x[c] - (double)y[c]);
	return s;
}
