/* Files of texts in hexadecimal, as the reference lines of tokenizers have them. */
#ifndef NR_TOKENIZE_HEX_H
#define NR_TOKENIZE_HEX_H

#include "norma/tokenizer.h"

struct nr_str;

/* Tab separated lines of the reference files: text in hexadecimal (two with pair), then columns that are not read. Adds the line with
 * these columns instead: ids; for BPE without pair also the ids with a blank in front; for WordPiece with pair the type ids, and both
 * again cut to max_length. name and number are for messages. */
struct nr_hex_lines { struct nr_encoder *encoder; bool pair; int64_t max_length; const char *name; };
int nr_hex_line(const struct nr_hex_lines *, const char *line, size_t bytes, int64_t number, struct nr_str *out, struct nr_error *);
/* Whether the line's second column is a text too. */
bool nr_hex_is_pair(const struct nr_tokenizer *, const char *line, size_t bytes);

#endif
