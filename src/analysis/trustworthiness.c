/* Trustworthiness. See trustworthiness.h. Rows are independent; their penalties are folded in order. */
#include "analysis/trustworthiness.h"

#include <stdlib.h>

#include "math/distance.h"

static const char what[] = "cannot measure trustworthiness";

/* The k nearest of row i in the layout, nearest first; an equal distance comes after. */
static void nearest(int64_t N, int64_t D, const double *y, int64_t i, int64_t k, int64_t *best, double *distance)
{
	int64_t have = 0;
	for (int64_t j = 0; j < N; j++) {
		double s = 0;
		for (int64_t d = 0; d < D; d++) s += (y[i * D + d] - y[j * D + d]) * (y[i * D + d] - y[j * D + d]);
		if (j == i || (have == k && !(s < distance[k - 1]))) continue;
		int64_t at = have < k ? have++ : k - 1;
		for (; at > 0 && distance[at - 1] > s; at--) {
			distance[at] = distance[at - 1];
			best[at] = best[at - 1];
		}
		distance[at] = s;
		best[at] = j;
	}
}

/* Sum over the layout's neighbours of how far their ranks in the data are beyond k. */
static double penalty(int64_t N, int64_t i, int64_t k, const int64_t *best, const real *distance)
{
	double sum = 0;
	for (int64_t n = 0; n < k; n++) {
		const real limit = distance[best[n]];
		int64_t rank = 1;
		for (int64_t j = 0; j < N; j++) rank += distance[j] < limit;
		rank -= distance[i] < limit; /* the row itself */
		if (rank > k) sum += (double)(rank - k);
	}
	return sum;
}

int nr_trustworthiness(int64_t N, int64_t C, const real *x, int64_t D, const double *y, int64_t k, struct nr_trustworthiness *out,
	struct nr_error *err)
{
	if (N < 1 || C < 1 || D < 1)
		return nr_fail(err, NR_ESHAPE, what, NULL, "%lld rows with %lld channels", (long long)N, (long long)C);
	if (k < 1) return nr_fail(err, NR_EVALUE, what, NULL, "%lld neighbours, must be at least 1", (long long)k);
	if (k > (N - 1) / 2) k = (N - 1) / 2;
	*out = (struct nr_trustworthiness){ 1, k };
	if (k == 0) return 0;
	double *cost = malloc((size_t)N * sizeof *cost), sum = 0;
	int lack = !cost;
#pragma omp parallel if (N > 64 && cost)
	{
		real *distance = malloc((size_t)N * sizeof *distance);
		int64_t *best = malloc((size_t)k * sizeof *best);
		double *near = malloc((size_t)k * sizeof *near);
#pragma omp for schedule(dynamic, 16)
		for (int64_t i = 0; i < N; i++) {
			if (!cost) continue;
			cost[i] = -1; /* stays when this thread has no memory */
			if (!distance || !best || !near) continue;
			nearest(N, D, y, i, k, best, near);
			nr_distance_rows(N, C, x + i * C, x, distance);
			cost[i] = penalty(N, i, k, best, distance);
		}
		free(distance);
		free(best);
		free(near);
	}
	for (int64_t i = 0; i < N && cost; i++) {
		lack |= cost[i] < 0;
		sum += cost[i];
	}
	free(cost);
	if (lack) return nr_fail(err, NR_EMEMORY, what, NULL, "out of memory");
	const double n = (double)N, kk = (double)k;
	out->value = 1 - 2 / (n * kk * (2 * n - 3 * kk - 1)) * sum;
	return 0;
}
