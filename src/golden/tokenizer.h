/* Reference files of the tokenizers. */
#ifndef GOLDEN_TOKENIZER_H
#define GOLDEN_TOKENIZER_H

#include "golden/check.h"

bool golden_is_tokens(const char *path);        /* by its name */
void golden_tokens(struct golden_case *);

#endif
