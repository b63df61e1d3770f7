/* p of t-SNE: Gaussians around each row whose width gives the perplexity asked for (van der Maaten & Hinton 2008, Eq. 1, and their
 * symmetric form). See tsne_inner.h. Rows are independent; pairs are joined in the order of rows and columns. */
#include "analysis/tsne_inner.h"

#include <stdlib.h>
#include <string.h>

#include "math/distance.h"

static const char what[] = "cannot compute t-SNE";

/* Newton's steps on the entropy H(beta), whose slope is -beta var(d), kept inside the bracket found so far. */
void nr_tsne_conditional(int64_t k, const double *distance, double perplexity, double *p)
{
	double nearest = INFINITY, mean = 0, sum = 0;
	for (int64_t j = 0; j < k; j++) nearest = fmin(nearest, distance[j]);
	for (int64_t j = 0; j < k; j++) mean += (distance[j] - nearest) / (double)k;
	const double want = log(perplexity);
	double beta = 1, low = 0, high = INFINITY; /* in units of 1 / mean, so that the search does not know the scale */
	for (int step = 0; step < 120; step++) {
		double first = 0, second = 0; /* moments of d */
		sum = 0;
		for (int64_t j = 0; j < k; j++) {
			const double d = mean > 0 ? (distance[j] - nearest) / mean : 0;
			p[j] = exp(-beta * d);
			sum += p[j];
			first += p[j] * d;
			second += p[j] * d * d;
		}
		first /= sum;
		second /= sum;
		const double over = log(sum) + beta * first - want; /* entropy above the one wanted */
		if (fabs(over) < 1e-9) break;
		if (over > 0) low = beta;
		else high = beta;
		const double next = beta + over / (beta * (second - first * first));
		if (next > low && next < fmin(high, 4 * beta)) beta = next;
		else beta = isinf(high) ? 2 * beta : (low + high) / 2;
	}
	for (int64_t j = 0; j < k; j++) p[j] /= sum;
}

/* ---- every pair ----------------------------------------------------------------------------------------------------------- */

/* The p_j|i of one row in place of its distances; row (N), rest: 2N values. */
static void dense_row(int64_t N, int64_t C, const real *x, int64_t i, double perplexity, double *row, double *rest)
{
	double *p = rest + N;
	for (int64_t j = 0, n = 0; j < N; j++)
		if (j != i) rest[n++] = nr_distance_double(C, x + i * C, x + j * C);
	nr_tsne_conditional(N - 1, rest, perplexity, p);
	for (int64_t j = 0; j < N; j++) row[j] = j < i ? p[j] : j > i ? p[j - 1] : 0;
}

static int dense_p(struct nr_tsne_p *p, int64_t C, const real *x, double perplexity)
{
	const int64_t N = p->N;
	int failed = 0;
	p->value = malloc((size_t)(N * N) * sizeof *p->value);
	if (!p->value) return 0;
#pragma omp parallel if (N > 64)
	{
		double *rest = malloc((size_t)(2 * N) * sizeof *rest);
#pragma omp for schedule(dynamic, 8)
		for (int64_t i = 0; i < N; i++)
			if (rest) dense_row(N, C, x, i, perplexity, p->value + i * N, rest);
			else p->value[i * N] = NAN;
		free(rest);
	}
	for (int64_t i = 0; i < N; i++) failed |= isnan(p->value[i * N]);
	for (int64_t i = 0; !failed && i < N; i++)
		for (int64_t j = 0; j < i; j++) {
			double *a = p->value + i * N + j, *b = p->value + j * N + i;
			*a = *b = (*a + *b) / (2 * (double)N);
		}
	return !failed;
}

/* ---- nearest neighbours --------------------------------------------------------------------------------------------------- */

struct near { double distance; int32_t row; };
struct entry { int32_t col; double p; };

enum { SPARE = 8 };     /* candidates beyond k: the scan is in float, the choice in double */

static int farther(struct near a, struct near b) { return a.distance != b.distance ? a.distance > b.distance : a.row > b.row; }
static int by_distance(const void *a, const void *b)
{
	return farther(*(const struct near *)a, *(const struct near *)b) ? 1 : -1;
}
static int by_column(const void *a, const void *b)
{
	const int32_t x = ((const struct entry *)a)->col, y = ((const struct entry *)b)->col;
	return (x > y) - (x < y);
}

/* Heap of the nearest so far, the farthest on top, which the new one replaces. */
static void replace_top(int64_t n, struct near *heap, struct near new)
{
	int64_t i = 0;
	for (int64_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && farther(heap[child + 1], heap[child])) child++;
		if (!farther(heap[child], new)) break;
		heap[i] = heap[child];
	}
	heap[i] = new;
}

