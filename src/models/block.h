/* The transformer block that the models are made of. */
#ifndef NR_BLOCK_H
#define NR_BLOCK_H

#include <stdbool.h>

#include "norma/graph.h"
#include "norma/nn.h"

enum nr_position_bias { NR_NO_POSITION_BIAS, NR_POSITION_BIAS_ZERO, NR_POSITION_BIAS_EQ7 };     /* none, from zero, from DTN's Eq. 7 */
extern const char *const nr_position_biases[];  /* "0", "1", "eq7"; ends with NULL */

enum nr_glu { NR_NO_GLU, NR_GLU_PACKED, NR_GLU_SPLIT };       /* SwiGLU: mlp.fc1 makes gates and values, or mlp.fc1_g and mlp.fc1_x do */
extern const char *const nr_glus[];             /* "0", "packed", "split"; ends with NULL */

struct nr_block {
	int64_t heads, hidden;              /* hidden: width of the MLP */
	const char *act;                    /* its activation; NULL: gelu */
	int32_t glu;                        /* enum nr_glu: instead, silu(gate) times values */
	double drop_path, dropout, attention_dropout;
	bool no_qkv_bias, no_proj_bias;
	bool no_key_bias;                   /* queries and values have biases of their own, attn.q_bias and attn.v_bias (BEiT) */
	bool split_qkv;                     /* layers attn.q, attn.k (without bias) and attn.v instead of attn.qkv (EVA-02) */
	const struct nr_rope *rope;         /* queries and keys turn: its kind, theta and reference are read; or NULL */
	bool no_hidden_dropout;             /* `dropout` does not act between the MLP's activation and its second layer (BERT), */
	double hidden_dropout;              /* but this does (Graphormer) */
	bool causal;                        /* a token sees those before it and itself */
	nr_t *bias;                         /* (B,H,T,T) added to the scores; or NULL */
	int32_t position_bias;              /* scores get DTN's a_h . (d^2, dx, dy) of the grid (DTN, Eq. 6 and Table 10a) */
	const struct nr_block_attention_options *blocks;    /* BigBird's attention; or NULL */
	const struct nr_lsh_options *lsh;   /* attention in buckets, of queries that are keys, without output projection; or NULL */
	nr_t **buckets;                     /* of lsh, for taps; or NULL */
};
/* (H,T,S) from a parameter attn.position, for queries x and keys that stand on a grid `stride` times coarser; NULL without a kind. */
nr_t *nr_block_position_bias(struct nr_net *, const nr_t *x, int32_t kind, int64_t heads, int64_t stride);
/* Sites attn.qk and attn.v on packed qkv (B,T,3C), seen as the plan's `qk` says: each head or the whole width. */
nr_t *nr_norm_qk(struct nr_net *, nr_t *qkv, int64_t heads);
/* One of them alone (rows,heads,d), with parameters under `scope`. */
nr_t *nr_norm_scoped(struct nr_net *, const char *scope, const char *norm, nr_t *x);
/* The same as (B,T,C); norm NULL: x. */
nr_t *nr_norm_heads(struct nr_net *, const char *scope, const char *norm, nr_t *x, int64_t heads);
nr_t *nr_block(struct nr_net *, nr_t *x, const struct nr_block *);
nr_t *nr_block_mlp(struct nr_net *, nr_t *x, const struct nr_block *);     /* its MLP alone, without the norm before it */
/* The block of nGPT, on the sphere (ngpt.c). */
nr_t *nr_ngpt_block(struct nr_net *, nr_t *x, const struct nr_block *);
/* Attention and MLP side by side, from one norm and one layer: x + proj(attention) + proj(mlp). Entries and sites are under "par". */
nr_t *nr_parallel_block(struct nr_net *, nr_t *x, const struct nr_block *);
/* Width of an MLP from its ratio, as timm rounds it; a ratio that is a quotient of widths gives back the width. */
static inline int64_t nr_mlp_width(double ratio, int64_t dim) { return (int64_t)(ratio * (double)dim + 1e-4); }

#endif
