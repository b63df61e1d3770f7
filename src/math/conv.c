/* Dense convolution as products. Rows are windows (b,oy,ox), columns are (ky,kx,i); a tile of rows is unfolded into the
 * scratch, used and overwritten by the next, so the whole column matrix never exists. A 1 x 1 convolution with stride 1 is
 * the product itself.
 *
 * Where there are many windows and few columns, as in stems, every thread unfolds a band of rows into its own cache and multiplies it
 * there; where there are few windows all threads share a tile. Which way is taken changes no bit of outputs and data gradients: an
 * element of a product is a sum in a fixed order, and a pixel gathers its windows in their order. */
#include "math/conv.h"

#include <omp.h>
#include <string.h>

#include "math/gemm.h"
#include "math/row.h"
#include "math/transpose.h"
#include "math/winograd.h"

enum {
	TILE = 1 << 19,           /* wanted values in a tile of columns: 2 MB of floats, in L2 and L3 */
	BAND = 1 << 16,           /* and in a band */
	PARTS = 8,
	SMALL_GRADIENT = 1 << 15, /* values of a weight's gradient whose parts are cheap to fold */
};

static int is_product(const struct nr_window *w)
{
	return w->kh == 1 && w->kw == 1 && w->sh == 1 && w->sw == 1 && !w->ph && !w->pw;
}

/* Rows of one tile: by the size alone, at least one tile of the product's own. */
static int64_t tile_rows(const struct nr_conv *c)
{
	const int64_t want = nr_max64(TILE / nr_max64(nr_window_cols(&c->w), 1), 256);
	return nr_max64(nr_min64(want, nr_window_rows(&c->w)), 1);
}

/* Backward to the data works on whole samples: a pixel's windows are then all in one tile. */
static int64_t tile_samples(const struct nr_conv *c)
{
	const int64_t per = nr_max64(nr_window_h(&c->w) * nr_window_w(&c->w), 1);
	return nr_max64(nr_min64(tile_rows(c) / per, c->w.B), 1);
}

/* Rows of a band: they stay in a core's second-level cache. */
static int64_t band_rows(const struct nr_conv *c)
{
	return nr_max64(nr_min64(BAND / nr_max64(nr_window_cols(&c->w), 1), 448), 64);
}
static int in_bands(const struct nr_conv *c) { return !is_product(&c->w) && nr_window_rows(&c->w) >= 8 * band_rows(c); }
/* Parts of the weight's gradient that are summed apart: by the shape alone, as it changes the bits; 0: products of whole tiles. */
static int64_t gradient_parts(const struct nr_conv *c)
{
	return in_bands(c) && c->O <= NR_GEMM_TALL && c->O * nr_window_cols(&c->w) <= SMALL_GRADIENT ? PARTS : 0;
}
static int64_t threads(const struct nr_conv *c) { return c->threads > 0 ? c->threads : 1; }
static int team(const struct nr_conv *c) { return (int)nr_min64(threads(c), omp_get_max_threads()); }

/* Scratch: the weight as (O,ky,kx,i), a tile of columns or a band for each thread, parts of the weight's gradient, the product's own. */
struct parts { real *weight, *cols, *part, *gemm; int64_t band; size_t bytes; };

static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static int64_t lines(int64_t n) { return (n + 15) / 16 * 16; }

static struct parts parts(const struct nr_conv *c, void *scratch)
{
	const int64_t K = nr_window_cols(&c->w), per = nr_window_h(&c->w) * nr_window_w(&c->w);
	const int direct = is_product(&c->w);
	const int64_t rows = direct ? nr_window_rows(&c->w) : nr_max64(tile_rows(c), tile_samples(c) * per);
	struct parts p = { .weight = scratch, .band = lines(nr_max64(band_rows(c), nr_window_w(&c->w)) * K) };
	const int64_t n_weight = lines(c->O * K), bands = in_bands(c) ? threads(c) * p.band : 0;
	const int64_t n_cols = direct ? 0 : nr_max64(lines(rows * K), bands), n_part = gradient_parts(c) * lines(c->O * K);
	if (scratch) {
		p.cols = p.weight + n_weight;
		p.part = p.cols + n_cols;
		p.gemm = p.part + n_part;
	}
	size_t gemm = most(nr_gemm_scratch(rows, c->O, K, 0, 1), nr_gemm_scratch(rows, K, c->O, 0, 0));
	gemm = most(gemm, nr_gemm_scratch(c->O, K, rows, 1, 0));
	/* the last tile is shorter, and its cuts may differ */
	const int64_t rest = nr_window_rows(&c->w) % nr_max64(rows, 1);
	if (rest) gemm = most(gemm, nr_gemm_scratch(c->O, K, rest, 1, 0));
	if (tile_rows(c) != rows) gemm = most(gemm, nr_gemm_scratch(c->O, K, tile_rows(c), 1, 0));
	if (nr_window_rows(&c->w) % tile_rows(c))
		gemm = most(gemm, nr_gemm_scratch(c->O, K, nr_window_rows(&c->w) % tile_rows(c), 1, 0));
	gemm = most(gemm, nr_col_sum_scratch(nr_window_rows(&c->w), c->O) * sizeof(real));
	p.bytes = (size_t)(n_weight + n_cols + n_part) * sizeof(real) + gemm;
	return p;
}

