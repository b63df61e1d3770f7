/* Singular values. See svd.h. Columns are stored one after another: both steps work on pairs of columns. */
#include "math/svd.h"

#include <stdlib.h>

#include "math/dot.h"

size_t nr_svd_scratch(int64_t rows, int64_t cols) { return (size_t)rows * (size_t)cols * sizeof(double); }

/* R of a (m,n), m > n, left in the upper triangle; below it the vectors are not kept. Each later column is
 * independent. */
static void qr(int64_t m, int64_t n, double *a)
{
	for (int64_t k = 0; k < n; k++) {
		double *v = a + k * m + k;
		const int64_t len = m - k;
		const double norm = sqrt(nr_dot_double(len, v, v)), alpha = v[0] > 0 ? -norm : norm;
		if (norm == 0) continue;
		v[0] -= alpha;
		const double vv = nr_dot_double(len, v, v);
#pragma omp parallel for schedule(static) if ((n - k) * len > 20000)
		for (int64_t j = k + 1; j < n; j++) {
			double *c = a + j * m + k;
			const double f = 2 * nr_dot_double(len, v, c) / vv;
			for (int64_t i = 0; i < len; i++) c[i] -= f * v[i];
		}
		v[0] = alpha;
		for (int64_t i = 1; i < len; i++) v[i] = 0;
	}
}

/* Makes columns p and q of length m orthogonal; false when they already are. */
static int rotate(int64_t m, double *p, double *q)
{
	const double a = nr_dot_double(m, p, p), b = nr_dot_double(m, q, q), c = nr_dot_double(m, p, q);
	if (c == 0 || fabs(c) <= 1e-15 * sqrt(a * b)) return 0;
	const double zeta = (b - a) / (2 * c),
		     t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
	const double cs = 1 / sqrt(1 + t * t), sn = cs * t;
	for (int64_t i = 0; i < m; i++) {
		const double u = p[i];
		p[i] = cs * u - sn * q[i];
		q[i] = sn * u + cs * q[i];
	}
	return 1;
}

static int falling(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x < y) - (x > y);
}

void nr_svd_values(int64_t rows, int64_t cols, const real *x, int centred, double *s, void *scratch)
{
	const int64_t m = rows > cols ? rows : cols, n = rows > cols ? cols : rows;
	double *a = scratch; /* n columns of m values */
	for (int64_t c = 0; c < cols; c++) {
		double mean = 0;
		for (int64_t r = 0; centred && r < rows; r++) mean += (double)x[r * cols + c] / (double)rows;
		for (int64_t r = 0; r < rows; r++)
			a[rows > cols ? c * m + r : r * m + c] = (double)x[r * cols + c] - mean;
	}
	qr(m, n, a);
	/* The lower triangle is zero now; columns of n values at distance m. */
	for (int sweep = 0, moved = 1; moved && sweep < 60; sweep++) {
		moved = 0;
		for (int64_t p = 0; p < n; p++)
			for (int64_t q = p + 1; q < n; q++) moved |= rotate(n, a + p * m, a + q * m);
	}
	for (int64_t k = 0; k < n; k++) s[k] = sqrt(nr_dot_double(n, a + k * m, a + k * m));
	qsort(s, (size_t)n, sizeof *s, falling);
}
