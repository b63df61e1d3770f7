/* All bytes of a file: mapped, or inflated from a .gz. Whoever truncates a mapped file breaks its readers: the command
 * then ends with a message (SIGBUS). */
#ifndef NR_BYTES_H
#define NR_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

struct nr_bytes { const uint8_t *data; size_t size; bool mapped; };   /* all zero: none */

int nr_bytes_map(struct nr_bytes *, const char *path, struct nr_error *);           /* an empty file is an error */
/* More than limit bytes are an error: what little files claim to be is not believed. */
int nr_bytes_gunzip(struct nr_bytes *, const char *path, size_t limit, struct nr_error *);
/* path, or path.gz if only that is there. */
int nr_bytes_open(struct nr_bytes *, const char *path, size_t limit, struct nr_error *);
void nr_bytes_release(struct nr_bytes *);

#endif
