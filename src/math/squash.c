/* The plain reference of the squash family, in real. */
#include "math/squash.h"

#include <math.h>

static real curve(const struct nr_squash *f, real x, real *slope)
{
	const real u = f->alpha * x + f->shift, y = f->curve == NR_CURVE_TANH ? nr_tanh(u) : nr_erf(u);
	*slope = f->curve == NR_CURVE_TANH ? 1 - y * y : (real)M_2_SQRTPI * nr_exp(-u * u);
	return y;
}

static void forward(const struct nr_squash *f, int64_t rows, int64_t C, const real *x, int64_t ldx, real *y, int64_t ldy)
{
	real slope;
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t i = 0; i < C; i++) {
			const real t = curve(f, x[r * ldx + i], &slope);
			y[r * ldy + i] = f->weight ? f->weight[i] * t + f->bias[i] : t;
		}
	}
}

static struct nr_squash_sums backward(const struct nr_squash *f, int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy,
	int64_t lddy, real *dx, int64_t lddx, int add, real *dweight, real *dbias)
{
	struct nr_squash_sums all = { 0, 0 };
	for (int64_t r = 0; r < rows; r++) {
		struct nr_squash_sums row = { 0, 0 };
		for (int64_t i = 0; i < C; i++) {
			real slope;
			const real v = x[r * ldx + i], g = dy[r * lddy + i], t = curve(f, v, &slope),
				s = (f->weight ? g * f->weight[i] : g) * slope;
			if (f->weight) dweight[i] += g * t, dbias[i] += g;
			row.alpha += s * v;
			row.shift += s;
			dx[r * lddx + i] = add ? dx[r * lddx + i] + f->alpha * s : f->alpha * s;
		}
		all.alpha += row.alpha;
		all.shift += row.shift;
	}
	return all;
}

const struct nr_squash_kernels nr_squash_plain = { forward, backward };
const struct nr_squash_kernels *nr_squash_active = &nr_squash_plain;
