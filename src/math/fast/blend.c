/* The blend family in vectors. */
#include "math/blend.h"

#include "math/fast/vec.h"

INL void add_to(float *p, vf v, int64_t n) { set(p, get(p, n) + v, n); }

struct row { const float *x; vf mean, var; };   /* var with eps */

INL struct row row_of(const struct nr_blend *b, int64_t r)
{
	return (struct row){ b->x + r * b->ldx, bc(b->row_mean ? b->row_mean[r] : 0),
		bc((b->row_var ? b->row_var[r] : 0) + b->eps) };
}
INL vf rstd_of(const struct nr_blend *b, const struct row *w, int64_t i, int64_t n)
{
	return 1.f / VSQRT(get(b->var + i, n) + w->var);
}
INL vf above(const struct nr_blend *b, const struct row *w, int64_t i, int64_t n)       /* the mean */
{
	return get(w->x + i, n) - (get(b->mean + i, n) + w->mean);
}

/* STEP(i, n) for all columns of a row. */
#define COLUMNS(C, STEP)                                                                                               \
	do {                                                                                                           \
		int64_t i_ = 0;                                                                                        \
		for (; i_ + VL <= (C); i_ += VL) STEP(i_, VL);                                                         \
		if (i_ < (C)) STEP(i_, (C) - i_);                                                                      \
	} while (0)

static void forward(const struct nr_blend *all, float *y, int64_t ldy)
{
	const struct nr_blend copy = *all, *b = &copy; /* which no store through a pointer can change */
	for (int64_t r = 0; r < b->rows; r++) {
		const struct row w = row_of(b, r);
		float *to = y + r * ldy;
#define STEP(i, n) set(to + i, above(b, &w, i, n) * rstd_of(b, &w, i, n) * get(b->gain + i, n) + get(b->bias + i, n), n)
		COLUMNS(b->C, STEP);
#undef STEP
	}
}

INL void sums_step(const struct nr_blend *b, const struct row *w, const float *dy, const struct nr_blend_sums *s, int64_t i,
	int64_t n, vf *row_mean, vf *row_var)
{
	const vf k = rstd_of(b, w, i, n), h = above(b, w, i, n) * k, t = get(dy + i, n);
	const vf dm = -t * get(b->gain + i, n) * k, dv = dm * h * k * .5f;
	add_to(s->gain + i, t * h, n);
	add_to(s->bias + i, t, n);
	add_to(s->mean + i, dm, n);
	add_to(s->var + i, dv, n);
	*row_mean += n == VL ? dm : (vf)((vi)dm & lanes(n)); /* 0 times the infinite rstd of an empty lane is NaN */
	*row_var += n == VL ? dv : (vf)((vi)dv & lanes(n));
}

static void sums(const struct nr_blend *all, const float *dy, int64_t lddy, const struct nr_blend_sums *to)
{
	const struct nr_blend copy = *all, *b = &copy;
	const struct nr_blend_sums sums_copy = *to, *s = &sums_copy;
	for (int64_t r = 0; r < b->rows; r++) {
		const struct row w = row_of(b, r);
		const float *from = dy + r * lddy;
		vf row_mean = bc(0), row_var = bc(0);
#define STEP(i, n) sums_step(b, &w, from, s, i, n, &row_mean, &row_var)
		COLUMNS(b->C, STEP);
#undef STEP
		if (s->row_mean) s->row_mean[r] = hsum(row_mean), s->row_var[r] = hsum(row_var);
	}
}

INL void apply_step(const struct nr_blend *b, const struct row *w, const float *dy, const struct nr_blend_grad *g, int64_t r,
	float *dx, int add, int64_t i, int64_t n)
{
	const vf x = get(w->x + i, n);
	vf d = get(dy + i, n) * get(b->gain + i, n) * rstd_of(b, w, i, n);
	if (g->shift) d += get(g->shift + i, n) + get(g->slope + i, n) * (x - get(g->center + i, n));
	if (g->row_shift) d += bc(g->row_shift[r]) + bc(g->row_slope[r]) * (x - bc(g->row_center[r]));
	if (add) d += get(dx + i, n);
	set(dx + i, d, n);
}

static void apply(const struct nr_blend *all, const float *dy, int64_t lddy, const struct nr_blend_grad *grad, float *dx,
	int64_t lddx, int add)
{
	const struct nr_blend copy = *all, *b = &copy;
	const struct nr_blend_grad grad_copy = *grad, *g = &grad_copy;
	for (int64_t r = 0; r < b->rows; r++) {
		const struct row w = row_of(b, r);
		const float *from = dy + r * lddy;
		float *to = dx + r * lddx;
#define STEP(i, n) apply_step(b, &w, from, g, r, to, add, i, n)
		COLUMNS(b->C, STEP);
#undef STEP
	}
}

const struct nr_blend_kernels NR_FAST(blend) = { .forward = forward, .sums = sums, .apply = apply };
