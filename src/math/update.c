/* Parameter updates: the plain reference and the threaded driver. See update.h for the formulas. */
#include "math/update.h"

#include "math/chunk.h"

static void adam(int64_t n, real *p, const real *g, real *m, real *v, const struct nr_adam_coef *c)
{
	for (int64_t i = 0; i < n; i++) {
		const real d = c->scale * g[i] + c->l2 * p[i];
		m[i] = c->beta1 * m[i] + c->rest1 * d;
		v[i] = c->beta2 * v[i] + c->rest2 * d * d;
		p[i] = c->keep * p[i] - c->step * m[i] / (c->root * nr_sqrt(v[i]) + c->eps);
	}
}

static void sgd(int64_t n, real *p, const real *g, real *m, const struct nr_sgd_coef *c)
{
	for (int64_t i = 0; i < n; i++) {
		const real d = c->scale * g[i] + c->l2 * p[i];
		real move = c->rate_g * d;
		if (m) {
			m[i] = c->keep_m * m[i] + c->add_m * d;
			move += c->rate_m * m[i];
		}
		p[i] -= move;
	}
}

static void ema(int64_t n, real *e, const real *p, real keep)
{
	const real rest = 1 - keep;
	for (int64_t i = 0; i < n; i++) e[i] = keep * e[i] + rest * p[i];
}

static double sum_sq(int64_t n, const real *x)
{
	double s = 0;
	for (int64_t i = 0; i < n; i++) s += (double)x[i] * x[i];
	return s;
}

static double sum_sq_mix(int64_t n, double a, const real *x, double b, const real *y)
{
	double s = 0;
	for (int64_t i = 0; i < n; i++) {
		const double d = a * x[i] + b * y[i];
		s += d * d;
	}
	return s;
}

const struct nr_update_kernels nr_update_plain = { adam, sgd, ema, sum_sq, sum_sq_mix };
const struct nr_update_kernels *nr_update_active = &nr_update_plain;

enum { THREADS_FROM = 4 * NR_UPDATE_CHUNK }; /* below it a parallel region costs more than it brings */

void nr_update_ema(int64_t n, real *e, const real *p, double keep)
{
#pragma omp parallel for schedule(static) if (n >= THREADS_FROM)
	for (int64_t i = 0; i < n; i += NR_UPDATE_CHUNK)
		nr_update_active->ema(nr_min64(NR_UPDATE_CHUNK, n - i), e + i, p + i, (real)keep);
}

void nr_rows_to_unit(int64_t rows, int64_t columns, real *x)
{
#pragma omp parallel for schedule(static)
	for (int64_t r = 0; r < rows; r++) {
		real *row = x + r * columns;
		const double square = nr_update_active->sum_sq(columns, row);
		const real k = square > 0 ? (real)(1 / sqrt(square)) : 1;
		for (int64_t i = 0; i < columns; i++) row[i] *= k;
	}
}

void nr_columns_to_unit(int64_t rows, int64_t columns, real *x)
{
	enum { TILE = 64 };             /* columns that are looked at together, down all rows */
#pragma omp parallel for schedule(static)
	for (int64_t at = 0; at < columns; at += TILE) {
		const int64_t n = columns - at < TILE ? columns - at : TILE;
		double square[TILE] = { 0 };
		real k[TILE];
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < n; i++) square[i] += (double)x[r * columns + at + i] * (double)x[r * columns + at + i];
		for (int64_t i = 0; i < n; i++) k[i] = square[i] > 0 ? (real)(1 / sqrt(square[i])) : 1;
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < n; i++) x[r * columns + at + i] *= k[i];
	}
}
