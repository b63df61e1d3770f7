/* Texts in lines of a terminal. */
#ifndef NR_WRAP_H
#define NR_WRAP_H

#include <stddef.h>

struct nr_str;

enum { NR_TERMINAL = 80 };              /* columns that every terminal has */

/* The words of a text in lines of at most `width` columns, each but the first after `indent` spaces; no line feed at the end. */
void nr_wrap(struct nr_str *, const char *text, size_t indent, size_t width);
/* Lines that begin with two spaces as they are, but for the second column of a list ("  word  text"), which goes on below itself;
 * those between them, up to an empty line, are paragraphs. */
void nr_wrap_paragraphs(struct nr_str *, const char *text, size_t width);

#endif
