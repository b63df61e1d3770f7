/* Threaded drivers over arrays and rows. Chunks are fixed, so the bits are the same for any number of threads; small work
 * stays on the calling thread: by a plain branch where a training step comes by often, because libgomp allocates a team
 * whenever the size of the last one differs, also for an `if` clause that is false. */
#include "math/row.h"

#include <string.h>

#define SMALL NR_ARRAY_CHUNK /* values below which a parallel region costs more than it brings */

const struct nr_row_kernels *nr_row_active = &nr_row_plain;

void nr_array_add(int64_t n, const real *x, const real *y, real *z)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->add(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i, z + i);
}

void nr_array_mul(int64_t n, const real *x, const real *y, real *z, int add)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->mul(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i, z + i, add);
}

void nr_array_axpy(int64_t n, real a, const real *x, real *y)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->axpy(nr_min64(NR_ARRAY_CHUNK, n - i), a, x + i, y + i);
}

void nr_array_scale(int64_t n, real a, const real *x, real *y)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->scale(nr_min64(NR_ARRAY_CHUNK, n - i), a, x + i, y + i);
}

void nr_array_put(int64_t n, const real *x, real *y, int add)
{
	if (n <= SMALL) {
		nr_row_active->put(n, x, y, add);
		return;
	}
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i += NR_ARRAY_CHUNK)
		nr_row_active->put(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i, add);
}

void nr_array_fill(int64_t n, real v, real *y)
{
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t c = 0; c < n; c += NR_ARRAY_CHUNK) {
		const int64_t end = nr_min64(n, c + NR_ARRAY_CHUNK);
		for (int64_t i = c; i < end; i++) y[i] = v;
	}
}

real nr_array_sum(int64_t n, const real *x, real *scratch)
{
	const int64_t chunks = nr_array_chunks(n);
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t q = 0; q < chunks; q++)
		scratch[q] = nr_sum(nr_min64(NR_ARRAY_CHUNK, n - q * NR_ARRAY_CHUNK), x + q * NR_ARRAY_CHUNK);
	return nr_sum(chunks, scratch);
}

real nr_array_dot(int64_t n, const real *x, const real *y, real *scratch)
{
	const int64_t chunks = nr_array_chunks(n);
#pragma omp parallel for schedule(static) if (n > SMALL)
	for (int64_t q = 0; q < chunks; q++) {
		const int64_t i = q * NR_ARRAY_CHUNK;
		scratch[q] = nr_dot(nr_min64(NR_ARRAY_CHUNK, n - i), x + i, y + i);
	}
	return nr_sum(chunks, scratch);
}

static void fold_columns(int64_t chunks, int64_t C, int64_t w, const real *part, real *out, int add)
{
	if (!add) memset(out, 0, (size_t)w * sizeof(real));
	nr_row_active->col_sum(chunks, w, part, C, out);
}

void nr_fold(int64_t chunks, int64_t C, const real *part, real *out, int add)
{
	const int64_t width = 128;
	if (chunks * C <= 2 * SMALL) {
		fold_columns(chunks, C, C, part, out, add);
		return;
	}
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < C; i += width) fold_columns(chunks, C, nr_min64(width, C - i), part + i, out + i, add);
}

void nr_col_sum(int64_t rows, int64_t C, const real *x, int64_t ldx, real *out, int add, real *scratch)
{
	const int64_t chunks = nr_chunks(rows);
	if (chunks <= 1) {
		fold_columns(rows, ldx, C, x, out, add);
		return;
	}
#pragma omp parallel for schedule(static) if (rows * C > SMALL)
	for (int64_t q = 0; q < chunks; q++) {
		const int64_t r = q * NR_CHUNK;
		real *part = memset(scratch + q * C, 0, (size_t)C * sizeof(real));
		nr_row_active->col_sum(nr_min64(NR_CHUNK, rows - r), C, x + r * ldx, ldx, part);
	}
	nr_fold(chunks, C, scratch, out, add);
}

void nr_bias_add(int64_t rows, int64_t C, real *x, int64_t ldx, const real *bias)
{
#pragma omp parallel for schedule(static) if (rows * C > SMALL)
	for (int64_t r = 0; r < rows; r += NR_CHUNK)
		nr_row_active->bias(nr_min64(NR_CHUNK, rows - r), C, x + r * ldx, ldx, bias);
}

/* p + i, or NULL if p is: optional outputs per row. */
static inline real *at(real *p, int64_t i) { return p ? p + i : NULL; }

static void norm_forward(const struct nr_norm_forward *all)
{
#pragma omp parallel for schedule(static) if (all->rows * all->C > SMALL)
	for (int64_t r = 0; r < all->rows; r += NR_CHUNK) {
		struct nr_norm_forward f = *all;
		f.rows = nr_min64(NR_CHUNK, all->rows - r);
		f.x += r * f.ldx, f.y += r * f.ldy, f.mean = at(f.mean, r), f.rstd = at(f.rstd, r);
		if (f.b) f.b += r * f.ldb, f.sum += r * f.lds;
		nr_row_active->norm_forward(&f);
	}
}

void nr_layer_forward(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *gain, const real *bias, real eps,
	real *y, int64_t ldy, real *mean, real *rstd)
{
	norm_forward(&(struct nr_norm_forward){ .rows = rows, .C = C, .x = x, .ldx = ldx, .gain = gain, .bias = bias,
		.eps = eps, .y = y, .ldy = ldy, .mean = mean, .rstd = rstd });
}

void nr_add_layer_forward(int64_t rows, int64_t C, const real *a, int64_t lda, const real *b, int64_t ldb,
	const real *gain, const real *bias, real eps, real *sum, int64_t lds, real *y, int64_t ldy, real *mean, real *rstd)
{
	norm_forward(&(struct nr_norm_forward){ .rows = rows, .C = C, .x = a, .ldx = lda, .b = b, .ldb = ldb, .sum = sum,
		.lds = lds, .gain = gain, .bias = bias, .eps = eps, .y = y, .ldy = ldy, .mean = mean, .rstd = rstd });
}

/* A zeroed partial sum of C values for chunk q, or NULL if its total is not wanted. */
static real *partial(const real *total, real *part, int64_t q, int64_t C)
{
	return total ? memset(part + q * C, 0, (size_t)C * sizeof(real)) : NULL;
}

void nr_layer_backward(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy,
	const real *gain, const real *mean, const real *rstd, real *dx, int64_t lddx, real *dgain, real *dbias,
	unsigned add, real *scratch)
{
	const int64_t chunks = nr_chunks(rows);
	real *gains = scratch, *biases = scratch + chunks * C;
#pragma omp parallel for schedule(static) if (rows * C > SMALL)
	for (int64_t q = 0; q < chunks; q++) {
		const int64_t r = q * NR_CHUNK;
		nr_row_active->norm_backward(&(struct nr_norm_backward){ .rows = nr_min64(NR_CHUNK, rows - r), .C = C,
			.x = x + r * ldx, .ldx = ldx, .dy = dy + r * lddy, .lddy = lddy, .gain = gain, .mean = mean + r,
			.rstd = rstd + r, .dx = dx + r * lddx, .lddx = lddx, .add = !!(add & NR_ADD_X),
			.dgain = partial(dgain, gains, q, C), .dbias = partial(dbias, biases, q, C) });
	}
	if (dgain) nr_fold(chunks, C, gains, dgain, !!(add & NR_ADD_GAIN));
	if (dbias) nr_fold(chunks, C, biases, dbias, !!(add & NR_ADD_BIAS));
}
