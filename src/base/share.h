/* Files that are installed with the command: PREFIX/share/norma beside PREFIX/bin. */
#ifndef NR_SHARE_H
#define NR_SHARE_H

#include "base/mem.h"

/* The path of an installed file, such as "recipes/published.yaml"; in the arena. NULL: there is none. */
const char *nr_share_find(const char *name, struct nr_arena *);
/* A recipe or study: the file of this name, or else the installed recipe, with or without .yaml ("dpn/table1"); the name itself if
 * neither is there. */
const char *nr_recipe_find(const char *name, struct nr_arena *);

#endif
