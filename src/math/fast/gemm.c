/* The inner part of the matrix product: up to MR x NR of C are held in registers while k runs (14 x 32 on AVX-512, 6 x 16 on
 * AVX2). Goto & van de Geijn 2008; Van Zee & van de Geijn 2015 (BLIS).
 *
 * A panel of B (at most NR_GEMM_K x NR) stays in L1, rows of A come from L2, one broadcast per row and k.
 *  - A in rows is read where it lies: a pointer for every three rows, so that none of them is spilled.
 *  - A transposed A is packed by the micro kernels of the first panel, which store what they read anyway.
 *  - B (k,n) is packed by the micro kernel of the first rows; a turned or narrow one before.
 * Rows are cut into groups of nearly equal height: no group of one or two rows is left over.
 * The end of a micro kernel asks for its part of C and for the next A, its beginning for the next panel of B: asked for all at
 * once, they would block the line-fill buffers. */
#include "math/chunk.h"
#include "math/fast/gemm_few.h"
#include "math/fast/vec.h"
#include "math/gemm.h"

#if VL == 16
enum { MR = 14, AP = 16 };
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
enum { MR = 6, AP = 8 };
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
enum {
	NR = 2 * VL,
	POINTERS = (MR + 2) / 3,
	GROUPS_TALL = (NR_GEMM_TALL + MR - 1) / MR,
	AHEAD = 32,             /* rows of an unpacked operand asked for in advance */
	LINE = 16,              /* floats of a line of the caches */
	LINES_B = 2, LINES_A = 4, LINES_TURNED_A = 2,   /* asked for at a time */
};

/* An operand that is on its way to L2 while something else is multiplied: rows of a few lines, one below the other, then the next lines
 * of these rows. Each group asks for `each` of them. */
struct ask {
	const float *at; int64_t ld;
	int64_t rows, below, each, now; /* below: rows to the end of these columns; now: what this group still asks for */
};

/* Groups of rows of one height times a panel: c = a b + bias + base, whole vectors. */
struct job {
	int64_t groups, k;
	const float *a; int64_t lda;    /* distance of rows, or of ks when A is transposed */
	const float *b; int64_t ldb;
	float *to_a, *to_b;             /* where operands are packed on the way: AP and NR values for each k */
	const float *bias, *base; int64_t ldbase;
	float *c; int64_t ldc;
	const char *after_a;            /* A of the job after this one */
	struct ask next_b, next_a;      /* the next panel of B; A of the next piece of K when transposed, of the next group when not */
};

/* Asks for the next few lines of x in its row, if any are left to this group. */
INL void ask(struct ask *x, const int lines)
{
	if (x->now <= 0) return;
#pragma GCC unroll 4
	for (int i = 0; i < lines; i++) __builtin_prefetch(x->at + i * LINE, 0, 2);
	x->at += x->ld;
	x->now--;
	if (--x->below > 0) return;
	x->at += lines * LINE - x->rows * x->ld;
	x->below = x->rows;
}

/* How A lies, and what is packed on the way. */
enum { ROWS, ROWS_PACK_B, PACKED, PACKED_PACK_B, TURNED, TURNED_PACK_B, KINDS };

