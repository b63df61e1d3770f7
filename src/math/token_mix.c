/* Token-mixing products: see token_mix.h. */
#include "math/token_mix.h"

#include <string.h>

#include "math/gemm.h"
#include "math/row.h"
#include "math/token.h"

enum {
	WIDEST = 32,            /* of a panel, over all instruction sets */
	TILE = 32768,           /* wanted values of a tile of P */
	BAND_ROWS = 64,         /* rows of a tile of a band: few zeros beside it */
};

static int64_t whole(int64_t n) { return (n + WIDEST - 1) / WIDEST * WIDEST; }

static real *take(real **work, int64_t n)
{
	real *p = *work;
	*work += (n + 15) / 16 * 16;
	return p;
}

/* ---- products --------------------------------------------------------------------------------------------------- */

/* c (m,n) = op(a) b, or += ; a (m,k), or (k,m) when ta */
static void product(int64_t m, int64_t n, int64_t k, const real *a, int64_t lda, int ta, const real *b, int64_t ldb,
	real *c, int64_t ldc, int add)
{
	const int64_t most = ta ? NR_GEMM_TALL : m;
	for (int64_t i = 0; i < m; i += most)
		nr_gemm_active->tile(&(struct nr_gemm_tile){ .m = nr_min64(most, m - i), .n = n, .k = k, .a = ta ? a + i : a,
			.lda = lda, .ta = ta, .b = b, .ldb = ldb, .base = add ? c + i * ldc : NULL, .ldbase = ldc,
			.c = c + i * ldc, .ldc = ldc });
}

/* c (m,n) = a b^T, or +=, b (n,k) */
static void product_turned(int64_t m, int64_t n, int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb,
	real *c, int64_t ldc, int add)
{
	nr_gemm_active->tile(&(struct nr_gemm_tile){ .m = m, .n = n, .k = k, .a = a, .lda = lda, .b = b, .ldb = ldb, .tb = 1,
		.base = add ? c : NULL, .ldbase = ldc, .c = c, .ldc = ldc });
}

/* ---- a whole grid: P = Py (x) Px -------------------------------------------------------------------------------- */

static int separable(const struct nr_token_mix *k)
{
	return k->kind == NR_MIX_POS && !k->place && k->valid == k->n && k->h > 1 && k->w > 1;
}

struct grid {
	real *px, *py, *dp;     /* (w,w), (h,h), rows `whole` apart for dp */
	real *half, *dhalf;     /* (n,c): after py, before px */
};

static struct grid grid(const struct nr_token_mix *k)
{
	real *work = k->work;
	const int64_t most = nr_max64(k->h, k->w);
	struct grid g;
	g.px = take(&work, k->w * k->w);
	g.py = take(&work, k->h * k->h);
	g.dp = take(&work, most * whole(most));
	g.half = take(&work, k->n * k->c);
	g.dhalf = take(&work, k->n * k->c);
	return g;
}

/* p (n,n): softmax over j of square (j - i)^2 + linear (j - i) */
static void axis(int64_t n, real square, real linear, real *p)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			p[i * n + j] = square * (real)((j - i) * (j - i)) + linear * (real)(j - i);
	nr_row_active->softmax(n, n, p, n, 1, NULL, 0, p, n);
}

/* The gradients of both factors of the exponent from that of p, rows ld apart. */
static void axis_back(int64_t n, const real *p, real *dp, int64_t ld, double *square, double *linear)
{
	nr_row_active->softmax_backward(n, n, p, n, dp, ld, 1, dp, ld, 0);
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			*square += (double)dp[i * ld + j] * (double)((j - i) * (j - i));
			*linear += (double)dp[i * ld + j] * (double)(j - i);
		}
}

static void grid_forward(const struct nr_token_mix *k, const real *u, real *out)
{
	const struct grid g = grid(k);
	const int64_t row = k->w * k->c;
	axis(k->w, k->a[0], k->a[1], g.px);
	axis(k->h, k->a[0], k->a[2], g.py);
	product(k->h, row, k->h, g.py, k->h, 0, u, row, g.half, row, 0);
	for (int64_t y = 0; y < k->h; y++)
		product(k->w, k->c, k->w, g.px, k->w, 0, g.half + y * row, k->c, out + y * row,
			k->c, 0);
}

static void grid_backward(const struct nr_token_mix *k, const real *u, const real *dout, real *du, real *da)
{
	const struct grid g = grid(k);
	const int64_t row = k->w * k->c;
	for (int64_t y = 0; y < k->h; y++)
		product(k->w, k->c, k->w, g.px, k->w, 1, dout + y * row, k->c, g.dhalf + y * row,
			k->c, 0);
	product(k->h, row, k->h, g.py, k->h, 1, g.dhalf, row, du, row, 0);
	if (!da) return;
	double sum[3] = { 0 };
	for (int64_t y = 0; y < k->h; y++)
		product_turned(k->w, k->w, k->c, dout + y * row, k->c, g.half + y * row, k->c, g.dp,
			whole(k->w), y > 0);
	axis_back(k->w, g.px, g.dp, whole(k->w), &sum[0], &sum[1]);
	product_turned(k->h, k->h, row, g.dhalf, row, u, row, g.dp, whole(k->h), 0);
	axis_back(k->h, g.py, g.dp, whole(k->h), &sum[0], &sum[2]);
	for (int i = 0; i < 3; i++) da[i] += (real)sum[i];
}

