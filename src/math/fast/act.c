/* Activations in vectors. Bounds are in act.h.
 *
 * Both GELUs use the symmetry of their gate: with a = |x| and Q(a) = gate(-a), the upper tail,
 *   gelu(x) = max(x, 0) - a Q(a),   gelu'(x) = d(a) for x < 0, 1 - d(a) for x > 0,   d(a) = (a Q(a))'
 * so nothing cancels on either side. erf form: Q and d are polynomials in VL pieces of [0, 5.8], whose coefficients lie in
 * registers and are picked by a permutation: fewer operations than one long polynomial takes, and no exp or division. The fits
 * (scripts/curve-tables) are good to 4e-8; beyond the interval a is clamped, where a Q and |d| are below 2e-7. Q on AVX2, whose
 * pieces would be too few: its fourth root is smooth and errors shrink by the third power of it, so that one polynomial of
 * degree 10 does (minimax by Lawson's iteration, 2e-8 / max(1,a)). */
#include "math/act.h"
#include "math/fast/vec.h"
#include "math/fast/gelu_table.h"

#define PIECES_END 5.8f
#define TAIL_END 5.79f /* what a is clamped to: short of it, so that no rounding leads beyond the last piece */

/* The polynomial of the piece that a in [0, 5.79] falls into; n coefficients, constant first. In pairs, Horner over the pairs: a
 * chain of n would be bound by its latency. n is a constant after inlining, so the loop unrolls. */
INL vf in_pieces(vf a, const float (*c)[VL], int n)
{
	const vf per = bc((VL - .5f) / PIECES_END), t = a * per + 12582912.f; /* 1.5 * 2^23: the piece is in the low bits */
	const vf s = a * per - (t - 12582912.f), s2 = s * s;
	vf p = bc(0);
#pragma GCC unroll 4
	for (int i = (n - 1) / 2 * 2; i >= 0; i -= 2) {
		const vf q = i + 1 < n ? s * pick(c[i + 1], t) + pick(c[i], t) : pick(c[i], t);
		p = i + 2 < n ? p * s2 + q : q;
	}
	return p;
}
#define IN_PIECES(a, table) in_pieces(a, table, sizeof(table) / sizeof *(table))

INL vf gelu_slope(vf a) { return IN_PIECES(a, slope_table); } /* d */

INL vf normal_tail(vf a) /* Q */
{
#if VL == 16
	return IN_PIECES(a, tail_table);
#else
	static const float root[] = { 8.408964276e-01f, -1.677341014e-01f, -5.019240454e-02f, 4.617797211e-03f, 3.873927053e-03f,
		-1.354060951e-04f, -2.341085492e-04f, 2.677904195e-05f, 4.522028576e-06f, -1.060130444e-06f, 5.840526995e-08f };
	const vf a2 = a * a, a4 = a2 * a2;
	vf p = a2 * bc(root[10]) + (a * bc(root[9]) + bc(root[8]));
	for (int i = 4; i >= 0; i -= 4)
		p = p * a4 + ((a * bc(root[i + 3]) + bc(root[i + 2])) * a2 + (a * bc(root[i + 1]) + bc(root[i])));
	p *= p;
	return p * p;
#endif
}

#define SQRT_8_OVER_PI 1.59576912f /* 2 sqrt(2/pi) */
#define CUBIC .044715f
#define QUICK 1.702f

INL vf tanh_tail(vf a) /* Q of the tanh form: 1 / (1 + e^2u) */
{
	vf e = vexp(a * (a * a * (-SQRT_8_OVER_PI * CUBIC) - SQRT_8_OVER_PI));
	return e / (e + 1.f);
}

/* 1/(1 + e^-x), and in *rest 1/(1 + e^x), which 1 minus the first would blur. */
INL vf sigmoids(vf x, vf *rest)
{
	vf e = vexpz((vf)((vi)x | bci((int32_t)0x80000000))), big = 1.f / (e + 1.f), small = e * big; /* e of -|x| */
	vi negative = (vi)(x < bc(0));
	*rest = vsel(negative, big, small);
	return vsel(negative, small, big);
}

INL vf sigmoid(vf x)
{
	vf rest;
	return sigmoids(x, &rest);
}

INL vf value(enum nr_act act, vf x)
{
	vf a;
	switch (act) {
	case NR_ACT_RELU: return VMAX(bc(0), x);
	case NR_ACT_GELU: a = VMIN(bc(TAIL_END), vabs(x)); return VMAX(bc(0), x) - a * normal_tail(a);
	case NR_ACT_GELU_TANH: a = VMIN(bc(6), vabs(x)); return VMAX(bc(0), x) - a * tanh_tail(a);
	case NR_ACT_HARD_SWISH: return x * VMIN(bc(1), VMAX(bc(0), x * (1 / 6.f) + .5f));
	case NR_ACT_TANH: return vtanh(x);
	case NR_ACT_SIGMOID: return sigmoid(x);
	case NR_ACT_SILU: return x * sigmoid(x);
	case NR_ACT_EXP: return vexp_all(x);
	case NR_ACT_QUICK_GELU: return x * sigmoid(x * QUICK);
	default: return x;
	}
}

