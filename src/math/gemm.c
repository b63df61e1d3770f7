/* How a product is cut into tasks and put together again; the arithmetic is in the tables (gemm_plain.c, fast/gemm.c).
 *
 * Tasks are tiles of C. How many there are follows the number of threads, which changes no bit: a tile has all of K. Only a
 * weight's gradient with few rows and columns has its K cut as well, by the shape alone; the partial products are folded in order.
 * Every task packs the panels of B that it reads on its stack, mostly while it multiplies. To pack a turned B once for all tasks was no
 * faster: it needs a barrier, and half of it then comes out of another core's cache. */
#include "math/gemm.h"

#include <omp.h>

#include "math/chunk.h"
#include "math/row.h"

enum {
	PANEL_MOST = 32,  /* columns of a panel in any instruction set */
	ROWS = 256,       /* rows of a tile: NR_GEMM_K columns of them stay in L2 */
	COLS = 256,       /* columns worked on at a time: this part of C is in L2 when its epilogue runs */
	COLS_TURNED = 384, /* columns of a tile with a transposed A */
	FEW_ROWS = 28,    /* a task with fewer rows would pack more than it multiplies: columns are cut instead */
	FEW_COLS = 32,
	K_PIECES = 8,     /* partial products of a gradient, at most */
	K_PIECE = 1024,   /* and their length, at least: each costs a pass over C */
};
#define SMALL 100000      /* fewer multiplications are not worth waking threads */
#define FOLD_ALONE 40000  /* fewer partial values are folded by one thread: a barrier less, which counts on a busy machine */

struct run {
	const struct nr_gemm *g;
	int64_t count, tall, wide, deep;        /* tasks: in the batch, along rows, columns, K */
	int64_t piece;                          /* of K, for a task */
	real *part;                             /* (deep - 1, m, n) partial products */
};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/* Into how many pieces K is cut. By the shape alone: it changes the bits. */
static int64_t pieces_of_k(const struct nr_gemm *g)
{
	if (!g->ta || g->count) return 1;
	const int64_t tiles = ceil_div(g->m, NR_GEMM_TALL) * ceil_div(g->n, COLS_TURNED);
	int64_t pieces = 1;             /* a power of two: balanced on 2, 4 and 8 threads */
	while (2 * pieces * tiles <= K_PIECES && 2 * pieces * K_PIECE <= g->k) pieces *= 2;
	return pieces;
}

/* n cut into at least `parts` of at least `least`: the parts of all tasks shall be a multiple of the threads. */
static int64_t balance(int64_t parts, int64_t others, int64_t n, int64_t least, int64_t threads)
{
	const int64_t most = nr_max64(n / least, 1);
	while (parts < most && parts * others % threads) parts++;
	return parts;
}

/* Columns of a tile with a transposed A: more when K is short and the part of B stays in L1 all the same. */
static int64_t cols_turned(const struct nr_gemm *g)
{
	return nr_max64(COLS_TURNED, NR_GEMM_K * PANEL_MOST / nr_max64(g->k, 1) / PANEL_MOST * PANEL_MOST);
}

