/* The plain reference and the drivers: see winograd.h.
 *
 * Tiles (sample, row, column) are taken in blocks. Forward, a thread makes the 16 points of a block, multiplies them by some columns of the
 * weight at a time and turns these into outputs at once, so that all of it stays in its second-level cache. The weight's gradient sums over
 * tiles: threads make the points of a longer block together, then share the 16 products. */
#include "math/winograd.h"

#include <omp.h>
#include <string.h>

#include "math/gemm.h"
#include "math/row.h"

enum {
	POINTS = 16,
	TAPS = 9,
	WIDE = 16,                 /* channels from which on the maps cost less than they save */
	BLOCK = 128 << 10,         /* values of a block's points: with a part of the outputs and of the weight they fill 1 MB */
	COLUMNS = 128,             /* outputs of a block made at a time */
	DEPTH = 256,               /* tiles of a block of the weight's gradient */
	TURNED_COLUMNS = 384,
	SLAB = 8,                  /* inputs and outputs whose filters are mapped at a time: all of the lines that they share */
	SLAB_OUTPUTS = 32,
};

const struct nr_winograd_kernels *nr_winograd_active = &nr_winograd_plain;

/* ---- the reference ---- */

static const real B_turned[4][4] = { { 1, 0, -1, 0 }, { 0, 1, 1, 0 }, { 0, -1, 1, 0 }, { 0, 1, 0, -1 } };
static const real A_turned[2][4] = { { 1, 1, 1, 0 }, { 0, 1, -1, -1 } };
static const real A[4][2] = { { 1, 0 }, { 1, 1 }, { 1, -1 }, { 0, -1 } };
static const real G[4][3] = { { 1, 0, 0 }, { (real).5, (real).5, (real).5 }, { (real).5, (real)-.5, (real).5 }, { 0, 0, 1 } };
static const real G_turned[3][4] = { { 1, (real).5, (real).5, 0 }, { 0, (real).5, (real)-.5, 0 }, { 0, (real).5, (real).5, 1 } };

/* out (n,n) = m in m', m (n,k). */
static void both_sides(int n, int k, const real *m, const real *in, real *out)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			real sum = 0;
			for (int a = 0; a < k; a++)
				for (int b = 0; b < k; b++) sum += m[i * k + a] * in[a * k + b] * m[j * k + b];
			out[i * n + j] = sum;
		}
}

static void plain_input(int64_t n, const real *const d[16], real *v, int64_t step)
{
	for (int64_t c = 0; c < n; c++) {
		real in[16], out[16];
		for (int i = 0; i < 16; i++) in[i] = d[i][c];
		both_sides(4, 4, B_turned[0], in, out);
		for (int i = 0; i < 16; i++) v[i * step + c] = out[i];
	}
}

static void plain_output(int64_t n, const real *m, int64_t step, const real *bias, real *const y[4], int add)
{
	for (int64_t c = 0; c < n; c++) {
		real in[16], out[4];
		for (int i = 0; i < 16; i++) in[i] = m[i * step + c];
		both_sides(2, 4, A_turned[0], in, out);
		for (int i = 0; i < 4; i++)
			if (y[i]) y[i][c] = out[i] + (bias ? bias[c] : 0) + (add ? y[i][c] : 0);
	}
}

static void plain_gradient(int64_t n, const real *const dy[4], real *z, int64_t step)
{
	for (int64_t c = 0; c < n; c++) {
		real in[4], out[16];
		for (int i = 0; i < 4; i++) in[i] = dy[i][c];
		both_sides(4, 2, A[0], in, out);
		for (int i = 0; i < 16; i++) z[i * step + c] = out[i];
	}
}

static void plain_weight(int64_t n, const real *g, int64_t ldg, int turned, real *u, int64_t step)
{
	for (int64_t c = 0; c < n; c++) {
		real in[9], out[16];
		for (int i = 0; i < 9; i++) in[i] = g[c * ldg + (turned ? 8 - i : i)];
		both_sides(4, 3, G[0], in, out);
		for (int i = 0; i < 16; i++) u[i * step + c] = out[i];
	}
}

static void plain_weight_gradient(int64_t n, const real *u, int64_t step, real *dg, int add)
{
	for (int64_t c = 0; c < n; c++) {
		real in[16], out[9];
		for (int i = 0; i < 16; i++) in[i] = u[i * step + c];
		both_sides(3, 4, G_turned[0], in, out);
		for (int i = 0; i < 9; i++) nr_put(&dg[9 * c + i], out[i], add);
	}
}

