/* Fused attention in vectors: see attention.h for the equations.
 *
 * K^T (and V^T in the backward) are transposed once per unit, padded to whole vectors of keys; scores
 * are row-major with lanes = keys, so bias and padding need no transposition. Forward: blocks of queries,
 * inside them tiles of keys with the online softmax. Backward: tiles of keys, inside them blocks of
 * queries, so that gk and gv of a tile stay in L2. */
#include <string.h>

#include "math/fast/attention_rows.h"

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}
static inline int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Rows far apart cost a page each: beyond this many tokens operands are copied together. */
#define FAR 256

/* Leading dimension of a tile: whole vectors, not a multiple of 512 bytes (few cache sets when read by
 * columns). */
static int64_t lead(int64_t n)
{
	n = up(n);
	return n >= 128 && n % 128 == 0 ? n + VL : n;
}

static struct unit unit(const struct nr_attention *a, int64_t b, int64_t h)
{
	struct unit u = { .a = a, .b = b, .h = h, .banded = a->window > 0 || a->causal };
	u.n = a->klen ? a->klen[b] : a->Tk;
	u.n = u.n < 0 ? 0 : min64(u.n, a->Tk);
	u.bias = a->bias ? a->bias + (b % a->n_bias * a->H + h) * nr_attention_rows(a) * a->Tk : NULL;
	u.mask = a->mask ? a->mask + b % a->n_mask * nr_attention_rows(a) * a->Tk : NULL;
	u.threshold = nr_attention_threshold(a);
	u.rescale = nr_attention_rescale(a);
	u.drop = u.threshold > 0;
	if (u.drop) u.keys = keys_of(a->rng);
	return u;
}

/* The unit that comes next; of many rows the cache would not hold so much more. Rows shorter than a line are there with those of the
 * head before: then it is the next sample, whose rows, of all heads, are shared among the heads of this one. */
static struct ahead ahead_of(const struct unit *u, int backward)
{
	const struct nr_attention *a = u->a;
	const int narrow = a->d < 16;
	const int64_t h = narrow ? 0 : (u->h + 1) % a->H, b = u->b + (h == 0);
	struct ahead x = { .d = a->d, .dv = a->dv, .to = a->Tq };
	if (a->next || b >= a->B || a->Tq > FAR || a->Tk > FAR) return x;
	if (narrow) {
		x.from = u->h * a->Tq / a->H;
		x.to = (u->h + 1) * a->Tq / a->H;
		x.d *= a->H;
		x.dv *= a->H;
	}
#define NEXT(p, s) ((p) && !(narrow && a->s.head > 16) ? (p) + b * a->s.batch + h * a->s.head : NULL)
	x.q = NEXT(a->q, sq);
	x.k = NEXT(a->k, sk);
	x.v = NEXT(a->v, sv);
	if (!backward) {
		x.out = NEXT(a->out, so);
		return x;
	}
	x.g = NEXT(a->gout, sgo);
	x.gq = NEXT(a->gq, sgq);
	x.gk = NEXT(a->gk, sgk);
	x.gv = NEXT(a->gv, sgv);
#undef NEXT
	return x;
}

static enum kind kind_of(const struct unit *u, int64_t N)
{
	if (u->mask || u->banded || u->a->scale <= 0) return GENERAL;
	if (u->bias) return BIAS;
	return N > VL && N % VL == 1 && !u->drop ? LAST : SCORES;
}

static void softmax_tile(enum kind kind, const struct unit *u, const struct tile *t, float *O, int64_t ldo)
{
	switch (kind + 4 * u->drop) {
	case SCORES: softmax(SCORES, 0, u, t, O, ldo); break;
	case LAST: softmax(LAST, 0, u, t, O, ldo); break;
	case BIAS: softmax(BIAS, 0, u, t, O, ldo); break;
	case GENERAL: softmax(GENERAL, 0, u, t, O, ldo); break;
	case SCORES + 4: softmax(SCORES, 1, u, t, O, ldo); break;
	case BIAS + 4: softmax(BIAS, 1, u, t, O, ldo); break;
	case GENERAL + 4: softmax(GENERAL, 1, u, t, O, ldo); break;
	}
}

