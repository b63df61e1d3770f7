/* The maps of F(2x2,3x3), a vector of channels at a time: math/winograd.h. */
#include "math/fast/vec.h"
#include "math/winograd.h"

/* B' of four values that are `s` apart. */
INL void b_line(const vf *d, vf *to, int s)
{
	const vf d0 = d[0], d1 = d[s], d2 = d[2 * s], d3 = d[3 * s];
	to[0] = d0 - d2;
	to[s] = d1 + d2;
	to[2 * s] = d2 - d1;
	to[3 * s] = d1 - d3;
}

INL void input_lanes(int64_t c, int64_t n, const float *const d[16], float *v, int64_t step)
{
	vf m[16];
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) m[i] = get(d[i] + c, n);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) b_line(m + i, m + i, 4);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) b_line(m + 4 * i, m + 4 * i, 1);
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) set(v + i * step + c, m[i], n);
}

static void input(int64_t n, const float *const d[16], float *v, int64_t step)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) input_lanes(c, VL, d, v, step);
	if (c < n) input_lanes(c, n - c, d, v, step);
}

INL void output_lanes(int64_t c, int64_t n, const float *m, int64_t step, const float *bias, float *const y[4], int add)
{
	vf s[2][4];
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		const vf m1 = get(m + (4 + j) * step + c, n), m2 = get(m + (8 + j) * step + c, n);
		s[0][j] = get(m + j * step + c, n) + (m1 + m2);
		s[1][j] = (m1 - m2) - get(m + (12 + j) * step + c, n);
	}
	const vf shift = bias ? get(bias + c, n) : bc(0);
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		const vf out[2] = { s[i][0] + (s[i][1] + s[i][2]) + shift, (s[i][1] - s[i][2]) - s[i][3] + shift };
#pragma GCC unroll 2
		for (int j = 0; j < 2; j++) {
			float *to = y[2 * i + j];
			if (to) set(to + c, add ? out[j] + get(to + c, n) : out[j], n);
		}
	}
}

static void output(int64_t n, const float *m, int64_t step, const float *bias, float *const y[4], int add)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) output_lanes(c, VL, m, step, bias, y, add);
	if (c < n) output_lanes(c, n - c, m, step, bias, y, add);
}

/* A of two values to four that are `s` apart. */
INL void a_line(vf p, vf q, vf *to, int s)
{
	to[0] = p;
	to[s] = p + q;
	to[2 * s] = p - q;
	to[3 * s] = -q;
}

INL void gradient_lanes(int64_t c, int64_t n, const float *const dy[4], float *z, int64_t step)
{
	vf left[4], right[4], m[16];
	a_line(get(dy[0] + c, n), get(dy[2] + c, n), left, 1);
	a_line(get(dy[1] + c, n), get(dy[3] + c, n), right, 1);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) a_line(left[i], right[i], m + 4 * i, 1);
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) set(z + i * step + c, m[i], n);
}

static void gradient(int64_t n, const float *const dy[4], float *z, int64_t step)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) gradient_lanes(c, VL, dy, z, step);
	if (c < n) gradient_lanes(c, n - c, dy, z, step);
}

/* G of three values. */
INL void g_line(vf p, vf q, vf r, vf *to, int s)
{
	const vf half = (p + r) * .5f, mid = q * .5f;
	to[0] = p;
	to[s] = half + mid;
	to[2 * s] = half - mid;
	to[3 * s] = r;
}

INL void weight_lanes(int64_t c, int64_t n, int64_t all, const float *g, int turned, float *u, int64_t step)
{
	const int64_t row = turned ? -all : all;
	const float *from = (turned ? g + 8 * all : g) + c;
	vf t[12], m[16];
#pragma GCC unroll 3
	for (int j = 0; j < 3; j++) g_line(get(from + j * row, n), get(from + (3 + j) * row, n), get(from + (6 + j) * row, n), t + j, 3);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) g_line(t[3 * i], t[3 * i + 1], t[3 * i + 2], m + 4 * i, 1);
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) set(u + i * step + c, m[i], n);
}

static void weight(int64_t n, const float *g, int turned, float *u, int64_t step)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) weight_lanes(c, VL, n, g, turned, u, step);
	if (c < n) weight_lanes(c, n - c, n, g, turned, u, step);
}

/* G' of four values. */
INL void g_turned(vf p, vf q, vf r, vf s, vf *to, int step)
{
	const vf half = (q + r) * .5f;
	to[0] = p + half;
	to[step] = (q - r) * .5f;
	to[2 * step] = half + s;
}

INL void weight_gradient_lanes(int64_t c, int64_t n, int64_t all, const float *u, int64_t step, float *dg)
{
	vf t[12], m[9];
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++)
		g_turned(get(u + j * step + c, n), get(u + (4 + j) * step + c, n), get(u + (8 + j) * step + c, n),
			get(u + (12 + j) * step + c, n), t + j, 4);
#pragma GCC unroll 3
	for (int i = 0; i < 3; i++) g_turned(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], m + 3 * i, 1);
#pragma GCC unroll 9
	for (int i = 0; i < 9; i++) set(dg + i * all + c, m[i], n);
}

static void weight_gradient(int64_t n, const float *u, int64_t step, float *dg)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) weight_gradient_lanes(c, VL, n, u, step, dg);
	if (c < n) weight_gradient_lanes(c, n - c, n, u, step, dg);
}

const struct nr_winograd_kernels NR_FAST(winograd) = { input, output, gradient, weight, weight_gradient };