const struct nr_winograd_kernels nr_winograd_plain = { plain_input, plain_output, plain_gradient, plain_weight, plain_weight_gradient };

/* ---- tiles ---- */

int nr_winograd_fits(const struct nr_conv *c)
{
	const struct nr_window *w = &c->w;
	return w->kh == 3 && w->kw == 3 && w->sh == 1 && w->sw == 1 && w->ph < 3 && w->pw < 3 && w->C >= WIDE && c->O >= WIDE &&
		nr_window_rows(w) > 0;
}

/* What the tiles of a convolution read and write: pictures of `in` channels, padded, and outputs of `out`. */
struct plane {
	int64_t H, W, in, ph, pw, Ho, Wo, out;
	int64_t tall, wide, all;                /* tiles along a side, and in the batch */
};

static struct plane plane(int64_t B, struct plane p)
{
	p.tall = (p.Ho + 1) / 2;
	p.wide = (p.Wo + 1) / 2;
	p.all = B * p.tall * p.wide;
	return p;
}

static struct plane plane_forward(const struct nr_conv *c)
{
	const struct nr_window *w = &c->w;
	return plane(w->B, (struct plane){ .H = w->H, .W = w->W, .in = w->C, .ph = w->ph, .pw = w->pw, .Ho = nr_window_h(w),
		.Wo = nr_window_w(w), .out = c->O });
}

/* The gradient of the data: a convolution of the gradient of the outputs. */
static struct plane plane_data(const struct nr_conv *c)
{
	const struct nr_window *w = &c->w;
	return plane(w->B, (struct plane){ .H = nr_window_h(w), .W = nr_window_w(w), .in = c->O, .ph = 2 - w->ph, .pw = 2 - w->pw,
		.Ho = w->H, .Wo = w->W, .out = w->C });
}

/* The pixels under tile t; zeros where it hangs over. */
static void pixels(const struct plane *p, const real *x, int64_t t, const real *zeros, const real *at[POINTS])
{
	const int64_t b = t / (p->tall * p->wide), y0 = t / p->wide % p->tall * 2 - p->ph, x0 = t % p->wide * 2 - p->pw;
	for (int64_t i = 0; i < 4; i++)
		for (int64_t j = 0; j < 4; j++) {
			const int in = y0 + i >= 0 && y0 + i < p->H && x0 + j >= 0 && x0 + j < p->W;
			at[4 * i + j] = in ? x + ((b * p->H + y0 + i) * p->W + x0 + j) * p->in : zeros;
		}
}

/* Where its outputs are, as a number of pixels; -1 where it hangs over. */
static void places(const struct plane *p, int64_t t, int64_t at[4])
{
	const int64_t b = t / (p->tall * p->wide), y0 = t / p->wide % p->tall * 2, x0 = t % p->wide * 2;
	for (int64_t i = 0; i < 2; i++)
		for (int64_t j = 0; j < 2; j++) {
			const int in = y0 + i < p->Ho && x0 + j < p->Wo;
			at[2 * i + j] = in ? (b * p->Ho + y0 + i) * p->Wo + x0 + j : -1;
		}
}

/* ---- scratch ---- */

static int64_t lines(int64_t n) { return (n + 15) / 16 * 16; }
static int64_t apart(int64_t n) { return lines(n) + 16; }      /* not a multiple of 4 kB, lest all points share a set of the cache */
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t threads(const struct nr_conv *c) { return c->threads > 0 ? c->threads : 1; }
static int team(const struct nr_conv *c) { return (int)nr_min64(threads(c), omp_get_max_threads()); }

/* How tiles are cut into tasks: blocks of tiles, and parts of the outputs where blocks are few. This changes no bit. */
struct cut { int64_t block, blocks, parts; };

static struct cut cut(const struct plane *p, int64_t threads)
{
	struct cut k = { .block = nr_max64(BLOCK / (POINTS * p->in), 14), .parts = 1 };
	k.blocks = ceil_div(p->all, nr_min64(k.block, p->all));
	if (k.blocks < 4 * threads) k.parts = nr_min64(threads, ceil_div(p->out, COLUMNS));
	k.block = ceil_div(p->all, k.blocks);
	return k;
}

