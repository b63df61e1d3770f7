/* Dense convolution as products. Rows are windows (b,oy,ox), columns are (ky,kx,i); a tile of rows is unfolded into the
 * scratch, used and overwritten by the next, so the whole column matrix never exists. A 1 x 1 convolution with stride 1 is
 * the product itself. */
#include "math/conv.h"

#include <string.h>

#include "math/gemm.h"
#include "math/row.h"
#include "math/transpose.h"

enum { TILE = 1 << 19 };      /* wanted values in a tile of columns: 2 MB of floats, in L2 and L3 */

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

/* Scratch: the weight as (O,ky,kx,i), a tile of columns, the product's own. */
struct parts { real *weight, *cols, *gemm; size_t bytes; };

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static struct parts parts(const struct nr_conv *c, void *scratch)
{
	const int64_t K = nr_window_cols(&c->w), per = nr_window_h(&c->w) * nr_window_w(&c->w);
	const int direct = is_product(&c->w);
	const int64_t rows = direct ? nr_window_rows(&c->w) : nr_max64(tile_rows(c), tile_samples(c) * per);
	const int64_t n_weight = (c->O * K + 15) / 16 * 16, n_cols = direct ? 0 : (rows * K + 15) / 16 * 16;
	struct parts p = { .weight = scratch };
	if (scratch) {
		p.cols = p.weight + n_weight;
		p.gemm = p.cols + n_cols;
	}
	size_t gemm = most(nr_gemm_scratch(rows, c->O, K, 0, 1), nr_gemm_scratch(rows, K, c->O, 0, 0));
	gemm = most(gemm, nr_gemm_scratch(c->O, K, rows, 1, 0));
	/* the last tile is shorter, and its cuts may differ */
	const int64_t rest = nr_window_rows(&c->w) % rows;
	if (rest) gemm = most(gemm, nr_gemm_scratch(c->O, K, rest, 1, 0));
	if (tile_rows(c) != rows) gemm = most(gemm, nr_gemm_scratch(c->O, K, tile_rows(c), 1, 0));
	if (nr_window_rows(&c->w) % tile_rows(c))
		gemm = most(gemm, nr_gemm_scratch(c->O, K, nr_window_rows(&c->w) % tile_rows(c), 1, 0));
	gemm = most(gemm, nr_col_sum_scratch(nr_window_rows(&c->w), c->O) * sizeof(real));
	p.bytes = (size_t)(n_weight + n_cols) * sizeof(real) + gemm;
	return p;
}

size_t nr_conv_scratch(const struct nr_conv *c) { return parts(c, NULL).bytes; }

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
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w);
	const int direct = is_product(&c->w);
	const int64_t tile = direct ? all : tile_rows(c);
	if (!direct) to_columns(c, weight, p.weight);
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
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), per = nr_window_h(&c->w) * nr_window_w(&c->w);
	if (is_product(&c->w)) {
		nr_gemm_run(&(struct nr_gemm){ .m = c->w.B * per, .n = K, .k = c->O, .a = dy, .lda = c->O, .b = weight,
			.ldb = K, .c = dx, .ldc = K, .add = add }, p.gemm);
		return;
	}
	to_columns(c, weight, p.weight);
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
	const struct parts p = parts(c, scratch);
	const int64_t K = nr_window_cols(&c->w), all = nr_window_rows(&c->w);
	const int direct = is_product(&c->w);
	if (dbias) nr_col_sum(all, c->O, dy, c->O, dbias, add_bias, p.gemm);
	if (direct) {
		nr_gemm_run(&(struct nr_gemm){ .m = c->O, .n = K, .k = all, .a = dy, .lda = c->O, .ta = 1, .b = x, .ldb = K,
			.c = dweight, .ldc = K, .add = add }, p.gemm);
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
