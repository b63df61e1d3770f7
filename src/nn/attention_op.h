/* What the attention ops share: their attribute, and how it and the operands become the kernel's arguments. */
#ifndef NR_NN_ATTENTION_OP_H
#define NR_NN_ATTENTION_OP_H

#include <stdbool.h>

#include "math/attention.h"
#include "nn/op.h"

struct nr_attention_attr {
	int64_t heads, window;
	int64_t value;                      /* width of a head of v where it is not that of q; packed only */
	bool per_head;                      /* operands lie as (H,[q|k|v]) or (H,[k|v]), not as ([q|k|v],H) */
	int causal, has_bias, has_valid;    /* after the operands come bias, then valid */
	uint32_t stream;
	float scale, dropout;
	int64_t queries;                    /* packed: of the first so many tokens only; 0: of all */
	int64_t rows;                       /* queries of the whole, if it was narrowed: bias and dropout are laid out for them; else 0 */
};

static inline size_t nr_attention_reals(int64_t n) { return ((size_t)n * sizeof(real) + 63) / 64 * 64; }

/* Sizes and what counts, without pointers; operands: 1 (qkv), 2 (q, kv) or 3 (q, k, v). */
struct nr_attention nr_attention_sizes(const struct nr_node *, int operands);
/* Bias, lengths, dropout: 0, or what does not fit. */
int nr_attention_check(struct nr_node *, const struct nr_attention *, int operands);
/* Where q, k and v lie in the operands; the same for their gradients, with the strides of dx. */
struct nr_attention_parts { real *q, *k, *v; struct nr_heads sq, sk, sv; };
struct nr_attention_parts nr_attention_split(const struct nr_attention *, const struct nr_attention_attr *, int operands,
	const struct nr_view *);
/* All of it for a run: operands, bias, lengths, dropout, scratch; out and lse if y[0] and stash are the result's. */
struct nr_attention nr_attention_bind(const struct nr_call *, int operands);
void nr_attention_op_forward(const struct nr_call *, int operands);
void nr_attention_op_backward(const struct nr_call *, int operands);
size_t nr_attention_op_scratch(struct nr_attention);
void nr_attention_op_cost(struct nr_attention, double *forward, double *backward);
/* The attribute of an op that makes so many tokens alone: nr_op.narrowed. */
const void *nr_attention_narrowed(const struct nr_node *, int64_t tokens, struct nr_arena *);
/* Records an op; lengths of the keys: given, or those of the tokens. */
nr_t *nr_attention_apply(struct nr_net *, const struct nr_op *, int operands, nr_t *const *operand, struct nr_attention_options);
/* For the tests' cases: the op on x, with its options as text. */
nr_t *nr_attention_try(struct nr_net *, const struct nr_op *, int operands, nr_t **x, const char *text);

#endif
