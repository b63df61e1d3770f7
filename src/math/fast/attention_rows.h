/* The elementwise part of fast/attention.c: rows of a tile of scores become probabilities (forward) or
 * probabilities and score gradients (backward). Each loop exists per kind of unit, so that what a unit
 * does not use costs nothing. */
#ifndef NR_ATTENTION_ROWS_H
#define NR_ATTENTION_ROWS_H

#include <math.h>
#include <string.h>

#include "math/fast/attention_drop.h"
#include "math/fast/attention_mm.h"

enum kind {
	SCORES,  /* q k^T alone */
	LAST,    /* the same, VL n + 1 keys (17, 65, ...): the last column is made by dot products */
	BIAS,    /* plus a bias */
	GENERAL, /* bias, mask, band, any scale */
};

/* Rows that are wanted next; q NULL: nothing is fetched ahead. */
struct ahead {
	const float *q, *k, *v, *out, *g, *gq, *gk, *gv; /* out: forward; g and what follows: backward */
	int64_t d, dv, from, to;                         /* floats of a row; which rows this unit asks for */
};

struct unit {
	const struct nr_attention *a;
	int64_t b, h, n;          /* n: keys of this sample */
	const float *bias, *mask; /* (Tq,Tk) of this unit, or NULL */
	int banded, drop;
	int32_t threshold;  /* of dropout, and what it multiplies by */
	float rescale;
	float *words; /* Philox words of eight rows of a tile */
	struct keys keys;
	struct ahead next;
};

struct tile {                     /* queries i0 .. i0 + M, keys j0 .. j0 + N */
	int64_t i0, M, j0, N, ld; /* ld: of S, P, words */
	float *S, *P;             /* scores, in the backward gradients; probabilities (backward) */
	float *max, *sum;         /* per row (forward) */
	const float *lse, *D;     /* per row (backward); D NULL: the tile has all keys of its rows */
	float *gbias;             /* (Tq,Tk) or NULL */
	int add_bias, first;
	const float *q, *g; /* kind LAST: the tile's rows, strides, and the last key and value */
	int64_t lq, lg;
	const float *klast, *vlast;
};

#define LOW \
	(-1e30f) /* a score that does not count; a row whose maximum is below LOW / 10 has none that does */

/* A row of d floats on its way to the second-level cache. */
INL void fetch_row(const float *p, int64_t d, const int write)
{
	for (int64_t c = 0; c < d; c += 16) {
		if (write) __builtin_prefetch(p + c, 1, 2);
		else __builtin_prefetch(p + c, 0, 2);
	}
}
/* Row t of every operand of x: of the forward, or of the backward, which has a gout. */
INL void fetch_token(const struct nr_attention *x, int64_t t)
{
	fetch_row(x->q + t * x->sq.row, x->d, 0);
	fetch_row(x->k + t * x->sk.row, x->d, 0);
	fetch_row(x->v + t * x->sv.row, x->dv, 0);
	fetch_row(x->out + t * x->so.row, x->dv, !x->gout);
	if (x->gout) fetch_row(x->gout + t * x->sgo.row, x->dv, 0);
	if (x->gq) fetch_row(x->gq + t * x->sgq.row, x->d, 1);
	if (x->gk) fetch_row(x->gk + t * x->sgk.row, x->d, 1);
	if (x->gv) fetch_row(x->gv + t * x->sgv.row, x->dv, 1);
}
/* Rows of a packed tensor are far apart, where the CPU does not look ahead by itself: while this unit's row i is made, that of the
 * next is on its way. */
INL void fetch_ahead(const struct unit *u, int64_t i)
{
	const struct nr_attention *a = u->a;
	const struct ahead *x = &u->next;
	if (a->next) fetch_token(a->next, a->next_row[i]);
	if (!x->q || i < x->from || i >= x->to) return;
	fetch_row(x->q + i * a->sq.row, x->d, 0);
	if (i < a->Tk && x->k) fetch_row(x->k + i * a->sk.row, x->d, 0);
	if (i < a->Tk && x->v) fetch_row(x->v + i * a->sv.row, x->dv, 0);
	if (x->out) fetch_row(x->out + i * a->so.row, x->dv, 1);
	if (x->g) fetch_row(x->g + i * a->sgo.row, x->dv, 0);
	if (x->gq) fetch_row(x->gq + i * a->sgq.row, x->d, 1);
	if (x->gk && i < a->Tk) fetch_row(x->gk + i * a->sgk.row, x->d, 1);
	if (x->gv && i < a->Tk) fetch_row(x->gv + i * a->sgv.row, x->dv, 1);
}

/* n floats from j on, or a whole vector when there are as many: the test is cheaper than a mask. */
INL vf ldpart(const float *p, int64_t left)
{
	return left >= VL ? ld(p) : ldn(p, left);
}
INL void stpart(float *p, vf v, int64_t left)
{
	if (left >= VL)
		st(p, v);
	else
		stn(p, v, left);
}

