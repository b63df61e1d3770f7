/* The transformer block that the models are made of. */
#ifndef NR_BLOCK_H
#define NR_BLOCK_H

#include <stdbool.h>

#include "norma/graph.h"

struct nr_block {
	int64_t heads, hidden;              /* hidden: width of the MLP */
	const char *act;                    /* its activation; NULL: gelu */
	double drop_path, dropout, attention_dropout;
	bool no_qkv_bias;
	bool no_hidden_dropout;             /* `dropout` does not act between the MLP's activation and its second layer (BERT), */
	double hidden_dropout;              /* but this does (Graphormer) */
	nr_t *bias;                         /* (B,H,T,T) added to the scores; or NULL */
	bool position_bias;                 /* scores get DTN's a_h . (d^2, dx, dy) of the grid (DTN, Eq. 6 and Table 10a) */
};
/* Site attn.qk on packed qkv (B,T,3C): queries and keys of each head. */
nr_t *nr_norm_qk(struct nr_net *, nr_t *qkv, int64_t heads);
/* Its MLP alone: hidden, act and dropout count. */
nr_t *nr_block_mlp(struct nr_net *, nr_t *x, const struct nr_block *);
nr_t *nr_block(struct nr_net *, nr_t *x, const struct nr_block *);
/* Width of an MLP from its ratio, as timm rounds it; a ratio that is a quotient of widths gives back the width. */
static inline int64_t nr_mlp_width(double ratio, int64_t dim) { return (int64_t)(ratio * (double)dim + 1e-6); }

#endif
