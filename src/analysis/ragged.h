/* One norm of a model by itself, with batch statistics, on samples of different lengths: how much do the outputs of real tokens
 * change when others are cut off? Norms of one token do not change at all. */
#ifndef NR_RAGGED_H
#define NR_RAGGED_H

#include "base/real.h"
#include "norma/infer.h"

/* x (B,T,C) as it goes into the norm at the site whose text is `norm` ("sep(bn,ln)"); tok: what its tokens are. Sample b of B keeps its
 * special tokens and a part of the others that goes from 1 (b = 0) to `least` (b = B - 1). *change: mean over kept tokens of
 * |y' - y| / |y|, y the output with whole lengths. NR_EVALUE: the norm cannot do without some of the tokens. */
int nr_ragged_change(const struct nr_weights *, const char *site, const char *norm, const struct nr_tokens *tok, int64_t B, int64_t T,
	int64_t C, const real *x, double least, double *change, struct nr_error *);
/* The length of sample b, special tokens counted. */
int64_t nr_ragged_length(int64_t T, int64_t special, int64_t b, int64_t B, double least);

#endif