/* mr rows, nv vectors, kind: constants once inlined. */
INL void micro(const int mr, const int nv, const int kind, const struct job *w)
{
	const int rows = kind <= ROWS_PACK_B, turned = kind >= TURNED, pack_b = kind % 2;
	const int64_t lda = w->lda, ldb = pack_b ? w->ldb : NR, ldc = w->ldc;
	const int64_t next_a_step = rows || turned ? 4 * lda : 64;
	struct ask ask_b = w->next_b, ask_a = w->next_a;
	const float *base = w->base, *from = w->a;
	float *out = w->c, *to_a = w->to_a;
	for (int64_t groups = w->groups; groups > 0; groups--) {
		vf acc[MR][2];
#pragma GCC unroll 14
		for (int i = 0; i < mr; i++) acc[i][0] = acc[i][1] = (vf){ 0 };
		const float *b = w->b, *c = out, *a[POINTERS];
#pragma GCC unroll 5
		for (int i = 0; i < POINTERS; i++) a[i] = from + (rows ? 3 * i * lda : 0);
		from += rows ? mr * lda : turned ? mr : AP * w->k;
		const char *next_a = groups > 1 ? (const char *)from : w->after_a;
		float *to_b = w->to_b;
		int64_t k = w->k;
		ask_b.now = ask_b.each;
		ask_a.now = ask_a.each;
		if (rows) {
			ask_a.at = (const float *)next_a;
			ask_a.below = ask_a.rows;
		}
#define STEP(u)                                                                                                        \
	{                                                                                                              \
		const vf b0 = ld(b + (u) * ldb), b1 = nv > 1 ? ld(b + (u) * ldb + VL) : b0;                            \
		if (pack_b) {                                                                                          \
			st(to_b + (u) * NR, b0);                                                                       \
			if (nv > 1) st(to_b + (u) * NR + VL, b1);                                                      \
			__builtin_prefetch(b + ((u) + AHEAD) * ldb);                                                   \
			if (NR * 4 > 64) __builtin_prefetch(b + ((u) + AHEAD) * ldb + VL);                             \
		}                                                                                                      \
		if (turned) {                                                                                          \
			st(to_a + (u) * AP, ldn(a[0], mr));                                                            \
			__builtin_prefetch(a[0] + AHEAD * lda);                                                        \
		}                                                                                                      \
		_Pragma("GCC unroll 14") for (int i = 0; i < mr; i++)                                                  \
		{                                                                                                      \
			const vf s = bc(rows ? a[i / 3][i % 3 * lda + (u)] : turned ? a[0][i] : a[0][(u) * AP + i]);   \
			acc[i][0] = vplus(acc[i][0], s, b0);                                                           \
			if (nv > 1) acc[i][1] = vplus(acc[i][1], s, b1);                                               \
		}                                                                                                      \
		if (turned) a[0] += lda;                                                                               \
	}
#define ADVANCE(n)                                                                                                     \
	{                                                                                                              \
		b += (n) * ldb;                                                                                        \
		if (pack_b) to_b += (n) * NR;                                                                          \
		if (turned) to_a += (n) * AP;                                                                          \
		else if (!rows) a[0] += (n) * AP;                                                                      \
		else                                                                                                   \
			_Pragma("GCC unroll 5") for (int i = 0; i < POINTERS; i++) a[i] += (n);                        \
	}
		for (; k >= 4; k -= 4) {
			if (k < 4 * (mr + 1)) {
				__builtin_prefetch(c, 1);
				if (NR * 4 > 64 && nv > 1) __builtin_prefetch(c + VL, 1);
				__builtin_prefetch(next_a);
				c += ldc;
				next_a += next_a_step;
			} else {
				ask(&ask_b, LINES_B);
			}
			ask(&ask_a, rows ? LINES_A : LINES_TURNED_A);
			STEP(0) STEP(1) STEP(2) STEP(3)
			ADVANCE(4)
			/* hidden from the compiler, lest it keeps sums of them and spills */
			__asm__ volatile("" : "+r"(b));
#pragma GCC unroll 5
			for (int i = 0; i < POINTERS; i++)
				if (rows ? 3 * i < mr : !i) __asm__ volatile("" : "+r"(a[i]));
		}
		for (; k > 0; k--) {
			STEP(0)
			ADVANCE(1)
		}
#undef STEP
#undef ADVANCE
		if (w->bias) {
			const vf s0 = ld(w->bias), s1 = nv > 1 ? ld(w->bias + VL) : s0;
#pragma GCC unroll 14
			for (int i = 0; i < mr; i++) {
				acc[i][0] += s0;
				if (nv > 1) acc[i][1] += s1;
			}
		}
		if (base) {
#pragma GCC unroll 14
			for (int i = 0; i < mr; i++) {
				acc[i][0] += ld(base + i * w->ldbase);
				if (nv > 1) acc[i][1] += ld(base + i * w->ldbase + VL);
			}
			base += mr * w->ldbase;
		}
#pragma GCC unroll 14
		for (int i = 0; i < mr; i++) {
			st(out + i * ldc, acc[i][0]);
			if (nv > 1) st(out + i * ldc + VL, acc[i][1]);
		}
		out += mr * ldc;
	}
}

/* Panels of one vector are narrow ones, which are never packed on the way. */
#define DEFINE(mr)                                                                                                     \
	static void rows_narrow_##mr(const struct job *w) { micro(mr, 1, ROWS, w); }                                   \
	static void packed_narrow_##mr(const struct job *w) { micro(mr, 1, PACKED, w); }                               \
	static void turned_narrow_##mr(const struct job *w) { micro(mr, 1, TURNED, w); }                               \
	static void rows_##mr(const struct job *w) { micro(mr, 2, ROWS, w); }                                          \
	static void rows_pack_b_##mr(const struct job *w) { micro(mr, 2, ROWS_PACK_B, w); }                            \
	static void packed_##mr(const struct job *w) { micro(mr, 2, PACKED, w); }                                      \
	static void packed_pack_b_##mr(const struct job *w) { micro(mr, 2, PACKED_PACK_B, w); }                        \
	static void turned_##mr(const struct job *w) { micro(mr, 2, TURNED, w); }                                      \
	static void turned_pack_b_##mr(const struct job *w) { micro(mr, 2, TURNED_PACK_B, w); }
