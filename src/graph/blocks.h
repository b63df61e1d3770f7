/* Blocks of rows for row-wise kernels: at most NR_CHUNK rows that lie next to each other in every view given, whatever
 * gaps lie between samples. Their number and order depend on the shape only. */
#ifndef NR_BLOCKS_H
#define NR_BLOCKS_H

#include "math/chunk.h"
#include "norma/tensor.h"

struct nr_blocks { int64_t count, per, in_run, rows; };  /* per: blocks per run of rows without gaps */

/* Without views with gaps the run is the whole tensor, else a sample. */
static inline struct nr_blocks nr_blocks_of(const struct nr_view *x, int packed)
{
	const int64_t run = packed ? x->rows : x->t, per = nr_chunks(run);
	return (struct nr_blocks){ .count = run ? x->rows / run * per : 0, .per = per, .in_run = run, .rows = x->rows };
}
/* First row of block q; *rows: how many. */
static inline int64_t nr_block(const struct nr_blocks *b, int64_t q, int64_t *rows)
{
	const int64_t from = q % b->per * NR_CHUNK;
	*rows = nr_min64(NR_CHUNK, b->in_run - from);
	return q / b->per * b->in_run + from;
}
/* Upper bound of count for a tensor, for scratch sizes. */
static inline int64_t nr_blocks_most(const nr_t *x)
{
	const int64_t t = nr_rows_per_sample(x);
	return nr_max64(nr_chunks(nr_rows(x)), t ? nr_rows(x) / t * nr_chunks(t) : 0);
}

/* Copies (or adds) the rows of one view to another of the same shape; both may have gaps. A copy onto itself does nothing. */
void nr_rows_put(const struct nr_view *to, const struct nr_view *from, int add);

#endif
