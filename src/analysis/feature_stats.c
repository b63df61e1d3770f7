/* Statistics of features. See feature_stats.h. Sums run along rows or channels that belong to one thread. */
#include "analysis/feature_stats.h"

#include <stdlib.h>
#include <string.h>

#include "math/cross.h"

static int out_of_memory(const char *what, struct nr_error *err) { return nr_fail(err, NR_EMEMORY, what, NULL, "out of memory"); }
static int empty(const char *what, struct nr_error *err) { return nr_fail(err, NR_ESHAPE, what, NULL, "no rows or no channels"); }
static int not_finite(const char *what, struct nr_error *err) { return nr_fail(err, NR_EVALUE, what, NULL, "a value is not finite"); }

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of sorted v (n), linear between order statistics. */
static double quantile(int64_t n, const double *v, double at)
{
	const double place = at * (double)(n - 1);
	const int64_t below = (int64_t)place;
	return below + 1 < n ? v[below] + (place - (double)below) * (v[below + 1] - v[below]) : v[n - 1];
}

static double norm(int64_t C, const real *x)
{
	double s = 0;
	for (int64_t c = 0; c < C; c++) s += (double)x[c] * (double)x[c];
	return sqrt(s);
}

int nr_mean_cosine(int64_t N, int64_t C, const real *x, double *out, struct nr_error *err)
{
	static const char what[] = "cannot compute the mean cosine";
	if (N < 1 || C < 1) return empty(what, err);
	double *sum = calloc((size_t)C, sizeof *sum), self = 0, all = 0;
	if (!sum) return out_of_memory(what, err);
	for (int64_t n = 0; n < N; n++) {
		const double length = norm(C, x + n * C);
		self += length != 0;
		for (int64_t c = 0; length != 0 && c < C; c++) sum[c] += (double)x[n * C + c] / length;
	}
	for (int64_t c = 0; c < C; c++) all += sum[c] * sum[c];
	free(sum);
	if (!isfinite(all)) return not_finite(what, err);
	*out = N > 1 ? (all - self) / ((double)N * (double)(N - 1)) : 0;
	return 0;
}

/* ---- outlier channels ----------------------------------------------------------------------------------------------------- */

/* Deviation of every channel from centred values (N,C). */
static void deviations(int64_t N, int64_t C, const double *x, double *out)
{
	memset(out, 0, (size_t)C * sizeof *out);
	for (int64_t n = 0; n < N; n++)
		for (int64_t c = 0; c < C; c++) out[c] += x[n * C + c] * x[n * C + c];
	for (int64_t c = 0; c < C; c++) out[c] = sqrt(out[c] / (double)N);
}

/* Of all values: within the channels and between their means. */
static double total_deviation(int64_t C, const double *mean, const double *deviation)
{
	double middle = 0, square = 0;
	for (int64_t c = 0; c < C; c++) middle += mean[c] / (double)C;
	for (int64_t c = 0; c < C; c++) square += (deviation[c] * deviation[c] + (mean[c] - middle) * (mean[c] - middle)) / (double)C;
	return sqrt(square);
}

int nr_outlier_channels(int64_t N, int64_t C, const real *x, double threshold, double *mean_over, double *max_over,
	struct nr_outliers *out, struct nr_error *err)
{
	static const char what[] = "cannot look for outlier channels";
	if (N < 1 || C < 1) return empty(what, err);
	double *centred = malloc((size_t)(N * C) * sizeof *centred), *deviation = malloc((size_t)C * sizeof *deviation);
	int code = !centred || !deviation ? out_of_memory(what, err) : 0;
	if (!code && !nr_centre_columns(N, C, x, mean_over, centred)) code = not_finite(what, err);
	if (!code) {
		*out = (struct nr_outliers){ 0 };
		deviations(N, C, centred, deviation);
		const double all = total_deviation(C, mean_over, deviation);
		qsort(deviation, (size_t)C, sizeof *deviation, rising);
		out->scale = quantile(C, deviation, .5);
		if (out->scale == 0) out->scale = all;
		const double scale = out->scale > 0 ? 1 / out->scale : 0;
		memset(max_over, 0, (size_t)C * sizeof *max_over);
		for (int64_t n = 0; n < N; n++)
			for (int64_t c = 0; c < C; c++) max_over[c] = fmax(max_over[c], fabs((double)x[n * C + c]));
		for (int64_t c = 0; c < C; c++) {
			mean_over[c] = fabs(mean_over[c]) * scale;
			max_over[c] *= scale;
			out->by_mean += mean_over[c] >= threshold;
			out->by_max += max_over[c] >= threshold;
			if (max_over[c] > max_over[out->worst]) out->worst = c;
		}
	}
	free(centred);
	free(deviation);
	return code;
}

/* ---- variation coefficient ------------------------------------------------------------------------------------------------ */

/* Column means of x (N,C) for each of `groups` groups of rows. */
static void group_means(int64_t groups, int64_t N, int64_t C, const real *x, double *mean)
{
	memset(mean, 0, (size_t)(groups * C) * sizeof *mean);
#pragma omp parallel for schedule(static) if (groups > 1 && groups * N * C > 20000)
	for (int64_t g = 0; g < groups; g++)
		for (int64_t n = 0; n < N; n++)
			for (int64_t c = 0; c < C; c++) mean[g * C + c] += (double)x[(g * N + n) * C + c] / (double)N;
}

