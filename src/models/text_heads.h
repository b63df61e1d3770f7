/* What text models are trained and read with: sentence embeddings, heads of masked words and next sentences, SimCSE's layer.
 *
 *   struct nr_text t; nr_text_encode(net, &spec, &inputs, &t);
 *   nr_t *z = nr_simcse_layer(net, nr_text_pool(net, &t, NR_TEXT_CLS));              (B S,C), S sentences of a sample in a row
 *   nr_t *loss = nr_simcse_loss(net, nr_reshape(net, z, NR_SHAPE(B, S, C)), 0.05, 0, NULL);
 *   nr_t *words = nr_cross_entropy(net, nr_mlm_logits(net, &spec, t.tokens, true), labels, 0, NR_TEXT_IGNORED);
 */
#ifndef NR_TEXT_HEADS_H
#define NR_TEXT_HEADS_H

#include "norma/model.h"

enum { NR_TEXT_IGNORED = -100 };            /* label of a token that is not to be predicted */

struct nr_text {
	nr_t *embedded, *tokens;            /* (B,T,C): before the first and after the last block */
	nr_t **layer;                       /* of each block */
	int64_t depth;
};
/* Records the encoder. NULL tokens after an error, which sticks in the net. */
void nr_text_encode(struct nr_net *, const struct nr_model_spec *, const struct nr_inputs *, struct nr_text *);

/* Tokens that a text can have: RoBERTa's positions begin behind its padding's. */
int64_t nr_text_length(const struct nr_model_spec *);
nr_t *nr_text_pool(struct nr_net *, const struct nr_text *, enum nr_text_pooling);    /* a sentence each: (B,C) */

nr_t *nr_first_token(struct nr_net *, nr_t *tokens);           /* (B,C) */
nr_t *nr_text_pooler(struct nr_net *, nr_t *tokens);           /* BERT's: tanh(pooler.dense h_0) */
nr_t *nr_simcse_layer(struct nr_net *, nr_t *pooled);          /* tanh(simcse.dense x) */

/* Masked words: dense, activation, layer norm, decoder (the word table itself if tied) and bias: (...,vocab). tokens: all of
 * (B,T,C), or those that count (nr_take_tokens). */
nr_t *nr_mlm_logits(struct nr_net *, const struct nr_model_spec *, nr_t *tokens, bool tied);
nr_t *nr_nsp_logits(struct nr_net *, nr_t *pooled);            /* (B,2); 0: is next */

/* Heads of a file, by its names: bits of what to record so that the store has a place for them. */
enum { NR_TEXT_HAS_POOLER = 1, NR_TEXT_HAS_MLM = 2, NR_TEXT_HAS_OWN_DECODER = 4, NR_TEXT_HAS_NSP = 8, NR_TEXT_HAS_SIMCSE = 16 };
struct nr_st_file;
unsigned nr_text_heads_in(const struct nr_model *, const struct nr_st_file *, struct nr_arena *);
unsigned nr_text_heads_of(const struct nr_store *);             /* the same of a store */
void nr_text_heads_record(struct nr_net *, const struct nr_model_spec *, nr_t *tokens, unsigned heads);

#endif