static void gradient_tile(enum kind kind, const struct unit *u, const struct tile *t)
{
	switch (kind + 4 * u->drop) {
	case SCORES: gradients(SCORES, 0, u, t); break;
	case LAST: gradients(LAST, 0, u, t); break;
	case BIAS: gradients(BIAS, 0, u, t); break;
	case GENERAL: gradients(GENERAL, 0, u, t); break;
	case SCORES + 4: gradients(SCORES, 1, u, t); break;
	case BIAS + 4: gradients(BIAS, 1, u, t); break;
	case GENERAL + 4: gradients(GENERAL, 1, u, t); break;
	}
}

static float *take(float **w, int64_t n)
{
	float *p = *w;
	*w += (n + 15) / 16 * 16;
	return p;
}

static void forward(const struct nr_attention *a, int64_t b, int64_t h, void *scratch)
{
	struct unit u = unit(a, b, h);
	u.next = ahead_of(&u, 0);
	const int64_t QB = nr_attention_block(a->Tq, NR_ATTENTION_QB),
		      KB = nr_attention_block(a->Tk, NR_ATTENTION_KB);
	const int64_t n = u.n, lt = lead(n), ldS = lead(KB), dp = up(a->d), ep = up(a->dv);
	const float *q = a->q + b * a->sq.batch + h * a->sq.head,
		    *k = a->k + b * a->sk.batch + h * a->sk.head;
	const float *v = a->v + b * a->sv.batch + h * a->sv.head;
	float *out = a->out + b * a->so.batch + h * a->so.head, *lse = a->lse + (b * a->H + h) * a->Tq;
	const int whole = a->dv % VL == 0 || (mm_fits(a->dv) && n <= FAR); /* the last product can write straight to the output */
	int64_t lv = a->sv.row;

	float *w = scratch, *S = take(&w, (QB + 4) * ldS), *max = take(&w, QB + 4), *sum = take(&w, QB + 4);
	u.words = take(&w, 4 * ldS);
	float *kt = take(&w, dp * lt);
	transpose(n - (kind_of(&u, n) == LAST), a->d, k, a->sk.row, kt, lt);
	if (!whole || n > FAR) {
		float *vp = take(&w, n * ep);
		pack(n, a->dv, v, lv, vp);
		v = vp;
		lv = ep;
	}
	for (int64_t i0 = 0; i0 < a->Tq; i0 += QB) {
		const int64_t M = min64(QB, a->Tq - i0), ldo = whole ? a->so.row : ep;
		float *o = whole ? out + i0 * a->so.row : w;
		int64_t lo, hi;
		nr_attention_range(a, b, i0, i0 + M, &lo, &hi);
		lo = down(lo);
		if (lo >= hi) {
			clear(M, a->dv, out + i0 * a->so.row, a->so.row);
			for (int64_t i = 0; i < M; i++) lse[i0 + i] = INFINITY;
			continue;
		}
		for (int64_t j0 = lo; j0 < hi; j0 += KB) {
			const int64_t N = min64(KB, hi - j0);
			const enum kind kind = kind_of(&u, N);
			const struct tile t = { .i0 = i0,
				.M = M,
				.j0 = j0,
				.N = N,
				.ld = ldS,
				.S = S,
				.max = max,
				.sum = sum,
				.first = j0 == lo,
				.q = q + i0 * a->sq.row,
				.lq = a->sq.row,
				.klast = k + (j0 + N - 1) * a->sk.row };
			mm(M, kind == LAST ? N - 1 : up(N), a->d, t.q, t.lq, 1, kt + j0, lt, S, ldS, 1.f, 0);
			softmax_tile(kind, &u, &t, o, ldo);
			mm(M, whole ? a->dv : ep, N, S, ldS, 1, v + j0 * lv, lv, o, ldo, 1.f, !t.first);
		}
		for (int64_t i = 0; i < M; i++) {
			const vf r = bc(max[i] < LOW / 10 ? 0.f : u.rescale / sum[i]);
			float *y = o + i * ldo, *to = out + (i0 + i) * a->so.row;
			for (int64_t c = 0; c < a->dv; c += VL) stpart(to + c, ldpart(y + c, a->dv - c) * r, a->dv - c);
		}
		for (int64_t i = 0; i < M; i += VL) {
			const vf m = ld(max + i), L = m + vlog(ld(sum + i));
			stpart(lse + i0 + i, vsel((vi)(m < bc(LOW / 10)), bc(INFINITY), L), M - i);
		}
	}
}