size_t nr_conv_scratch(const struct nr_conv *c)
{
	if (!nr_winograd_fits(c)) return parts(c, NULL).bytes;
	return most(nr_winograd_scratch(c), nr_col_sum_scratch(nr_window_rows(&c->w), c->O) * sizeof(real));
}

/* ---- bands ---- */

static real *my_band(const struct parts *p) { return p->cols + omp_get_thread_num() * p->band; }

/* A product by one thread. */
static void multiply(struct nr_gemm_tile t)
{
	const int64_t step = t.ta ? 384 : 256, n = t.n;
	for (int64_t j = 0; j < n; j += step) {
		t.n = nr_min64(step, n - j);
		nr_gemm_active->tile(&t);
		t.b += t.tb ? step * t.ldb : step;
		t.c += step;
		if (t.base) t.base += step;
		if (t.bias) t.bias += step;
	}
}

static void forward_bands(const struct nr_conv *c, const struct parts *p, const real *x, const real *bias, real *y)
{
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w), band = band_rows(c);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(c))
	for (int64_t r = 0; r < all; r += band) {
		const int64_t rows = nr_min64(band, all - r);
		real *cols = my_band(p);
		nr_unfold_serial(&c->w, NR_PATCH_ROW_COL_CHANNEL, x, r, rows, cols);
		multiply((struct nr_gemm_tile){ .m = rows, .n = c->O, .k = K, .a = cols, .lda = K, .b = p->weight, .ldb = K, .tb = 1,
			.bias = bias, .c = y + r * c->O, .ldc = c->O });
	}
}

/* A sample's windows in their order: whole rows of outputs are multiplied and added to the pixels under them. */
static void data_of_sample(const struct nr_conv *c, const struct parts *p, int64_t b, const real *dy, real *dx)
{
	const int64_t K = nr_window_cols(&c->w), Ho = nr_window_h(&c->w), Wo = nr_window_w(&c->w), step = nr_max64(band_rows(c) / Wo, 1);
	real *cols = my_band(p);
	for (int64_t oy = 0; oy < Ho; oy += step) {
		const int64_t n = nr_min64(step, Ho - oy);
		multiply((struct nr_gemm_tile){ .m = n * Wo, .n = K, .k = c->O, .a = dy + (b * Ho + oy) * Wo * c->O, .lda = c->O,
			.b = p->weight, .ldb = K, .c = cols, .ldc = K });
		nr_fold_rows(&c->w, cols, b, oy, n, dx);
	}
}

static void weight_bands(const struct nr_conv *c, const struct parts *p, const real *x, const real *dy)
{
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w), band = band_rows(c), n = gradient_parts(c);
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(c))
	for (int64_t q = 0; q < n; q++) {
		const int64_t from = all * q / n, to = all * (q + 1) / n;
		real *cols = my_band(p), *sum = p->part + q * lines(c->O * K);
		for (int64_t r = from; r < to; r += band) {
			const int64_t rows = nr_min64(band, to - r);
			nr_unfold_serial(&c->w, NR_PATCH_ROW_COL_CHANNEL, x, r, rows, cols);
			multiply((struct nr_gemm_tile){ .m = c->O, .n = K, .k = rows, .a = dy + r * c->O, .lda = c->O, .ta = 1, .b = cols,
				.ldb = K, .base = r > from ? sum : NULL, .ldbase = K, .c = sum, .ldc = K });
		}
	}
	nr_fold(n - 1, lines(c->O * K), p->part + lines(c->O * K), p->part, 1);
}

/* ---- the three ---- */

/* [O,I,kh,kw] to (O,kh*kw,I), and back. */
static void to_columns(const struct nr_conv *c, const real *weight, real *out)
{
	nr_transpose_batch(c->O, c->w.C, c->w.kh * c->w.kw, weight, out, 0);
}

static void from_columns(const struct nr_conv *c, const real *in, real *weight, int add)
{
	nr_transpose_batch(c->O, c->w.kh * c->w.kw, c->w.C, in, weight, add);
}

