/* Texts of a source as token ids, read once before a training; and the order in which batches take them. */
#ifndef NR_CORPUS_H
#define NR_CORPUS_H

#include "norma/data.h"

struct nr_tokenizer;

struct nr_corpus {
	int64_t samples;
	int32_t columns;                    /* texts of a sample */
	int32_t *ids;                       /* of all texts, one after the other, with their special tokens */
	int64_t *start;                     /* (samples * columns + 1) */
	int32_t *length;                    /* (samples): of the longest text of a sample */
	int32_t longest;
	int64_t cut;                        /* texts that are as long as allowed: most of them were cut */
};
/* index: which samples of the split, or NULL: the first ones. max_length counts special tokens. */
int nr_corpus_make(struct nr_corpus *, const struct nr_source *, enum nr_split, const int32_t *index, int64_t count,
	const struct nr_tokenizer *, int64_t max_length, struct nr_error *);
void nr_corpus_release(struct nr_corpus *);
const int32_t *nr_corpus_text(const struct nr_corpus *, int64_t sample, int32_t column, int64_t *count);

/* Batches of samples of like lengths. The order of an epoch is a permutation by (seed, epoch); with a window, the samples of so many
 * batches are sorted by length before they are cut into batches, and the batches are shuffled: a batch then holds little padding.
 * Window 0: plain shuffling. What does not fill a batch is left out of its epoch. */
struct nr_order {
	const int32_t *length;              /* (samples) */
	int64_t samples, batch, window;
	uint64_t seed;
	int64_t epoch;                      /* whose order is at hand; -1: none */
	int32_t *sample;                    /* (samples) */
	int32_t *place;                     /* (batches): which of the cut batches comes when */
	int32_t longest, *spare;            /* of all samples; of sorting */
};
int nr_order_make(struct nr_order *, const int32_t *length, int64_t samples, int64_t batch, int64_t window, uint64_t seed,
	struct nr_error *);
void nr_order_release(struct nr_order *);
/* The samples of a batch, counted over epochs; valid until the next call. *longest of their lengths. */
const int32_t *nr_order_batch(struct nr_order *, int64_t number, int32_t *longest);

#endif