static struct run prepare(const struct nr_gemm *g, void *scratch, int64_t threads)
{
	struct run r = { .g = g, .count = nr_max64(g->count, 1), .deep = pieces_of_k(g), .wide = 1 };
	r.piece = r.deep > 1 ? round_up(ceil_div(g->k, r.deep), 4) : g->k;
	if (r.deep > 1) r.deep = ceil_div(g->k, r.piece);
	r.tall = ceil_div(g->m, g->ta ? NR_GEMM_TALL : ROWS);
	if (g->ta) r.wide = ceil_div(g->n, cols_turned(g));
	const int64_t others = r.count * r.deep;
	if (r.tall == 1 && !g->ta) r.wide = balance(1, others, g->n, 2 * FEW_COLS, threads); /* B is then read once */
	r.tall = balance(r.tall, others * r.wide, g->m, g->ta ? 2 * FEW_ROWS : FEW_ROWS, threads);
	r.wide = balance(r.wide, others * r.tall, g->n, FEW_COLS, threads);
	r.part = (real *)(void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
	return r;
}

size_t nr_gemm_scratch_of(const struct nr_gemm *g)
{
	const int64_t n = (pieces_of_k(g) - 1) * g->m * g->n;
	return n ? (size_t)n * sizeof(real) + 64 : 0;
}

size_t nr_gemm_scratch(int64_t m, int64_t n, int64_t k, int ta, int tb)
{
	return nr_gemm_scratch_of(&(struct nr_gemm){ .m = m, .n = n, .k = k, .ta = ta, .tb = tb });
}

/* Base (what the product is added to) goes into the product itself when nothing happens in between; so does bias, always. */
static int needs_epilogue(const struct nr_gemm *g) { return g->act != NR_ACT_NONE || g->pre || g->dact; }

/* Where the product itself goes: row i, column j of pre or C. */
static real *product_at(const struct nr_gemm *g, int64_t b, int64_t i, int64_t j)
{
	return g->pre ? g->pre + b * g->stride_pre + i * g->ldpre + j : g->c + b * g->stride_c + i * g->ldc + j;
}
static int64_t product_ld(const struct nr_gemm *g) { return g->pre ? g->ldpre : g->ldc; }

/* C from the product, which is in cache. */
static void activate(const struct nr_gemm *g, int64_t m, int64_t n, const real *x, real *c)
{
	for (int64_t r = 0; r < m; r++, x += product_ld(g), c += g->ldc) nr_act_active->forward[g->act](n, x, c);
}

/* Rows i.. and columns j.. of C, just computed and in cache. */
static void epilogue(const struct nr_gemm *g, int64_t b, int64_t i, int64_t j, int64_t m, int64_t n)
{
	real *c = g->c + b * g->stride_c + i * g->ldc + j;
	if (g->dact) {
		const real *pre = g->dact + b * g->stride_dact + i * g->lddact + j;
		nr_act_active->bias_backward[g->act](m, n, pre, g->lddact, c, g->ldc, c, g->ldc, NULL);
	} else if (needs_epilogue(g)) {
		activate(g, m, n, product_at(g, b, i, j), c);
	}
	if (g->residual && (g->add || needs_epilogue(g))) {
		const real *x = g->residual + b * g->stride_r + i * g->ldr + j;
		for (int64_t r = 0; r < m; r++)
			nr_row_active->add(n, c + r * g->ldc, x + r * g->ldr, c + r * g->ldc);
	}
}

/* Columns j.. of the tile whose first row is i, of product b and piece q of K. */
static void columns(const struct run *r, int64_t b, int64_t q, int64_t i, int64_t m, int64_t j, int64_t n)
{
	const struct nr_gemm *g = r->g;
	const int64_t p = q * r->piece;
	struct nr_gemm_tile t = { .m = m, .n = n, .k = nr_min64(r->piece, g->k - p), .lda = g->lda, .ta = g->ta,
		.ldb = g->ldb, .tb = g->tb, .c = product_at(g, b, i, j), .ldc = product_ld(g) };
	t.a = g->a + b * g->stride_a + (g->ta ? p * g->lda + i : i * g->lda + p);
	t.b = g->b + b * g->stride_b + (g->tb ? j * g->ldb + p : p * g->ldb + j);
	if (q) {
		t.c = r->part + ((q - 1) * g->m + i) * g->n + j;
		t.ldc = g->n;
	} else {
		t.bias = g->bias ? g->bias + j : NULL;
		if (g->add) {
			t.base = t.c;
			t.ldbase = g->ldc;
		} else if (g->residual && !needs_epilogue(g)) {
			t.base = g->residual + b * g->stride_r + i * g->ldr + j;
			t.ldbase = g->ldr;
		}
	}
	nr_gemm_active->tile(&t);
	if (r->deep == 1) epilogue(g, b, i, j, m, n);
}

static void run_task(const struct run *r, int64_t task)
{
	const struct nr_gemm *g = r->g;
	const int64_t q = task % r->deep, y = task / r->deep % r->wide, x = task / r->deep / r->wide % r->tall;
	const int64_t b = task / r->deep / r->wide / r->tall, panels = ceil_div(g->n, PANEL_MOST);
	const int64_t i = x * g->m / r->tall, m = (x + 1) * g->m / r->tall - i;
	const int64_t first = y * panels / r->wide * PANEL_MOST, end = nr_min64((y + 1) * panels / r->wide * PANEL_MOST, g->n);
	const int64_t step = g->ta ? cols_turned(g) : COLS;        /* a transposed A is packed once for all columns */
	for (int64_t j = first; j < end; j += step) columns(r, b, q, i, m, j, nr_min64(step, end - j));
}

/* Rows i.. : the pieces of K added up in order. */
static void fold(const struct run *r, int64_t i, int64_t rows)
{
	const struct nr_gemm *g = r->g;
	for (int64_t q = 0; q + 1 < r->deep; q++)
		for (int64_t x = i; x < i + rows; x++)
			nr_row_active->add(g->n, product_at(g, 0, x, 0), r->part + (q * g->m + x) * g->n, product_at(g, 0, x, 0));
	epilogue(g, 0, i, 0, rows, g->n);
}

void nr_gemm_run(const struct nr_gemm *g, void *scratch)
{
	if (g->m <= 0 || g->n <= 0) return;
	const int64_t work = nr_max64(g->count, 1) * g->m * g->n * nr_max64(g->k, 8);
	const int threads = work > SMALL ? omp_get_max_threads() : 1;
	const struct run r = prepare(g, scratch, threads);
	const int64_t tasks = r.count * r.tall * r.wide * r.deep, rows = 16, folds = r.deep > 1 ? ceil_div(g->m, rows) : 0;
	const int fold_alone = g->m * g->n * r.deep <= FOLD_ALONE;
#pragma omp parallel num_threads(threads) if (threads > 1)
	{
#pragma omp for schedule(dynamic, 1) nowait
		for (int64_t x = 0; x < tasks; x++) run_task(&r, nr_dealt(x, tasks, threads));
		if (folds && !fold_alone) {
#pragma omp barrier
#pragma omp for schedule(static) nowait
			for (int64_t x = 0; x < folds; x++) fold(&r, x * rows, nr_min64(rows, g->m - x * rows));
		}
	}
	if (folds && fold_alone) fold(&r, 0, g->m);
}
