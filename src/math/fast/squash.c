/* The squash family in vectors: one pass over memory; the curve is what takes the time. */
#include "math/squash.h"

#include "math/fast/vec.h"

/* erf(x) = x P(x^2) / Q(x^2), fitted to |x| < 3.83, where erf rounds to 1; relative error below 6e-7 (test/unit/squash.c). */
INL vf verf(vf x)
{
	const vf a = VMAX(bc(-3.8325f), VMIN(bc(3.8325f), x)), z = a * a;
	vf p = z * 2.800868907e-4f + 7.746394111e-3f, q = z * 1.661956182e-5f + 1.951536995e-3f;
	p = p * z + 6.474974535e-2f;
	q = q * z + 2.302919967e-2f;
	p = p * z + 2.957668676e-1f;
	q = q * z + 1.558981678e-1f;
	p = p * z + 1.128378925f;
	q = (q * z + 5.954431418e-1f) * z + 1.f;
	return VMAX(bc(-1), VMIN(bc(1), a * p / q));
}

/* What all steps share, in vectors. */
struct job {
	vf alpha, shift;
	const float *weight, *bias;
	float *dweight, *dbias;
	int add;
};

/* A curve's value at u; tanh has no shift. */
INL vf value(enum nr_squash_curve c, const struct job *f, vf x, vf *u)
{
	*u = c == NR_CURVE_TANH ? f->alpha * x : f->alpha * x + f->shift;
	return c == NR_CURVE_TANH ? vtanh(*u) : verf(*u);
}

/* n values from column i on, whose x and y these are. */
INL void value_step(enum nr_squash_curve c, const struct job *f, int64_t n, int64_t i, const float *x, float *y)
{
	vf u;
	const vf t = value(c, f, get(x, n), &u);
	set(y, f->weight ? t * get(f->weight + i, n) + get(f->bias + i, n) : t, n);
}

INL void value_rows(enum nr_squash_curve c, const struct job *f, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y,
	int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
		int64_t i = 0;
		for (; i + VL <= C; i += VL) value_step(c, f, VL, i, x + i, y + i);
		if (i < C) value_step(c, f, C - i, i, x + i, y + i);
	}
}

static void forward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y, int64_t ldy)
{
	const struct job f = { .alpha = bc(s->alpha), .shift = bc(s->shift), .weight = s->weight, .bias = s->bias };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift) };
	if (s->curve == NR_CURVE_TANH && s->weight) value_rows(NR_CURVE_TANH, &f, rows, C, x, ldx, y, ldy);
	else if (s->curve == NR_CURVE_TANH) value_rows(NR_CURVE_TANH, &bare, rows, C, x, ldx, y, ldy);
	else if (s->weight) value_rows(NR_CURVE_ERF, &f, rows, C, x, ldx, y, ldy);
	else value_rows(NR_CURVE_ERF, &bare, rows, C, x, ldx, y, ldy);
}

struct sums { vf alpha, shift; };

/* n values from column i on, whose x, dy and dx these are. */
INL void grad_step(enum nr_squash_curve c, const struct job *f, int64_t n, int64_t i, const float *x, const float *dy, float *dx,
	struct sums *sum)
{
	vf u;
	const vf v = get(x, n), g = get(dy, n), t = value(c, f, v, &u);
	vf s = f->weight ? g * get(f->weight + i, n) : g;
	if (c == NR_CURVE_TANH) s -= s * t * t;
	else s *= vexp(-u * u) * 1.12837917f;
	if (f->weight) {
		set(f->dweight + i, get(f->dweight + i, n) + g * t, n);
		set(f->dbias + i, get(f->dbias + i, n) + g, n);
	}
	set(dx, f->add ? get(dx, n) + f->alpha * s : f->alpha * s, n);
	sum->alpha += s * v;
	if (c == NR_CURVE_ERF) sum->shift += s;
}

INL struct nr_squash_sums grad_rows(enum nr_squash_curve c, const struct job *f, int64_t rows, int64_t C, const float *x, int64_t ldx,
	const float *dy, int64_t lddy, float *dx, int64_t lddx)
{
	struct nr_squash_sums all = { 0, 0 };
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx) {
		struct sums sum = { bc(0), bc(0) };
		int64_t i = 0;
		for (; i + VL <= C; i += VL) grad_step(c, f, VL, i, x + i, dy + i, dx + i, &sum);
		if (i < C) grad_step(c, f, C - i, i, x + i, dy + i, dx + i, &sum);
		all.alpha += hsum(sum.alpha);
		if (c == NR_CURVE_ERF) all.shift += hsum(sum.shift);
	}
	return all;
}

static struct nr_squash_sums backward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy,
	int64_t lddy, float *dx, int64_t lddx, int add, float *dweight, float *dbias)
{
	const struct job f = { bc(s->alpha), bc(s->shift), s->weight, s->bias, dweight, dbias, add };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift), .add = add };
	if (s->curve == NR_CURVE_TANH && s->weight) return grad_rows(NR_CURVE_TANH, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	if (s->curve == NR_CURVE_TANH) return grad_rows(NR_CURVE_TANH, &bare, rows, C, x, ldx, dy, lddy, dx, lddx);
	if (s->weight) return grad_rows(NR_CURVE_ERF, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	return grad_rows(NR_CURVE_ERF, &bare, rows, C, x, ldx, dy, lddy, dx, lddx);
}

const struct nr_squash_kernels NR_FAST(squash) = { forward, backward };
