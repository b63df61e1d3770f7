/* Lists that options take: words separated by commas or blanks. */
#ifndef NR_CLI_LISTS_H
#define NR_CLI_LISTS_H

#include "cli.h"

enum { CLI_WORD = 64 };                         /* longer words are cut */
/* The next word; false: there is none. */
bool cli_list_word(const char **rest, char word[CLI_WORD]);

/* what: as a message names one: "a number of at least 0". */
struct cli_numbers { const char *flag, *what; double low, high; bool whole; int64_t most; };
/* How many there are, at least one, or an error. */
int64_t cli_list_numbers(struct cli *, const struct cli_numbers *, const char *text, double *out);

#endif
