/* The seed family in vectors. A row is read from memory once and found in the first-level cache for its second look. */
#include "math/seed.h"

#include "math/fast/vec.h"

/* Calls step(n, i) for the columns from .. end - 1, VL at a time and what is left. */
#define COLUMNS(from, end, step)                                                                                                \
	do {                                                                                                                    \
		int64_t i = (from);                                                                                             \
		for (; i + VL <= (end); i += VL) step(VL);                                                                      \
		if (i < (end)) step((end) - i);                                                                                 \
	} while (0)

static void forward(const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, float *rstd, float *gate)
{
	const int64_t C = f->C, width = C / f->heads;
	const float *weight = f->weight, *alpha = f->alpha, *beta = f->beta;
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, gate += f->heads) {
		vf square = bc(0);
		for (int64_t h = 0; h < f->heads; h++) {
			vf dot = bc(0);
#define LOOK(n)                                                                                                                 \
	do {                                                                                                                    \
		const vf v = get(x + i, n);                                                                                     \
		square += v * v;                                                                                                \
		dot += v * get(beta + i, n);                                                                                    \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, LOOK);
			gate[h] = vtanh(bc(hsum(dot)))[0];
		}
		const float k = rstd[r] = 1 / __builtin_sqrtf(hsum(square) / (float)C + f->eps);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]), s = bc(k);
#define WRITE(n) set(y + i, get(x + i, n) * s * (p * get(alpha + i, n) + get(weight + i, n)), n)
			COLUMNS(h * width, (h + 1) * width, WRITE);
		}
	}
}

static void backward(const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, const float *dy, int64_t lddy, const float *rstd,
	const float *gate, float *dx, int64_t lddx, int add, float *dweight, float *dalpha, float *dbeta)
{
	const int64_t C = f->C, width = C / f->heads;
	const float *weight = f->weight, *alpha = f->alpha, *beta = f->beta;
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx, gate += f->heads) {
		const float k = rstd[r];
		const vf s = bc(k);
		vf all = bc(0);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]);
#define ALONG(n)                                                                                                                \
	do {                                                                                                                    \
		const vf t = get(dy + i, n) * get(x + i, n), u = t * s;                                                         \
		all += t * (p * get(alpha + i, n) + get(weight + i, n));                                                        \
		set(dweight + i, get(dweight + i, n) + u, n);                                                                   \
		set(dalpha + i, get(dalpha + i, n) + u * p, n);                                                                 \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, ALONG);
		}
		const vf along = bc(hsum(all) * k * k * k / (float)C);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]);
			vf dot = bc(0);
#define GATE(n) dot += get(dy + i, n) * get(x + i, n) * get(alpha + i, n)
			COLUMNS(h * width, (h + 1) * width, GATE);
			const vf e = bc(hsum(dot) * k * (1 - gate[h] * gate[h]));
#define GRAD(n)                                                                                                                 \
	do {                                                                                                                    \
		const vf v = get(x + i, n), g = s * get(dy + i, n) * (p * get(alpha + i, n) + get(weight + i, n));              \
		const vf d = g - v * along + e * get(beta + i, n);                                                              \
		set(dbeta + i, get(dbeta + i, n) + e * v, n);                                                                   \
		set(dx + i, add ? get(dx + i, n) + d : d, n);                                                                   \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, GRAD);
		}
	}
}

const struct nr_seed_kernels NR_FAST(seed) = { forward, backward };
