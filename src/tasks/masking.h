/* Words of a batch that are masked and to be predicted: what mlm and the masked words of simcse share. */
#ifndef NR_MASKING_H
#define NR_MASKING_H

#include "base/rng.h"
#include "norma/graph.h"
#include "norma/tokenizer.h"

/* Those of all texts together, in one list: a batch has fewer words to spare than its texts one by one. Their number has a limit
 * six deviations above its mean, so that shapes stay fixed. */
struct nr_masked { nr_t *index, *labels; };             /* inputs (1,K): place in the batch, and the word or NR_TEXT_IGNORED */
/* The masked ones of (B,T,C): (1,K,C), for the head. */
nr_t *nr_masked_tokens(struct nr_net *, nr_t *tokens, double share, struct nr_masked *);

/* BERT's masking: of the tokens that are no special ones a share is to be predicted; of these 80 % become [MASK], 10 % another word,
 * 10 % stay. Texts are added one by one; then the rest of the list is filled. */
struct nr_masker {
	const struct nr_tokenizer *tokenizer;
	double share;
	int32_t *index, *labels;
	int64_t room, count;
};
struct nr_masker nr_masker_begin(const struct nr_tokenizer *, double share, const struct nr_plan *, const struct nr_masked *);
/* A text of n tokens, whose first is at this place of the batch. Draws are a pure function of (rng, first + token). */
void nr_masker_add(struct nr_masker *, struct nr_rng, uint64_t first, int64_t place, int64_t n, const int32_t *ids, int32_t *masked);
void nr_masker_end(struct nr_masker *);
/* An error if the tokenizer has no [MASK], or no token is to be predicted. path: of the tokenizer. */
int nr_masking_check(const struct nr_tokenizer *, const char *path, double share, struct nr_error *);

#endif
