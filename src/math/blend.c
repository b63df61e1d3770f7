/* The plain reference of the blend family. */
#include "math/blend.h"

#include "math/row.h"

struct value { real h, r; };
static struct value value(const struct nr_blend *b, int64_t r, int64_t i)
{
	const real m = b->mean[i] + (b->row_mean ? b->row_mean[r] : 0), v = b->var[i] + (b->row_var ? b->row_var[r] : 0);
	const real k = 1 / nr_sqrt(v + b->eps);
	return (struct value){ (b->x[r * b->ldx + i] - m) * k, k };
}

static void forward(const struct nr_blend *b, real *y, int64_t ldy)
{
	for (int64_t r = 0; r < b->rows; r++)
		for (int64_t i = 0; i < b->C; i++) y[r * ldy + i] = b->gain[i] * value(b, r, i).h + b->bias[i];
}

static void sums(const struct nr_blend *b, const real *dy, int64_t lddy, const struct nr_blend_sums *s)
{
	for (int64_t r = 0; r < b->rows; r++) {
		double row_mean = 0, row_var = 0;
		for (int64_t i = 0; i < b->C; i++) {
			const struct value v = value(b, r, i);
			const real t = dy[r * lddy + i], g = t * b->gain[i], dm = -g * v.r, dv = dm * v.h * v.r / 2;
			s->gain[i] += t * v.h;
			s->bias[i] += t;
			s->mean[i] += dm;
			s->var[i] += dv;
			row_mean += (double)dm;
			row_var += (double)dv;
		}
		if (s->row_mean) s->row_mean[r] = (real)row_mean, s->row_var[r] = (real)row_var;
	}
}

static void apply(const struct nr_blend *b, const real *dy, int64_t lddy, const struct nr_blend_grad *g, real *dx, int64_t lddx,
	int add)
{
	for (int64_t r = 0; r < b->rows; r++) {
		for (int64_t i = 0; i < b->C; i++) {
			const real x = b->x[r * b->ldx + i];
			real d = dy[r * lddy + i] * b->gain[i] * value(b, r, i).r;
			if (g->shift) d += g->shift[i] + g->slope[i] * (x - g->center[i]);
			if (g->row_shift) d += g->row_shift[r] + g->row_slope[r] * (x - g->row_center[r]);
			nr_put(&dx[r * lddx + i], d, add);
		}
	}
}

const struct nr_blend_kernels nr_blend_plain = { .forward = forward, .sums = sums, .apply = apply };
const struct nr_blend_kernels *nr_blend_active = &nr_blend_plain;
