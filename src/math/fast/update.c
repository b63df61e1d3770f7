/* Parameter updates for AVX2 and AVX-512: one pass, masked tails. See ../update.h for the formulas. */
#include "math/update.h"

#include "math/fast/vec.h"

/* The sums are made in double. */
INL double fold(vd v)
{
	double s = 0;
	for (int i = 0; i < VL / 2; i++) s += v[i];
	return s;
}

struct adam_lanes { vf scale, l2, beta1, rest1, beta2, rest2, step, root, eps, keep; };

INL void adam1(const struct adam_lanes *c, vf *p, vf g, vf *m, vf *v)
{
	const vf d = c->scale * g + c->l2 * *p;
	*m = c->beta1 * *m + c->rest1 * d;
	*v = c->beta2 * *v + c->rest2 * d * d;
	*p = c->keep * *p - c->step * *m / (c->root * VSQRT(*v) + c->eps);
}

static void adam(int64_t n, float *p, const float *g, float *m, float *v, const struct nr_adam_coef *k)
{
	const struct adam_lanes c = { bc(k->scale), bc(k->l2), bc(k->beta1), bc(k->rest1), bc(k->beta2),
		bc(k->rest2), bc(k->step), bc(k->root), bc(k->eps), bc(k->keep) };
	int64_t i = 0;
	for (; i + VL <= n; i += VL) {
		vf pi = ld(p + i), mi = ld(m + i), vi_ = ld(v + i);
		adam1(&c, &pi, ld(g + i), &mi, &vi_);
		st(m + i, mi);
		st(v + i, vi_);
		st(p + i, pi);
	}
	if (i < n) {
		vf pi = ldn(p + i, n - i), mi = ldn(m + i, n - i), vi_ = ldn(v + i, n - i);
		adam1(&c, &pi, ldn(g + i, n - i), &mi, &vi_);
		stn(m + i, mi, n - i);
		stn(v + i, vi_, n - i);
		stn(p + i, pi, n - i);
	}
}

INL void sgd1(const struct nr_sgd_coef *c, vf *p, vf g, vf *m)
{
	const vf d = bc(c->scale) * g + bc(c->l2) * *p;
	*m = bc(c->keep_m) * *m + bc(c->add_m) * d;
	*p -= bc(c->rate_g) * d + bc(c->rate_m) * *m;
}

INL vf plain1(const struct nr_sgd_coef *c, vf p, vf g)
{
	return p - bc(c->rate_g) * (bc(c->scale) * g + bc(c->l2) * p);
}

static void sgd(int64_t n, float *p, const float *g, float *m, const struct nr_sgd_coef *k)
{
	const struct nr_sgd_coef c = *k;
	int64_t i = 0;
	if (!m) {
		for (; i + VL <= n; i += VL) st(p + i, plain1(&c, ld(p + i), ld(g + i)));
		if (i < n) stn(p + i, plain1(&c, ldn(p + i, n - i), ldn(g + i, n - i)), n - i);
		return;
	}
	for (; i + VL <= n; i += VL) {
		vf pi = ld(p + i), mi = ld(m + i);
		sgd1(&c, &pi, ld(g + i), &mi);
		st(m + i, mi);
		st(p + i, pi);
	}
	if (i < n) {
		vf pi = ldn(p + i, n - i), mi = ldn(m + i, n - i);
		sgd1(&c, &pi, ldn(g + i, n - i), &mi);
		stn(m + i, mi, n - i);
		stn(p + i, pi, n - i);
	}
}

static void ema(int64_t n, float *e, const float *p, float keep)
{
	const vf a = bc(keep), b = bc(1 - keep);
	int64_t i = 0;
	for (; i + VL <= n; i += VL) st(e + i, a * ld(e + i) + b * ld(p + i));
	if (i < n) stn(e + i, a * ldn(e + i, n - i) + b * ldn(p + i, n - i), n - i);
}

static double sum_sq(int64_t n, const float *x)
{
	vd s0 = { 0 }, s1 = { 0 };
	int64_t i = 0;
	for (; i < n; i += VL) {
		const vf v = i + VL <= n ? ld(x + i) : ldn(x + i, n - i);
		const vd a = widen_low(v), b = widen_high(v);
		s0 += a * a;
		s1 += b * b;
	}
	return fold(s0 + s1);
}

static double sum_sq_mix(int64_t n, double a, const float *x, double b, const float *y)
{
	vd s0 = { 0 }, s1 = { 0 };
	int64_t i = 0;
	for (; i < n; i += VL) {
		const int whole = i + VL <= n;
		const vf u = whole ? ld(x + i) : ldn(x + i, n - i), v = whole ? ld(y + i) : ldn(y + i, n - i);
		const vd d0 = a * widen_low(u) + b * widen_low(v), d1 = a * widen_high(u) + b * widen_high(v);
		s0 += d0 * d0;
		s1 += d1 * d1;
	}
	return fold(s0 + s1);
}

const struct nr_update_kernels NR_FAST(update) = { adam, sgd, ema, sum_sq, sum_sq_mix };
