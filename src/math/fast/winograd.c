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

/* The nine values of n filters that are ldg apart, a vector for each of the nine. */
INL void gather_taps(int64_t n, const float *g, int64_t ldg, vf t[9])
{
	enum { WHOLE = VL < 9 ? VL : 9 };
	_Alignas(64) float last[VL];
	vf r[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) r[i] = i < n ? ldn(g + i * ldg, WHOLE) : bc(0);
	vtranspose(r);
#pragma GCC unroll 9
	for (int i = 0; i < WHOLE; i++) t[i] = r[i];
	if (WHOLE == 9) return;
	for (int i = 0; i < VL; i++) last[i] = i < n ? g[i * ldg + 8] : 0;
	t[8] = ld(last);
}

/* The way back, to filters side by side. */
INL void scatter_taps(int64_t n, const vf t[9], float *g, int add)
{
	enum { WHOLE = VL < 9 ? VL : 9 };
	vf r[VL];
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) r[i] = i < WHOLE ? t[i] : bc(0);
	vtranspose(r);
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++) {
		if (i >= n) break;
		stn(g + 9 * i, add ? r[i] + ldn(g + 9 * i, WHOLE) : r[i], WHOLE);
		if (WHOLE < 9) g[9 * i + 8] = t[8][i] + (add ? g[9 * i + 8] : 0);
	}
}

INL void weight_lanes(int64_t n, const float *g, int64_t ldg, int turned, float *u, int64_t step)
{
	vf in[9], t[12], m[16];
	gather_taps(n, g, ldg, in);
#pragma GCC unroll 3
	for (int j = 0; j < 3; j++) {
		if (turned) g_line(in[8 - j], in[5 - j], in[2 - j], t + j, 3);
		else g_line(in[j], in[3 + j], in[6 + j], t + j, 3);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) g_line(t[3 * i], t[3 * i + 1], t[3 * i + 2], m + 4 * i, 1);
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) set(u + i * step, m[i], n);
}

static void weight(int64_t n, const float *g, int64_t ldg, int turned, float *u, int64_t step)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) {
		if (turned) weight_lanes(VL, g + c * ldg, ldg, 1, u + c, step);
		else weight_lanes(VL, g + c * ldg, ldg, 0, u + c, step);
	}
	if (c < n) weight_lanes(n - c, g + c * ldg, ldg, turned, u + c, step);
}

/* G' of four values. */
INL void g_turned(vf p, vf q, vf r, vf s, vf *to, int step)
{
	const vf half = (q + r) * .5f;
	to[0] = p + half;
	to[step] = (q - r) * .5f;
	to[2 * step] = half + s;
}

INL void weight_gradient_lanes(int64_t n, const float *u, int64_t step, float *dg, int add)
{
	vf t[12], m[9];
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++)
		g_turned(get(u + j * step, n), get(u + (4 + j) * step, n), get(u + (8 + j) * step, n), get(u + (12 + j) * step, n),
			t + j, 4);
#pragma GCC unroll 3
	for (int i = 0; i < 3; i++) g_turned(t[4 * i], t[4 * i + 1], t[4 * i + 2], t[4 * i + 3], m + 3 * i, 1);
	scatter_taps(n, m, dg, add);
}

static void weight_gradient(int64_t n, const float *u, int64_t step, float *dg, int add)
{
	int64_t c = 0;
	for (; c < down(n); c += VL) {
		if (add) weight_gradient_lanes(VL, u + c, step, dg + 9 * c, 1);
		else weight_gradient_lanes(VL, u + c, step, dg + 9 * c, 0);
	}
	if (c < n) weight_gradient_lanes(n - c, u + c, step, dg + 9 * c, add);
}

const struct nr_winograd_kernels NR_FAST(winograd) = { input, output, gradient, weight, weight_gradient };
