/* Where weights lie. */
#ifndef NR_WEIGHTS_H
#define NR_WEIGHTS_H

#include "norma/infer.h"

/* path; of a folder the weights in it (model.safetensors, or the index of those in several files), of one of several files that index.
 * In the arena; NULL: out of memory. */
char *nr_weights_path(const char *path, struct nr_arena *);
/* SHA-256 of the file at such a path, or of those of all that its index names. hex has room for 65 characters. */
int nr_weights_checksum(const char *path, char *hex, struct nr_error *);

/* "0.5 1.25": numbers as metadata, so that they read back the same. */
const char *nr_numbers_text(const double *, int64_t count, struct nr_arena *);

#endif
