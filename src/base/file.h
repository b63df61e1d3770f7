/* Opening files to read. Only regular ones: a FIFO, a device or a socket where a file is expected is an error at once, and never waited
 * for. */
#ifndef NR_FILE_H
#define NR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "norma/err.h"
#include "norma/option.h"

/* A descriptor, or -1. */
int nr_file_open(const char *path, struct nr_error *);
FILE *nr_file_stream(const char *path, struct nr_error *);          /* NULL after an error */
/* All of it, mapped to be read; NULL and 0 bytes of an empty file. */
int nr_file_map(const void **bytes, size_t *size, const char *path, struct nr_error *);
void nr_file_unmap(const void *, size_t);
/* The path of the mapped file that an address lies in, for a handler of SIGBUS: somebody truncated it. NULL: none, or there are too
 * many to keep their names. Calls nothing that a handler may not call. */
const char *nr_file_mapped_at(const void *address);
/* Whether the file system of this path is one that other hosts see, too: NFS, Lustre and the like. */
bool nr_file_remote(const char *path);
/* From now on this process opens only what lies below these folders, given by their real paths, wherever links lead; NULL: anything.
 * The list is not copied. */
void nr_file_confine(const struct nr_list *folders);

#endif
