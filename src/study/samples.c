/* Intervals and tests on few values: see stats.h. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "study/stats.h"

enum { EXACT = 50 };                        /* values up to which every sign is counted */

struct nr_sample nr_sample(const double *x, int64_t n)
{
	struct nr_sample s = { .n = n, .mean = NAN, .sd = NAN, .half = NAN };
	double sum = 0, squares = 0;
	for (int64_t i = 0; i < n; i++) sum += x[i];
	if (n) s.mean = sum / (double)n;
	for (int64_t i = 0; i < n; i++) squares += (x[i] - s.mean) * (x[i] - s.mean);
	if (n < 2) return s;
	s.sd = sqrt(squares / (double)(n - 1));
	s.half = nr_t_quantile(0.975, (double)(n - 1)) * s.sd / sqrt((double)n);
	return s;
}

double nr_t_test(const double *x, int64_t n)
{
	const struct nr_sample s = nr_sample(x, n);
	if (n < 2) return NAN;
	if (s.sd == 0) return s.mean == 0 ? 1 : 0;
	return 2 * nr_t_cdf(-fabs(s.mean) / (s.sd / sqrt((double)n)), (double)(n - 1));
}

static int by_size(const void *a, const void *b)
{
	const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
	return (x > y) - (x < y);
}

/* Twice the ranks of sorted sizes, so that shared ones are whole numbers. *ties is the sum of t^3 - t. */
static void ranks(const double *x, int64_t n, int64_t *twice, double *ties)
{
	*ties = 0;
	for (int64_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && fabs(x[k]) == fabs(x[i]);) k++;
		for (int64_t j = i; j < k; j++) twice[j] = i + k + 1;
		const double t = (double)(k - i);
		*ties += t * t * t - t;
	}
}

/* share[s]: of all signs, those whose positive ranks sum to s. The largest sum is n (n + 1). */
static double exact(const int64_t *twice, int64_t n, int64_t positive)
{
	static const int64_t most = EXACT * (EXACT + 1);
	double share[EXACT * (EXACT + 1) + 1] = { 1 }, below = 0, above = 0;
	int64_t top = 0;
	for (int64_t i = 0; i < n; i++) {
		top += twice[i];
		for (int64_t s = top < most ? top : most; s >= 0; s--)
			share[s] = 0.5 * (share[s] + (s >= twice[i] ? share[s - twice[i]] : 0));
	}
	for (int64_t s = 0; s <= top; s++) {
		below += s <= positive ? share[s] : 0;
		above += s >= positive ? share[s] : 0;
	}
	return fmin(1, 2 * fmin(below, above));
}

double nr_wilcoxon(const double *x, int64_t n)
{
	double *d = malloc((size_t)(n + 1) * sizeof *d), ties, p = NAN;
	int64_t *twice = malloc((size_t)(n + 1) * sizeof *twice), left = 0, positive = 0;
	if (d && twice) {
		for (int64_t i = 0; i < n; i++)
			if (x[i] != 0) d[left++] = x[i];
		qsort(d, (size_t)left, sizeof *d, by_size);
		ranks(d, left, twice, &ties);
		for (int64_t i = 0; i < left; i++) positive += d[i] > 0 ? twice[i] : 0;
		const double m = (double)left, mean = m * (m + 1) / 4, var = m * (m + 1) * (2 * m + 1) / 24 - ties / 48;
		if (!left) p = 1;
		else if (left <= EXACT) p = exact(twice, left, positive);
		else p = fmin(1, 2 * nr_normal_cdf(-fabs((double)positive / 2 - mean) / sqrt(var)));
	} else nr_memory_note_failure();
	free(d);
	free(twice);
	return p;
}

void nr_holm(double *p, int64_t m)
{
	int64_t family = 0;
	for (int64_t i = 0; i < m; i++) family += !isnan(p[i]);
	double floor = 0;
	bool *done = calloc((size_t)m + 1, sizeof *done);
	if (!done) nr_memory_note_failure();
	for (int64_t k = 0; done && k < family; k++) {
		int64_t least = -1;
		for (int64_t i = 0; i < m; i++)
			if (!isnan(p[i]) && !done[i] && (least < 0 || p[i] < p[least])) least = i;
		done[least] = true;
		p[least] = floor = fmax(floor, fmin(1, p[least] * (double)(family - k)));
	}
	free(done);
}

double nr_t_power(double effect, int64_t n, double alpha)
{
	if (n < 2 || isnan(effect)) return NAN;
	const double df = (double)(n - 1), limit = nr_t_quantile(1 - alpha / 2, df), delta = fabs(effect) * sqrt((double)n);
	return 1 - nr_noncentral_t_cdf(limit, df, delta) + nr_noncentral_t_cdf(-limit, df, delta);
}

int64_t nr_t_pairs(double effect, double power, double alpha, int64_t most)
{
	if (isnan(effect) || effect == 0) return 0;
	int64_t low = 1, high = 2;                      /* low is too few */
	if (isinf(effect)) return high;
	while (high < most && nr_t_power(effect, high, alpha) < power) low = high, high *= 2;
	if (high > most) high = most;
	if (nr_t_power(effect, high, alpha) < power) return 0;
	while (high - low > 1) {
		const int64_t mid = low + (high - low) / 2;
		if (nr_t_power(effect, mid, alpha) < power) low = mid;
		else high = mid;
	}
	return high;
}
