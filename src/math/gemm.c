/* How a product is cut into tasks and put together again; the arithmetic is in the tables (plain below, fast/gemm.c).
 *
 * The tasks are tiles of rows of C; also of columns when there are few rows. A transposed A (weight gradients: few rows,
 * long K) has K cut too when C is small; partial products are folded in order. Cuts follow from the shape alone.
 * For an A in rows (forward, gradients of inputs) B is packed once into the scratch, shared by all tasks. For a transposed A, in a
 * batch, or if no two tasks read the same part of B, each packs a panel at a time on its stack while it multiplies: no barrier. */
#include "math/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "math/row.h"

#ifndef NR_NO_FAST
#include <oneapi/dnnl/dnnl.h>
#endif

enum {
	KC = 384,         /* k of one pass: a panel of B (KC x nr) fits L1 */
	KC_PRIVATE = 256,
	FAR = 512,        /* rows of a transposed A longer than this are packed: each k would be on another page, and few cache sets */
	MR_MOST = 12,     /* of all instruction sets */
	ROWS = 128,       /* wanted rows of a tile */
	ROWS_PRIVATE = 144, /* at most, for a transposed A or a batch */
	COLS = 256,       /* columns worked on at a time: this part of C is in L2 when its epilogue runs */
	COLS_PRIVATE = 64, /* columns of a turned B packed at a time */
	TASKS = 8,        /* wanted at least, so that many threads find work */
	TASKS_K = 6,      /* with fewer, K is cut: partial products cost a pass and a barrier */
	K_PIECE = 256,    /* no shorter pieces of K */
};
#define PACK_ALONE 200000 /* a smaller B is packed by one thread: a barrier less, which counts on a busy machine */
#define FOLD_ALONE 40000 /* fewer partial values are folded by one thread, for the same reason */
#define SMALL 100000 /* fewer multiplications are not worth waking threads */

struct grid {
	int64_t mt, nt, kt;             /* size of a task */
	int64_t nm, nn, nk;             /* how many along each side */
	int shared;
};

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/* Cuts n into `parts` of equal size, a multiple of unit; returns the size. */
static int64_t cut(int64_t n, int64_t parts, int64_t unit) { return nr_max64(round_up(ceil_div(n, parts), unit), unit); }

/* Tasks are of equal size, so their number is a multiple of 4 where that can be: balanced on 2 and 4 threads. */
static struct grid make_grid(const struct nr_gemm *gemm, int mr, int nr)
{
	const int64_t m = gemm->m, n = gemm->n, k = gemm->k, count = nr_max64(gemm->count, 1);
	struct grid g = { 0 };
	int64_t nm, nn = 1, nk = 1;
	if (!gemm->ta && count == 1) {
		nm = m <= 2 * ROWS / 3 ? 1 : nr_max64((m + 2 * ROWS) / (4 * ROWS) * 4, 2);
		if (nm < TASKS) nn = nr_min64(ceil_div(TASKS, nm), ceil_div(n, 64));
		g.shared = gemm->tb || nm > 1;
	} else {
		nm = ceil_div(m, ROWS_PRIVATE);
		if (count == 1 && nm >= TASKS) nm = round_up(nm, 4);
		if (count * nm < TASKS) {
			const int64_t most = nr_max64(n / 128, 1);
			nn = nr_min64(ceil_div(TASKS, count * nm), most);
			while (count * nm * nn % 4 && nn < most) nn++;
		}
		if (count * nm * nn < TASKS_K) nk = nr_min64(ceil_div(TASKS, count * nm * nn), nr_max64(k / K_PIECE, 1));
	}
	g.mt = cut(m, nm, mr);
	g.nt = cut(n, nn, nr);
	g.kt = cut(k, nk, 1);
	g.nm = ceil_div(m, g.mt);
	g.nn = ceil_div(n, g.nt);
	g.nk = nr_max64(ceil_div(k, g.kt), 1);
	return g;
}

/* The plain table: small blocks in `real`, the compiler's own vectors. */
enum { MR = 4, NR = 8 };

static void pack_b(int64_t k, int64_t n, const real *b, int64_t ldb, int tb, real *out)
{
	for (int64_t j = 0; j < n; j += NR, out += k * NR)
		for (int64_t p = 0; p < k; p++)
			for (int64_t i = 0; i < NR; i++)
				out[p * NR + i] = j + i >= n ? 0 : tb ? b[(j + i) * ldb + p] : b[p * ldb + j + i];
}

