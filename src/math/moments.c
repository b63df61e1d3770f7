/* Moments: see moments.h. */
#include "math/moments.h"

#include <math.h>

/* Columns are independent and each is summed in row order: equal bits at any thread count. */
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

/* Two passes over values that the first one brought near: the powers are of small numbers, whatever the mean. */
struct nr_moments nr_moments_of(int64_t n, const real *x)
{
	double sum = 0, m2 = 0, m3 = 0, m4 = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < n; i++) sum += (double)x[i];
	const double mean = n ? sum / (double)n : 0;
#pragma omp simd reduction(+ : m2, m3, m4)
	for (int64_t i = 0; i < n; i++) {
		const double d = (double)x[i] - mean, q = d * d;
		m2 += q;
		m3 += q * d;
		m4 += q * q;
	}
	return (struct nr_moments){ (double)n, mean, m2, m3, m4 };
}

/* The binomial theorem for (x - a) + (a - c), a the mean of one part and c that of the whole, summed over both parts. */
void nr_moments_join(struct nr_moments *a, const struct nr_moments *b)
{
	const double n = a->n + b->n;
	if (!(n > 0)) return;
	const double gap = b->mean - a->mean, u = -gap * b->n / n, v = gap * a->n / n;  /* a - c of the two parts */
	a->m4 += b->m4 + 4 * (u * a->m3 + v * b->m3) + 6 * (u * u * a->m2 + v * v * b->m2) +
		 a->n * u * u * u * u + b->n * v * v * v * v;
	a->m3 += b->m3 + 3 * (u * a->m2 + v * b->m2) + a->n * u * u * u + b->n * v * v * v;
	a->m2 += b->m2 + a->n * u * u + b->n * v * v;
	a->mean -= u;
	a->n = n;
}

double nr_moments_var(const struct nr_moments *m) { return m->n > 0 ? m->m2 / m->n : (double)NAN; }

double nr_moments_kurtosis(const struct nr_moments *m) { return m->m2 > 0 ? m->m4 * m->n / (m->m2 * m->m2) : (double)NAN; }

void nr_token_moments_row(struct nr_token_moments *t, int64_t C, const real *row)
{
	const struct nr_moments m = nr_moments_of(C, row);
	const double length = sqrt(m.m2 + m.n * m.mean * m.mean);
	nr_moments_join(&t->value, &m);
	nr_moments_join(&t->length, &(struct nr_moments){ .n = 1, .mean = length });
	if (length > t->longest) t->longest = length;
}

void nr_token_moments_join(struct nr_token_moments *a, const struct nr_token_moments *b)
{
	nr_moments_join(&a->value, &b->value);
	nr_moments_join(&a->length, &b->length);
	if (b->longest > a->longest) a->longest = b->longest;
}
