/* The seed family in vectors. A row is read from memory once and found in the first-level cache for its second look. stream: the data come
 * from memory and go there past the caches (math/stream.h); rows further on are asked for. */
#include "math/seed.h"

#include "math/fast/stream.h"

/* Calls step(n, i) for the columns from .. end - 1, VL at a time and what is left. */
#define COLUMNS(from, end, step)                                                                                                \
	do {                                                                                                                    \
		int64_t i = (from);                                                                                             \
		for (; i + VL <= (end); i += VL) step(VL);                                                                      \
		if (i < (end)) step((end) - i);                                                                                 \
	} while (0)

INL void forward_by(int stream, const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, float *rstd,
	float *gate)
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
		if (stream) __builtin_prefetch(x + 3 * ldx + i, 0, 2);                                                          \
		square += v * v;                                                                                                \
		dot += v * get(beta + i, n);                                                                                    \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, LOOK);
			gate[h] = vtanh(bc(hsum(dot)))[0];
		}
		const float k = rstd[r] = 1 / __builtin_sqrtf(hsum(square) / (float)C + f->eps);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]), s = bc(k);
#define WRITE(n) st_by(stream, y + i, get(x + i, n) * s * (p * get(alpha + i, n) + get(weight + i, n)), n)
			COLUMNS(h * width, (h + 1) * width, WRITE);
		}
	}
}

static void forward(const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, float *rstd, float *gate)
{
	if (!f->stream || f->C / f->heads % VL || !stream_fits(f->C, y, ldy)) {
		forward_by(0, f, rows, x, ldx, y, ldy, rstd, gate);
		return;
	}
	forward_by(1, f, rows, x, ldx, y, ldy, rstd, gate);
	stream_end();
}

INL void backward_by(int stream, const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, const float *dy, int64_t lddy,
	const float *rstd, const float *gate, float *dx, int64_t lddx, int add, float *dweight, float *dalpha, float *dbeta)
{
	const int64_t C = f->C, width = C / f->heads;
	const float *weight = f->weight, *alpha = f->alpha, *beta = f->beta;
	for (int64_t r = 0; r < rows; r++, x += ldx, dy += lddy, dx += lddx, gate += f->heads) {
		const float k = rstd[r];
		const vf s = bc(k);
		float slope[NR_SEED_HEADS];             /* d loss / d (x . beta) */
		vf all = bc(0);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]);
			vf gated = bc(0);
#define ALONG(n)                                                                                                                \
	do {                                                                                                                    \
		const vf t = get(dy + i, n) * get(x + i, n), u = t * s;                                                         \
		if (stream) __builtin_prefetch(x + 3 * ldx + i, 0, 2), __builtin_prefetch(dy + 3 * lddy + i, 0, 2);             \
		gated += t * get(alpha + i, n);                                                                                 \
		all += t * get(weight + i, n);                                                                                  \
		set(dweight + i, get(dweight + i, n) + u, n);                                                                   \
		set(dalpha + i, get(dalpha + i, n) + u * p, n);                                                                 \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, ALONG);
			slope[h] = hsum(gated) * k * (1 - gate[h] * gate[h]);
			all += gated * p;
		}
		const vf along = bc(hsum(all) * k * k * k / (float)C);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]), e = bc(slope[h]);
#define GRAD(n)                                                                                                                 \
	do {                                                                                                                    \
		const vf v = get(x + i, n), g = s * get(dy + i, n) * (p * get(alpha + i, n) + get(weight + i, n));              \
		const vf d = g - v * along + e * get(beta + i, n);                                                              \
		set(dbeta + i, get(dbeta + i, n) + e * v, n);                                                                   \
		st_by(stream, dx + i, add ? get(dx + i, n) + d : d, n);                                                         \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, GRAD);
		}
	}
}

static void backward(const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, const float *dy, int64_t lddy, const float *rstd,
	const float *gate, float *dx, int64_t lddx, int add, float *dweight, float *dalpha, float *dbeta)
{
	if (add) {
		backward_by(0, f, rows, x, ldx, dy, lddy, rstd, gate, dx, lddx, 1, dweight, dalpha, dbeta);
	} else if (!f->stream || dx == dy || f->C / f->heads % VL || !stream_fits(f->C, dx, lddx)) {
		backward_by(0, f, rows, x, ldx, dy, lddy, rstd, gate, dx, lddx, 0, dweight, dalpha, dbeta);
	} else {
		backward_by(1, f, rows, x, ldx, dy, lddy, rstd, gate, dx, lddx, 0, dweight, dalpha, dbeta);
		stream_end();
	}
}

const struct nr_seed_kernels NR_FAST(seed) = { forward, backward };
