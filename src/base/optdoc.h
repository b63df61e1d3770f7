/* Texts that derive from option tables. */
#ifndef NR_OPTDOC_H
#define NR_OPTDOC_H

#include "norma/option.h"

struct nr_str;

/* Rows of --help: letter, flag, value, help with default and range; wrapped at 80 columns. */
void nr_option_help(const struct nr_option *, struct nr_str *);
/* scdoc source, one paragraph per option. */
void nr_option_man(const struct nr_option *, struct nr_str *);
/* Words for bash completion, one per line: the flags; after an enum's flag (previous, else NULL)
 * its choices. */
void nr_option_complete(const struct nr_option *, const char *previous, struct nr_str *);
/* YAML that nr_yaml_parse reads back, a comment above each key, indented by so many spaces. conf NULL: the
 * defaults. */
void nr_option_yaml(const struct nr_option *, const void *conf, int indent, struct nr_str *);

#endif