/* ---- any other P, in tiles of rows ------------------------------------------------------------------------------ */

struct tiles {
	int64_t rows, ld;       /* of a tile; ld: whole panels */
	real *px, *py, *p, *dp;
};

static struct tiles tile_size(const struct nr_token_mix *k)
{
	const int64_t n = nr_max64(k->n, 1);
	const int64_t most = k->kind == NR_MIX_BAND ? BAND_ROWS : nr_max64(TILE / n, 24);
	const int64_t rows = (n + (n + most - 1) / most - 1) / ((n + most - 1) / most);
	const int64_t seen = k->kind == NR_MIX_BAND ? nr_min64(n, rows + 2 * nr_min64(k->reach, n)) : n;
	return (struct tiles){ .rows = rows, .ld = whole(seen) };
}

static struct tiles tiles(const struct nr_token_mix *k)
{
	real *work = k->work;
	struct tiles t = tile_size(k);
	t.px = take(&work, k->n);
	t.py = take(&work, k->n);
	t.p = take(&work, t.rows * t.ld);
	t.dp = take(&work, t.rows * t.ld);
	return t;
}

static void places(const struct nr_token_mix *k, const struct tiles *t)
{
	for (int64_t i = 0; i < k->n; i++) {
		const int64_t at = k->place ? k->place[i] : i;
		t->px[i] = (real)(at % k->w);
		t->py[i] = (real)(at / k->w);
	}
}

/* Targets i .. i + m - 1 may see sources *from .. end - 1, end returned; the first *alive of them see at least one. */
static int64_t sources(const struct nr_token_mix *k, int64_t i, int64_t m, int64_t *from, int64_t *alive)
{
	const int64_t valid = nr_min64(k->valid, k->n);
	const int band = k->kind == NR_MIX_BAND;
	*from = band ? nr_max64(0, i - k->reach) : 0;
	const int64_t end = band ? nr_min64(valid, i + m + k->reach) : valid;
	*alive = band ? nr_min64(m, nr_max64(0, valid + k->reach - i)) : m;
	if (*from >= end) *alive = 0;
	return end;
}

/* On a line, from and end are narrowed to where e^(score - the row's largest) is not 0 in `real`: with a0 < 0 the score
 * falls with the square of the distance from its peak. Long sequences then cost what their neighbourhoods do. */
static int64_t in_sight(const struct nr_token_mix *k, int64_t i, int64_t m, int64_t *from, int64_t end)
{
	if (k->kind != NR_MIX_POS || k->place || k->h > 1 || !(k->a[0] < 0) || end <= *from) return end;
	const double cut = sizeof(real) == sizeof(float) ? 104 : 746, fall = cut / -(double)k->a[0];
	const double first = (double)*from, last = (double)(end - 1);
	const double peak = -(double)k->a[1] / (2 * (double)k->a[0]);
	double lo = last, hi = first;
	for (int64_t r = i; r < i + m; r++) {
		const double at = (double)r + peak, best = fmin(fmax(floor(at), first), last);
		const double off = fabs(at - best) + 1;
		const double reach = sqrt(off * off + fall) + 1;
		lo = fmin(lo, at - reach);
		hi = fmax(hi, at + reach);
	}
	if (!(lo <= last && hi >= first)) return end;
	*from = (int64_t)fmax(first, floor(lo));
	return (int64_t)fmin(last, ceil(hi)) + 1;
}

/* Rows i .. i + m - 1 of P, sources from .. end - 1. */
static void tile(const struct nr_token_mix *k, const struct tiles *t, int64_t i, int64_t m, int64_t from,
	int64_t end)
{
	for (int64_t r = 0; r < m; r++) {
		real *p = t->p + r * t->ld;
		if (k->kind == NR_MIX_POS) {
			nr_token_active->scores(end - from, t->px + from, t->py + from, t->px[i + r],
				t->py[i + r], k->a, p);
		} else if (k->kind == NR_MIX_BAND) {
			const int64_t lo = nr_max64(from, i + r - k->reach);
			const int64_t hi = nr_min64(end, i + r + k->reach + 1);
			memset(p, 0, (size_t)(end - from) * sizeof(real));
			for (int64_t j = lo; j < hi; j++) p[j - from] = 1 / (real)(hi - lo);
		}
	}
	if (k->kind == NR_MIX_POS)
		nr_row_active->softmax(m, end - from, t->p, t->ld, 1, NULL, 0, t->p, t->ld);
	if (k->kind == NR_MIX_FREE)
		nr_row_active->softmax(m, end - from, k->logit + i * k->n + from, k->n, 1, NULL, 0, t->p,
			t->ld);
}

