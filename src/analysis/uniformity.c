/* Uniformity, alignment, spectrum. See uniformity.h. Pairs are summed row by row, in tiles of fixed size and order, and folded in row
 * order: the same bits for any number of threads. */
#include "analysis/uniformity.h"

#include <stdlib.h>

#include "math/act.h"
#include "math/gemm.h"
#include "math/row.h"
#include "math/svd.h"

static double length(int64_t C, const real *x)
{
	double s = 0;
	for (int64_t k = 0; k < C; k++) s += (double)x[k] * x[k];
	return sqrt(s);
}

enum { TILE = 512 };     /* rows and columns of one product: large enough for its full rate, small enough for the caches */
struct sums { double exp, cos, sq; };

/* Adds n cosines, which are overwritten: -t |u - v|^2 = t (2 cos - 2). */
static void add_cosines(int64_t n, real *c, double t, struct sums *s)
{
	s->cos += (double)nr_sum(n, c);
	s->sq += (double)nr_dot(n, c, c);
	for (int64_t j = 0; j < n; j++) c[j] = (real)t * (2 * c[j] - 2);
	nr_act_active->forward[NR_ACT_EXP](n, c, c);
	s->exp += (double)nr_sum(n, c);
}

/* Every pair once, tile by tile: the N x N matrix is never held. part (N): the sums of each row. */
static void all_pairs(int64_t N, int64_t C, const real *u, double t, real *tile, void *scratch, struct sums *part)
{
	for (int64_t i = 0; i < N; i += TILE)
		for (int64_t j = i; j < N; j += TILE) {
			const int64_t m = nr_min64(TILE, N - i), n = nr_min64(TILE, N - j);
			nr_gemm_run(&(struct nr_gemm){ .m = m, .n = n, .k = C, .a = u + i * C, .lda = C, .b = u + j * C, .ldb = C,
				.tb = 1, .c = tile, .ldc = n }, scratch);
#pragma omp parallel for schedule(static) if (m * n > 20000)
			for (int64_t r = 0; r < m; r++) {
				const int64_t first = i == j ? r + 1 : 0;
				add_cosines(n - first, tile + r * n + first, t, &part[i + r]);
			}
		}
}

/* Tiles are whole, cut at the right, or the cut one of the last corner. */
static size_t product_scratch(int64_t N, int64_t C)
{
	const int64_t whole = nr_min64(TILE, N), cut = (N - 1) % TILE + 1;
	const size_t a = nr_gemm_scratch(whole, whole, C, 0, 1), b = nr_gemm_scratch(whole, cut, C, 0, 1),
		     c = nr_gemm_scratch(cut, cut, C, 0, 1), most = a > b ? a : b;
	return (most > c ? most : c) + 1;
}

static void normalise(int64_t N, int64_t C, const real *x, real *u)
{
#pragma omp parallel for schedule(static) if (N * C > 20000)
	for (int64_t i = 0; i < N; i++) {
		const double len = length(C, x + i * C);
		for (int64_t k = 0; k < C; k++) u[i * C + k] = (real)(len > 0 ? x[i * C + k] / len : 0);
	}
}

int nr_uniformity(int64_t N, int64_t C, const real *x, double t, struct nr_pairs *out, struct nr_error *err)
{
	if (N < 2)
		return nr_fail(err, NR_ESHAPE, "cannot measure uniformity", NULL,
			"it has %lld rows, at least two are needed",
			(long long)N);
	const int64_t side = nr_min64(N, TILE);
	real *u = malloc((size_t)(N * C) * sizeof *u), *tile = malloc((size_t)(side * side) * sizeof *tile);
	void *scratch = malloc(product_scratch(N, C));
	struct sums *part = calloc((size_t)N, sizeof *part), all = { 0 };
	const int whole = u && tile && scratch && part;
	if (whole) {
		normalise(N, C, x, u);
		all_pairs(N, C, u, t, tile, scratch, part);
		for (int64_t i = 0; i < N; i++) {
			all.exp += part[i].exp;
			all.cos += part[i].cos;
			all.sq += part[i].sq;
		}
		const double n = (double)N, pairs = n * (n - 1) / 2;
		*out = (struct nr_pairs){ log(all.exp / pairs), all.cos / pairs, all.sq / pairs, (2 * all.sq + n) / (n * n) };
	}
	free(u);
	free(tile);
	free(scratch);
	free(part);
	return whole ? 0 : nr_fail(err, NR_EMEMORY, "cannot measure uniformity", NULL, "out of memory");
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
