/* Uniformity, alignment, spectrum. See uniformity.h. Pairs are summed row by row and folded in row order. */
#include "analysis/uniformity.h"

#include <stdlib.h>

#include "math/row.h"
#include "math/svd.h"

static double length(int64_t C, const real *x)
{
	double s = 0;
	for (int64_t k = 0; k < C; k++) s += (double)x[k] * x[k];
	return sqrt(s);
}

struct sums { double exp, cos, sq; };

int nr_uniformity(int64_t N, int64_t C, const real *x, double t, struct nr_pairs *out, struct nr_error *err)
{
	if (N < 2)
		return nr_fail(err, NR_ESHAPE, "cannot measure uniformity", NULL, "%lld rows, two are needed",
			(long long)N);
	real *u = malloc((size_t)(N * C) * sizeof *u);
	struct sums *part = malloc((size_t)N * sizeof *part), all = { 0 };
	if (!u || !part) {
		free(u);
		free(part);
		return nr_fail(err, NR_EMEMORY, "cannot measure uniformity", NULL, "out of memory");
	}
#pragma omp parallel for schedule(static) if (N * C > 20000)
	for (int64_t i = 0; i < N; i++) {
		const double len = length(C, x + i * C);
		for (int64_t k = 0; k < C; k++) u[i * C + k] = (real)(len > 0 ? x[i * C + k] / len : 0);
	}
#pragma omp parallel for schedule(dynamic, 16) if (N > 64)
	for (int64_t i = 0; i < N; i++) {
		struct sums s = { 0 };
		for (int64_t j = i + 1; j < N; j++) {
			const double c = (double)nr_dot(C, u + i * C, u + j * C);
			s.exp += exp(-t * (2 - 2 * c));
			s.cos += c;
			s.sq += c * c;
		}
		part[i] = s;
	}
	for (int64_t i = 0; i < N; i++) {
		all.exp += part[i].exp;
		all.cos += part[i].cos;
		all.sq += part[i].sq;
	}
	const double n = (double)N, pairs = n * (n - 1) / 2;
	*out = (struct nr_pairs){ log(all.exp / pairs), all.cos / pairs, all.sq / pairs,
		(2 * all.sq + n) / (n * n) };
	free(u);
	free(part);
	return 0;
}

double nr_alignment(int64_t N, int64_t C, const real *x, const real *y, double alpha)
{
	double sum = 0;
	for (int64_t i = 0; i < N; i++) {
		const double a = length(C, x + i * C), b = length(C, y + i * C);
		double d = 0;
		for (int64_t k = 0; k < C; k++) {
			const double e = x[i * C + k] / a - y[i * C + k] / b;
			d += e * e;
		}
		sum += pow(d, alpha / 2);
	}
	return N ? sum / (double)N : 0;
}

int nr_spectrum(int64_t N, int64_t C, const real *x, int centred, double *s, struct nr_error *err)
{
	void *scratch = malloc(nr_svd_scratch(N, C) + 1);
	if (!scratch)
		return nr_fail(err, NR_EMEMORY, "cannot compute singular values", NULL, "out of memory");
	nr_svd_values(N, C, x, centred, s, scratch);
	free(scratch);
	return 0;
}

double nr_effective_rank(int64_t n, const double *s)
{
	double sum = 0, entropy = 0;
	for (int64_t i = 0; i < n; i++) sum += s[i];
	for (int64_t i = 0; i < n && sum > 0; i++)
		if (s[i] > 0) entropy -= s[i] / sum * log(s[i] / sum);
	return exp(entropy);
}

int nr_spread(int64_t N, int64_t C, const real *x, double *s, struct nr_spread *out, struct nr_error *err)
{
	struct nr_pairs pairs = { 0 };
	int code = N > 1 ? nr_uniformity(N, C, x, 2, &pairs, err) : NR_OK;
	if (!code) code = nr_spectrum(N, C, x, 1, s, err);
	if (!code) *out = (struct nr_spread){ pairs.uniformity, pairs.mean_cos, nr_effective_rank(N < C ? N : C, s) };
	return code;
}
