/* What a folder of sentence-transformers says of its sentences. */
#ifndef NR_SENTENCE_MODULES_H
#define NR_SENTENCE_MODULES_H

#include "norma/err.h"

struct nr_arena;
/* The pooler that modules.json beside a file of weights asks for, by our names, or in its words if norma has no such pooler ("max",
 * "mean, then Dense"); NULL: there is no such file. Lives in the arena. */
int nr_sentence_pooler(const char **pooler, const char *weights, struct nr_arena *, struct nr_error *);

#endif
