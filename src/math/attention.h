/* Fused softmax attention, forward and backward, flash style: scores live in tiles, T x T is never stored.
 *
 *   S = scale q k^T + bias + mask;  P = softmax(S) over the keys that count;  out = dropout(P) v
 *   gS = P * (dropout(gout v^T) - rowsum(gout * out));  gv = dropout(P)^T gout
 *   (the row sum is also the mean of dropout(gout v^T) under P, which vector kernels take if they have the whole row at once)
 *   gq = scale gS k;  gk = scale gS^T q
 *
 * Vaswani et al. arXiv:1706.03762 eq. 1; online softmax and the backward from the row log-sum-exp: Dao
 * et al. arXiv:2205.14135, algorithms 1 and 4. The work unit is one (sample, head), computed by one
 * thread. */
#ifndef NR_ATTENTION_H
#define NR_ATTENTION_H

#include <stddef.h>
#include "base/rng.h"
#include "math/isa.h"
#include "base/real.h"

/* Element (b,t,h,i) of an operand is p[b * batch + t * row + h * head + i]: packed (B,T,3,H,d), separate
 * (B,T,H,d), LeViT's per-head (B,T,H,[q|k|v]) and (B,H,T,d) are all of this form. */
struct nr_heads {
	int64_t batch, row, head;
};

enum { /* struct nr_attention.add: this gradient is added to, not overwritten */
	NR_ATTENTION_ADD_Q = 1,
	NR_ATTENTION_ADD_K = 2,
	NR_ATTENTION_ADD_V = 4,
	NR_ATTENTION_ADD_BIAS = 8,
};

struct nr_attention {
	int64_t B, H, Tq, Tk; /* samples, heads, queries, keys */
	int64_t d, dv;        /* width of a head of q and k; of v and out */
	int64_t rows;         /* queries that bias, mask, gbias and dropout are laid out for, of which these are the first Tq; 0: Tq */
	real scale;           /* of the scores, usually 1 / sqrt(d) */

	const real *q, *k, *v; /* (B,Tq,H,d) (B,Tk,H,d) (B,Tk,H,dv) */
	real *out;             /* (B,Tq,H,dv); read by the backward */
	real *lse;             /* (B,H,Tq) log-sum-exp of rows of S, for the backward; +inf: no key counts */
	struct nr_heads sq, sk, sv, so;

	/* What counts. A query without any key gives out = 0 and no gradient. Scores below -1e29 do not
	 * count. */
	const int32_t *klen; /* (B) keys >= klen[b] are padding, never read; NULL: none */
	const real *bias;    /* (n_bias,H,rows,Tk), sample b uses b % n_bias: 1 shared, B own, nW windows */
	int64_t n_bias;
	const real *mask; /* (n_mask,rows,Tk), sample b uses b % n_mask, all heads, no gradient; NULL: none */
	int64_t n_mask;
	int64_t window; /* > 0: only keys with |i - j| <= window; tiles outside are skipped */
	int causal;     /* only keys j <= i */
	int partial;    /* backward: out and lse are of more keys than these, which other calls see to */

	/* Dropout of P: a pure function of (rng, b, h, i, j), see nr_attention_keep. 0: none, free. */
	real dropout; /* rounded to a multiple of 2^-16 */
	struct nr_rng rng;

	/* Backward. NULL gradients are not wanted (skipped). */
	const real *gout;   /* (B,Tq,H,dv) */
	real *gq, *gk, *gv; /* shapes of q, k, v; padded keys get 0 */
	real *gbias;        /* (n_bias,H,rows,Tk), summed over the samples that share it, in fixed groups; 0 beyond Tq */
	struct nr_heads sgo, sgq, sgk, sgv;
	unsigned add; /* NR_ATTENTION_ADD_* */

	/* Where operands were gathered: those of the unit after this one, to be asked for meanwhile; its row i is next_row[i] there. NULL:
	 * the kernel finds it by itself. */
	const struct nr_attention *next;
	const int32_t *next_row;

	void *scratch; /* nr_attention_scratch bytes, 64-byte aligned; contents do not matter */
	int threads;   /* that scratch was sized for; a larger team is cut to it */
};

/* Bytes of scratch for `threads` threads, enough for all three functions on any instruction set. Pointers
 * may be NULL except those that say what is wanted (gbias). */
size_t nr_attention_scratch(const struct nr_attention *, int threads);
void nr_attention_forward(const struct nr_attention *);
void nr_attention_backward(const struct nr_attention *); /* after forward: reads out and lse */
/* The tap: P (B,H,Tq,Tk), before dropout, 0 where a key does not count; from q, k and lse. */
void nr_attention_probs(const struct nr_attention *, real *P);

