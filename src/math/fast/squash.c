/* The squash family in vectors: one pass over memory; the curve is what takes the time. stream: the data come from memory and go there
 * past the caches (math/stream.h).
 *
 * Curves are polynomials in VL pieces (scripts/curve-tables), whose coefficients are picked by a permutation: no division, which takes
 * longer than all the rest, and no exp. Relative error below 6e-7, of the slope of erf absolute (test/unit/squash.c). */
#include "math/squash.h"

#include "math/fast/stream.h"
#include "math/fast/squash_table.h" /* in pieces of VL */

#define PIECES(table) table, (int)(sizeof(table) / sizeof *(table)) - 1
INL vf polynomial(const float (*c)[VL], int degree, vf piece, vf f)
{
	vf p = pick(c[degree], piece);
#pragma GCC unroll 8
	for (int i = degree - 1; i >= 0; i--) p = p * f + pick(c[i], piece);
	return p;
}

/* erf(x) = x gain(|x|), and its slope, about the nearest of the numbers that lie one over `per` apart. From 3.8325 on erf is 1. */
#define ERF_END bc(3.8325f)
struct place { vf x, a, piece, f; };
INL struct place place_of(vf x)
{
	const vf v = VMAX(-ERF_END, VMIN(ERF_END, x)), a = vabs(v), per = bc((VL - .5f) / 3.84f), t = a * per + 12582912.f; /* 1.5 * 2^23 */
	return (struct place){ v, a, t, a * per - (t - 12582912.f) };
}
INL vf erf_at(struct place p) { return p.x * polynomial(PIECES(gain_table), p.piece, p.f); }
INL vf erf_slope_at(struct place p)
{
	return (vf)((vi)polynomial(PIECES(slope_table), p.piece, p.f) & ~(vi)(p.a >= ERF_END));
}

/* Pieces grow with b = 1 + |x|: its exponent and the next bits (one of 8 pieces, two of 16) are the piece. The one from 11 on is 1. */
enum { BELOW = VL == 16 ? 21 : 22 };
INL vf squash_tanh(vf x)
{
	const vf a = VMIN(bc(11), vabs(x)), b = a + 1.f, from = (vf)((vi)b & ~((1 << BELOW) - 1)) - 1.f;
	const vf p = polynomial(PIECES(tanh_table), (vf)((vu)b >> BELOW), a - from);
	return (vf)((vi)p | ((vi)x & bci((int32_t)0x80000000)));
}

/* What all steps share, in vectors. */
struct job {
	vf alpha, shift;
	const float *weight, *bias;
	float *dweight, *dbias;
	int add;
};

/* n values from column i on, whose x and y these are; tanh has no shift. */
INL void value_step(enum nr_squash_curve c, int stream, const struct job *f, int64_t n, int64_t i, const float *x, float *y)
{
	const vf v = get(x, n), t = c == NR_CURVE_TANH ? squash_tanh(f->alpha * v) : erf_at(place_of(f->alpha * v + f->shift));
	st_by(stream, y, f->weight ? t * get(f->weight + i, n) + get(f->bias + i, n) : t, n);
}

INL void value_rows(enum nr_squash_curve c, int stream, const struct job *f, int64_t rows, int64_t C, const float *x, int64_t ldx,
	float *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
		int64_t i = 0;
		for (; i + VL <= C; i += VL) value_step(c, stream, f, VL, i, x + i, y + i);
		if (i < C) value_step(c, stream, f, C - i, i, x + i, y + i);
	}
}

INL void values(enum nr_squash_curve c, const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y,
	int64_t ldy)
{
	const struct job f = { .alpha = bc(s->alpha), .shift = bc(s->shift), .weight = s->weight, .bias = s->bias };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift) };
	if (!s->weight) {
		value_rows(c, 0, &bare, rows, C, x, ldx, y, ldy);
	} else if (!s->stream || !stream_fits(C, y, ldy)) {
		value_rows(c, 0, &f, rows, C, x, ldx, y, ldy);
	} else {
		value_rows(c, 1, &f, rows, C, x, ldx, y, ldy);
		stream_end();
	}
}

