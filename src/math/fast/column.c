/* The column family in vectors.
 *
 * Kernels that only read take four rows at a time, so that a vector of sums is loaded and stored once for them; kernels
 * that write go row by row, as four streams of stores cost more than the statistics they would save to load. The
 * processor foresees neither well, so each asks for what it will read and write: that halves the time of the former and
 * saves a third of the latter's where memory is the limit. Stores past the caches need no line read first, so nothing is asked
 * for there. */
#include "math/column.h"

#include "math/fast/stream.h"
#include "math/fast/vec.h"

/* Asks for n values some 6 KB further on; rows mostly lie side by side. Into the second level: the first is small. */
INL void ahead(const float *p, int64_t n)
{
	for (int64_t j = 0; j < n; j += 16) __builtin_prefetch(p + 1536 + j, 0, 2);
}

/* step(R, n, i) for all columns i, n of them at a time, of R rows; before(i) once for four vectors. */
#define COLUMNS(R, before, step)                                                                                       \
	do {                                                                                                           \
		int64_t i_ = 0;                                                                                        \
		for (; i_ + 4 * VL <= C; i_ += 4 * VL) {                                                               \
			before(i_);                                                                                    \
			step(R, VL, i_), step(R, VL, i_ + VL);                                                         \
			step(R, VL, i_ + 2 * VL), step(R, VL, i_ + 3 * VL);                                            \
		}                                                                                                      \
		for (; i_ + VL <= C; i_ += VL) step(R, VL, i_);                                                        \
		if (i_ < C) step(R, C - i_, i_);                                                                       \
	} while (0)
#define NOTHING(i) (void)0

/* ---- moments ---------------------------------------------------------------------------------------------------- */

enum { TILE = 1024 }; /* columns whose pivots are on the stack */

/* s and q += the sums of x - p and of its square. */
INL void about_step(int R, int64_t n, const float *x, int64_t ldx, const float *p, float *s, float *q)
{
	const vf pivot = get(p, n);
	vf sum = bc(0), square = bc(0);
	for (int r = 0; r < R; r++) {
		const vf d = get(x + r * ldx, n) - pivot;
		sum += d;
		square += d * d;
	}
	set(s, get(s, n) + sum, n);
	set(q, get(q, n) + square, n);
}

INL void about(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *p, float *s, float *q)
{
	for (int64_t i = 0; i < C; i++) s[i] = q[i] = 0;
#define STEP(R, n, i) about_step(R, n, x + (i), ldx, p + (i), s + (i), q + (i))
#define BEFORE(i) ahead(x + 4 * (i), 16 * VL)
	int64_t r = 0;
	for (; r + 4 <= rows; r += 4, x += 4 * ldx) COLUMNS(4, BEFORE, STEP);
	for (; r < rows; r++, x += ldx) COLUMNS(1, NOTHING, STEP);
#undef STEP
#undef BEFORE
}

/* One pass about a pivot p, the mean of the first rows, which takes the offset away: with d = mean - p,
 * m2 = sum (x - p)^2 - n d^2. Where p lies more than four deviations off (the first rows are unlike the others) the
 * columns are done again about p + d, so that at most four bits cancel. */
static void moments_tile(int64_t rows, int64_t C, const float *x, int64_t ldx, float *mean, float *m2)
{
	float p[TILE];
	const float inv = 1 / (float)rows;
	int again = 1;
	if (rows < 4)
		for (int64_t i = 0; i < C; i++) p[i] = x[i];
	else
		for (int64_t i = 0; i < C; i++)
			p[i] = ((x[i] + x[ldx + i]) + (x[2 * ldx + i] + x[3 * ldx + i])) * .25f;
	for (int look = 0; look < 2 && again; look++) {
		about(rows, C, x, ldx, p, mean, m2);
		again = 0;
		for (int64_t i = 0; i < C; i++) {
			const float d = mean[i] * inv, off = mean[i] * d, rest = m2[i] - off;
			again |= off > 16 * rest;
			m2[i] = rest > 0 ? rest : 0;
			mean[i] = p[i] += d;
		}
	}
}

