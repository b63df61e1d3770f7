/* Singular values. See svd.h. Columns are stored one after another: both steps work on pairs of columns. */
#include "math/svd.h"

#include <stdlib.h>

size_t nr_svd_scratch(int64_t rows, int64_t cols) { return (size_t)rows * (size_t)cols * sizeof(double); }

/* Four running sums: the compiler may not reorder one. */
static double dot(int64_t n, const double *a, const double *b)
{
	double s[4] = { 0 };
	int64_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++) s[k] += a[i + k] * b[i + k];
	for (; i < n; i++) s[0] += a[i] * b[i];
	return (s[0] + s[1]) + (s[2] + s[3]);
}

/* R of a (m,n), m > n, left in the upper triangle; below it the vectors are not kept. Each later column is
 * independent. */
static void qr(int64_t m, int64_t n, double *a)
{
	for (int64_t k = 0; k < n; k++) {
		double *v = a + k * m + k;
		const int64_t len = m - k;
		const double norm = sqrt(dot(len, v, v)), alpha = v[0] > 0 ? -norm : norm;
		if (norm == 0) continue;
		v[0] -= alpha;
		const double vv = dot(len, v, v);
#pragma omp parallel for schedule(static) if ((n - k) * len > 20000)
		for (int64_t j = k + 1; j < n; j++) {
			double *c = a + j * m + k;
			const double f = 2 * dot(len, v, c) / vv;
			for (int64_t i = 0; i < len; i++) c[i] -= f * v[i];
		}
		v[0] = alpha;
		for (int64_t i = 1; i < len; i++) v[i] = 0;
	}
}

/* Makes columns p and q of length m orthogonal; false when they already are. */
static int rotate(int64_t m, double *p, double *q)
{
	const double a = dot(m, p, p), b = dot(m, q, q), c = dot(m, p, q);
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
	for (int64_t k = 0; k < n; k++) s[k] = sqrt(dot(n, a + k * m, a + k * m));
	qsort(s, (size_t)n, sizeof *s, falling);
}