static int64_t values_of_thread(const struct plane *p, int64_t threads)
{
	const int64_t block = cut(p, threads).block;
	return POINTS * (apart(block * p->in) + apart(block * COLUMNS));
}

static int64_t depth(const struct plane *p) { return nr_min64(DEPTH, p->all); }

/* Points of the weight, zeros, and points of blocks. */
struct parts { real *point, *zeros, *block; size_t bytes; };

static struct parts parts(const struct nr_conv *c, void *scratch)
{
	const struct plane f = plane_forward(c), d = plane_data(c);
	const int64_t n = c->O * c->w.C, most = nr_max64(c->O, c->w.C);
	const int64_t block = nr_max64(threads(c) * nr_max64(values_of_thread(&f, threads(c)), values_of_thread(&d, threads(c))),
		POINTS * (apart(depth(&f) * c->w.C) + apart(depth(&f) * c->O)));
	struct parts p = { .point = scratch };
	if (scratch) {
		p.zeros = p.point + POINTS * apart(n);
		p.block = p.zeros + lines(most);
		memset(p.zeros, 0, (size_t)most * sizeof(real));
	}
	p.bytes = (size_t)(POINTS * apart(n) + lines(most) + block) * sizeof(real);
	return p;
}

size_t nr_winograd_scratch(const struct nr_conv *c) { return parts(c, NULL).bytes; }

/* ---- the three ---- */

/* Points (16,I,O) of the weight. */
static void points_forward(const struct nr_conv *c, const struct parts *p, const real *weight)
{
	const int64_t I = c->w.C, O = c->O;
#pragma omp parallel for schedule(static) num_threads(team(c))
	for (int64_t slab = 0; slab < I; slab += SLAB)
		for (int64_t o = 0; o < O; o += SLAB_OUTPUTS)
			for (int64_t i = slab; i < nr_min64(slab + SLAB, I); i++)
				nr_winograd_active->weight(nr_min64(SLAB_OUTPUTS, O - o), weight + (o * I + i) * TAPS, I * TAPS, 0,
					p->point + i * O + o, apart(I * O));
}

/* Points (16,O,I) of the filters turned round. */
static void points_data(const struct nr_conv *c, const struct parts *p, const real *weight)
{
	const int64_t I = c->w.C, O = c->O;
#pragma omp parallel for schedule(static) num_threads(team(c))
	for (int64_t o = 0; o < O; o++)
		nr_winograd_active->weight(I, weight + o * I * TAPS, TAPS, 1, p->point + o * I, apart(I * O));
}

struct task { const struct plane *p; const struct parts *s; const real *x, *bias; real *y; int add; int64_t first, tiles; };

/* Columns j.. of the outputs of a block whose points are v. */
static void block_columns(const struct task *k, const real *v, real *m, int64_t j, int64_t n)
{
	const struct plane *p = k->p;
	const int64_t step_v = apart(k->tiles * p->in), step_m = apart(k->tiles * COLUMNS), step_u = apart(p->in * p->out);
	for (int64_t e = 0; e < POINTS; e++)
		nr_gemm_active->tile(&(struct nr_gemm_tile){ .m = k->tiles, .n = n, .k = p->in, .a = v + e * step_v, .lda = p->in,
			.b = k->s->point + e * step_u + j, .ldb = p->out, .c = m + e * step_m, .ldc = COLUMNS });
	for (int64_t t = 0; t < k->tiles; t++) {
		int64_t at[4];
		real *y[4];
		places(p, k->first + t, at);
		for (int i = 0; i < 4; i++) y[i] = at[i] < 0 ? NULL : k->y + at[i] * p->out + j;
		nr_winograd_active->output(n, m + t * COLUMNS, step_m, k->bias ? k->bias + j : NULL, y, k->add);
	}
}

static void run_task(const struct task *k, real *v, int64_t from, int64_t to)
{
	const int64_t step = apart(k->tiles * k->p->in);
	for (int64_t t = 0; t < k->tiles; t++) {
		const real *at[POINTS];
		pixels(k->p, k->x, k->first + t, k->s->zeros, at);
		nr_winograd_active->input(k->p->in, at, v + t * k->p->in, step);
	}
	for (int64_t j = from; j < to; j += COLUMNS) block_columns(k, v, v + POINTS * step, j, nr_min64(COLUMNS, to - j));
}

