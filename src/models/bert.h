/* What BERT and RoBERTa share: the options, the encoder, the form of their public names. The families differ in defaults, in
 * how places are counted, and in the names of the masked-word head. */
#ifndef NR_BERT_H
#define NR_BERT_H

#include <stdbool.h>

#include "models/guess.h"

struct nr_bert {
	int64_t vocab, dim, depth, heads, hidden, positions, types, pad, length, classes;
	double dropout, attention_dropout;
	bool rescale;                       /* BigBird: words are multiplied with sqrt(dim) */
	bool skip_pads;                     /* RoBERTa: places go from pad + 1 on, and pads have place `pad` */
	int32_t pool;                       /* enum nr_bert_pool */
	char *act;
};
enum nr_bert_pool { NR_BERT_POOLER, NR_BERT_CLS, NR_BERT_AVG };
extern const char *const nr_bert_pools[];   /* pooler, cls, avg; ends with NULL */

#define NR_BERT_OPTIONS(vocab_, positions_, types_, pad_, skip_pads_, length_, act_, pool_)                                     \
	NR_OPT_INT(struct nr_bert, vocab, vocab_, 1, 100000000, "size of the vocabulary"),                                      \
	NR_OPT_INT(struct nr_bert, dim, 768, 1, 65536, "width of a token"),                                                     \
	NR_OPT_INT(struct nr_bert, depth, 12, 1, 1024, "number of blocks"),                                                     \
	NR_OPT_INT(struct nr_bert, heads, 12, 1, 1024, "attention heads"),                                                      \
	NR_OPT_INT(struct nr_bert, hidden, 3072, 1, 1000000, "width of the MLP"),                                               \
	NR_OPT_INT(struct nr_bert, positions, positions_, 1, 1000000, "rows of the position table"),                            \
	NR_OPT_INT(struct nr_bert, types, types_, 1, 1000, "number of segment types"),                                          \
	NR_OPT_INT(struct nr_bert, pad, pad_, 0, 100000000, "id of the padding token; lookups do not train its row"),             \
	NR_OPT_BOOL(struct nr_bert, skip_pads, skip_pads_, "positions start at pad + 1 and skip padding (RoBERTa)"),            \
	NR_OPT_INT(struct nr_bert, length, length_, 1, 1000000, "maximum number of tokens per text, special ones included"),        \
	NR_OPT_STRING(struct nr_bert, act, act_, "activation of the MLP: gelu, gelu_tanh (gelu_new), relu, silu"),            \
	NR_OPT_FLOAT(struct nr_bert, dropout, 0, 0, 0.99, "dropout of embeddings and branches"),                                \
	NR_OPT_FLOAT(struct nr_bert, attention_dropout, 0, 0, 0.99, "dropout of attention"),                                    \
	NR_OPT_ENUM(struct nr_bert, pool, pool_, nr_bert_pools,                                                              \
		"what a head reads: a tanh layer on the first token, that token, or the mean of all tokens"),                   \
	NR_OPT_INT(struct nr_bert, classes, 2, 1, 1000000, "outputs of a classification head")

nr_t *nr_bert_embed(struct nr_net *, const struct nr_inputs *, const void *conf);
nr_t *nr_bert_encode(struct nr_net *, const struct nr_inputs *, nr_t *tokens, const void *conf);
nr_t *nr_bert_encode_layers(struct nr_net *, const struct nr_inputs *, nr_t *tokens, const void *conf, nr_t **layer);
nr_t *nr_bert_pool(struct nr_net *, nr_t *tokens, const void *conf);
/* The blocks, all of this kind but for the number of the layer. */
struct nr_block;
nr_t *nr_bert_blocks(struct nr_net *, nr_t *tokens, const struct nr_bert *, const struct nr_block *, nr_t **layer);

/* In a file: see guess.h. prefix: of the classes of transformers ("Bert"); heads: `head` is their classifier. */
extern const char *const nr_bert_signs[];
bool nr_bert_measure(const struct nr_look *, struct nr_sighting *);
int nr_bert_fits(const struct nr_look *);
json_t *nr_bert_config(const struct nr_saved *, const char *prefix, bool heads);

/* Rules of a naming whose encoder stands under P: "", "bert.", "roberta.". The heads' come after them. */
#define NR_BERT_NAMES(P)                                                                                                       \
	{ "word.", P "embeddings.word_embeddings." }, { "position.", P "embeddings.position_embeddings." },                     \
	{ "type.", P "embeddings.token_type_embeddings." }, { "embed.", P "embeddings.LayerNorm." },                            \
	{ "attn.qkv.", "attention.self.query. attention.self.key. attention.self.value." },                                     \
	{ "attn.proj.", "attention.output.dense." }, { "attn.res.", "attention.output.LayerNorm." },                            \
	{ "mlp.fc1.", "intermediate.dense." }, { "mlp.fc2.", "output.dense." }, { "mlp.res.", "output.LayerNorm." },            \
	{ "blocks.", P "encoder.layer." }, { "pooler.", P "pooler." }, { "special.", "cls_norm_layer." },                       \
	{ "rest.", "tok_norm_layer." }, { "simcse.", "mlp." }, { "head.", "classifier." }
/* And BERT's own heads. */
#define NR_BERT_HEADS                                                                                                          \
	{ "mlm.dense.", "cls.predictions.transform.dense." }, { "mlm.norm.", "cls.predictions.transform.LayerNorm." },          \
	{ "mlm.", "cls.predictions." }, { "nsp.", "cls.seq_relationship." }

#endif
