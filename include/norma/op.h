/* Writing ops: what a kernel of one's own is made of. graph.h has struct nr_op and struct nr_call, tensor.h the views that kernels see.
 *
 * An op is a shape function, a forward and a backward kernel. Kernels cannot fail, allocate nothing and give the same bits at any
 * number of threads: nr_rows_each runs them over rows in fixed chunks. `norma check` shows that all this holds. */
#ifndef NORMA_OP_H
#define NORMA_OP_H

#include "norma/graph.h"

/* Calls row(k, r, sum) for each row r of x[0], with all threads over chunks of rows. sum: `sums` values of the chunk, zero at first,
 * for what is summed over rows, such as the gradient of a weight; the sums of all chunks, added up in order, are returned, in the
 * scratch. sums 0: none. */
NR_API const nr_real *nr_rows_each(const struct nr_call *k, int64_t sums, void (*row)(const struct nr_call *k, int64_t r, nr_real *sum));
/* For shape functions: the scratch that this takes for a tensor x. */
NR_API size_t nr_rows_scratch(const nr_t *x, int64_t sums);
/* y = x, or y += x: n values. */
NR_API void nr_put_all(int64_t n, const nr_real *x, nr_real *y, int add);

/* Sums over n values, by the kernels of this CPU. */
NR_API nr_real nr_sum_of(int64_t n, const nr_real *x);
NR_API nr_real nr_dot_of(int64_t n, const nr_real *a, const nr_real *b);
NR_API nr_real nr_dot3_of(int64_t n, const nr_real *a, const nr_real *b, const nr_real *c);
NR_API nr_real nr_squares_of(int64_t n, const nr_real *x, nr_real about);              /* sum (x - about)^2 */

#endif