/* Dot products of four rows of x (row stride ldx, clamped at row `last`) with y, d floats each. */
INL v4 dot4(const float *x, int64_t ldx, int64_t i, int64_t last, const float *y, int64_t d)
{
	vf s[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
	const float *r[4];
	for (int k = 0; k < 4; k++) r[k] = x + (i + k < last ? i + k : last) * ldx;
	for (int64_t c = 0; c < d; c += VL) {
		const vf v = ldpart(y + c, d - c);
		UNROLL(4)
		for (int k = 0; k < 4; k++) s[k] += ldpart(r[k] + c, d - c) * v;
	}
	return H4(add, s[0], s[1], s[2], s[3]);
}

/* Score + bias + mask of row i at keys j.., LOW where the key does not count for it. `left` keys remain in
 * the tile. */
INL vf score_at(const enum kind kind, const struct unit *u, int64_t i, int64_t j, int64_t left, vf s)
{
	const int64_t at = i * u->a->Tk + j;
	vf y = s * bc(u->a->scale);
	if (kind == BIAS || u->bias) y += ldpart(u->bias + at, left);
	if (kind == GENERAL) {
		if (u->mask) y += ldpart(u->mask + at, left);
		if (u->banded) {
			int64_t lo, hi;
			nr_attention_range(u->a, u->b, i, i + 1, &lo, &hi);
			const vi v = iota() + bci((int32_t)j);
			y = vsel((vi)(v >= bci((int32_t)lo)) & (vi)(v < bci((int32_t)hi)), y, bc(LOW));
		}
	}
	return left >= VL ? y : vsel(lanes(left), y, bc(LOW));
}

/* 0 where dropout drops keys j.. of row i, else the rescaling factor. */
INL vf drop_factor(const struct unit *u, const struct tile *t, int64_t i, int64_t j)
{
	return (vf)((vi)bc(u->rescale) & drop_keep(u->words + j, t->ld, i, bci(u->threshold)));
}

/* S := exp(S - max), with the running maximum and sum of each row; O (rows of dv, stride ldo) is rescaled
 * when the maximum grew. Four rows at a time: S has spare rows. */
INL void softmax(const enum kind kind, const int drop, const struct unit *u, const struct tile *t, float *O,
	int64_t ldo)
{
	const int64_t ldS = t->ld, N = t->N, Nv = kind == LAST ? N - 1 : up(N), last = t->M - 1,
		      dv = up(u->a->dv);
	const int plain = kind == SCORES || kind == LAST;
	const float f = plain ? u->a->scale : 1;
	const vi keep = lanes(N - (Nv - VL)), threshold = bci(u->threshold);
	for (int64_t i = t->M; i % 4; i++) /* spare rows: nobody reads what becomes of them */
		memset(t->S + i * ldS, 0, (size_t)Nv * sizeof(float));
	for (int64_t i = 0; i < t->M; i += 4) {
		float *s = t->S + i * ldS;
		for (int64_t r = i; t->first && r < i + 4 && r < t->M; r++) fetch_ahead(u, t->i0 + r);
		vf x[4] = { bc(LOW), bc(LOW), bc(LOW), bc(LOW) }, top[4];
		v4 end = { 0 };
		if (drop && i % 8 == 0) drop_words(u->a, &u->keys, u->b, u->h, t->i0 + i, t->j0, Nv, u->words, ldS);
		if (plain) {
			for (int64_t j = 0; j < Nv - VL; j += VL) UNROLL(4)
			for (int r = 0; r < 4; r++) x[r] = VMAX(x[r], ld(s + r * ldS + j));
			UNROLL(4)
			for (int r = 0; r < 4; r++) {
				float *p = s + r * ldS + Nv - VL;
				const vf y = vsel(keep, ld(p), bc(LOW));
				if (kind == SCORES) st(p, y);
				x[r] = VMAX(x[r], y);
			}
		} else {
			for (int64_t j = 0; j < Nv; j += VL) UNROLL(4)
			for (int r = 0; r < 4; r++) {
				const int64_t y = i + r < last ? i + r : last;
				const vf z =
					score_at(kind, u, t->i0 + y, t->j0 + j, N - j, ld(s + r * ldS + j));
				st(s + r * ldS + j, z);
				x[r] = VMAX(x[r], z);
			}
		}
		v4 max = H4(max, x[0], x[1], x[2], x[3]);
		if (kind == LAST) {
			end = dot4(t->q, t->lq, i, last, t->klast, u->a->d);
			max = max4(max, end);
		}
		max *= bc4(f);
		if (!t->first) max = max4(max, ld4(t->max + i));
		float m[4];
		st4(m, max);
		UNROLL(4)
		for (int r = 0; r < 4; r++) {
			top[r] = bc(m[r]);
			x[r] = (vf){ 0 };
		}
		for (int64_t j = 0; j < Nv; j += VL) UNROLL(4)
		for (int r = 0; r < 4; r++) {
			const vf y = ld(s + r * ldS + j) * f - top[r];
			vf e = plain ? vexp(y) : vexpz(y);
			x[r] += e;
			if (drop) e = (vf)((vi)e & drop_keep(u->words + j, ldS, i + r, threshold));
			st(s + r * ldS + j, e);
		}
		v4 sum = H4(add, x[0], x[1], x[2], x[3]);
		if (kind == LAST) {
			end = low4(vexp(from4(end * bc4(f) - max)));
			sum += end;
			for (int r = 0; r < 4; r++) s[r * ldS + N - 1] = end[r];
		}
		if (!t->first) { /* what was summed with the old maximum */
			const v4 old = low4(vexpz(from4(ld4(t->max + i) - max)));
			float c[4];
			st4(c, old);
			sum += old * ld4(t->sum + i);
			for (int r = 0; r < 4 && i + r < t->M; r++)
				if (c[r] != 1.f)
					for (int64_t k = 0; k < dv; k += VL)
						st(O + (i + r) * ldo + k, ld(O + (i + r) * ldo + k) * c[r]);
		}
		st4(t->max + i, max);
		st4(t->sum + i, sum);
	}
}

/* What backward keeps of a row at keys j..: the probabilities after dropout and the score gradients, from e and g = dropout(gout v^T). */
INL void put_gradients(const enum kind kind, const int drop, const struct unit *u, const struct tile *t, int64_t i, int64_t j,
	vf e, vf g, vf D)
{
	vf kept = e;
	if (drop) kept *= drop_factor(u, t, i, j);
	g = e * (g - D);
	st(t->P + i * t->ld + j, kept);
	st(t->S + i * t->ld + j, g);
	if ((kind != BIAS && kind != GENERAL) || !t->gbias) return;
	float *gb = t->gbias + (t->i0 + i) * u->a->Tk + t->j0 + j;
	stpart(gb, t->add_bias ? g + ldpart(gb, t->N - j) : g, t->N - j);
}

/* Kind LAST: e and g of the last key for queries i .. i + VL as lanes, to its column of P and S. */
INL void last_column(const struct unit *u, const struct tile *t, int64_t i)
{
	float c[2][VL];
	const int64_t left = t->M - i;
	for (int64_t r = 0; r < VL && r < left; r += 4) {
		st4(c[0] + r, dot4(t->q, t->lq, i + r, t->M - 1, t->klast, u->a->d));
		st4(c[1] + r, dot4(t->g, t->lg, i + r, t->M - 1, t->vlast, u->a->dv));
	}
	st(c[0], vexp(ldn(c[0], left) * bc(u->a->scale) - ldn(t->lse + i, left)));
	for (int64_t r = 0; r < VL && r < left; r++) {
		t->P[(i + r) * t->ld + t->N - 1] = c[0][r];
		t->S[(i + r) * t->ld + t->N - 1] = c[1][r];
	}
}

/* P := probabilities after dropout, S (gout v^T) := score gradients; both from q k^T in P and the row's lse and D. Where the tile has the
 * whole row, D is the mean of g under these very probabilities: then score gradients add up to zero as they should, which is what the
 * gradient of a key's bias consists of, and not to the rounding between two passes. */
INL void gradients(const enum kind kind, const int drop, const struct unit *u, const struct tile *t)
{
	const int64_t ldS = t->ld, N = t->N, Nv = kind == LAST ? N - 1 : up(N);
	const vf scale = bc(u->a->scale);
	for (int64_t i = 0; kind == LAST && i < t->M; i += VL) last_column(u, t, i);
	for (int64_t i = 0; i < t->M; i++) {
		float *p = t->P + i * ldS, *s = t->S + i * ldS;
		if (t->first) fetch_ahead(u, t->i0 + i);
		const vf L = bc(t->lse[i]);
		vf sum = { 0 }, dot = { 0 }, D = t->D ? bc(t->D[i]) : (vf){ 0 };
		if (drop && i % 8 == 0) drop_words(u->a, &u->keys, u->b, u->h, t->i0 + i, t->j0, Nv, u->words, ldS);
		for (int64_t j = 0; j < Nv; j += VL) {
			vf e, g = ld(s + j);
			if (kind == SCORES || kind == LAST)
				e = vexp(ld(p + j) * scale - L);
			else
				e = vexpz(score_at(kind, u, t->i0 + i, t->j0 + j, N - j, ld(p + j)) - L);
			if (drop) g *= drop_factor(u, t, i, j);
			if (t->D) {
				put_gradients(kind, drop, u, t, i, j, e, g, D);
				continue;
			}
			if (kind == SCORES && N - j < VL) e = vsel(lanes(N - j), e, (vf){ 0 });
			sum += e;
			dot += e * g;
			st(p + j, e);
			st(s + j, g);
		}
		if (!t->D) {
			const float last = kind == LAST ? p[N - 1] : 0, of = hsum(sum) + last;
			D = bc(of > 0 ? (hsum(dot) + (kind == LAST ? last * s[N - 1] : 0)) / of : 0);
			for (int64_t j = 0; j < Nv; j += VL) put_gradients(kind, drop, u, t, i, j, ld(p + j), ld(s + j), D);
		}
		if (kind == LAST) s[N - 1] = p[N - 1] * (s[N - 1] - D[0]);
	}
}

#endif
