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
	u.drop = nr_attention_threshold(a) > 0;
	if (u.drop) u.keys = keys_of(a->rng);
	return u;
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
		const float rescale = nr_attention_rescale(a);
		for (int64_t i = 0; i < M; i++) {
			const vf r = bc(max[i] < LOW / 10 ? 0.f : rescale / sum[i]);
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
		_mm_storeu_ps(D + i, H4(add, s[0], s[1], s[2], s[3]));
	}
}

static void backward(
	const struct nr_attention *a, int64_t b, int64_t h, float *gbias, int add_bias, void *scratch)
{
	struct unit u = unit(a, b, h);
	const int64_t Tq = a->Tq, d = a->d, e = a->dv, dp = up(d), ep = up(e), n = u.n;
	const int64_t QB = nr_attention_block(Tq, NR_ATTENTION_QB),
		      KB = nr_attention_block(a->Tk, NR_ATTENTION_KB), ldS = lead(KB);
	const float *q = a->q + b * a->sq.batch + h * a->sq.head,
		    *k = a->k + b * a->sk.batch + h * a->sk.head;
	const float *v = a->v + b * a->sv.batch + h * a->sv.head,
		    *g = a->gout + b * a->sgo.batch + h * a->sgo.head;
	const float *out = a->out + b * a->so.batch + h * a->so.head, *lse = a->lse + (b * a->H + h) * Tq;
	float *gq = a->gq ? a->gq + b * a->sgq.batch + h * a->sgq.head : NULL;
	float *gk = a->gk ? a->gk + b * a->sgk.batch + h * a->sgk.head : NULL;
	float *gv = a->gv ? a->gv + b * a->sgv.batch + h * a->sgv.head : NULL;
	const int far = Tq > FAR || a->Tk > FAR, copy = !mm_fits(d) || far, copy_v = !mm_fits(e) || far;
	const int addq = (a->add & NR_ATTENTION_ADD_Q) != 0, addk = (a->add & NR_ATTENTION_ADD_K) != 0;
	const int addv = (a->add & NR_ATTENTION_ADD_V) != 0;

	float *w = scratch, *S = take(&w, QB * ldS), *P = take(&w, QB * ldS), *D = take(&w, Tq + 4);
	u.words = take(&w, 4 * ldS);
	float *kt = take(&w, dp * ldS), *vt = take(&w, ep * ldS), *kp = take(&w, copy ? KB * dp : 0);
	int64_t lq = a->sq.row, lg = a->sgo.row;
	const int whole = n <= KB; /* rows are in one tile */
	if (!whole) row_dots(Tq, e, g, lg, out, a->so.row, D);
	if (copy) {
		float *p = take(&w, Tq * dp);
		pack(Tq, d, q, lq, p);
		q = p;
		lq = dp;
	}
	if (copy_v) {
		float *p = take(&w, Tq * ep);
		pack(Tq, e, g, lg, p);
		g = p;
		lg = ep;
	}
	/* Sums are kept in scratch and copied out at the end, or made in place. A band leaves parts
	 * untouched: zero first. */
	float *sq = copy ? take(&w, Tq * dp) : gq, *sk = copy ? take(&w, KB * dp) : NULL,
	      *sv = copy_v ? take(&w, KB * ep) : NULL;
	const int64_t lsq = copy ? dp : a->sgq.row, lsk = copy ? dp : a->sgk.row,
		      lsv = copy_v ? ep : a->sgv.row;
	const int zero = u.banded || n == 0;
	if (gq && zero && (copy || !addq)) clear(Tq, copy ? dp : d, sq, lsq);
	if (gbias && !add_bias && zero) {
		memset(gbias, 0, (size_t)(Tq * a->Tk) * sizeof *gbias);
		add_bias = 1;
	}
	for (int64_t j0 = 0; j0 < n; j0 += KB) {
		const int64_t NT = min64(KB, n - j0), lk = copy ? dp : a->sk.row;
		const float *kr = copy ? kp : k + j0 * lk;
		float *tk = copy ? sk
			: gk     ? gk + j0 * lsk
				 : NULL,
		      *tv = copy_v ? sv
			: gv       ? gv + j0 * lsv
				   : NULL;
		const int64_t columns = NT - (kind_of(&u, NT) == LAST);
		transpose(columns, d, k + j0 * a->sk.row, a->sk.row, kt, ldS);
		transpose(columns, e, v + j0 * a->sv.row, a->sv.row, vt, ldS);
		if (copy) pack(NT, d, k + j0 * a->sk.row, a->sk.row, kp);
		if (gk && zero && (copy || !addk)) clear(NT, copy ? dp : d, tk, lsk);
		if (gv && zero && (copy_v || !addv)) clear(NT, copy_v ? ep : e, tv, lsv);
		for (int64_t i0 = 0; i0 < Tq; i0 += QB) {
			const int64_t M = min64(QB, Tq - i0);
			int64_t lo, hi;
			nr_attention_range(a, b, i0, i0 + M, &lo, &hi);
			lo = j0 + down(max64(lo - j0, 0));
			const int64_t N = min64(hi, j0 + NT) - lo,
				      c = lo - j0; /* c: first column within the tile */
			if (N <= 0) continue;
			const enum kind kind = kind_of(&u, N);
			const int64_t Nv = kind == LAST ? N - 1 : up(N);
			const float *Q = q + i0 * lq, *G = g + i0 * lg;
			const struct tile t = { .i0 = i0,
				.M = M,
				.j0 = lo,
				.N = N,
				.ld = ldS,
				.S = S,
				.P = P,
				.lse = lse + i0,
				.D = whole ? NULL : D + i0,
				.gbias = gbias,
				.add_bias = add_bias,
				.q = Q,
				.g = G,
				.lq = lq,
				.lg = lg,
				.klast = k + (lo + N - 1) * a->sk.row,
				.vlast = v + (lo + N - 1) * a->sv.row };
			mm(M, Nv, d, Q, lq, 1, kt + c, ldS, P, ldS, 1.f, 0);
			mm(M, Nv, e, G, lg, 1, vt + c, ldS, S, ldS, 1.f, 0);
			gradient_tile(kind, &u, &t);
			if (gv)
				mm(N, copy_v ? ep : e, M, P, 1, ldS, G, lg, tv + c * lsv, lsv, 1.f,
					zero || i0 > 0 || (!copy_v && addv));
			if (gk)
				mm(N, copy ? dp : d, M, S, 1, ldS, Q, lq, tk + c * lsk, lsk, a->scale,
					zero || i0 > 0 || (!copy && addk));
			if (gq)
				mm(M, copy ? dp : d, N, S, ldS, 1, kr + c * lk, lk, sq + i0 * lsq, lsq, a->scale,
					zero || j0 > 0 || (!copy && addq));
		}
		if (copy && gk) unpack(NT, d, sk, gk + j0 * a->sgk.row, a->sgk.row, addk);
		if (copy_v && gv) unpack(NT, e, sv, gv + j0 * a->sgv.row, a->sgv.row, addv);
	}
	if (copy && gq) unpack(Tq, d, sq, gq, a->sgq.row, addq);
	if (gk && !addk) /* keys that do not count */
		clear(a->Tk - n, d, gk + n * a->sgk.row, a->sgk.row);
	if (gv && !addv) clear(a->Tk - n, e, gv + n * a->sgv.row, a->sgv.row);
	if (gbias && !add_bias)
		for (int64_t i = 0; n < a->Tk && i < Tq; i++)
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
