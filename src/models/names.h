/* Texts of models, and what their entries are called elsewhere. */
#ifndef NR_NAMES_H
#define NR_NAMES_H

#include "norma/model.h"

/* A model's text without one of its options; NULL: out of memory. */
const char *nr_model_text_without(const char *text, const char *option, struct nr_arena *);
/* What an entry is called under these names: one or more words. NULL when out of memory. *pixels: see '@' at struct nr_rename. */
const char *nr_naming_text(const struct nr_naming *, const char *entry, bool *pixels, struct nr_arena *);
bool nr_naming_ignores(const struct nr_naming *, const char *name);     /* a tensor that public files carry and never use */

#endif