static void block(int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs, const real *pb, const real *base,
	int64_t ldbase, const real *bias, real *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j += NR) {
		const real *b = pb + j * k;
		for (int64_t i = 0; i < m; i++) {
			const real *x = a + i * rs;
			double acc[NR] = { 0 };          /* the reference: exact where it costs nobody */
			for (int64_t p = 0; p < k; p++)
				for (int q = 0; q < NR; q++) acc[q] += (double)x[p * cs] * (double)b[p * NR + q];
			for (int64_t q = 0; q < nr_min64(NR, n - j); q++)
				c[i * ldc + j + q] = (real)acc[q] + (base ? base[i * ldbase + j + q] : 0) + (bias ? bias[j + q] : 0);
		}
	}
}

static void block_fresh(int64_t m, int64_t n, int64_t k, const real *a, int64_t rs, int64_t cs, const real *b, int64_t ldb,
	real *panel, const real *base, int64_t ldbase, const real *bias, real *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j += NR) {
		const int64_t cols = nr_min64(NR, n - j);
		pack_b(k, cols, b + j, ldb, 0, panel);
		block(m, cols, k, a, rs, cs, panel, base ? base + j : NULL, ldbase, bias ? bias + j : NULL, c + j, ldc);
	}
}

const struct nr_gemm_kernels nr_gemm_plain = {
	.mr = MR, .nr = NR, .pack_b = pack_b, .block = block, .block_fresh = block_fresh,
};
const struct nr_gemm_kernels *nr_gemm_active = &nr_gemm_plain;

/* ---- which engine ---- */
static enum { AUTO, OWN, ONEDNN, UNREAD } choice = UNREAD;
static int bad_choice;

static int choice_find(const char *name)
{
	static const char *const names[] = { "auto", "own", "onednn" };
	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i])) return i;
	return -1;
}

#ifndef NR_NO_FAST
static void choice_read(void)
{
	const char *e = getenv("NORMA_GEMM");
	const int i = e && *e ? choice_find(e) : AUTO;
	bad_choice = i < 0;
	choice = i < 0 ? AUTO : i;
}
#endif

enum nr_gemm_engine nr_gemm_engine_active(void)
{
#ifdef NR_NO_FAST
	return NR_GEMM_OWN;
#else
	if (choice == UNREAD) choice_read();
	return choice == ONEDNN || (choice == AUTO && nr_isa_active() == NR_ISA_AVX512) ? NR_GEMM_ONEDNN : NR_GEMM_OWN;
#endif
}

const char *nr_gemm_reason(void)
{
#ifdef NR_NO_FAST
	return "own kernels: this build has no others";
#else
	const enum nr_gemm_engine e = nr_gemm_engine_active();
	if (bad_choice) return "NORMA_GEMM is neither auto, own nor onednn: ignored";
	if (choice != AUTO) return e == NR_GEMM_OWN ? "own kernels: asked for" : "oneDNN: asked for";
	return e == NR_GEMM_OWN ? "own kernels: as fast as oneDNN on this instruction set, and allocate nothing"
				: "oneDNN: the own kernels have not been measured on AVX-512";
#endif
}

int nr_gemm_select(const char *name, struct nr_error *err)
{
	const int i = choice_find(name);
	if (i < 0) return nr_fail(err, NR_ENAME, "unknown GEMM engine", name, "one of auto, own, onednn");
#ifdef NR_NO_FAST
	if (i == ONEDNN) return nr_fail(err, NR_EVALUE, "cannot use GEMM engine", name, "this build is without oneDNN");
#endif
	choice = i;
	bad_choice = 0;
	return 0;
}

/* ---- one run ---- */
struct run {
	const struct nr_gemm *g;
	struct grid grid;
	int64_t count, kc, npad;        /* npad: columns of the packed B */
	real *packed;                   /* shared: pieces of kc rows, each npad / nr panels */
	real *part;                     /* (count, nk - 1, m, n) partial products */
	enum nr_gemm_engine engine;
};

