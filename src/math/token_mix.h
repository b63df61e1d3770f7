/* Products with a token-mixing matrix P (n,n) whose rows sum to one, of one head of one sample: out = P u and back.
 * Serial, through the gemm, row and token tables; nothing is allocated.
 *
 *   NR_MIX_POS      P_ij = softmax over sources j of a . (dx^2 + dy^2, dx, dy), (dx,dy) = place_j - place_i  (DTN, Eq. 6)
 *   NR_MIX_UNIFORM  P_ij = 1 / number of sources
 *   NR_MIX_BAND     the same over the sources with |i - j| <= reach
 *   NR_MIX_FREE     P_ij = softmax of logit_ij
 *
 * Sources are tokens 0 .. valid-1, targets all; a target without any source sees itself.
 *
 * On a whole grid the exponent of POS is a sum of one term in dx and one in dy, so P = Py (x) Px, a Kronecker product of
 * (h,h) and (w,w): two products of n (h + w) instead of n^2. Else P is made in tiles of rows and never stored. */
#ifndef NR_TOKEN_MIX_H
#define NR_TOKEN_MIX_H

#include <stddef.h>

#include "math/chunk.h"

enum nr_mix { NR_MIX_POS, NR_MIX_UNIFORM, NR_MIX_BAND, NR_MIX_FREE };

struct nr_token_mix {
	enum nr_mix kind;
	int64_t n, h, w, c;      /* tokens, their grid (row-major), columns of u */
	int64_t valid, reach;
	const int32_t *place;    /* (n) on the grid when the tokens are a part of it; NULL: all, in order */
	const real *a;           /* POS: (3) */
	const real *logit;       /* FREE: (n,n) */
	real *work;              /* nr_token_mix_work values */
};

/* Values of `work`, whatever `valid` and `place` will be; part: may tokens be padded or a part of the grid? */
size_t nr_token_mix_work(const struct nr_token_mix *, int part);
/* out (n,c) = P u */
void nr_token_mix_forward(const struct nr_token_mix *, const real *u, real *out);
/* du (n,c) = P^T dout; da (3) += the gradient of a, dlogit (n,n) += that of logit; NULL: not wanted. After a forward of
 * the same u, whose `work` is untouched. */
void nr_token_mix_backward(const struct nr_token_mix *, const real *u, const real *dout, real *du, real *da,
	real *dlogit);

#endif
