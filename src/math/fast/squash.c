/* The squash family in vectors: one pass over memory; the tanh is what takes the time. */
#include "math/squash.h"

#include "math/fast/vec.h"

/* n values, VL of them when n is the constant VL. */
INL vf get(const float *p, int64_t n) { return n == VL ? ld(p) : ldn(p, n); }
INL void set(float *p, vf v, int64_t n)
{
	if (n == VL) st(p, v);
	else stn(p, v, n);
}

/* n values from column i on, whose x and y these are. */
INL void value_step(int64_t n, int64_t i, const float *x, vf alpha, const float *weight, const float *bias, float *y)
{
	const vf t = vtanh(alpha * get(x, n));
	set(y, weight ? t * get(weight + i, n) + get(bias + i, n) : t, n);
}

INL void value_rows(int64_t rows, int64_t C, const float *x, int64_t ldx, vf alpha, const float *weight, const float *bias,
	float *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
		int64_t i = 0;
		for (; i + VL <= C; i += VL) value_step(VL, i, x + i, alpha, weight, bias, y + i);
		if (i < C) value_step(C - i, i, x + i, alpha, weight, bias, y + i);
	}
}

static void forward(int64_t rows, int64_t C, const float *x, int64_t ldx, float alpha, const float *weight, const float *bias,
	float *y, int64_t ldy)
{
	if (weight) value_rows(rows, C, x, ldx, bc(alpha), weight, bias, y, ldy);
	else value_rows(rows, C, x, ldx, bc(alpha), 0, 0, y, ldy);
}

/* What all steps of a backward share. */
struct grad {
	vf alpha;
	const float *weight;
	float *dweight, *dbias;
	int add;
};

/* n values from column i on, whose x, dy and dx these are; returns s x. */
INL vf grad_step(const struct grad *f, int64_t n, int64_t i, const float *x, const float *dy, float *dx)
{
	const vf v = get(x, n), g = get(dy, n), t = vtanh(f->alpha * v);
	vf s = f->weight ? g * get(f->weight + i, n) : g;
	s -= s * t * t;
	if (f->weight) {
		set(f->dweight + i, get(f->dweight + i, n) + g * t, n);
		set(f->dbias + i, get(f->dbias + i, n) + g, n);
	}
	set(dx, f->add ? get(dx, n) + f->alpha * s : f->alpha * s, n);
	return s * v;
}

INL float grad_rows(const struct grad *f, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	float *dx, int64_t lddx)
{
	float dalpha = 0;
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx) {
		vf sum = bc(0);
		int64_t i = 0;
		for (; i + VL <= C; i += VL) sum += grad_step(f, VL, i, x + i, dy + i, dx + i);
		if (i < C) sum += grad_step(f, C - i, i, x + i, dy + i, dx + i);
		dalpha += hsum(sum);
	}
	return dalpha;
}

static float backward(int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy, int64_t lddy, float alpha,
	const float *weight, float *dx, int64_t lddx, int add, float *dweight, float *dbias)
{
	const struct grad f = { bc(alpha), weight, dweight, dbias, add }, bare = { bc(alpha), 0, 0, 0, add };
	if (!weight) return grad_rows(&bare, rows, C, x, ldx, dy, lddy, dx, lddx);
	return grad_rows(&f, rows, C, x, ldx, dy, lddy, dx, lddx);
}

const struct nr_squash_kernels NR_FAST(squash) = { forward, backward };
