/* Texts of models, and what their entries are called elsewhere. */
#ifndef NR_NAMES_H
#define NR_NAMES_H

#include "norma/model.h"

/* A model's text without one of its options; NULL: out of memory. */
const char *nr_model_text_without(const char *text, const char *option, struct nr_arena *);
/* What an entry is called under these names: one or more words. NULL when out of memory. *order: a mark of struct nr_rename, '@',
 * or 0. */
const char *nr_naming_text(const struct nr_naming *, const char *entry, char *order, struct nr_arena *);
/* The next word of such a text; how many parts of the entry it holds, as many as nr_naming_parts in all. 0: there is none. */
int64_t nr_naming_word(const char **text, char *name, size_t size);
int64_t nr_naming_parts(const char *text);
extern const struct nr_naming nr_naming_ours;   /* "norma" */
/* Where value k of an entry stands in theirs; patch and channels: of a picture's patches. */
int64_t nr_naming_place(char order, const struct nr_entry *, int64_t k, int64_t patch, int64_t channels);
/* The naming with the rules for these numbers, its scopes too, in the arena; itself if they are not needed. NULL: out of memory. */
const struct nr_naming *nr_naming_numbered(const struct nr_naming *, const struct nr_numbers *, struct nr_arena *);
bool nr_naming_ignores(const struct nr_naming *, const char *name);     /* a tensor that public files carry and never use */

/* Does a file have all entries of a store, with these names and shapes, and nothing else? *why: what speaks against it, in the arena. */
struct nr_st_file;
int nr_naming_matches(const struct nr_store *, const struct nr_st_file *, const struct nr_naming *, struct nr_arena *, const char **why);

#endif