void nr_conv_forward(const struct nr_conv *c, const real *x, const real *weight, const real *bias, real *y, void *scratch)
{
	if (nr_winograd_fits(c)) {
		nr_winograd_forward(c, x, weight, bias, y, scratch);
		return;
	}
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w);
	const int direct = is_product(&c->w);
	const int64_t tile = direct ? all : tile_rows(c);
	if (!direct) to_columns(c, weight, p.weight);
	if (in_bands(c)) {
		forward_bands(c, &p, x, bias, y);
		return;
	}
	for (int64_t r = 0; r < all; r += tile) {
		const int64_t rows = nr_min64(tile, all - r);
		if (!direct) nr_unfold(&c->w, NR_PATCH_ROW_COL_CHANNEL, x, r, rows, p.cols);
		nr_gemm_run(&(struct nr_gemm){ .m = rows, .n = c->O, .k = K, .a = direct ? x : p.cols, .lda = K,
			.b = direct ? weight : p.weight, .ldb = K, .tb = 1, .c = y + r * c->O, .ldc = c->O, .bias = bias },
			p.gemm);
	}
}

void nr_conv_backward_data(const struct nr_conv *c, const real *dy, const real *weight, real *dx, int add, void *scratch)
{
	if (nr_winograd_fits(c)) {
		nr_winograd_backward_data(c, dy, weight, dx, add, scratch);
		return;
	}
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), per = nr_window_h(&c->w) * nr_window_w(&c->w);
	if (is_product(&c->w)) {
		nr_gemm_run(&(struct nr_gemm){ .m = c->w.B * per, .n = K, .k = c->O, .a = dy, .lda = c->O, .b = weight,
			.ldb = K, .c = dx, .ldc = K, .add = add }, p.gemm);
		return;
	}
	to_columns(c, weight, p.weight);
	if (in_bands(c) && c->w.B >= team(c)) {
		const int64_t sample = c->w.H * c->w.W * c->w.C;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team(c))
		for (int64_t b = 0; b < c->w.B; b++) {
			if (!add) memset(dx + b * sample, 0, (size_t)sample * sizeof(real));
			data_of_sample(c, &p, b, dy, dx);
		}
		return;
	}
	const int64_t tile = tile_samples(c);
	for (int64_t b = 0; b < c->w.B; b += tile) {
		const int64_t n = nr_min64(tile, c->w.B - b);
		nr_gemm_run(&(struct nr_gemm){ .m = n * per, .n = K, .k = c->O, .a = dy + b * per * c->O, .lda = c->O,
			.b = p.weight, .ldb = K, .c = p.cols, .ldc = K }, p.gemm);
		nr_fold_windows(&c->w, NR_PATCH_ROW_COL_CHANNEL, p.cols, b, n, dx, add);
	}
}

void nr_conv_backward_weight(const struct nr_conv *c, const real *x, const real *dy, real *dweight, int add, real *dbias,
	int add_bias, void *scratch)
{
	if (nr_winograd_fits(c)) {
		if (dbias) nr_col_sum(nr_window_rows(&c->w), c->O, dy, c->O, dbias, add_bias, scratch);
		nr_winograd_backward_weight(c, x, dy, dweight, add, scratch);
		return;
	}
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w);
	const int direct = is_product(&c->w);
	if (dbias) nr_col_sum(all, c->O, dy, c->O, dbias, add_bias, p.gemm);
	if (direct) {
		nr_gemm_run(&(struct nr_gemm){ .m = c->O, .n = K, .k = all, .a = dy, .lda = c->O, .ta = 1, .b = x, .ldb = K,
			.c = dweight, .ldc = K, .add = add }, p.gemm);
		return;
	}
	if (gradient_parts(c)) {
		weight_bands(c, &p, x, dy);
		from_columns(c, p.part, dweight, add);
		return;
	}
	const int64_t tile = tile_rows(c);
	memset(p.weight, 0, (size_t)(c->O * K) * sizeof(real));
	for (int64_t r = 0; r < all; r += tile) {
		const int64_t rows = nr_min64(tile, all - r);
		nr_unfold(&c->w, NR_PATCH_ROW_COL_CHANNEL, x, r, rows, p.cols);
		nr_gemm_run(&(struct nr_gemm){ .m = c->O, .n = K, .k = rows, .a = dy + r * c->O, .lda = c->O, .ta = 1,
			.b = p.cols, .ldb = K, .c = p.weight, .ldc = K, .add = r > 0 }, p.gemm);
	}
	from_columns(c, p.weight, dweight, add);
}
