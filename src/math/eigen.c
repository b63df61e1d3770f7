/* Symmetric eigenvectors. See eigen.h. Vectors are kept as rows, so that reflections and rotations run along memory. */
#include "math/eigen.h"

#include <math.h>

#include "math/dot.h"

/* Reflector that clears v (m) but its first entry: v becomes u with |u|^2 = 2, or 0; returns the entry that is left. */
static double reflector(int64_t m, double *v)
{
	double most = 0;
	for (int64_t i = 0; i < m; i++) most = fmax(most, fabs(v[i]));
	if (most == 0) return 0;
	for (int64_t i = 0; i < m; i++) v[i] /= most; /* squares of tiny entries must not vanish */
	const double norm = sqrt(nr_dot_double(m, v, v)), left = v[0] > 0 ? -norm : norm;
	v[0] -= left;
	const double scale = sqrt(2 / nr_dot_double(m, v, v));
	for (int64_t i = 0; i < m; i++) v[i] *= scale;
	return left * most;
}

/* a <- H a H with H = I - u u' on the trailing (m,m) block b of leading distance n. w: m values. */
static void reflect_block(int64_t n, int64_t m, double *b, const double *u, double *w)
{
#pragma omp parallel for schedule(static) if (m > 256)
	for (int64_t i = 0; i < m; i++) w[i] = nr_dot_double(m, b + i * n, u);
	const double half = nr_dot_double(m, w, u) / 2;
	for (int64_t i = 0; i < m; i++) w[i] -= half * u[i];
#pragma omp parallel for schedule(static) if (m > 256)
	for (int64_t i = 0; i < m; i++) {
		double *row = b + i * n;
		for (int64_t j = 0; j < m; j++) row[j] -= u[i] * w[j] + w[i] * u[j];
	}
}

/* d (n): diagonal, e (n): e[i] couples i and i + 1; row k of a keeps reflector k behind its diagonal. */
static void tridiagonal(int64_t n, double *a, double *d, double *e)
{
	for (int64_t k = 0; k < n; k++) {
		d[k] = a[k * n + k];
		e[k] = 0;
		if (k + 1 == n) break;
		double *u = a + k * n + k + 1;
		e[k] = reflector(n - k - 1, u);
		reflect_block(n, n - k - 1, a + (k + 1) * n + k + 1, u, d + k + 1); /* d is free behind k */
	}
}

/* a becomes Q' (rows), Q = H_0 H_1 ..., built from the last reflector on so that the blocks grow. */
static void gather_reflectors(int64_t n, double *a)
{
	a[n * n - 1] = 1;
	for (int64_t k = n - 2; k >= 0; k--) {
		const int64_t m = n - k - 1;
		double *u = a + k * n + k + 1, *block = a + (k + 1) * n + k + 1;
#pragma omp parallel for schedule(static) if (m > 256)
		for (int64_t i = 0; i < m; i++) { /* Q' <- Q' H: the rows of Q' lose their part along u */
			const double along = nr_dot_double(m, block + i * n, u);
			for (int64_t j = 0; j < m; j++) block[i * n + j] -= along * u[j];
		}
		a[k * n + k] = 1;
		for (int64_t i = 0; i < m; i++) u[i] = a[(k + 1 + i) * n + k] = 0;
	}
}

static void rotate(int64_t n, double *p, double *q, double c, double s)
{
	for (int64_t i = 0; i < n; i++) {
		const double f = q[i];
		q[i] = s * p[i] + c * f;
		p[i] = c * p[i] - s * f;
	}
}

/* One implicit QL step on the unreduced block first..last. */
static void ql_step(int64_t n, int64_t first, int64_t last, double *d, double *e, double *a)
{
	double g = (d[first + 1] - d[first]) / (2 * e[first]);
	g = d[last] - d[first] + e[first] / (g + copysign(hypot(g, 1), g));
	double s = 1, c = 1, p = 0;
	for (int64_t i = last - 1; i >= first; i--) {
		const double f = s * e[i], b = c * e[i], r = hypot(f, g);
		e[i + 1] = r;
		if (r == 0) { /* the block falls apart here */
			d[i + 1] -= p;
			e[last] = 0;
			return;
		}
		s = f / r;
		c = g / r;
		g = d[i + 1] - p;
		const double t = (d[i] - g) * s + 2 * c * b;
		p = s * t;
		d[i + 1] = g + p;
		g = c * t - b;
		rotate(n, a + i * n, a + (i + 1) * n, c, s);
	}
	d[first] -= p;
	e[first] = g;
	e[last] = 0;
}

static int ql(int64_t n, double *d, double *e, double *a)
{
	double most = 0;
	for (int64_t k = 0; k < n; k++) most = fmax(most, fmax(fabs(d[k]), fabs(e[k])));
	int64_t steps = 0; /* in all: where many values are zero the first may take hundreds, the others then next to none */
	for (int64_t k = 0; k < n; k++)
		for (;; steps++) {
			int64_t last = k; /* a coupling far below the rounding of the matrix is none, even between zeros */
			while (last + 1 < n && fabs(e[last]) > 1e-16 * (fabs(d[last]) + fabs(d[last + 1])) + 1e-20 * most) last++;
			if (last == k) break;
			if (steps == 60 * n) return 0;
			ql_step(n, k, last, d, e, a);
		}
	return 1;
}

static void sort_rows(int64_t n, double *a, double *value)
{
	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;
		for (int64_t i = k + 1; i < n; i++)
			if (value[i] > value[best]) best = i;
		if (best == k) continue;
		const double v = value[best];
		value[best] = value[k];
		value[k] = v;
		rotate(n, a + best * n, a + k * n, 0, 1);
	}
}

int nr_eigen_symmetric(int64_t n, double *a, double *value, double *scratch)
{
	tridiagonal(n, a, value, scratch);
	gather_reflectors(n, a);
	const int settled = ql(n, value, scratch, a);
	if (settled) sort_rows(n, a, value);
	return settled;
}
