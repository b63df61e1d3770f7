/* `--data pics/`, `--data lines.txt`, `--data mols.csv`: data of one's own, understood by what they are. */
#ifndef NR_PLAIN_PATH_H
#define NR_PLAIN_PATH_H

#include "norma/data.h"

/* A text that names no data set but a file or folder that is there, perhaps with options after a colon: the set that reads it, the path
 * and the options, both in the arena. NULL without an error: there is nothing of that name. NULL and an error: it could be several things,
 * or is nothing that can be read. */
const struct nr_dataset *nr_plain_path(const char *text, const char **path, const char **options, struct nr_arena *, struct nr_error *);

#endif
