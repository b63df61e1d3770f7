/* Texts of a source as token ids, read once before a training. */
#ifndef NR_CORPUS_H
#define NR_CORPUS_H

#include "norma/data.h"

struct nr_tokenizer;

struct nr_corpus {
	int64_t samples;
	int32_t columns;                    /* texts of a sample */
	int32_t *ids;                       /* of all texts, one after the other, with their special tokens */
	int32_t *types;                     /* likewise: their segments, of texts joined in pairs; else NULL */
	int64_t *start;                     /* (samples * columns + 1) */
	int32_t *length;                    /* (samples): of the longest text of a sample */
	int32_t longest;
	int64_t cut;                        /* texts that are as long as allowed: most of them were cut */
};
/* index: which samples of the split, or NULL: the first ones. max_length counts special tokens. */
int nr_corpus_make(struct nr_corpus *, const struct nr_source *, enum nr_split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *, int64_t max_length, struct nr_error *);
/* The same with one text of each sample: both texts of a pair joined, as the tokenizer does it. */
int nr_corpus_join(struct nr_corpus *, const struct nr_source *, enum nr_split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *, int64_t max_length, struct nr_error *);
void nr_corpus_release(struct nr_corpus *);
const int32_t *nr_corpus_text(const struct nr_corpus *, int64_t sample, int32_t column, int64_t *count);

#endif