INL vf mirror(vf x, vf d) { return vsel((vi)(x > bc(0)), 1.f - d, d); } /* d where x <= 0 */

INL vf derivative(enum nr_act act, vf x)
{
	vf a, q, s;
	switch (act) {
	case NR_ACT_RELU: return vsel((vi)(x > bc(0)), bc(1), bc(0));
	case NR_ACT_GELU: return mirror(x, gelu_slope(VMIN(bc(TAIL_END), vabs(x))));
	case NR_ACT_GELU_TANH:
		a = VMIN(bc(6), vabs(x));
		q = tanh_tail(a);
		return mirror(x, q - a * (q - q * q) * (a * a * (3 * CUBIC * SQRT_8_OVER_PI) + SQRT_8_OVER_PI));
	case NR_ACT_HARD_SWISH:
		s = vsel((vi)(x > bc(3)), bc(1), x * (1 / 3.f) + .5f);
		return (vf)((vi)s & ~(vi)(x < bc(-3)));
	case NR_ACT_TANH: s = vtanh(x); return 1.f - s * s;
	case NR_ACT_SIGMOID: s = sigmoids(x, &q); return s * q;
	case NR_ACT_SILU: s = sigmoids(x, &q); return s * (x * q + 1.f);
	case NR_ACT_EXP: return vexp_all(x);
	case NR_ACT_QUICK_GELU: s = sigmoids(x * QUICK, &q); return s * (x * q * QUICK + 1.f);
	default: return bc(1);
	}
}

INL void forward(enum nr_act act, int64_t n, const float *x, float *y)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL) st(y + i, value(act, ld(x + i)));
	if (i < n) stn(y + i, value(act, ldn(x + i, n - i)), n - i);
}

INL void backward(enum nr_act act, int64_t n, const float *x, const float *dy, float *dx, int add)
{
	int64_t i = 0;
	for (; i + VL <= n; i += VL) {
		vf v = ld(dy + i) * derivative(act, ld(x + i));
		st(dx + i, add ? ld(dx + i) + v : v);
	}
	const int64_t t = n - i;
	if (t > 0) {
		vf v = ldn(dy + i, t) * derivative(act, ldn(x + i, t));
		stn(dx + i, add ? ldn(dx + i, t) + v : v, t);
	}
}

/* n lanes of the columns at i, over k rows; returns their sum. */
INL vf bias_column(enum nr_act act, int64_t k, int64_t n, const float *pre, int64_t ldp, const float *dy, int64_t lddy,
	float *dx, int64_t lddx)
{
	vf sum = bc(0);
	for (int64_t r = 0; r < k; r++) {
		if (n == VL) {
			vf v = ld(dy + r * lddy) * derivative(act, ld(pre + r * ldp));
			st(dx + r * lddx, v);
			sum += v;
		} else {
			vf v = ldn(dy + r * lddy, n) * derivative(act, ldn(pre + r * ldp, n));
			stn(dx + r * lddx, v, n);
			sum += v;
		}
	}
	return sum;
}

/* Four rows at a time, so that dbias is touched once for four. */
INL void bias_backward(enum nr_act act, int64_t rows, int64_t C, const float *pre, int64_t ldp, const float *dy,
	int64_t lddy, float *dx, int64_t lddx, float *dbias)
{
	for (int64_t r = 0; r < rows; r += 4) {
		const int64_t k = rows - r < 4 ? rows - r : 4;
		const float *p = pre + r * ldp, *g = dy + r * lddy;
		float *o = dx + r * lddx;
		int64_t i = 0;
		for (; i + VL <= C; i += VL) {
			vf v = k == 4 ? bias_column(act, 4, VL, p + i, ldp, g + i, lddy, o + i, lddx)
				: bias_column(act, k, VL, p + i, ldp, g + i, lddy, o + i, lddx);
			if (dbias) st(dbias + i, ld(dbias + i) + v);
		}
		const int64_t t = C - i;
		if (t > 0) {
			vf v = bias_column(act, k, t, p + i, ldp, g + i, lddy, o + i, lddx);
			if (dbias) stn(dbias + i, ldn(dbias + i, t) + v, t);
		}
	}
}

#include "math/act_table.h"

const struct nr_act_kernels NR_FAST(act) = NR_ACT_TABLE;