/* 1 if dropout keeps probability (i,j) of sample b, head h: 16 bits of a block of rng. A block serves
 * eight rows of a key; row i takes the low half (i odd: the high half) of its word (i % 8) / 2. The
 * reference. */
int nr_attention_keep(const struct nr_attention *, int64_t b, int64_t h, int64_t i, int64_t j);

/* Serial units. backward puts its share of the bias gradient to gbias (Tq,Tk), added if add_bias; NULL:
 * not wanted. */
struct nr_attention_kernels {
	void (*forward)(const struct nr_attention *, int64_t b, int64_t h, void *scratch);
	void (*backward)(
		const struct nr_attention *, int64_t b, int64_t h, real *gbias, int add_bias, void *scratch);
	void (*probs)(const struct nr_attention *, int64_t b, int64_t h, real *P, void *scratch);
};
NR_FAMILY_DECLARE(attention);

/* Fills sizes, scale, pointers and strides for packed qkv (B,T,3,H,d) and out (B,T,H,d); the rest is
 * zeroed. */
static inline struct nr_attention nr_attention_packed(
	int64_t B, int64_t T, int64_t H, int64_t d, const real *qkv, real *out)
{
	const int64_t C = H * d;
	const struct nr_heads s = { T * 3 * C, 3 * C, d }, o = { T * C, C, d };
	return (struct nr_attention){
		.B = B,
		.H = H,
		.Tq = T,
		.Tk = T,
		.d = d,
		.dv = d,
		.scale = 1 / nr_sqrt((real)d),
		.q = qkv,
		.k = qkv ? qkv + C : NULL, /* NULL: sizes only */
		.v = qkv ? qkv + 2 * C : NULL,
		.out = out,
		.sq = s,
		.sk = s,
		.sv = s,
		.so = o,
		.sgo = o,
		.sgq = s,
		.sgk = s,
		.sgv = s,
	};
}
static inline void nr_attention_packed_grad(struct nr_attention *a, const real *gout, real *gqkv)
{
	a->gout = gout;
	a->gq = gqkv;
	a->gk = gqkv + a->H * a->d;
	a->gv = gqkv + 2 * a->H * a->d;
}

/* Tiles of scores: at most NR_ATTENTION_QB queries by NR_ATTENTION_KB keys (fast/attention.c). n is cut
 * evenly, in multiples of 16, so that no block is thin; a single block is n itself, rounded up. */
#define NR_ATTENTION_QB 112
#define NR_ATTENTION_KB 512
static inline int64_t nr_attention_block(int64_t n, int64_t most)
{
	const int64_t blocks = (n + most - 1) / most;
	return blocks ? ((n + blocks - 1) / blocks + 15) / 16 * 16 : 0;
}

static inline int64_t nr_attention_rows(const struct nr_attention *a)
{
	return a->rows ? a->rows : a->Tq;
}

/* The block for row i (a multiple of 8) and key 0; the next keys have the next blocks. */
static inline uint64_t nr_attention_drop_block(const struct nr_attention *a, int64_t b, int64_t h, int64_t i)
{
	return (uint64_t)(((b * a->H + h) * ((nr_attention_rows(a) + 7) / 8) + i / 8) * a->Tk);
}

/* What dropout means in numbers: keep if the 16 bits are >= threshold, then multiply by the inverse of the
 * true share. */
static inline int nr_attention_threshold(const struct nr_attention *a)
{
	const int t = (int)(a->dropout * 65536 + (real)0.5);
	return t < 0 ? 0 : t > 65535 ? 65535
				     : t;
}
static inline real nr_attention_rescale(const struct nr_attention *a)
{
	return 65536 / (real)(65536 - nr_attention_threshold(a));
}

/* The keys [lo, hi) that queries [i0, i1) can see: length, band and causality. Empty: lo >= hi. */
static inline void nr_attention_range(
	const struct nr_attention *a, int64_t b, int64_t i0, int64_t i1, int64_t *lo, int64_t *hi)
{
	int64_t n = a->klen ? a->klen[b] : a->Tk;
	n = n < 0 ? 0 : n > a->Tk ? a->Tk
				  : n;
	*lo = a->window > 0 && i0 > a->window ? i0 - a->window : 0;
	*hi = n;
	if (a->window > 0 && i1 + a->window < *hi) *hi = i1 + a->window;
	if (a->causal && i1 < *hi) *hi = i1;
}

#endif