static void run(const struct nr_conv *c, const struct plane *p, const struct parts *s, const real *x, const real *bias, real *y, int add)
{
	const struct cut k = cut(p, threads(c));
	const int64_t own = values_of_thread(p, threads(c)), panels = ceil_div(p->out, COLUMNS);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(c))
	for (int64_t i = 0; i < k.blocks * k.parts; i++) {
		const int64_t first = i / k.parts * k.block, part = i % k.parts;
		const struct task task = { p, s, x, bias, y, add, first, nr_min64(k.block, p->all - first) };
		if (task.tiles > 0)
			run_task(&task, s->block + omp_get_thread_num() * own, part * panels / k.parts * COLUMNS,
				nr_min64((part + 1) * panels / k.parts * COLUMNS, p->out));
	}
}

void nr_winograd_forward(const struct nr_conv *c, const real *x, const real *weight, const real *bias, real *y, void *scratch)
{
	const struct parts s = parts(c, scratch);
	const struct plane p = plane_forward(c);
	points_forward(c, &s, weight);
	run(c, &p, &s, x, bias, y, 0);
}

void nr_winograd_backward_data(const struct nr_conv *c, const real *dy, const real *weight, real *dx, int add, void *scratch)
{
	const struct parts s = parts(c, scratch);
	const struct plane p = plane_data(c);
	points_data(c, &s, weight);
	run(c, &p, &s, dy, NULL, dx, add);
}

/* Points of inputs, then those of the outputs' gradient, of tiles first.. */
static void gradient_points(const struct plane *p, const struct parts *s, const real *x, const real *dy, int64_t first, int64_t t)
{
	const real *at[POINTS], *d[4];
	int64_t place[4];
	pixels(p, x, first + t, s->zeros, at);
	nr_winograd_active->input(p->in, at, s->block + t * p->in, apart(depth(p) * p->in));
	places(p, first + t, place);
	for (int i = 0; i < 4; i++) d[i] = place[i] < 0 ? s->zeros : dy + place[i] * p->out;
	nr_winograd_active->gradient(p->out, d, s->block + POINTS * apart(depth(p) * p->in) + t * p->out, apart(depth(p) * p->out));
}

/* Rows i.. (outputs) of point e of the weight's gradient, from `tiles` tiles. */
static void gradient_product(const struct plane *p, const struct parts *s, int64_t e, int64_t i, int64_t rows, int64_t tiles, int more)
{
	const real *v = s->block + e * apart(depth(p) * p->in);
	const real *z = s->block + POINTS * apart(depth(p) * p->in) + e * apart(depth(p) * p->out) + i;
	real *u = s->point + e * apart(p->out * p->in) + i * p->in;
	for (int64_t j = 0; j < p->in; j += TURNED_COLUMNS)
		nr_gemm_active->tile(&(struct nr_gemm_tile){ .m = rows, .n = nr_min64(TURNED_COLUMNS, p->in - j), .k = tiles, .a = z,
			.lda = p->out, .ta = 1, .b = v + j, .ldb = p->in, .base = more ? u + j : NULL, .ldbase = p->in, .c = u + j,
			.ldc = p->in });
}

void nr_winograd_backward_weight(const struct nr_conv *c, const real *x, const real *dy, real *dweight, int add, void *scratch)
{
	const struct parts s = parts(c, scratch);
	const struct plane p = plane_forward(c);
	const int64_t pieces = ceil_div(c->O, NR_GEMM_TALL), step = apart(c->O * c->w.C);
#pragma omp parallel num_threads(team(c))
	{
		for (int64_t first = 0; first < p.all; first += DEPTH) {
			const int64_t tiles = nr_min64(DEPTH, p.all - first);
#pragma omp for schedule(static)
			for (int64_t t = 0; t < tiles; t++) gradient_points(&p, &s, x, dy, first, t);
#pragma omp for schedule(dynamic, 1)
			for (int64_t i = 0; i < POINTS * pieces; i++) {
				const int64_t piece = i % pieces, from = c->O * piece / pieces, to = c->O * (piece + 1) / pieces;
				gradient_product(&p, &s, i / pieces, from, to - from, tiles, first > 0);
			}
		}
#pragma omp for schedule(static)
		for (int64_t o = 0; o < c->O; o++)
			nr_winograd_active->weight_gradient(c->w.C, s.point + o * c->w.C, step, dweight + o * c->w.C * TAPS, add);
	}
}
