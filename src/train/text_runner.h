/* Sentence embeddings of a text model: texts sorted by length, a plan for each length in one memory. */
#ifndef NR_TEXT_RUNNER_H
#define NR_TEXT_RUNNER_H

#include "models/text_heads.h"
#include "norma/trainer.h"

struct nr_tokenizer;
struct nr_text_runner;

struct nr_text_runner_how {
	enum nr_text_pooling pooling;
	bool layer;                         /* SimCSE's tanh layer after it, if the store has one */
	int64_t max_length;                 /* with special tokens; 0: as many as the model has positions */
	int64_t tokens;                     /* of a batch, about; 0: 1024, whose activations stay in the cache */
};
/* Weights and tokenizer are the caller's and outlive it. Values of the store may change between runs. */
int nr_text_runner_open(struct nr_text_runner **, const struct nr_weights *, const struct nr_tokenizer *,
	const struct nr_text_runner_how *, struct nr_error *);
/* An error if the tokenizer has more tokens than the model. */
int nr_text_fits(const struct nr_model_spec *, const struct nr_tokenizer *, struct nr_error *);
void nr_text_runner_close(struct nr_text_runner *);                           /* NULL is fine */
int64_t nr_text_runner_width(const struct nr_text_runner *);
/* How many texts of the last run were embedded: those with the same ids are embedded once, and get the same bits. */
int64_t nr_text_runner_different(const struct nr_text_runner *);
/* out (n,width). watch may be NULL; when it returns non-zero the rest is left out and 1 is returned. */
int nr_text_runner_run(struct nr_text_runner *, const char *const *text, int64_t n, real *out,
	int (*watch)(void *context, int64_t done, int64_t of), void *context, struct nr_error *);

#endif