/* D[i] = gout[i] . out[i] = sum over keys of P gP (Dao et al., section B.2) */
static void row_dots(int64_t T, int64_t d, const float *g, int64_t lg, const float *o, int64_t lo, float *D)
{
	for (int64_t i = 0; i < T; i += 4) {
		const float *x[4], *y[4];
		vf s[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
		for (int r = 0; r < 4; r++) {
			x[r] = g + min64(i + r, T - 1) * lg;
			y[r] = o + min64(i + r, T - 1) * lo;
		}
		for (int64_t c = 0; c < d; c += VL) UNROLL(4)
		for (int r = 0; r < 4; r++) s[r] += ldpart(x[r] + c, d - c) * ldpart(y[r] + c, d - c);
		st4(D + i, H4(add, s[0], s[1], s[2], s[3]));
	}
}

/* A gradient of a unit: where it goes, and where it is summed, which is there or, if rows of d floats cannot be read and written as
 * vectors, in scratch. */
struct sum {
	float *to, *p; /* to NULL: not wanted */
	int64_t ldto, ld, d;
	int add, copied; /* add: to what is there */
};

static struct sum sum_of(const struct unit *u, float *to, const struct nr_heads *s, int64_t d, int add, int copied)
{
	float *at = to ? to + u->b * s->batch + u->h * s->head : NULL;
	return (struct sum){ .to = at, .p = at, .ldto = s->row, .ld = copied ? up(d) : s->row, .d = d, .add = add != 0, .copied = copied };
}
static struct sum sum_from(const struct sum *g, int64_t row)
{
	struct sum from = *g;
	if (from.to) from.to += row * g->ldto;
	if (!g->copied) from.p = from.to;
	return from;
}
static int64_t sum_width(const struct sum *g) { return g->copied ? up(g->d) : g->d; }
static void sum_clear(const struct sum *g, int64_t rows)
{
	if (g->to && (g->copied || !g->add)) clear(rows, sum_width(g), g->p, g->ld);
}
/* Rows from `row` on (+)= alpha A B; later: not the first term. */
static void sum_add(const struct sum *g, int64_t row, int64_t M, int64_t K, const float *A, int64_t ars, int64_t acs,
	const float *B, int64_t ldb, float alpha, int later)
{
	if (!g->to) return;
	mm(M, sum_width(g), K, A, ars, acs, B, ldb, g->p + row * g->ld, g->ld, alpha, later || (!g->copied && g->add));
}
static void sum_put(const struct sum *g, int64_t rows)
{
	if (g->to && g->copied) unpack(rows, g->d, g->p, g->to, g->ldto, g->add);
}

/* Backward of a unit: its operands, sums and scratch. */
struct back {
	struct unit u;
	int64_t QB, KB, ld;         /* blocks of queries, of keys; of a row of S, P, kt, vt */
	const float *q, *k, *v, *g; /* q and g perhaps copied together */
	int64_t lq, lg;
	const float *lse;
	struct sum gq, gk, gv; /* of all queries; of the tile's keys if copied, else of all */
	float *S, *P, *D, *kt, *vt, *kp; /* D NULL: the tile has all keys of its rows; kp NULL: keys are read where they lie */
	float *gbias;
	int add_bias, zero; /* zero: sums start from zeros, because a band leaves parts of them untouched */
};

static const float *copied(int64_t T, int64_t d, const float *x, int64_t *ldx, float **w)
{
	float *p = take(w, T * up(d));
	pack(T, d, x, *ldx, p);
	*ldx = up(d);
	return p;
}

static struct back back_begin(const struct nr_attention *a, int64_t b, int64_t h, float *w)
{
	const int64_t d = a->d, e = a->dv;
	const int far = a->Tq > FAR || a->Tk > FAR, copy = !mm_fits(d) || far, copy_v = !mm_fits(e) || far;
	struct back x = { .u = unit(a, b, h), .QB = nr_attention_block(a->Tq, NR_ATTENTION_QB),
		.KB = nr_attention_block(a->Tk, NR_ATTENTION_KB),
		.q = a->q + b * a->sq.batch + h * a->sq.head, .k = a->k + b * a->sk.batch + h * a->sk.head,
		.v = a->v + b * a->sv.batch + h * a->sv.head, .g = a->gout + b * a->sgo.batch + h * a->sgo.head,
		.lq = a->sq.row, .lg = a->sgo.row, .lse = a->lse + (b * a->H + h) * a->Tq };
	x.ld = lead(x.KB);
	x.u.next = ahead_of(&x.u, 1);
	x.zero = x.u.banded || x.u.n == 0;
	x.gq = sum_of(&x.u, a->gq, &a->sgq, d, a->add & NR_ATTENTION_ADD_Q, copy);
	x.gk = sum_of(&x.u, a->gk, &a->sgk, d, a->add & NR_ATTENTION_ADD_K, copy);
	x.gv = sum_of(&x.u, a->gv, &a->sgv, e, a->add & NR_ATTENTION_ADD_V, copy_v);
	x.S = take(&w, x.QB * x.ld);
	x.P = take(&w, x.QB * x.ld);
	x.u.words = take(&w, 4 * x.ld);
	x.kt = take(&w, up(d) * x.ld);
	x.vt = take(&w, up(e) * x.ld);
	if (x.u.n > x.KB || a->partial) {
		x.D = take(&w, a->Tq + 4);
		row_dots(a->Tq, e, x.g, x.lg, a->out + b * a->so.batch + h * a->so.head, a->so.row, x.D);
	}
	if (copy) {
		x.kp = take(&w, x.KB * up(d));
		x.q = copied(a->Tq, d, x.q, &x.lq, &w);
		x.gq.p = take(&w, a->Tq * up(d));
		x.gk.p = take(&w, x.KB * up(d));
	}
	if (copy_v) {
		x.g = copied(a->Tq, e, x.g, &x.lg, &w);
		x.gv.p = take(&w, x.KB * up(e));
	}
	return x;
}

/* Queries i0 .. i0 + M with the keys that they see of the tile j0 .. j0 + NT; gk and gv are of the tile. */
static void back_block(const struct back *x, int64_t i0, int64_t M, int64_t j0, int64_t NT, const struct sum *gk, const struct sum *gv)
{
	const struct nr_attention *a = x->u.a;
	int64_t lo, hi;
	nr_attention_range(a, x->u.b, i0, i0 + M, &lo, &hi);
	const int64_t c = down(max64(lo - j0, 0)), N = min64(hi, j0 + NT) - j0 - c; /* c: first column within the tile */
	if (N <= 0) return;
	const enum kind kind = kind_of(&x->u, N);
	const int64_t columns = kind == LAST ? N - 1 : up(N), lk = x->kp ? up(a->d) : a->sk.row;
	const float *Q = x->q + i0 * x->lq, *G = x->g + i0 * x->lg, *K = x->kp ? x->kp : x->k + j0 * lk;
	const struct tile t = { .i0 = i0,
		.M = M,
		.j0 = j0 + c,
		.N = N,
		.ld = x->ld,
		.S = x->S,
		.P = x->P,
		.lse = x->lse + i0,
		.D = x->D ? x->D + i0 : NULL,
		.gbias = x->gbias,
		.add_bias = x->add_bias,
		.first = j0 == 0,
		.q = Q,
		.g = G,
		.lq = x->lq,
		.lg = x->lg,
		.klast = x->k + (j0 + c + N - 1) * a->sk.row,
		.vlast = x->v + (j0 + c + N - 1) * a->sv.row };
	mm(M, columns, a->d, Q, x->lq, 1, x->kt + c, x->ld, x->P, x->ld, 1.f, 0);
	mm(M, columns, a->dv, G, x->lg, 1, x->vt + c, x->ld, x->S, x->ld, 1.f, 0);
	gradient_tile(kind, &x->u, &t);
	sum_add(gv, c, N, M, x->P, 1, x->ld, G, x->lg, 1.f, x->zero || i0 > 0);
	sum_add(gk, c, N, M, x->S, 1, x->ld, Q, x->lq, a->scale, x->zero || i0 > 0);
	sum_add(&x->gq, i0, M, N, x->S, x->ld, 1, K + c * lk, lk, a->scale, x->zero || j0 > 0);
}

static void back_tile(const struct back *x, int64_t j0, int64_t NT)
{
	const struct nr_attention *a = x->u.a;
	const struct sum gk = sum_from(&x->gk, j0), gv = sum_from(&x->gv, j0);
	const float *k = x->k + j0 * a->sk.row;
	const int64_t columns = NT - (kind_of(&x->u, NT) == LAST);
	transpose(columns, a->d, k, a->sk.row, x->kt, x->ld);
	transpose(columns, a->dv, x->v + j0 * a->sv.row, a->sv.row, x->vt, x->ld);
	if (x->kp) pack(NT, a->d, k, a->sk.row, x->kp);
	if (x->zero) {
		sum_clear(&gk, NT);
		sum_clear(&gv, NT);
	}
	for (int64_t i0 = 0; i0 < a->Tq; i0 += x->QB) back_block(x, i0, min64(x->QB, a->Tq - i0), j0, NT, &gk, &gv);
	sum_put(&gk, NT);
	sum_put(&gv, NT);
}

/* Keys that do not count get no gradient. */
static void clear_padding(const struct sum *g, int64_t from, int64_t T)
{
	if (g->to && !g->add) clear(T - from, g->d, g->to + from * g->ldto, g->ldto);
}

static void backward(
	const struct nr_attention *a, int64_t b, int64_t h, float *gbias, int add_bias, void *scratch)
{
	struct back x = back_begin(a, b, h, scratch);
	const int64_t n = x.u.n;
	if (x.zero) {
		sum_clear(&x.gq, a->Tq);
		if (gbias && !add_bias) memset(gbias, 0, (size_t)(a->Tq * a->Tk) * sizeof *gbias);
		add_bias = 1;
	}
	x.gbias = gbias;
	x.add_bias = add_bias;
	for (int64_t j0 = 0; j0 < n; j0 += x.KB) back_tile(&x, j0, min64(x.KB, n - j0));
	sum_put(&x.gq, a->Tq);
	clear_padding(&x.gk, n, a->Tk);
	clear_padding(&x.gv, n, a->Tk);
	for (int64_t i = 0; gbias && !add_bias && n < a->Tk && i < a->Tq; i++)
		memset(gbias + i * a->Tk + n, 0, (size_t)(a->Tk - n) * sizeof *gbias);
}

static void probs(const struct nr_attention *a, int64_t b, int64_t h, float *to, void *scratch)
{
	const struct unit u = unit(a, b, h);
	const int64_t QB = nr_attention_block(a->Tq, NR_ATTENTION_QB),
		      KB = nr_attention_block(a->Tk, NR_ATTENTION_KB), ldS = lead(KB);
	const float *q = a->q + b * a->sq.batch + h * a->sq.head,
		    *k = a->k + b * a->sk.batch + h * a->sk.head;
	const float *lse = a->lse + (b * a->H + h) * a->Tq;
	float *w = scratch, *S = take(&w, QB * ldS), *kt = take(&w, up(a->d) * ldS);
	if (u.n < a->Tk) clear(a->Tq, a->Tk - u.n, to + u.n, a->Tk);
	for (int64_t j0 = 0; j0 < u.n; j0 += KB) {
		const int64_t N = min64(KB, u.n - j0);
		transpose(N, a->d, k + j0 * a->sk.row, a->sk.row, kt, ldS);
		for (int64_t i0 = 0; i0 < a->Tq; i0 += QB) {
			const int64_t M = min64(QB, a->Tq - i0);
			mm(M, up(N), a->d, q + i0 * a->sq.row, a->sq.row, 1, kt, ldS, S, ldS, 1.f, 0);
			for (int64_t i = 0; i < M; i++)
				for (int64_t j = 0; j < N; j += VL) {
					const vf y = score_at(
						GENERAL, &u, i0 + i, j0 + j, N - j, ld(S + i * ldS + j));
					stpart(to + (i0 + i) * a->Tk + j0 + j, vexpz(y - lse[i0 + i]), N - j);
				}
		}
	}
}

const struct nr_attention_kernels NR_FAST(attention) = { forward, backward, probs };