static void moments(int64_t rows, int64_t C, const float *x, int64_t ldx, float *mean, float *m2)
{
	if (rows <= 0)
		for (int64_t i = 0; i < C; i++) mean[i] = m2[i] = 0;
	else
		for (int64_t i = 0; i < C; i += TILE)
			moments_tile(rows, C - i < TILE ? C - i : TILE, x + i, ldx, mean + i, m2 + i);
}

INL void square_step(int R, int64_t n, const float *x, int64_t ldx, float *out)
{
	vf s = get(out, n);
	for (int r = 0; r < R; r++) s += get(x + r * ldx, n) * get(x + r * ldx, n);
	set(out, s, n);
}

static void sum_sq(int64_t rows, int64_t C, const float *x, int64_t ldx, float *out)
{
#define STEP(R, n, i) square_step(R, n, x + (i), ldx, out + (i))
#define BEFORE(i) ahead(x + 4 * (i), 16 * VL)
	int64_t r = 0;
	for (; r + 4 <= rows; r += 4, x += 4 * ldx) COLUMNS(4, BEFORE, STEP);
	for (; r < rows; r++, x += ldx) COLUMNS(1, NOTHING, STEP);
#undef STEP
#undef BEFORE
}

/* ---- the normalization ------------------------------------------------------------------------------------------ */

INL void norm_step(int stream, int64_t n, const float *x, const float *mean, const float *scale, const float *bias, float *y,
	int64_t i)
{
	vf v = get(x + i, n);
	if (mean) v -= get(mean + i, n);
	v = bias ? v * get(scale + i, n) + get(bias + i, n) : v * get(scale + i, n);
	st_by(stream, y + i, v, n);
}

INL void norm_rows(int stream, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *mean, const float *scale,
	const float *bias, float *y, int64_t ldy)
{
#define STEP(R, n, i) norm_step(stream, n, x, mean, scale, bias, y, i)
#define BEFORE(i) ahead(x + (i), 4 * VL), ahead(y + (i), stream ? 0 : 4 * VL)
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) COLUMNS(1, BEFORE, STEP);
#undef STEP
#undef BEFORE
}

INL void norm_as(int stream, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *mean, const float *scale,
	const float *bias, float *y, int64_t ldy)
{
	if (mean && bias) norm_rows(stream, rows, C, x, ldx, mean, scale, bias, y, ldy);
	else if (mean) norm_rows(stream, rows, C, x, ldx, mean, scale, 0, y, ldy);
	else if (bias) norm_rows(stream, rows, C, x, ldx, 0, scale, bias, y, ldy);
	else norm_rows(stream, rows, C, x, ldx, 0, scale, 0, y, ldy);
}

static void normalize(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *mean, const float *scale,
	const float *bias, float *y, int64_t ldy)
{
	norm_as(0, rows, C, x, ldx, mean, scale, bias, y, ldy);
}

static void normalize_stream(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *mean, const float *scale,
	const float *bias, float *y, int64_t ldy)
{
	if (!stream_fits(C, y, ldy)) {
		normalize(rows, C, x, ldx, mean, scale, bias, y, ldy);
		return;
	}
	norm_as(1, rows, C, x, ldx, mean, scale, bias, y, ldy);
	stream_end();
}

/* ---- its gradient ----------------------------------------------------------------------------------------------- */

INL void sums_step(int R, int64_t n, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, float *sum, float *dot)
{
	const vf m = mean ? get(mean, n) : bc(0);
	vf s = bc(0), d = bc(0);
	for (int r = 0; r < R; r++) {
		const vf g = get(dy + r * lddy, n), v = get(x + r * ldx, n);
		s += g;
		d += g * (mean ? v - m : v);
	}
	set(sum, get(sum, n) + s, n);
	set(dot, get(dot, n) + d, n);
}

