/* k nearest neighbours. See knn.h. Test rows are independent, so threads change no bit. */
#include "analysis/knn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/comm.h"
#include "math/row.h"

struct neighbour { real cosine; int32_t label; };

static void unit_rows(int64_t N, int64_t C, const float *x, real *out)
{
#pragma omp parallel for schedule(static) if (N * C > 16384)
	for (int64_t i = 0; i < N; i++) {
		double length = 0;
		for (int64_t c = 0; c < C; c++) length += (double)x[i * C + c] * x[i * C + c];
		const double scale = length > 0 ? 1 / sqrt(length) : 0;
		for (int64_t c = 0; c < C; c++) out[i * C + c] = (real)(x[i * C + c] * scale);
	}
}

/* The k best so far, falling; a new one of equal cosine comes after. */
static void keep(struct neighbour *best, int64_t *have, int64_t k, struct neighbour n)
{
	int64_t i = *have;
	if (i == k && !(n.cosine > best[k - 1].cosine)) return;
	if (i < k) (*have)++;
	else i--;
	for (; i > 0 && best[i - 1].cosine < n.cosine; i--) best[i] = best[i - 1];
	best[i] = n;
}

/* Classes that get more votes than the label's. */
static int32_t rank_of(const struct neighbour *best, int64_t k, int32_t classes, int32_t label, double temperature, double *vote)
{
	memset(vote, 0, (size_t)classes * sizeof *vote);
	for (int64_t i = 0; i < k; i++)
		if (best[i].label >= 0 && best[i].label < classes) vote[best[i].label] += exp(((double)best[i].cosine - 1) / temperature);
	if (label < 0 || label >= classes) return classes;
	int32_t rank = 0;
	for (int32_t c = 0; c < classes; c++) rank += vote[c] > vote[label] || (vote[c] == vote[label] && c < label);
	return rank;
}

static void count_tries(const int32_t *rank, int64_t M, struct nr_knn_try *t, int64_t tries)
{
	for (int64_t q = 0; q < tries; q++) {
		t[q].top1 = t[q].top5 = 0;
		for (int64_t i = 0; i < M; i++) t[q].top1 += rank[i * tries + q] < 1, t[q].top5 += rank[i * tries + q] < 5;
		t[q].top1 /= (double)M;
		t[q].top5 /= (double)M;
	}
}

int nr_knn_each(int64_t N, int64_t C, const float *train, const int32_t *train_label, int64_t M, const float *test, const int32_t *label,
	int32_t classes, struct nr_knn_try *t, int64_t tries, struct nr_comm *comm, struct nr_error *err)
{
	const int64_t first = nr_comm_rank(comm), ranks = nr_comm_size(comm);
	int64_t most = 1;
	for (int64_t q = 0; q < tries; q++) most = t[q].k > most ? t[q].k : most;
	if (most > N) most = N;
	real *a = malloc((size_t)(N * C + 1) * sizeof *a), *b = malloc((size_t)(M * C + 1) * sizeof *b);
	int32_t *rank = malloc((size_t)(M * tries + 1) * sizeof *rank);
	struct neighbour *best = malloc((size_t)(M * most + 1) * sizeof *best);
	double *vote = malloc((size_t)(M * classes + 1) * sizeof *vote);
	int code = NR_OK;
	if (!a || !b || !rank || !best || !vote || !M) {
		code = nr_fail(err, M ? NR_EMEMORY : NR_EVALUE, "cannot find neighbours", NULL, M ? "out of memory" : "no samples");
	} else {
		unit_rows(N, C, train, a);
		unit_rows(M, C, test, b);
#pragma omp parallel for schedule(dynamic, 8)
		for (int64_t i = first; i < M; i += ranks) {
			int64_t have = 0;
			for (int64_t j = 0; j < N; j++)
				keep(best + i * most, &have, most, (struct neighbour){ nr_dot(C, b + i * C, a + j * C), train_label[j] });
			for (int64_t q = 0; q < tries; q++)
				rank[i * tries + q] = rank_of(best + i * most, t[q].k < have ? t[q].k : have, classes, label[i],
					t[q].temperature, vote + i * classes);
		}
		code = nr_comm_spread(comm, M, (size_t)tries * sizeof *rank, NULL, rank, err);
		if (!code) count_tries(rank, M, t, tries);
	}
	free(a);
	free(b);
	free(rank);
	free(best);
	free(vote);
	return code;
}

int nr_knn(int64_t N, int64_t C, const float *train, const int32_t *train_label, int64_t M, const float *test, const int32_t *label,
	int32_t classes, int64_t k, double temperature, double *top1, double *top5, struct nr_comm *comm, struct nr_error *err)
{
	struct nr_knn_try one = { .k = k, .temperature = temperature };
	const int code = nr_knn_each(N, C, train, train_label, M, test, label, classes, &one, 1, comm, err);
	if (!code) *top1 = one.top1, *top5 = one.top5;
	return code;
}
