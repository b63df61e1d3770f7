/* Names of files in folders, for data sets that are found by looking. */
#ifndef NR_NAMES_IN_H
#define NR_NAMES_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "norma/err.h"

struct nr_arena;
struct nr_names_in { char **item; size_t count, room; };        /* items in the arena; free(item) */

/* Names in a folder, sorted, without those that begin with a dot. */
int nr_names_in(const char *folder, struct nr_names_in *, struct nr_arena *, struct nr_error *);
bool nr_is_picture_name(const char *name);
bool nr_is_folder(const char *path);
/* A number in [0,1) that divides pictures by their names. */
double nr_name_share(const char *name);

#endif
