/* Correlation. See spearman.h. */
#include "analysis/spearman.h"

#include <math.h>
#include <stdlib.h>

double nr_pearson(int64_t n, const double *x, const double *y)
{
	double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
	if (n < 2) return NAN;
	for (int64_t i = 0; i < n; i++) mx += x[i], my += y[i];
	mx /= (double)n;
	my /= (double)n;
	for (int64_t i = 0; i < n; i++) {
		const double a = x[i] - mx, b = y[i] - my;
		xx += a * a;
		yy += b * b;
		xy += a * b;
	}
	if (!(xx > 0 && yy > 0)) return NAN;
	return fmax(-1, fmin(1, xy / sqrt(xx) / sqrt(yy)));
}

struct placed { double value; int64_t at; };

static int by_value(const void *a, const void *b)
{
	const double x = ((const struct placed *)a)->value, y = ((const struct placed *)b)->value;
	return (x > y) - (x < y);
}

/* Returns the sum of t^3 - t over the groups of t equal values. */
static double rank_with(int64_t n, const double *x, struct placed *sorted, double *rank)
{
	double ties = 0;
	for (int64_t i = 0; i < n; i++) sorted[i] = (struct placed){ x[i], i };
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	for (int64_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && sorted[k].value == sorted[i].value;) k++;
		for (int64_t j = i; j < k; j++) rank[sorted[j].at] = (double)(i + k + 1) / 2;
		ties += pow((double)(k - i), 3) - (double)(k - i);
	}
	return ties;
}

int nr_ranks(int64_t n, const double *x, double *rank, struct nr_error *err)
{
	struct placed *sorted = malloc((size_t)n * sizeof *sorted + 1);
	if (!sorted) return nr_fail(err, NR_EMEMORY, "cannot compute ranks", NULL, "out of memory");
	rank_with(n, x, sorted, rank);
	free(sorted);
	return NR_OK;
}

/* *ties: of x */
static int correlate(int64_t n, const double *x, const double *y, double *out, double *ties, struct nr_error *err)
{
	*out = NAN;
	*ties = 0;
	for (int64_t i = 0; i < n; i++)
		if (!isfinite(x[i]) || !isfinite(y[i])) return NR_OK;
	struct placed *sorted = malloc((size_t)n * sizeof *sorted + 1);
	double *rank = malloc((size_t)(2 * n) * sizeof *rank + 1);
	const int whole = sorted && rank;
	if (whole) {
		*ties = rank_with(n, x, sorted, rank);
		rank_with(n, y, sorted, rank + n);
		*out = nr_pearson(n, rank, rank + n);
	}
	free(sorted);
	free(rank);
	return whole ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot compute ranks", NULL, "out of memory");
}

int nr_spearman(int64_t n, const double *x, const double *y, double *out, struct nr_error *err)
{
	double ties;
	return correlate(n, x, y, out, &ties, err);
}

/* An order by chance leaves the covariance where mean ranks have it, and x has the variance of n different ranks. */
int nr_spearman_by_chance(int64_t n, const double *x, const double *y, double *out, struct nr_error *err)
{
	double ties;
	const int code = correlate(n, x, y, out, &ties, err);
	*out *= sqrt(1 - ties / (pow((double)n, 3) - (double)n));
	return code;
}
