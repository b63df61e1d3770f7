/* The row family in vectors. Elementwise passes are left to the compiler, which vectorizes them for this file's
 * instruction set; sums keep four vectors in flight. */
#include "math/row.h"

#include <string.h>

#include "math/bf16.h"
#include "math/fast/stream.h"
#include "math/fast/vec.h"

enum term { SUM, DOT, DOT3, SQUARE };

INL vf term(enum term kind, const float *a, const float *b, const float *c, vf m, int64_t n)
{
	vf v = get(a, n);
	switch (kind) {
	case DOT: return v * get(b, n);
	case DOT3: return v * get(b, n) * get(c, n);
	case SQUARE:
		v -= m;
		if (n < VL) v = (vf)((vi)v & lanes(n));
		return v * v;
	default: return v;
	}
}

INL float reduce(enum term kind, int64_t n, const float *a, const float *b, const float *c, float about)
{
	const vf m = bc(about);
	vf s0 = bc(0), s1 = bc(0), s2 = bc(0), s3 = bc(0);
	int64_t i = 0;
	for (; i + 4 * VL <= n; i += 4 * VL) {
		s0 += term(kind, a + i, b + i, c + i, m, VL);
		s1 += term(kind, a + i + VL, b + i + VL, c + i + VL, m, VL);
		s2 += term(kind, a + i + 2 * VL, b + i + 2 * VL, c + i + 2 * VL, m, VL);
		s3 += term(kind, a + i + 3 * VL, b + i + 3 * VL, c + i + 3 * VL, m, VL);
	}
	for (; i + VL <= n; i += VL) s0 += term(kind, a + i, b + i, c + i, m, VL);
	if (i < n) s1 += term(kind, a + i, b + i, c + i, m, n - i);
	return hsum((s0 + s1) + (s2 + s3));
}

static float sum(int64_t n, const float *x) { return reduce(SUM, n, x, x, x, 0); }
static float dot(int64_t n, const float *a, const float *b) { return reduce(DOT, n, a, b, a, 0); }
static float dot3(int64_t n, const float *a, const float *b, const float *c) { return reduce(DOT3, n, a, b, c, 0); }
static float sum_sq_about(int64_t n, const float *x, float m) { return reduce(SQUARE, n, x, x, x, m); }

static float max(int64_t n, const float *x)
{
	vf m0 = bc(-INFINITY), m1 = m0;
	int64_t i = 0;
	for (; i + 2 * VL <= n; i += 2 * VL) {
		m0 = VMAX(m0, ld(x + i));
		m1 = VMAX(m1, ld(x + i + VL));
	}
	for (; i < n; i += VL) m0 = VMAX(m0, vsel(lanes(n - i), ldn(x + i, n - i), bc(-INFINITY)));
	return hmax(VMAX(m0, m1));
}

static void axpy(int64_t n, float a, const float *x, float *y)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void add(int64_t n, const float *x, const float *y, float *z)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
}

static void mul(int64_t n, const float *x, const float *y, float *z, int add_to)
{
	if (add_to) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++) z[i] += x[i] * y[i];
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++) z[i] = x[i] * y[i];
	}
}

static void scale(int64_t n, float a, const float *x, float *y)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) y[i] = a * x[i];
}

static void put(int64_t n, const float *x, float *y, int add_to)
{
	if (add_to) {
		add(n, x, y, y);
	} else if (x != y) {
		memcpy(y, x, (size_t)n * sizeof(float));
	}
}

/* Four rows per pass over out. */
static void col_sum(int64_t rows, int64_t C, const float *x, int64_t ldx, float *out)
{
	int64_t r = 0;
	for (; r + 4 <= rows; r += 4, x += 4 * ldx) {
		const float *b = x + ldx, *c = b + ldx, *d = c + ldx;
#pragma omp simd
		for (int64_t i = 0; i < C; i++) out[i] += (x[i] + b[i]) + (c[i] + d[i]);
	}
	for (; r < rows; r++, x += ldx) add(C, x, out, out);
}

static void bias_add(int64_t rows, int64_t C, float *x, int64_t ldx, const float *bias)
{
	for (int64_t r = 0; r < rows; r++) add(C, x + r * ldx, bias, x + r * ldx);
}

static void bf16_pack(int64_t n, const float *x, uint16_t *y)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) y[i] = nr_bf16_of(x[i]);
}

static void bf16_unpack(int64_t n, const uint16_t *x, float *y)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) y[i] = nr_bf16_float(x[i]);
}

#include "math/fast/row_norm.h"
#include "math/fast/row_softmax.h"

const struct nr_row_kernels NR_FAST(row) = {
	.sum = sum, .dot = dot, .dot3 = dot3, .sum_sq_about = sum_sq_about, .max = max, .axpy = axpy, .add = add, .mul = mul,
	.scale = scale, .put = put, .col_sum = col_sum, .bias = bias_add, .norm_forward = norm_forward,
	.norm_backward = norm_backward, .softmax = softmax, .softmax_backward = softmax_backward, .log_softmax = log_softmax,
	.log_softmax_backward = log_softmax_backward, .xent_labels = xent_labels, .xent_soft = xent_soft,
	.xent_sigmoid = xent_sigmoid, .bf16_pack = bf16_pack, .bf16_unpack = bf16_unpack,
};