static double token_mean(int64_t C, const real *x)
{
	double s = 0;
	for (int64_t c = 0; c < C; c++) s += (double)x[c] / (double)C;
	return s;
}

/* Norm of (x - mu) / x; mu of a channel from column, given, or the token's own mean, in this order. */
static double token_variation(int64_t C, const real *x, const double *column, const real *given, int64_t *zeros)
{
	const double own = column || given ? 0 : token_mean(C, x);
	double s = 0;
	for (int64_t c = 0; c < C; c++) {
		if (x[c] == 0) {
			(*zeros)++;
			continue;
		}
		const double mu = column ? column[c] : given ? (double)given[c] : own, e = ((double)x[c] - mu) / (double)x[c];
		s += e * e;
	}
	return sqrt(s);
}

int nr_variation_coefficient(int64_t B, int64_t T, int64_t C, const real *x, enum nr_mean_of of, const real *mu, double *per_token,
	struct nr_variation *out, struct nr_error *err)
{
	static const char what[] = "cannot compute the variation coefficient";
	const int64_t N = B * T, groups = of == NR_MEAN_INSTANCE ? B : of == NR_MEAN_BATCH ? 1 : 0;
	if (B < 1 || T < 1 || C < 1) return empty(what, err);
	if ((of == NR_MEAN_GIVEN) != (mu != NULL)) return nr_fail(err, NR_EUSAGE, what, NULL, "the means do not fit what is asked for");
	double *column = malloc((size_t)(groups * C + 1) * sizeof *column), *token = malloc((size_t)N * sizeof *token);
	if (!column || !token) {
		free(column);
		free(token);
		return out_of_memory(what, err);
	}
	if (groups) group_means(groups, N / groups, C, x, column);
	*out = (struct nr_variation){ 0 };
	for (int64_t n = 0; n < N; n++)
		token[n] = token_variation(C, x + n * C, groups ? column + n * groups / N * C : NULL, mu ? mu + n * C : NULL, &out->zeros);
	for (int64_t n = 0; n < N; n++) out->mean += token[n] / (double)N;
	if (per_token) memcpy(per_token, token, (size_t)N * sizeof *token);
	qsort(token, (size_t)N, sizeof *token, rising);
	out->median = quantile(N, token, .5);
	free(column);
	free(token);
	return isfinite(out->mean) ? 0 : not_finite(what, err);
}

/* ---- magnitude per head, quantiles ---------------------------------------------------------------------------------------- */

/* Standard deviation / mean of v (n); 0 when the mean is. */
static double relative_spread(int64_t n, const double *v)
{
	double mean = 0, square = 0;
	for (int64_t i = 0; i < n; i++) mean += v[i] / (double)n;
	for (int64_t i = 0; i < n; i++) square += (v[i] - mean) * (v[i] - mean) / (double)n;
	return mean > 0 ? sqrt(square) / mean : 0;
}

int nr_token_magnitude(int64_t B, int64_t T, int64_t C, int64_t H, const real *x, double *out, double *spread, struct nr_error *err)
{
	static const char what[] = "cannot compute token magnitudes";
	if (B < 1 || T < 1 || C < 1) return empty(what, err);
	if (H < 1 || C % H)
		return nr_fail(err, NR_ESHAPE, what, NULL, "%lld channels do not divide into %lld heads", (long long)C, (long long)H);
	const int64_t width = C / H;
#pragma omp parallel for schedule(static) if (B * T * C > 20000)
	for (int64_t b = 0; b < B; b++)
		for (int64_t h = 0; h < H; h++)
			for (int64_t t = 0; t < T; t++) out[(b * H + h) * T + t] = norm(width, x + (b * T + t) * C + h * width);
	for (int64_t h = 0; spread && h < H; h++) {
		spread[h] = 0;
		for (int64_t b = 0; b < B; b++) spread[h] += relative_spread(T, out + (b * H + h) * T) / (double)B;
	}
	return 0;
}

const double nr_quantile_at[NR_QUANTILES] = { .01, .05, .25, .5, .75, .95, .99 };

int nr_distribution(int64_t N, int64_t C, const real *x, int64_t D, double *out, struct nr_error *err)
{
	static const char what[] = "cannot compute quantiles";
	if (N < 1 || D < 1) return empty(what, err);
	if (D > C) return nr_fail(err, NR_ESHAPE, what, NULL, "%lld dimensions of %lld", (long long)D, (long long)C);
	double *v = malloc((size_t)N * sizeof *v);
	if (!v) return out_of_memory(what, err);
	int finite = 1;
	for (int64_t d = 0; d < D && finite; d++) {
		for (int64_t n = 0; n < N; n++) {
			v[n] = (double)x[n * C + d];
			finite &= isfinite(v[n]) != 0;
		}
		qsort(v, (size_t)N, sizeof *v, rising);
		for (int q = 0; q < NR_QUANTILES; q++) out[d * NR_QUANTILES + q] = quantile(N, v, nr_quantile_at[q]);
	}
	free(v);
	return finite ? 0 : not_finite(what, err);
}