EACH_HEIGHT(DEFINE)

#define ROW_OF(mr)                                                                                                     \
	{ { rows_narrow_##mr, 0, packed_narrow_##mr, 0, turned_narrow_##mr, 0 },                                       \
		{ rows_##mr, rows_pack_b_##mr, packed_##mr, packed_pack_b_##mr, turned_##mr, turned_pack_b_##mr } },
static void (*const micros[MR][2][KINDS])(const struct job *) = { EACH_HEIGHT(ROW_OF) };

/* VL rows of VL values (rows beyond `rows` and columns beyond `cols` read as 0) to out[column][row], out rows NR apart. */
INL void turn(int64_t rows, int64_t cols, const float *x, int64_t ldx, float *out)
{
	vf r[VL];
	if (rows >= VL && cols >= VL) {
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++) r[i] = ld(x + i * ldx);
	} else {
#pragma GCC unroll 16
		for (int i = 0; i < VL; i++) r[i] = i < rows ? ldn(x + i * ldx, cols) : (vf){ 0 };
	}
	vtranspose(r);
#pragma GCC unroll 16
	for (int i = 0; i < VL; i++)
		if (i < cols) st(out + i * NR, r[i]);
}

/* A panel of n <= NR columns of B, zeros beyond them: b (k,n), or (n,k) when tb. */
static void pack(int64_t k, int64_t n, const float *b, int64_t ldb, int tb, float *panel)
{
	if (tb) {
		for (int64_t p = 0; p < k; p += VL) {
			turn(n, k - p, b + p, ldb, panel + p * NR);
			if (n > VL) turn(n - VL, k - p, b + VL * ldb + p, ldb, panel + p * NR + VL);
		}
		return;
	}
	for (int64_t p = 0; p < k; p++) {
		st(panel + p * NR, ldn(b + p * ldb, n));
		if (n > VL) st(panel + p * NR + VL, ldn(b + p * ldb + VL, n - VL));
	}
}

/* A tile being made. Its rows are cut into groups of `rows` or one fewer, the higher ones first. */
struct state {
	const struct nr_gemm_tile *t;
	int64_t groups, high, rows;     /* all groups, those of height `rows` */
	int64_t p, k, piece;            /* this piece of K */
	float *a, *panel;
};

static int64_t first_row(const struct state *s, int64_t group)
{
	return group * s->rows - (group > s->high ? group - s->high : 0);
}

/* The last columns: not a whole number of vectors. */
static void micro_edge(int64_t rows, int64_t cols, int kind, const struct job *whole)
{
	_Alignas(64) float sum[MR * NR];
	struct job w = *whole;
	w.groups = 1;
	w.c = sum;
	w.ldc = NR;
	w.bias = w.base = NULL;
	for (int64_t g = 0; g < whole->groups; g++) {
		micros[rows - 1][cols > VL][kind](&w);
		for (int64_t i = 0; i < rows; i++)
			for (int64_t x = 0; x < cols; x += VL) {
				const int64_t r = g * rows + i;
				vf v = ld(sum + i * NR + x);
				if (whole->bias) v += ldn(whole->bias + x, cols - x);
				if (whole->base) v += ldn(whole->base + r * whole->ldbase + x, cols - x);
				stn(whole->c + r * whole->ldc + x, v, cols - x);
			}
		w.a += kind == ROWS ? rows * w.lda : kind == TURNED ? rows : AP * w.k;
		w.to_a += AP * w.k;
	}
}

/* An area of memory that `turns` groups ask for in turn, of which the next one is `turn`. */
static struct ask ask_for(const float *at, int64_t ld, int64_t rows, int64_t cols, int64_t lines, int64_t turn, int64_t turns)
{
	const int64_t all = rows * ((cols + lines * LINE - 1) / (lines * LINE)), each = (all + turns - 1) / turns, done = turn * each;
	if (done >= all) return (struct ask){ .rows = 1 };
	return (struct ask){ .at = at + done % rows * ld + done / rows * lines * LINE, .ld = ld, .rows = rows,
		.below = rows - done % rows, .each = each };
}

/* What the groups from `group` on ask for in this panel. */
static void ask_ahead(const struct state *s, struct job *w, int64_t group, int64_t j)
{
	const struct nr_gemm_tile *t = s->t;
	const int64_t next = s->p + s->piece, last = j + NR >= t->n, k = last ? nr_min64(s->piece, t->k - next) : s->k;
	const int64_t p = last ? next : s->p, x = last ? 0 : j + NR, cols = nr_min64(NR, t->n - x);
	if (k > 0) w->next_b = t->tb ? ask_for(t->b + x * t->ldb + p, t->ldb, cols, k, LINES_B, group, s->groups)
			: ask_for(t->b + p * t->ldb + x, t->ldb, k, cols, LINES_B, group, s->groups);
	if (t->ta && next < t->k) {
		const int64_t turn = j / NR * s->groups + group, deep = nr_min64(s->piece, t->k - next);
		w->next_a = ask_for(t->a + next * t->lda, t->lda, deep, t->m, LINES_TURNED_A, turn, 2 * s->groups);
	}
	if (!t->ta && !j) w->next_a = ask_for(w->a, t->lda, s->rows, s->k, LINES_A, 0, 1);
}

/* Groups first.. of one height, columns j.. of a panel, this piece of K. pack_b: it is not packed yet. */
static void groups_times_panel(const struct state *s, int64_t first, int64_t groups, int64_t j, const float *b, int pack_b)
{
	const struct nr_gemm_tile *t = s->t;
	const int64_t i = first_row(s, first), rows = first_row(s, first + 1) - i, cols = nr_min64(NR, t->n - j);
	const int kind = !t->ta ? ROWS : j ? PACKED : TURNED;
	struct job w = { .groups = groups, .k = s->k, .lda = t->lda, .b = b, .ldb = t->ldb, .to_b = s->panel,
		.to_a = s->a + first * AP * s->k, .c = t->c + i * t->ldc + j, .ldc = t->ldc };
	w.a = kind == ROWS ? t->a + i * t->lda + s->p : kind == TURNED ? t->a + s->p * t->lda + i : w.to_a;
	w.after_a = (const char *)(t->ta ? s->a : t->a + s->p);
	if (first + groups < s->groups)
		w.after_a = (const char *)(w.a + groups * (kind == PACKED ? AP * s->k : kind == TURNED ? rows : rows * t->lda));
	if (s->p) {
		w.base = w.c;
		w.ldbase = t->ldc;
	} else {
		w.bias = t->bias ? t->bias + j : NULL;
		w.base = t->base ? t->base + i * t->ldbase + j : NULL;
		w.ldbase = t->ldbase;
	}
	ask_ahead(s, &w, first, j);
	if (cols % VL) micro_edge(rows, cols, kind, &w);
	else micros[rows - 1][cols > VL][kind + pack_b](&w);
}

static void panel_times_rows(const struct state *s, int64_t j)
{
	const struct nr_gemm_tile *t = s->t;
	const int64_t cols = nr_min64(NR, t->n - j);
	const float *lies = t->tb ? t->b + j * t->ldb + s->p : t->b + s->p * t->ldb + j;
	int64_t first = 0;
	if (t->tb || cols < NR) pack(s->k, cols, lies, t->ldb, t->tb, s->panel);
	else groups_times_panel(s, first++, 1, j, lies, 1);
	if (first < s->high) groups_times_panel(s, first, s->high - first, j, s->panel, 0);
	first = nr_max64(first, s->high);
	if (first < s->groups) groups_times_panel(s, first, s->groups - first, j, s->panel, 0);
}

static void tile(const struct nr_gemm_tile *t)
{
	if (!t->ta && t->m <= FEW) {
		few_rest(t, 0);
		return;
	}
	if (is_shallow(t)) {
		shallow(t);
		return;
	}
	if (is_column(t)) {
		column(t);
		return;
	}
	_Alignas(64) float a[GROUPS_TALL * AP * NR_GEMM_K], panel[NR_GEMM_K * NR];
	struct state s = { .t = t, .groups = (t->m + MR - 1) / MR, .piece = nr_gemm_piece(t->k), .a = a, .panel = panel };
	s.rows = (t->m + s.groups - 1) / s.groups;
	s.high = t->m - s.groups * (s.rows - 1);
	for (s.p = 0; s.p == 0 || s.p < t->k; s.p += s.piece) {
		s.k = nr_min64(s.piece, t->k - s.p);
		for (int64_t j = 0; j < t->n; j += NR) panel_times_rows(&s, j);
	}
}

const struct nr_gemm_kernels NR_FAST(gemm) = { .tile = tile };
