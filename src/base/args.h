/* Command line arguments by option table. */
#ifndef NR_ARGS_H
#define NR_ARGS_H

#include "norma/option.h"

/* Reads `--name value`, `--name=value`, `--flag`, `--no-flag`, `-x value`, `-xvalue` and joined flags `-abc`;
 * `--` ends the options and '-' alone is an ordinary argument. argv[0] is the first argument, not the
 * program. conf already holds defaults or a file's values. The first `--name` of a list replaces what conf
 * held, further ones add. Other arguments are added to rest, in order (NULL: they are refused). All errors
 * are NR_EUSAGE. */
int nr_args_parse(const struct nr_option *table, void *conf, int argc, char **argv, struct nr_list *rest,
		  struct nr_arena *, struct nr_error *);
/* Fails if an option without default still has no value. Apart from parsing, so that `--help` works without
 * them. */
int nr_args_require(const struct nr_option *table, const void *conf, struct nr_error *);
/* An option without default that conf does not hold, or NULL. */
const struct nr_option *nr_option_missing(const struct nr_option *table, const void *conf);
/* "--data-dir" for data_dir; returns buf. */
const char *nr_option_flag(const struct nr_option *, char *buf, size_t size);
/* The item is not copied. 0 or NR_EMEMORY. */
int nr_list_add(struct nr_list *, char *item, struct nr_arena *);

#endif
