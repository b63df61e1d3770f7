/* Atomic files: write to a temporary file in the same folder, fsync, rename. Readers see the old file or the
 * new one; after a failure the old one is whole and nothing is left behind; what a kill leaves
 * is removed by the next save of the same name. Devices, pipes and open
 * descriptors (/dev/stdout, /dev/fd/3) have nothing to rename to: they are written straight through. */
#ifndef NR_SAVE_H
#define NR_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "norma/err.h"

struct nr_save { int fd; char *path, *temp; bool through; };

int nr_save_open(struct nr_save *, const char *path, struct nr_error *);
/* After a failure of this or of nr_save_close the save is dropped already. */
int nr_save_write(struct nr_save *, const void *, size_t, struct nr_error *);
/* Makes it the file. */
int nr_save_close(struct nr_save *, struct nr_error *);
/* Gives up; harmless if closed. */
void nr_save_drop(struct nr_save *);
/* All of it at once. */
int nr_save_file(const char *path, const void *, size_t, struct nr_error *);

/* Removes what killed processes left of unfinished files: of this name in the folder, NULL: of any. What a process is still writing
 * stays. nr_save_open does it for its own name. */
void nr_save_sweep(const char *folder, const char *name);

/* A folder and those above it, as mkdir -p. */
int nr_folder_make(const char *path, struct nr_error *);

#endif