static struct run prepare(const struct nr_gemm *g, void *scratch)
{
	const struct nr_gemm_kernels *K = nr_gemm_active;
	struct run r = { .g = g, .count = nr_max64(g->count, 1), .engine = nr_gemm_engine_active() };
	r.grid = make_grid(g, K->mr, K->nr);
	r.kc = g->k > KC ? ceil_div(g->k, ceil_div(g->k, KC)) : g->k;
	r.npad = round_up(g->n, K->nr);
	r.packed = r.part = (real *)(void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
	return r;
}

static size_t bytes(const struct nr_gemm *g, int mr, int nr)
{
	const int64_t count = nr_max64(g->count, 1);
	const struct grid grid = make_grid(g, mr, nr);
	const int64_t v = grid.shared ? g->k * round_up(g->n, nr) : count * (grid.nk - 1) * g->m * g->n;
	return v ? (size_t)v * sizeof(real) + 64 : 0;
}

/* Enough for every instruction set, so that a plan outlives nr_isa_select. */
size_t nr_gemm_scratch_of(const struct nr_gemm *g)
{
	static const int sets[][2] = { { MR, NR }, { 6, 16 }, { 12, 32 } };
	size_t most = 0;
	for (int i = 0; i < 3; i++) {
		const size_t b = bytes(g, sets[i][0], sets[i][1]);
		if (b > most) most = b;
	}
	return most;
}

size_t nr_gemm_scratch(int64_t m, int64_t n, int64_t k, int ta, int tb)
{
	return nr_gemm_scratch_of(&(struct nr_gemm){ .m = m, .n = n, .k = k, .ta = ta, .tb = tb });
}

/* Bias, and base (what the product is added to), go into the product itself when nothing happens in between. */
static int needs_epilogue(const struct nr_gemm *g) { return g->act != NR_ACT_NONE || g->pre || g->dact; }

static const real *base_of(const struct nr_gemm *g, int64_t b, int64_t *ld)
{
	if (g->add) return *ld = g->ldc, g->c + b * g->stride_c;
	if (!g->residual || needs_epilogue(g)) return *ld = 0, NULL;
	return *ld = g->ldr, g->residual + b * g->stride_r;
}

/* Rows i.. and columns j.. of C, just computed and in cache. */
static void epilogue(const struct nr_gemm *g, int64_t b, int64_t i, int64_t j, int64_t m, int64_t n)
{
	real *c = g->c + b * g->stride_c + i * g->ldc + j;
	if (g->dact) {
		const real *pre = g->dact + b * g->stride_dact + i * g->lddact + j;
		nr_act_active->bias_backward[g->act](m, n, pre, g->lddact, c, g->ldc, c, g->ldc, NULL);
	} else if (needs_epilogue(g)) {
		real *pre = g->pre ? g->pre + b * g->stride_pre + i * g->ldpre + j : NULL;
		nr_act_active->bias_forward[g->act](m, n, c, g->ldc, g->bias ? g->bias + j : NULL, pre, g->ldpre, c, g->ldc);
	}
	if (g->residual && (g->add || needs_epilogue(g))) {
		const real *x = g->residual + b * g->stride_r + i * g->ldr + j;
		for (int64_t r = 0; r < m; r++)
			nr_row_active->add(n, c + r * g->ldc, x + r * g->ldr, c + r * g->ldc);
	}
}

#ifndef NR_NO_FAST
/* c = op(a) op(b) + base + bias of one task, by oneDNN on the calling thread. */
static void onednn(const struct nr_gemm *g, int64_t m, int64_t n, int64_t k, const real *a, const real *b,
	const real *base, int64_t ldbase, const real *bias, real *c, int64_t ldc)
{
	if (k == 0 || (base && base != c))
		for (int64_t r = 0; r < m; r++) {
			if (!base) memset(c + r * ldc, 0, (size_t)n * sizeof(real));
			else if (base != c) memcpy(c + r * ldc, base + r * ldbase, (size_t)n * sizeof(real));
		}
	if (k > 0)
		dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', m, n, k, 1, a, nr_max64(g->lda, 1), b,
			nr_max64(g->ldb, 1), base ? 1 : 0, c, ldc);
	if (bias) nr_row_active->bias(m, n, c, ldc, bias);
}
#endif

