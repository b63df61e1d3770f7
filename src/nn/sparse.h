/* Whom each token of sparse attention sees, for those who look at a trained model: the blocks or chunks that its kernels take. */
#ifndef NR_NN_SPARSE_H
#define NR_NN_SPARSE_H

#include <stdbool.h>

#include "base/real.h"
#include "norma/graph.h"

struct nr_sparse_head {                 /* one head of one sample; a score is scale * norm[j] * (q of i . k of j) */
	const real *q, *k;              /* of token 0; rows of d values, `width` apart */
	const real *norm;               /* (tokens), or NULL: 1 */
	int64_t d, width, tokens;
	double scale;
};
/* The n keys of token i. One that counts several times is there as often; numbers from `tokens` on are rows of zeros. */
typedef void nr_sparse_row(void *context, const struct nr_sparse_head *, int64_t i, int64_t n, const int32_t *key);

bool nr_is_sparse(const struct nr_op *);
/* Most keys of a token. */
int64_t nr_sparse_keys(const struct nr_node *);
/* Calls `each` for all tokens of a head that are no padding; unit: sample * heads + head. Of the call it reads node, x and ex, and
 * it writes stash and scratch, whose sizes the node tells. room: for that many keys. */
void nr_sparse_look(const struct nr_call *, int64_t unit, int32_t *room, nr_sparse_row *each, void *context);

/* The parts of it, beside the kernels. */
int64_t nr_block_keys(const struct nr_node *);
void nr_block_look(const struct nr_call *, int64_t unit, int32_t *room, nr_sparse_row *each, void *context);

#endif
