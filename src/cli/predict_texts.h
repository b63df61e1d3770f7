/* norma predict and norma eval on texts: what a classifier or regressor of `norma text` says of them. */
#ifndef NR_PREDICT_TEXTS_H
#define NR_PREDICT_TEXTS_H

#include "cli.h"
#include "norma/infer.h"

struct predict_texts { char *tokenizer; char *const *name; int64_t names, top; bool json; };      /* names: of the classes */
/* One text each: the arguments, or the lines of standard input if there is none. A tab parts a pair. path: of the weights. */
int cli_predict_texts(struct cli *, const struct predict_texts *, const struct nr_weights *, const char *path, char *const *text,
	int64_t count);
struct eval_texts { bool json, confusion; };
/* Scores on a split of the source; count 0: all of it. */
int cli_eval_texts(struct cli *, const struct nr_weights *, const char *path, const struct nr_source *, enum nr_split, int64_t count,
	const struct eval_texts *);

#endif