/* All columns of a group, k in pieces: the part of C stays in cache from the first piece to the epilogue. */
static void shared_task(const struct run *r, int64_t task)
{
	const struct nr_gemm_kernels *K = nr_gemm_active;
	const struct nr_gemm *g = r->g;
	const int64_t i = task / r->grid.nn * r->grid.mt, m = nr_min64(r->grid.mt, g->m - i);
	const int64_t j0 = task % r->grid.nn * r->grid.nt, j1 = nr_min64(j0 + r->grid.nt, g->n);
	const int64_t lda = nr_max64(g->lda, 1), cols = round_up(COLS, K->nr);
	int64_t ldbase;
	const real *base = base_of(g, 0, &ldbase), *bias = needs_epilogue(g) ? NULL : g->bias;
	for (int64_t j = j0; j < j1; j += cols) {
		const int64_t n = nr_min64(cols, j1 - j);
		real *c = g->c + i * g->ldc + j;
#ifndef NR_NO_FAST
		if (r->engine == NR_GEMM_ONEDNN) {
			const real *b = g->b + (g->tb ? j * g->ldb : j);
			onednn(g, m, j1 - j, g->k, g->a + i * lda, b, base ? base + i * ldbase + j : NULL, ldbase,
				bias ? bias + j : NULL, c, g->ldc);
			epilogue(g, 0, i, j, m, j1 - j);
			return;
		}
#endif
		for (int64_t p = 0; p == 0 || p < g->k; p += nr_max64(r->kc, 1)) {
			const int64_t k = nr_min64(r->kc, g->k - p);
			const real *from = p ? c : base ? base + i * ldbase + j : NULL;
			K->block(m, n, k, g->a + i * lda + p, lda, 1, r->packed + p * r->npad + j * k, from,
				p ? g->ldc : ldbase, bias && !p ? bias + j : NULL, c, g->ldc);
		}
		epilogue(g, 0, i, j, m, n);
	}
}

static void private_task(const struct run *r, int64_t task)
{
	const struct nr_gemm_kernels *K = nr_gemm_active;
	const struct nr_gemm *g = r->g;
	const struct grid *t = &r->grid;
	const int64_t q = task % t->nk, tile = task / t->nk;
	const int64_t j0 = tile % t->nn * t->nt, j1 = nr_min64(j0 + t->nt, g->n);
	const int64_t i = tile / t->nn % t->nm * t->mt, m = nr_min64(t->mt, g->m - i), b = tile / t->nn / t->nm;
	const int64_t p0 = q * t->kt, p1 = nr_min64(p0 + t->kt, g->k), lda = nr_max64(g->lda, 1);
	const real *A = g->a + b * g->stride_a + (g->ta ? i : i * lda), *B = g->b + b * g->stride_b;
	int64_t ldbase = 0, ldc = q ? g->n : g->ldc;
	const real *base = q ? NULL : base_of(g, b, &ldbase), *bias = needs_epilogue(g) || q ? NULL : g->bias;
	real *C = q ? r->part + (b * (t->nk - 1) + q - 1) * g->m * g->n : g->c + b * g->stride_c;
	C += i * ldc;
	if (base) base += i * ldbase;
#ifndef NR_NO_FAST
	if (r->engine == NR_GEMM_ONEDNN) {
		onednn(g, m, j1 - j0, p1 - p0, A + (g->ta ? p0 * lda : p0), B + (g->tb ? j0 * g->ldb + p0 : p0 * g->ldb + j0),
			base ? base + j0 : NULL, ldbase, bias ? bias + j0 : NULL, C + j0, ldc);
		if (t->nk == 1) epilogue(g, b, i, j0, m, j1 - j0);
		return;
	}
#endif
	_Alignas(64) real panel[COLS_PRIVATE * KC_PRIVATE], rows[(ROWS_PRIVATE + MR_MOST) * KC_PRIVATE];
	const int packs = g->ta && K->pack_a && lda > FAR;
	const int64_t cs = g->ta ? lda : 1, ca = packs ? K->mr : cs, len = nr_max64(p1 - p0, 1);
	const int64_t kc = ceil_div(len, ceil_div(len, KC_PRIVATE));
	int64_t rs = g->ta ? 1 : lda;
	const int64_t cols = g->tb ? COLS_PRIVATE : g->ta ? j1 - j0 : COLS;
	for (int64_t j = j0; j < j1; j += cols) {
		const int64_t n = nr_min64(cols, j1 - j);
		for (int64_t p = p0; p == p0 || p < p1; p += kc) {
			const int64_t k = nr_min64(kc, p1 - p), ldfrom = p == p0 ? ldbase : ldc;
			const real *from = p > p0 ? C + j : base ? base + j : NULL, *s = bias && p == p0 ? bias + j : NULL;
			const real *a = A + p * cs;
			if (packs) {
				K->pack_a(k, m, a, lda, rows);
				a = rows, rs = k;
			}
			if (g->tb) {
				K->pack_b(k, n, B + j * g->ldb + p, g->ldb, 1, panel);
				K->block(m, n, k, a, rs, ca, panel, from, ldfrom, s, C + j, ldc);
			} else {
				K->block_fresh(m, n, k, a, rs, ca, B + p * g->ldb + j, g->ldb, panel, from, ldfrom, s, C + j,
					ldc);
			}
		}
		if (t->nk == 1) epilogue(g, b, i, j, m, n);
	}
}