static void forward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, float *y, int64_t ldy)
{
	if (s->curve == NR_CURVE_TANH) values(NR_CURVE_TANH, s, rows, C, x, ldx, y, ldy);
	else values(NR_CURVE_ERF, s, rows, C, x, ldx, y, ldy);
}

struct sums { vf alpha, shift; };

/* n values from column i on, whose x, dy and dx these are. */
INL void grad_step(enum nr_squash_curve c, int stream, const struct job *f, int64_t n, int64_t i, const float *x, const float *dy,
	float *dx, struct sums *sum)
{
	const vf v = get(x, n), g = get(dy, n);
	vf t, s = f->weight ? g * get(f->weight + i, n) : g;
	if (c == NR_CURVE_TANH) {
		t = squash_tanh(f->alpha * v);
		s -= s * t * t;
	} else {
		const struct place p = place_of(f->alpha * v + f->shift);
		t = erf_at(p);
		s *= erf_slope_at(p);
	}
	if (f->weight) {
		set(f->dweight + i, get(f->dweight + i, n) + g * t, n);
		set(f->dbias + i, get(f->dbias + i, n) + g, n);
	}
	st_by(stream, dx, f->add ? get(dx, n) + f->alpha * s : f->alpha * s, n);
	sum->alpha += s * v;
	if (c == NR_CURVE_ERF) sum->shift += s;
}

INL struct nr_squash_sums grad_rows(enum nr_squash_curve c, int stream, const struct job *f, int64_t rows, int64_t C, const float *x,
	int64_t ldx, const float *dy, int64_t lddy, float *dx, int64_t lddx)
{
	struct nr_squash_sums all = { 0, 0 };
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx) {
		struct sums sum = { bc(0), bc(0) };
		int64_t i = 0;
		for (; i + VL <= C; i += VL) grad_step(c, stream, f, VL, i, x + i, dy + i, dx + i, &sum);
		if (i < C) grad_step(c, stream, f, C - i, i, x + i, dy + i, dx + i, &sum);
		all.alpha += hsum(sum.alpha);
		if (c == NR_CURVE_ERF) all.shift += hsum(sum.shift);
	}
	return all;
}

INL struct nr_squash_sums grads(enum nr_squash_curve c, const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx,
	const float *dy, int64_t lddy, float *dx, int64_t lddx, int add, float *dweight, float *dbias)
{
	const struct job f = { bc(s->alpha), bc(s->shift), s->weight, s->bias, dweight, dbias, add };
	const struct job bare = { .alpha = bc(s->alpha), .shift = bc(s->shift), .add = add };
	if (!s->weight) return grad_rows(c, 0, &bare, rows, C, x, ldx, dy, lddy, dx, lddx);
	if (!s->stream || add || dx == dy || !stream_fits(C, dx, lddx)) return grad_rows(c, 0, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	const struct nr_squash_sums all = grad_rows(c, 1, &f, rows, C, x, ldx, dy, lddy, dx, lddx);
	stream_end();
	return all;
}

static struct nr_squash_sums backward(const struct nr_squash *s, int64_t rows, int64_t C, const float *x, int64_t ldx, const float *dy,
	int64_t lddy, float *dx, int64_t lddx, int add, float *dweight, float *dbias)
{
	if (s->curve == NR_CURVE_TANH) return grads(NR_CURVE_TANH, s, rows, C, x, ldx, dy, lddy, dx, lddx, add, dweight, dbias);
	return grads(NR_CURVE_ERF, s, rows, C, x, ldx, dy, lddy, dx, lddx, add, dweight, dbias);
}

const struct nr_squash_kernels NR_FAST(squash) = { forward, backward };
