/* Byte-level BPE's own. */
#ifndef NR_BPE_H
#define NR_BPE_H

#include "token/tokenizer_inner.h"

int32_t bpe_char_of_byte(int byte);
int bpe_byte_of_char(int32_t);                  /* -1: it stands for none */
/* The merge of two tokens; rank -1: there is none. */
struct bpe_merge *bpe_slot(const struct bpe_rules *, uint32_t left, uint32_t right);
/* The end of the word that begins at s, by GPT-2's pattern; CLIP's: no blanks, digits one by one. */
const char *bpe_word_end(const char *s, const char *end);
const char *bpe_clip_word_end(const char *s, const char *end);
const char *bpe_blanks_end(const char *s, const char *end);      /* behind white space */

#endif
