/* The plain reference of the seed family, in real. */
#include "math/seed.h"

static void forward(const struct nr_seed *f, int64_t rows, const real *x, int64_t ldx, real *y, int64_t ldy, real *rstd, real *gate)
{
	const int64_t C = f->C, width = C / f->heads;
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, gate += f->heads) {
		real square = 0;
		for (int64_t i = 0; i < C; i++) square += x[i] * x[i];
		const real k = rstd[r] = 1 / nr_sqrt(square / (real)C + f->eps);
		for (int64_t h = 0; h < f->heads; h++) {
			real dot = 0;
			for (int64_t i = h * width; i < (h + 1) * width; i++) dot += x[i] * f->beta[i];
			gate[h] = nr_tanh(dot);
			for (int64_t i = h * width; i < (h + 1) * width; i++) y[i] = x[i] * k * (gate[h] * f->alpha[i] + f->weight[i]);
		}
	}
}

/* With g = dy (p alpha + weight) and e_h = (1 - p_h^2) sum_h(dy x r alpha): dx = r (g - x r^2 mean(g x)) + e beta. */
static void backward(const struct nr_seed *f, int64_t rows, const real *x, int64_t ldx, const real *dy, int64_t lddy, const real *rstd,
	const real *gate, real *dx, int64_t lddx, int add, real *dweight, real *dalpha, real *dbeta)
{
	const int64_t C = f->C, width = C / f->heads;
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx, gate += f->heads) {
		const real k = rstd[r];
		real along = 0;
		for (int64_t i = 0; i < C; i++) along += dy[i] * (gate[i / width] * f->alpha[i] + f->weight[i]) * x[i];
		along *= k * k * k / (real)C;
		for (int64_t h = 0; h < f->heads; h++) {
			const real p = gate[h];
			real e = 0;
			for (int64_t i = h * width; i < (h + 1) * width; i++) e += dy[i] * x[i] * f->alpha[i];
			e *= k * (1 - p * p);
			for (int64_t i = h * width; i < (h + 1) * width; i++) {
				const real t = dy[i] * x[i] * k, v = x[i];
				nr_put(&dx[i], k * dy[i] * (p * f->alpha[i] + f->weight[i]) - v * along + e * f->beta[i], add);
				dweight[i] += t;
				dalpha[i] += t * p;
				dbeta[i] += e * v;
			}
		}
	}
}

const struct nr_seed_kernels nr_seed_plain = { forward, backward };
const struct nr_seed_kernels *nr_seed_active = &nr_seed_plain;
