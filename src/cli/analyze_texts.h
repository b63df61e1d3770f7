/* Texts for norma analyze. */
#ifndef NR_CLI_ANALYZE_TEXTS_H
#define NR_CLI_ANALYZE_TEXTS_H

#include "cli.h"
#include "infer/evaluate.h"

struct cli_analyze_texts { int64_t length, count; int32_t *ids; };      /* (count,length), in the command's arena */
/* length 0: the one that one half of the texts reach, 64 at most. The model is set to it. */
int cli_analyze_texts(struct cli *, struct cli_analyze_texts *, struct nr_weights *, const struct nr_evaluation *, const char *tokenizer,
	int64_t samples);

#endif
