/* Depthwise convolution in vectors of channels. See ../depthwise.h.
 *
 * Filters three wide that move by 1 have code of their own. A few neighbouring outputs are made at a time, all channels of them one after
 * the other: memory is walked through in its order, and an input is read once for all outputs of the group that it is part of. (To carry
 * a vector of channels along the whole row would keep the filter in registers, but pixels lie C values apart, often a power of 2, of
 * which the first-level cache holds few.) The lines of the next group are asked for meanwhile. */
#include "math/depthwise.h"

#include "math/fast/vec.h"

enum { GROUP = 4 };

INL vf load(const int whole, const float *p, int64_t n) { return whole ? ld(p) : ldn(p, n); }
INL void store(const int whole, float *p, vf v, int64_t n)
{
	if (whole) st(p, v);
	else stn(p, v, n);
}

/* Outputs ox .. ox + n - 1; their columns j0 .. j1 - 1, of n + 2, lie on the picture. */
struct group { int64_t ox, j0, j1; };

static struct group group_at(const struct nr_depthwise_row *r, int64_t ox, int64_t n)
{
	const int64_t left = ox - r->pw, right = r->W - left;
	return (struct group){ ox, left < 0 ? -left : 0, right < n + 2 ? right : n + 2 };
}

INL void ask_for(const struct nr_depthwise_row *r, const int rows, const int n, const struct group *g, int64_t c, const float *other)
{
	const float *x = r->x + ((rows - 1) * r->W + g->ox - r->pw + n + 2) * r->C + c;
#pragma GCC unroll 4
	for (int i = 0; i < n; i++) {
		__builtin_prefetch(x + i * r->C, 0, 2);
		__builtin_prefetch(other + (g->ox + n + i) * r->C + c, 0, 2);
	}
}

