/* The seed family in vectors. A row is read from memory once and found in the first-level cache for its second look; the first look at row
 * r + 1 comes before row r is written, so that nothing waits for a row's sums. stream: the data come from memory and go there past the
 * caches (math/stream.h); rows further on are asked for. */
#include "math/seed.h"

#include "math/fast/stream.h"

/* Calls step(n, i, chain) for the columns from .. end - 1, VL at a time in four chains, and what is left. */
#define COLUMNS(from, end, step)                                                                                                \
	do {                                                                                                                    \
		int64_t i = (from);                                                                                             \
		for (; i + 4 * VL <= (end); i += 4 * VL)                                                                        \
			for (int j = 0; j < 4; j++) step(VL, i + j * VL, j);                                                    \
		for (; i + VL <= (end); i += VL) step(VL, i, 0);                                                                \
		if (i < (end)) step((end) - i, i, 1);                                                                           \
	} while (0)
INL void none(vf v[4]) { v[0] = v[1] = v[2] = v[3] = bc(0); }
INL vf sum_of(const vf v[4]) { return (v[0] + v[1]) + (v[2] + v[3]); }

/* rstd and the gates of a row. */
INL float look(int stream, const struct nr_seed *f, const float *x, int64_t ldx, float *gate)
{
	const int64_t width = f->C / f->heads;
	const float *beta = f->beta;
	vf square[4], dot[4];
	none(square);
	for (int64_t h = 0; h < f->heads; h++) {
		none(dot);
#define LOOK(n, at, chain)                                                                                                      \
	do {                                                                                                                    \
		const vf v = get(x + (at), n);                                                                                  \
		if (stream) __builtin_prefetch(x + 3 * ldx + (at), 0, 2);                                                       \
		square[chain] += v * v;                                                                                         \
		dot[chain] += v * get(beta + (at), n);                                                                          \
	} while (0)
		COLUMNS(h * width, (h + 1) * width, LOOK);
		gate[h] = hsum(sum_of(dot));
	}
	for (int64_t h = 0; h < f->heads; h += VL) stn(gate + h, vtanh(ldn(gate + h, f->heads - h)), f->heads - h);
	return 1 / __builtin_sqrtf(hsum(sum_of(square)) / (float)f->C + f->eps);
}

INL void forward_by(int stream, const struct nr_seed *f, int64_t rows, const float *x, int64_t ldx, float *y, int64_t ldy, float *rstd,
	float *gate)
{
	const int64_t width = f->C / f->heads;
	const float *weight = f->weight, *alpha = f->alpha;
	if (rows > 0) rstd[0] = look(stream, f, x, ldx, gate);
	for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy, gate += f->heads) {
		if (r + 1 < rows) rstd[r + 1] = look(stream, f, x + ldx, ldx, gate + f->heads);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]), s = bc(rstd[r]);
#define WRITE(n, at, chain)                                                                                                     \
	st_by(stream, y + (at), get(x + (at), n) * s * (p * get(alpha + (at), n) + get(weight + (at), n)), n)
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
#define ALONG(n, at, chain)                                                                                                     \
	do {                                                                                                                    \
		const vf t = get(dy + (at), n) * get(x + (at), n), u = t * s;                                                   \
		if (stream) __builtin_prefetch(x + 3 * ldx + (at), 0, 2), __builtin_prefetch(dy + 3 * lddy + (at), 0, 2);       \
		gated += t * get(alpha + (at), n);                                                                              \
		all += t * get(weight + (at), n);                                                                               \
		set(dweight + (at), get(dweight + (at), n) + u, n);                                                             \
		set(dalpha + (at), get(dalpha + (at), n) + u * p, n);                                                           \
	} while (0)
			COLUMNS(h * width, (h + 1) * width, ALONG);
			slope[h] = hsum(gated) * k * (1 - gate[h] * gate[h]);
			all += gated * p;
		}
		const vf along = bc(hsum(all) * k * k * k / (float)C);
		for (int64_t h = 0; h < f->heads; h++) {
			const vf p = bc(gate[h]), e = bc(slope[h]);
#define GRAD(n, at, chain)                                                                                                      \
	do {                                                                                                                    \
		const vf v = get(x + (at), n), g = s * get(dy + (at), n) * (p * get(alpha + (at), n) + get(weight + (at), n));  \
		const vf d = g - v * along + e * get(beta + (at), n);                                                           \
		set(dbeta + (at), get(dbeta + (at), n) + e * v, n);                                                             \
		st_by(stream, dx + (at), add ? get(dx + (at), n) + d : d, n);                                                   \
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
