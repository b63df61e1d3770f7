/* Random fills and dropout: the plain reference and the threaded drivers. See random.h. */
#include "math/random.h"

#include <string.h>

#include "math/chunk.h"

enum { CHUNK = 8192, THREADS_FROM = 2 * CHUNK }; /* values; a chunk is whole blocks of four words */

/* The words of one block at a time, from any index on. */
struct words { struct nr_rng rng; uint64_t next; uint32_t block[4]; };

static struct words words_from(struct nr_rng rng, uint64_t index)
{
	struct words w = { .rng = rng, .next = index };
	if (index % 4) nr_rng_block(rng, index / 4, w.block);
	return w;
}

static inline uint32_t word(struct words *w)
{
	if (w->next % 4 == 0) nr_rng_block(w->rng, w->next / 4, w->block);
	return w->block[w->next++ % 4];
}

static void uniform(int64_t n, real *y, real low, real span, struct nr_rng rng, uint64_t index0)
{
	struct words w = words_from(rng, index0);
	for (int64_t i = 0; i < n; i++) y[i] = low + span * (real)nr_rng_unit(word(&w));
}

static void dropout(int64_t n, const real *x, const real *residual, real *y, uint32_t drop, real scale,
	struct nr_rng rng, uint64_t index0)
{
	struct words w = words_from(rng, index0);
	for (int64_t i = 0; i < n; i++) {
		const real kept = word(&w) < drop ? 0 : scale * x[i];
		y[i] = residual ? residual[i] + kept : kept;
	}
}

static void scale(int64_t n, const real *x, const real *residual, real *y, real a)
{
	for (int64_t i = 0; i < n; i++) y[i] = residual ? residual[i] + a * x[i] : a * x[i];
}

const struct nr_random_kernels nr_random_plain = { uniform, dropout, scale };
const struct nr_random_kernels *nr_random_active = &nr_random_plain;

void nr_fill_uniform(int64_t n, real *y, double low, double high, struct nr_rng rng, uint64_t index0)
{
#pragma omp parallel for schedule(static) if (n >= THREADS_FROM)
	for (int64_t i = 0; i < n; i += CHUNK)
		nr_random_active->uniform(nr_min64(CHUNK, n - i), y + i, (real)low, (real)(high - low), rng,
			index0 + (uint64_t)i);
}

/* Both numbers of a pair come from the same radius and angle: see nr_rng_normal. */
static void normal(int64_t n, real *y, double mean, double std, struct nr_rng rng, uint64_t index0)
{
	int64_t i = 0;
	for (; i < n && (index0 + (uint64_t)i) % 4; i++)
		y[i] = (real)(mean + std * nr_rng_normal(rng, index0 + (uint64_t)i));
	for (; i + 4 <= n; i += 4) {
		uint32_t w[4];
		nr_rng_block(rng, (index0 + (uint64_t)i) / 4, w);
		for (int k = 0; k < 4; k += 2) {
			const double radius = std * sqrt(-2 * log((w[k] + 1.0) * 0x1p-32));
			const double angle = 2 * M_PI * (w[k + 1] * 0x1p-32);
			y[i + k] = (real)(mean + radius * cos(angle));
			y[i + k + 1] = (real)(mean + radius * sin(angle));
		}
	}
	for (; i < n; i++) y[i] = (real)(mean + std * nr_rng_normal(rng, index0 + (uint64_t)i));
}

void nr_fill_normal(int64_t n, real *y, double mean, double std, struct nr_rng rng, uint64_t index0)
{
#pragma omp parallel for schedule(static) if (n >= THREADS_FROM)
	for (int64_t i = 0; i < n; i += CHUNK)
		normal(nr_min64(CHUNK, n - i), y + i, mean, std, rng, index0 + (uint64_t)i);
}

double nr_erfinv(double x)
{
	static const double centre[] = { 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
		0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941 };
	static const double tail[] = { -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844,
		0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682 };
	const double w = -log((1 - x) * (1 + x)), z = w < 5 ? w - 2.5 : sqrt(w) - 3;
	const double *c = w < 5 ? centre : tail;
	double p = c[0];
	for (int k = 1; k < 9; k++) p = p * z + c[k];
	return p * x;
}

static double cdf2(double z) { return erf(z * M_SQRT1_2); } /* 2 cdf - 1 */

static void trunc_normal(int64_t n, real *y, double mean, double std, double low, double high,
	struct nr_rng rng, uint64_t index0)
{
	const double from = cdf2((low - mean) / std), span = cdf2((high - mean) / std) - from;
	struct words w = words_from(rng, index0);
	for (int64_t i = 0; i < n; i++) {
		const double u = from + span * ((word(&w) + .5) * 0x1p-32); /* inside (-1,1): never an end */
		const double v = mean + std * M_SQRT2 * nr_erfinv(u);
		y[i] = (real)(v < low ? low : v > high ? high : v);
	}
}

void nr_fill_trunc_normal(int64_t n, real *y, double mean, double std, double low, double high,
	struct nr_rng rng, uint64_t index0)
{
#pragma omp parallel for schedule(static) if (n >= THREADS_FROM)
	for (int64_t i = 0; i < n; i += CHUNK)
		trunc_normal(nr_min64(CHUNK, n - i), y + i, mean, std, low, high, rng, index0 + (uint64_t)i);
}

static void keep_none(int64_t n, const real *residual, real *y)
{
	if (!residual)
		memset(y, 0, (size_t)n * sizeof(real));
	else if (residual != y)
		memcpy(y, residual, (size_t)n * sizeof(real));
}

void nr_dropout_forward(
	int64_t n, const real *x, const real *residual, real *y, double p, struct nr_rng rng, uint64_t index0)
{
	const uint32_t drop = p > 0 && p < 1 ? (uint32_t)(p * 0x1p32) : 0;
	const real factor = p > 0 && p < 1 ? (real)(1 / (1 - p)) : 1;
#pragma omp parallel for schedule(static) if (n >= THREADS_FROM)
	for (int64_t i = 0; i < n; i += CHUNK) {
		const int64_t len = nr_min64(CHUNK, n - i);
		const real *r = residual ? residual + i : NULL;
		if (p >= 1)
			keep_none(len, r, y + i);
		else if (p <= 0)
			nr_random_active->scale(len, x + i, r, y + i, 1);
		else
			nr_random_active->dropout(
				len, x + i, r, y + i, drop, factor, rng, index0 + (uint64_t)i);
	}
}

double nr_drop_path_factor(double p, struct nr_rng rng, uint64_t index)
{
	if (p <= 0) return 1;
	if (p >= 1) return 0;
	struct words w = words_from(rng, index);
	return word(&w) < (uint32_t)(p * 0x1p32) ? 0 : 1 / (1 - p);
}

void nr_drop_path_forward(int64_t rows, int64_t C, const real *x, const real *residual, real *y, double p,
	struct nr_rng rng, uint64_t index0)
{
#pragma omp parallel for schedule(static) if (rows * C >= THREADS_FROM)
	for (int64_t r = 0; r < rows; r++) {
		const real *skip = residual ? residual + r * C : NULL;
		const double f = nr_drop_path_factor(p, rng, index0 + (uint64_t)r);
		if (f == 0)
			keep_none(C, skip, y + r * C);
		else
			nr_random_active->scale(C, x + r * C, skip, y + r * C, (real)f);
	}
}