INL void sums_rows(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, float *sum, float *dot)
{
#define STEP(R, n, i) sums_step(R, n, x + (i), ldx, dy + (i), lddy, mean ? mean + (i) : 0, sum + (i), dot + (i))
#define BEFORE(i) ahead(x + 4 * (i), 16 * VL), ahead(dy + 4 * (i), 16 * VL)
	int64_t r = 0;
	for (; r + 4 <= rows; r += 4, x += 4 * ldx, dy += 4 * lddy) COLUMNS(4, BEFORE, STEP);
	for (; r < rows; r++, x += ldx, dy += lddy) COLUMNS(1, NOTHING, STEP);
#undef STEP
#undef BEFORE
}

static void grad_sums(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, float *sum, float *dot)
{
	if (mean) sums_rows(rows, C, x, ldx, dy, lddy, mean, sum, dot);
	else sums_rows(rows, C, x, ldx, dy, lddy, 0, sum, dot);
}

INL void apply_step(int stream, int64_t n, int add, const float *x, const float *dy, const float *mean, const float *a,
	const float *b, const float *c, int passes, vf eta, float *dx, int64_t i)
{
	const vf t = get(dy + i, n), g = rounded(t * get(a + i, n));
	vf v = get(x + i, n);
	if (mean) v -= get(mean + i, n);
	v = v * get(b + i, n) + (g + get(c + i, n));
	if (passes) v += t * eta;
	st_by(stream, dx + i, add ? get(dx + i, n) + v : v, n);
}

INL void apply_rows(int stream, int64_t rows, int64_t C, int add, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, const float *a, const float *b, const float *c, int passes, float eta, float *dx, int64_t lddx)
{
	const vf share = bc(eta);
#define STEP(R, n, i) apply_step(stream, n, add, x, dy, mean, a, b, c, passes, share, dx, i)
#define BEFORE(i) ahead(x + (i), 4 * VL), ahead(dy + (i), 4 * VL), ahead(dx + (i), stream ? 0 : 4 * VL)
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx) COLUMNS(1, BEFORE, STEP);
#undef STEP
#undef BEFORE
}

static void grad_apply(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, const float *a, const float *b, const float *c, float eta, float *dx, int64_t lddx, int add)
{
	if (eta != 0 && mean && add) apply_rows(0, rows, C, 1, x, ldx, dy, lddy, mean, a, b, c, 1, eta, dx, lddx);
	else if (eta != 0 && mean) apply_rows(0, rows, C, 0, x, ldx, dy, lddy, mean, a, b, c, 1, eta, dx, lddx);
	else if (mean && add) apply_rows(0, rows, C, 1, x, ldx, dy, lddy, mean, a, b, c, 0, 0, dx, lddx);
	else if (mean) apply_rows(0, rows, C, 0, x, ldx, dy, lddy, mean, a, b, c, 0, 0, dx, lddx);
	else if (add) apply_rows(0, rows, C, 1, x, ldx, dy, lddy, 0, a, b, c, 0, 0, dx, lddx);
	else apply_rows(0, rows, C, 0, x, ldx, dy, lddy, 0, a, b, c, 0, 0, dx, lddx);
}

/* Not where dx was read before: it is in the cache already. Nor without a mean, which no norm of such size asks for. */
static void grad_apply_stream(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *mean, const float *a, const float *b, const float *c, float eta, float *dx, int64_t lddx, int add)
{
	if (add || !mean || dx == dy || !stream_fits(C, dx, lddx)) {
		grad_apply(rows, C, x, ldx, dy, lddy, mean, a, b, c, eta, dx, lddx, add);
		return;
	}
	if (eta != 0) apply_rows(1, rows, C, 0, x, ldx, dy, lddy, mean, a, b, c, 1, eta, dx, lddx);
	else apply_rows(1, rows, C, 0, x, ldx, dy, lddy, mean, a, b, c, 0, 0, dx, lddx);
	stream_end();
}

const struct nr_column_kernels NR_FAST(column) = {
	.moments = moments, .sum_sq = sum_sq, .normalize = normalize, .normalize_stream = normalize_stream, .grad_sums = grad_sums,
	.grad_apply = grad_apply, .grad_apply_stream = grad_apply_stream,
};
