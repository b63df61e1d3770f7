/* Products over samples. See cross.h. */
#include "math/cross.h"

#include <string.h>

#include "math/chunk.h"

enum { BLOCK = 16 }; /* rows of the result that one walk over the samples serves */

int nr_centre_columns(int64_t N, int64_t C, const real *x, double *mean, double *out)
{
	memset(mean, 0, (size_t)C * sizeof *mean);
	for (int64_t n = 0; n < N; n++)
		for (int64_t c = 0; c < C; c++) mean[c] += (double)x[n * C + c] - (double)x[c];
	int finite = 1;
	for (int64_t c = 0; c < C; c++) { /* about the first row, so that a constant column becomes exactly 0 */
		mean[c] = (double)x[c] + mean[c] / (double)N;
		finite &= isfinite(mean[c]) != 0;
	}
#pragma omp parallel for schedule(static) if (N * C > 20000)
	for (int64_t n = 0; n < N; n++)
		for (int64_t c = 0; c < C; c++) out[n * C + c] = (double)x[n * C + c] - mean[c];
	return finite;
}

void nr_cross_product(int64_t N, int64_t A, const double *x, int64_t B, const double *y, double *out)
{
#pragma omp parallel for schedule(dynamic) if (N * A * B > 20000)
	for (int64_t q = 0; q < (A + BLOCK - 1) / BLOCK; q++) {
		const int64_t first = q * BLOCK, end = nr_min64(A, first + BLOCK);
		memset(out + first * B, 0, (size_t)((end - first) * B) * sizeof *out);
		for (int64_t n = 0; n < N; n++)
			for (int64_t a = first; a < end; a++) {
				const double f = x[n * A + a], *from = y + n * B;
				double *to = out + a * B;
				for (int64_t b = 0; b < B; b++) to[b] += f * from[b];
			}
	}
}

void nr_row_products(int64_t N, int64_t C, const double *x, double *out)
{
#pragma omp parallel for schedule(dynamic, 4) if (N * N * C > 20000)
	for (int64_t i = 0; i < N; i++)
		for (int64_t j = 0; j <= i; j++) {
			double s = 0;
#pragma omp simd reduction(+ : s)
			for (int64_t c = 0; c < C; c++) s += x[i * C + c] * x[j * C + c];
			out[i * N + j] = out[j * N + i] = s;
		}
}