/* The k nearest of row i, nearest first, into best (k + SPARE). */
static void nearest(int64_t N, int64_t C, const real *x, int64_t i, int64_t k, real *distance, struct near *best)
{
	const int64_t keep = k + SPARE < N - 1 ? k + SPARE : N - 1;
	nr_distance_rows(N, C, x + i * C, x, distance);
	for (int64_t n = 0; n < keep; n++) best[n] = (struct near){ INFINITY, INT32_MAX };
	for (int64_t j = 0; j < N; j++) {
		const struct near new = { (double)distance[j], (int32_t)j };
		if (j != i && farther(best[0], new)) replace_top(keep, best, new);
	}
	for (int64_t n = 0; n < keep; n++) best[n].distance = nr_distance_double(C, x + i * C, x + best[n].row * C);
	qsort(best, (size_t)keep, sizeof *best, by_distance);
}

/* list (N,k): row i's neighbours and their p_j|i. */
static int neighbour_lists(const struct nr_tsne_p *p, int64_t C, const real *x, double perplexity, struct entry *list)
{
	const int64_t N = p->N, k = p->k;
	int failed = 0;
#pragma omp parallel if (N > 64)
	{
		real *distance = malloc((size_t)N * sizeof *distance);
		struct near *best = malloc((size_t)(k + SPARE) * sizeof *best);
		double *d = malloc((size_t)(2 * k) * sizeof *d);
#pragma omp for schedule(dynamic, 8)
		for (int64_t i = 0; i < N; i++) {
			list[i * k].col = -1;
			if (!distance || !best || !d) continue;
			nearest(N, C, x, i, k, distance, best);
			for (int64_t n = 0; n < k; n++) d[n] = best[n].distance;
			nr_tsne_conditional(k, d, perplexity, d + k);
			for (int64_t n = 0; n < k; n++) list[i * k + n] = (struct entry){ best[n].row, d[k + n] };
		}
		free(distance);
		free(best);
		free(d);
	}
	for (int64_t i = 0; i < N; i++) failed |= list[i * k].col < 0;
	return !failed;
}

/* Each row's own entries and those that name it, to both[start[i]...]. */
static void both_ways(const struct nr_tsne_p *p, const struct entry *list, int64_t *next, struct entry *both)
{
	const int64_t N = p->N, k = p->k;
	memset(p->start, 0, (size_t)(N + 1) * sizeof *p->start);
	for (int64_t e = 0; e < N * k; e++) p->start[list[e].col + 1]++;
	for (int64_t i = 0; i < N; i++) p->start[i + 1] += p->start[i] + k;
	memcpy(next, p->start, (size_t)N * sizeof *next);
	for (int64_t e = 0; e < N * k; e++) {
		const int64_t i = e / k;
		both[next[i]++] = list[e];
		both[next[list[e].col]++] = (struct entry){ (int32_t)i, list[e].p };
	}
#pragma omp parallel for schedule(dynamic, 64) if (N > 64)
	for (int64_t i = 0; i < N; i++)
		qsort(both + p->start[i], (size_t)(p->start[i + 1] - p->start[i]), sizeof *both, by_column);
}

/* Entries of one column become one: at most two, and a + b = b + a keeps p symmetric to the bit. */
static void merge(struct nr_tsne_p *p, const struct entry *both)
{
	int64_t out = 0, from = 0;
	for (int64_t i = 0; i < p->N; i++) {
		const int64_t first = out, end = p->start[i + 1];
		for (; from < end; from++) {
			const double half = both[from].p / (2 * (double)p->N);
			if (out > first && p->col[out - 1] == both[from].col) {
				p->value[out - 1] += half;
			} else {
				p->col[out] = both[from].col;
				p->value[out++] = half;
			}
		}
		p->start[i] = first;
	}
	p->start[p->N] = out;
}

static int sparse_p(struct nr_tsne_p *p, int64_t C, const real *x, double perplexity)
{
	const size_t N = (size_t)p->N, pairs = N * (size_t)p->k;
	struct entry *list = malloc(pairs * sizeof *list), *both = malloc(2 * pairs * sizeof *both);
	int64_t *next = malloc(N * sizeof *next);
	p->start = malloc((N + 1) * sizeof *p->start);
	p->col = malloc(2 * pairs * sizeof *p->col);
	p->value = malloc(2 * pairs * sizeof *p->value);
	const int done = list && both && next && p->start && p->col && p->value && neighbour_lists(p, C, x, perplexity, list);
	if (done) {
		both_ways(p, list, next, both);
		merge(p, both);
	}
	free(list);
	free(both);
	free(next);
	return done;
}

int nr_tsne_p_init(struct nr_tsne_p *p, int64_t N, int64_t C, const real *x, double perplexity, int64_t k, int dense, struct nr_error *err)
{
	*p = (struct nr_tsne_p){ .N = N, .k = k };
	if (!(dense ? dense_p(p, C, x, perplexity) : sparse_p(p, C, x, perplexity)))
		return nr_fail(err, NR_EMEMORY, what, NULL, "out of memory for %lld pairs", (long long)(N * k));
	const int64_t count = dense ? N * N : p->start[N];
	for (int64_t e = 0; e < count; e++)
		if (p->value[e] > 0) p->entropy += p->value[e] * log(p->value[e]);
	return 0;
}

void nr_tsne_p_release(struct nr_tsne_p *p)
{
	free(p->value);
	free(p->start);
	free(p->col);
	*p = (struct nr_tsne_p){ 0 };
}