/* Rows i.. of one product: the pieces of K added up in order. */
static void fold(const struct run *r, int64_t b, int64_t i, int64_t rows)
{
	const struct nr_gemm *g = r->g;
	for (int64_t q = 0; q + 1 < r->grid.nk; q++) {
		const real *part = r->part + ((b * (r->grid.nk - 1) + q) * g->m + i) * g->n;
		for (int64_t x = 0; x < rows; x++) {
			real *c = g->c + b * g->stride_c + (i + x) * g->ldc;
			nr_row_active->add(g->n, c, part + x * g->n, c);
		}
	}
	epilogue(g, b, i, 0, rows, g->n);
}

/* Packs columns j.. of rows p.. of B. */
static void pack_piece(const struct run *r, int64_t p, int64_t j, int64_t cols)
{
	const struct nr_gemm *g = r->g;
	const int64_t k = nr_min64(r->kc, g->k - p);
	nr_gemm_active->pack_b(k, nr_min64(cols, g->n - j), g->b + (g->tb ? j * g->ldb + p : p * g->ldb + j), g->ldb, g->tb,
		r->packed + p * r->npad + j * k);
}

static void run_shared(const struct run *r, int threads)
{
	const struct nr_gemm *g = r->g;
	const int64_t pieces = g->k ? ceil_div(g->k, r->kc) : 0, tasks = r->grid.nm * r->grid.nn;
	const int64_t group = 4 * nr_gemm_active->nr, groups = r->engine == NR_GEMM_OWN ? ceil_div(g->n, group) : 0;
	if (g->k * g->n <= PACK_ALONE) {
		for (int64_t x = 0; groups && x < pieces; x++) pack_piece(r, x * r->kc, 0, g->n);
#pragma omp parallel for schedule(dynamic, 1) if (threads)
		for (int64_t x = 0; x < tasks; x++) shared_task(r, x);
		return;
	}
#pragma omp parallel if (threads)
	{
#pragma omp for schedule(dynamic, 1)
		for (int64_t x = 0; x < pieces * groups; x++) pack_piece(r, x / groups * r->kc, x % groups * group, group);
#pragma omp for schedule(dynamic, 1) nowait
		for (int64_t x = 0; x < tasks; x++) shared_task(r, x);
	}
}

static void run_private(const struct run *r, int threads)
{
	const struct nr_gemm *g = r->g;
	const int64_t tasks = r->count * r->grid.nm * r->grid.nn * r->grid.nk;
	const int64_t rows = 16, folds = r->grid.nk > 1 ? ceil_div(g->m, rows) * r->count : 0, each = ceil_div(g->m, rows);
	const int alone = g->m * g->n * r->grid.nk * r->count <= FOLD_ALONE;
#pragma omp parallel for schedule(dynamic, 1) if (threads)
	for (int64_t x = 0; x < tasks; x++) private_task(r, x);
	if (!folds) return;
#pragma omp parallel for schedule(static) if (threads && !alone)
	for (int64_t x = 0; x < folds; x++)
		fold(r, x / each, x % each * rows, nr_min64(rows, g->m - x % each * rows));
}

void nr_gemm_run(const struct nr_gemm *g, void *scratch)
{
	if (g->m <= 0 || g->n <= 0) return;
	const struct run r = prepare(g, scratch);
	const int threads = r.count * g->m * g->n * nr_max64(g->k, 8) > SMALL;
	if (r.grid.shared)
		run_shared(&r, threads);
	else
		run_private(&r, threads);
}
