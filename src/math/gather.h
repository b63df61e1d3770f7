/* Rows picked by index: embeddings, and tokens of each sample (MAE's kept patches); and the way back, which adds.
 * A bad index never reads or writes outside: forward gives zeros, backward skips it. Inputs are checked once, when they
 * are bound, by nr_gather_check. */
#ifndef NR_GATHER_H
#define NR_GATHER_H

#include <stddef.h>

#include "math/chunk.h"

/* Position of the first index outside 0..rows-1, or -1. */
int64_t nr_gather_check(int64_t n, const int32_t *index, int64_t rows);

/* y (n,C) = table (rows,C) at index; add: y += */
void nr_gather(int64_t n, int64_t C, const real *table, int64_t rows, const int32_t *index, real *y, int add);
/* dtable (rows,C) += the rows of dy (n,C), in the order of n; index `padding` gets no gradient (-1: none). Only used rows
 * are touched; add = 0 sets the others to zero. scratch: nr_scatter_scratch bytes. */
void nr_scatter(int64_t n, int64_t C, real *dtable, int64_t rows, const int32_t *index, int32_t padding, const real *dy,
	int add, void *scratch);
size_t nr_scatter_scratch(int64_t n, int64_t rows);

/* y (n,C) = sums of rows of the table at index (n,each), and the way back: dy (n,C), scratch for n * each indices. */
void nr_gather_sum(int64_t n, int64_t each, int64_t C, const real *table, int64_t rows, const int32_t *index, real *y);
void nr_scatter_sum(int64_t n, int64_t each, int64_t C, real *dtable, int64_t rows, const int32_t *index, int32_t padding,
	const real *dy, int add, void *scratch);

/* y (B,n,C) = x (B,T,C) at index (B,n), per sample; samples of x and y begin sx and sy values apart. */
void nr_gather_tokens(int64_t B, int64_t T, int64_t n, int64_t C, const real *x, int64_t sx, const int32_t *index, real *y,
	int64_t sy, int add);
/* dx (B,T,C), overwritten or added to; indices may repeat. */
void nr_scatter_tokens(int64_t B, int64_t T, int64_t n, int64_t C, real *dx, int64_t sx, const int32_t *index,
	const real *dy, int64_t sy, int add);

#endif
