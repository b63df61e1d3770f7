/* What the tasks on texts share: tokenizer, ids, batches by length, and the shapes that they have. */
#ifndef NR_TEXTS_H
#define NR_TEXTS_H

#include "base/rng.h"
#include "data/corpus.h"
#include "data/order.h"
#include "norma/tokenizer.h"
#include "train/task.h"

struct nr_text_settings {                   /* what the settings of these tasks begin with */
	char *tokenizer;                    /* "": beside the weights to begin with */
	int64_t max_length, window;         /* tokens of a text; batches whose samples are sorted by length before they are cut */
	double mask;                        /* share of tokens to predict, of masked words */
};

struct nr_texts {
	struct nr_tokenizer *tokenizer;
	const char *path;                   /* of the tokenizer */
	struct nr_corpus corpus;            /* of the training samples */
	struct nr_order order;
	int64_t longest, step, shapes;      /* shape i has longest - i step tokens */
	const int32_t *sample;              /* of the batch at hand */
	bool joined;                        /* set before opening: two texts of a sample are one; */
	const char *otherwise;              /* likewise: the tokenizer, if none is given; or NULL */
};

/* Opens the tokenizer, reads the texts, and fits the model's vocabulary and length to them. */
int nr_texts_open(struct nr_texts *, struct nr_task_run *, struct nr_error *);
void nr_texts_close(struct nr_texts *);
void nr_texts_shapes(struct nr_texts *, int64_t places);                /* lengths of shapes, from `longest` */
int64_t nr_texts_length(const struct nr_texts *, int64_t shape);
int64_t nr_texts_choose(struct nr_texts *, int64_t number);             /* of `choose`: makes the batch that one at hand */
/* A row of (rows,T) ids: a text, then padding. */
void nr_texts_put(const struct nr_texts *, const int32_t *text, int64_t count, int64_t T, int32_t *ids, int32_t *valid);
void nr_texts_describe(const struct nr_texts *, const struct nr_task_run *, struct nr_str *);

/* Their rows. */
#define NR_TEXT_ROWS(longest)                                                                                                      \
	NR_TEXT_LENGTH_ROWS(longest),                                                                                              \
	NR_OPT_FLOAT(struct nr_text_settings, mask, 0.15, 0, 1, "share of the tokens to predict")
#define NR_TEXT_LENGTH_ROWS(longest)                                                                                               \
	NR_OPT_STRING(struct nr_text_settings, tokenizer, "",                                                                      \
		"vocab.txt, tokenizer.json, or a folder with one; default: beside --init"),                                        \
	NR_OPT_INT(struct nr_text_settings, max_length, longest, 3, 100000,                                                        \
		"maximum number of tokens per text, special ones included; the rest is cut off"),                                  \
	NR_OPT_INT(struct nr_text_settings, window, 16, 0, 1000000,                                                                \
		"sort the texts of N batches by length to reduce padding; 0: do not sort")

#endif
