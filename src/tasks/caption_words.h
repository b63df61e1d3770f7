/* A vocabulary made of captions, for those who bring no tokenizer: vocab.txt with every word, and the letters for words to come. */
#ifndef NR_CAPTION_WORDS_H
#define NR_CAPTION_WORDS_H

#include "norma/data.h"

/* Writes ROOT/cache/words-HASH/vocab.txt, unless it is there; *path: that file, in the arena. Words are cut and lowered as BERT's are. */
int nr_caption_words(const char **path, const struct nr_source *, enum nr_split, const char *root, struct nr_arena *, struct nr_error *);

#endif
