/* The plain reference of the squash family, in real. */
#include "math/squash.h"

static void forward(int64_t rows, int64_t C, const real *x, int64_t ldx, real alpha, const real *weight, const real *bias,
	real *y, int64_t ldy)
{
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t i = 0; i < C; i++) {
			const real t = nr_tanh(alpha * x[r * ldx + i]);
			y[r * ldy + i] = weight ? weight[i] * t + bias[i] : t;
		}
	}
}

static real backward(int64_t rows, int64_t C, const real *x, int64_t ldx, const real *dy, int64_t lddy, real alpha,
	const real *weight, real *dx, int64_t lddx, int add, real *dweight, real *dbias)
{
	real dalpha = 0;
	for (int64_t r = 0; r < rows; r++) {
		real of_row = 0;
		for (int64_t i = 0; i < C; i++) {
			const real v = x[r * ldx + i], g = dy[r * lddy + i], t = nr_tanh(alpha * v);
			const real s = (weight ? g * weight[i] : g) * (1 - t * t);
			if (weight) dweight[i] += g * t, dbias[i] += g;
			of_row += s * v;
			dx[r * lddx + i] = add ? dx[r * lddx + i] + alpha * s : alpha * s;
		}
		dalpha += of_row;
	}
	return dalpha;
}

const struct nr_squash_kernels nr_squash_plain = { forward, backward };
const struct nr_squash_kernels *nr_squash_active = &nr_squash_plain;