/* rows, n, whole (a whole vector of channels): constants once inlined. */
INL void forward_group(const int rows, const int n, const int whole, const struct nr_depthwise_row *r, const struct group *g,
	const float *f,
	const float *bias, float *y, int add, int64_t c)
{
	const int64_t C = r->C, line = r->W * C, rest = C - c;
	const float *x = r->x + (g->ox - r->pw) * C + c;
	vf k[9], sum[GROUP];
#pragma GCC unroll 9
	for (int t = 0; t < 3 * rows; t++) k[t] = load(whole, f + t * C + c, rest);
	const vf b = bias ? load(whole, bias + c, rest) : (vf){ 0 };
#pragma GCC unroll 4
	for (int i = 0; i < n; i++) sum[i] = b;
	if (n > 1) ask_for(r, rows, n, g, c, y);
#pragma GCC unroll 6
	for (int j = 0; j < n + 2; j++) {
		if (j < g->j0 || j >= g->j1) continue;
#pragma GCC unroll 3
		for (int ky = 0; ky < rows; ky++) {
			const vf v = load(whole, x + ky * line + j * C, rest);
#pragma GCC unroll 3
			for (int kx = 0; kx < 3; kx++)
				if (j >= kx && j - kx < n) sum[j - kx] += v * k[3 * ky + kx];
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < n; i++) {
		float *o = y + (g->ox + i) * C + c;
		store(whole, o, add ? load(whole, o, rest) + sum[i] : sum[i], rest);
	}
}

INL void weight_group(const int rows, const int n, const int whole, const struct nr_depthwise_row *r, const struct group *g,
	const float *dy,
	float *df, int64_t c)
{
	const int64_t C = r->C, line = r->W * C, rest = C - c;
	const float *x = r->x + (g->ox - r->pw) * C + c;
	vf d[GROUP], sum[9];
#pragma GCC unroll 9
	for (int t = 0; t < 3 * rows; t++) sum[t] = load(whole, df + t * C + c, rest);
#pragma GCC unroll 4
	for (int i = 0; i < n; i++) d[i] = load(whole, dy + (g->ox + i) * C + c, rest);
	if (n > 1) ask_for(r, rows, n, g, c, dy);
#pragma GCC unroll 6
	for (int j = 0; j < n + 2; j++) {
		if (j < g->j0 || j >= g->j1) continue;
#pragma GCC unroll 3
		for (int ky = 0; ky < rows; ky++) {
			const vf v = load(whole, x + ky * line + j * C, rest);
#pragma GCC unroll 3
			for (int kx = 0; kx < 3; kx++)
				if (j >= kx && j - kx < n) sum[3 * ky + kx] += v * d[j - kx];
		}
	}
#pragma GCC unroll 9
	for (int t = 0; t < 3 * rows; t++) store(whole, df + t * C + c, sum[t], rest);
}

#define ALL_CHANNELS(make, rows, n, ...)                                                                                       \
	{                                                                                                                        \
		int64_t c = 0;                                                                                                   \
		for (; c + VL <= r->C; c += VL) make(rows, n, 1, r, &g, __VA_ARGS__, c);                                         \
		if (c < r->C) make(rows, n, 0, r, &g, __VA_ARGS__, c);                                                          \
	}
#define ALL_OUTPUTS(make, rows, ...)                                                                                           \
	for (int64_t ox = 0; ox < r->Wo;) {                                                                                      \
		const int many = ox + GROUP <= r->Wo;                                                                            \
		const struct group g = group_at(r, ox, many ? GROUP : 1);                                                        \
		if (many) ALL_CHANNELS(make, rows, GROUP, __VA_ARGS__)                                                          \
		else ALL_CHANNELS(make, rows, 1, __VA_ARGS__)                                                                   \
		ox += many ? GROUP : 1;                                                                                          \
	}
#define DEFINE(rows)                                                                                                            \
	static void forward_##rows(const struct nr_depthwise_row *r, const float *f, const float *bias, float *y, int add)       \
	{                                                                                                                        \
		ALL_OUTPUTS(forward_group, rows, f, bias, y, add)                                                                \
	}                                                                                                                        \
	static void weight_##rows(const struct nr_depthwise_row *r, const float *dy, float *df)                                  \
	{                                                                                                                        \
		ALL_OUTPUTS(weight_group, rows, dy, df)                                                                          \
	}
DEFINE(1)
DEFINE(2)
DEFINE(3)

static int by_groups(const struct nr_depthwise_row *r) { return r->kw == 3 && r->sw == 1 && r->kh >= 1 && r->kh <= 3; }

static void forward(const struct nr_depthwise_row *r, const float *f, const float *bias, float *y, int add)
{
	static void (*const groups[])(const struct nr_depthwise_row *, const float *, const float *, float *, int) = { forward_1,
		forward_2, forward_3 };
	if (by_groups(r)) {
		groups[r->kh - 1](r, f, bias, y, add);
		return;
	}
	for (int64_t ox = 0; ox < r->Wo; ox++) {
		int64_t first, end;
		nr_depthwise_taps(r, ox, &first, &end);
		for (int64_t c = 0; c < r->C; c += VL) {
			const float *x = r->x + (ox * r->sw - r->pw) * r->C + c;
			vf sum = bias ? ldn(bias + c, r->C - c) : (vf){ 0 };
			for (int64_t ky = 0; ky < r->kh; ky++)
				for (int64_t kx = first; kx < end; kx++)
					sum += ldn(x + (ky * r->W + kx) * r->C, r->C - c) * ldn(f + (ky * r->kw + kx) * r->C + c, r->C - c);
			float *o = y + ox * r->C + c;
			stn(o, add ? ldn(o, r->C - c) + sum : sum, r->C - c);
		}
	}
}

static void weight(const struct nr_depthwise_row *r, const float *dy, float *df)
{
	static void (*const groups[])(const struct nr_depthwise_row *, const float *, float *) = { weight_1, weight_2, weight_3 };
	if (by_groups(r)) {
		groups[r->kh - 1](r, dy, df);
		return;
	}
	for (int64_t ox = 0; ox < r->Wo; ox++) {
		int64_t first, end;
		nr_depthwise_taps(r, ox, &first, &end);
		for (int64_t ky = 0; ky < r->kh; ky++)
			for (int64_t kx = first; kx < end; kx++) {
				const float *x = r->x + (ky * r->W + ox * r->sw - r->pw + kx) * r->C, *d = dy + ox * r->C;
				float *to = df + (ky * r->kw + kx) * r->C;
				for (int64_t c = 0; c < r->C; c += VL)
					stn(to + c, ldn(to + c, r->C - c) + ldn(x + c, r->C - c) * ldn(d + c, r->C - c), r->C - c);
			}
	}
}

const struct nr_depthwise_kernels NR_FAST(depthwise) = { forward, weight };
