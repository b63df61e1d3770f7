/* What the heads of one layer look at, from queries and keys: mean attention distance (attention_distance.h), entropy, the size of
 * the logits (scale q.k + bias). Nothing of the size T x T is kept. */
#ifndef NR_ATTENTION_STATS_H
#define NR_ATTENTION_STATS_H

#include <stdbool.h>

#include "base/real.h"
#include "norma/err.h"
#include "norma/graph.h"

struct nr_attention_shape {
	int64_t H, T, d;                    /* heads, tokens, width of a head */
	int64_t special, h, w;              /* T = special + h w; h = 0: no grid, then no distance */
	int cls;                            /* the first token is the class token */
};
struct nr_head_sums {                       /* over samples; divide by their number, apart from the maximum */
	double distance;                    /* of patch tokens to patch tokens, in tokens; what goes to special ones is left out */
	double entropy, cls_entropy;        /* of a patch token's attention, of the class token's; nats, over all keys */
	double on_special;                  /* share that patch tokens give to special ones */
	double logit_square, logit_max;     /* mean square; largest absolute value */
	double most_entropy;                /* of looking at everything that is seen, evenly */
	int64_t samples;
};
/* What B samples are: qkv (B,T,3 H d); bias (H,T,T), one for all, or (B,H,T,T) if `biases`, or NULL. Graphs have numbers of nodes (B), what
 * follows them is padding, and steps (B,N,N) from node to node + 1, N = T - special; pairs without a path count for no distance. */
struct nr_attention_batch {
	int64_t B;
	const real *qkv, *bias;
	bool biases;
	const int32_t *nodes, *steps;       /* NULL: no graphs */
};
/* Adds B samples to sum (H), in their order. */
int nr_attention_stats(const struct nr_attention_shape *, const struct nr_attention_batch *, struct nr_head_sums *sum, struct nr_error *);
/* The same of sparse attention (nn/sparse.h), from the keys that its kernels take. A key that counts several times is one key with a larger
 * weight. x: of the node's inputs, packed. */
int nr_sparse_stats(const struct nr_attention_shape *, const struct nr_node *, void *const *x, int64_t B, struct nr_head_sums *sum,
	struct nr_error *);

/* What token i of one sample gives to each of the T tokens in one head; qkv (T,3 H d) of the sample, bias (H,T,T) or NULL. */
void nr_attention_weights(const struct nr_attention_shape *, const real *qkv, const real *bias, int64_t head, int64_t i, double *out);

#endif
