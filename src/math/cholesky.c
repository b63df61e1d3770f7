/* Cholesky decomposition A = L L^T, row by row, and the two triangular solves. */
#include "math/cholesky.h"

#include <math.h>

int nr_cholesky_solve(int64_t n, double *a, int64_t m, double *b)
{
	for (int64_t j = 0; j < n; j++) {
		double *row = a + j * n;
		double d = row[j];
		for (int64_t k = 0; k < j; k++) d -= row[k] * row[k];
		if (!(d > 0)) return -1;
		row[j] = sqrt(d);
#pragma omp parallel for schedule(static) if ((n - j) * j > 20000)
		for (int64_t i = j + 1; i < n; i++) {
			double s = a[i * n + j];
			for (int64_t k = 0; k < j; k++) s -= a[i * n + k] * row[k];
			a[i * n + j] = s / row[j];
		}
	}
	for (int64_t i = 0; i < n; i++)
		for (int64_t c = 0; c < m; c++) {
			double s = b[i * m + c];
			for (int64_t k = 0; k < i; k++) s -= a[i * n + k] * b[k * m + c];
			b[i * m + c] = s / a[i * n + i];
		}
	for (int64_t i = n - 1; i >= 0; i--)
		for (int64_t c = 0; c < m; c++) {
			double s = b[i * m + c];
			for (int64_t k = i + 1; k < n; k++) s -= a[k * n + i] * b[k * m + c];
			b[i * m + c] = s / a[i * n + i];
		}
	return 0;
}