static void tiles_forward(const struct nr_token_mix *k, const real *u, real *out)
{
	const struct tiles t = tiles(k);
	const int64_t c = k->c;
	if (k->kind == NR_MIX_POS) places(k, &t);
	for (int64_t i = 0; i < k->n; i += t.rows) {
		const int64_t m = nr_min64(t.rows, k->n - i);
		int64_t from, alive, end = sources(k, i, m, &from, &alive);
		end = in_sight(k, i, m, &from, end);
		tile(k, &t, i, alive, from, end);
		if (alive)
			product(alive, c, end - from, t.p, t.ld, 0, u + from * c, c, out + i * c, c, 0);
		if (alive < m)
			memcpy(out + (i + alive) * c, u + (i + alive) * c, (size_t)((m - alive) * c) * sizeof(real));
	}
}

static void tiles_backward(const struct nr_token_mix *k, const real *u, const real *dout, real *du, real *da,
	real *dlogit)
{
	const struct tiles t = tiles(k);
	const int64_t c = k->c;
	double sum[3] = { 0 };
	memset(du, 0, (size_t)(k->n * c) * sizeof(real));
	for (int64_t i = 0; i < k->n; i += t.rows) {
		const int64_t m = nr_min64(t.rows, k->n - i);
		int64_t from, alive, end = sources(k, i, m, &from, &alive);
		end = in_sight(k, i, m, &from, end);
		const int64_t wide = end - from;
		for (int64_t j = (i + alive) * c; j < (i + m) * c; j++) du[j] += dout[j];
		if (!alive) continue;
		tile(k, &t, i, alive, from, end);
		product(wide, c, alive, t.p, t.ld, 1, dout + i * c, c, du + from * c, c, 1);
		if (!da && !dlogit) continue;
		product_turned(alive, wide, c, dout + i * c, c, u + from * c, c, t.dp, t.ld, 0);
		if (dlogit)
			nr_row_active->softmax_backward(alive, wide, t.p, t.ld, t.dp, t.ld, 1,
				dlogit + i * k->n + from, k->n, 1);
		else
			nr_row_active->softmax_backward(alive, wide, t.p, t.ld, t.dp, t.ld, 1, t.dp, t.ld, 0);
		for (int64_t r = 0; da && r < alive; r++)
			nr_token_active->score_sums(wide, t.px + from, t.py + from, t.px[i + r], t.py[i + r],
				t.dp + r * t.ld, sum);
	}
	for (int j = 0; da && j < 3; j++) da[j] += (real)sum[j];
}

/* ---- all alike -------------------------------------------------------------------------------------------------- */

/* Rows 0 .. to - 1 of out = the sum of rows 0 .. from - 1 of u, divided by `by`. */
static void mean_rows(int64_t from, int64_t to, int64_t by, int64_t c, const real *u, real *mean, real *out)
{
	memset(mean, 0, (size_t)c * sizeof(real));
	nr_row_active->col_sum(from, c, u, c, mean);
	nr_row_active->scale(c, 1 / (real)by, mean, mean);
	for (int64_t i = 0; i < to; i++) memcpy(out + i * c, mean, (size_t)c * sizeof(real));
}

/* ---- which ------------------------------------------------------------------------------------------------------ */

size_t nr_token_mix_work(const struct nr_token_mix *k, int part)
{
	const int64_t most = nr_max64(k->h, k->w), apart = 6 * 16;
	const struct tiles t = tile_size(k);
	struct nr_token_mix all = *k;
	all.valid = k->n;
	int64_t values = k->kind == NR_MIX_UNIFORM ? k->c : 0;
	if (separable(&all))
		values = k->w * k->w + k->h * k->h + most * whole(most) + 2 * k->n * k->c;
	if (k->kind != NR_MIX_UNIFORM && (part || !separable(&all)))
		values = nr_max64(values, 2 * k->n + 2 * t.rows * t.ld);
	return (size_t)(values + apart);
}

void nr_token_mix_forward(const struct nr_token_mix *k, const real *u, real *out)
{
	const int64_t valid = nr_min64(k->valid, k->n);
	if (valid <= 0) memcpy(out, u, (size_t)(k->n * k->c) * sizeof(real));
	else if (k->kind == NR_MIX_UNIFORM) mean_rows(valid, k->n, valid, k->c, u, k->work, out);
	else if (separable(k)) grid_forward(k, u, out);
	else tiles_forward(k, u, out);
}

void nr_token_mix_backward(const struct nr_token_mix *k, const real *u, const real *dout, real *du, real *da,
	real *dlogit)
{
	const int64_t valid = nr_min64(k->valid, k->n);
	if (valid <= 0) {
		memcpy(du, dout, (size_t)(k->n * k->c) * sizeof(real));
	} else if (k->kind == NR_MIX_UNIFORM) {
		mean_rows(k->n, valid, valid, k->c, dout, k->work, du);
		memset(du + valid * k->c, 0, (size_t)((k->n - valid) * k->c) * sizeof(real));
	} else if (separable(k)) {
		grid_backward(k, u, dout, du, da);
	} else {
		tiles_backward(k, u, dout, du, da, dlogit);
	}
}
