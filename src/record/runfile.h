/* Files of a run that only grow: whole records, each in one write, so that a reader and a killed run see whole ones. */
#ifndef NR_RUNFILE_H
#define NR_RUNFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "norma/err.h"

struct nr_runfile {
	int fd;                             /* -1: closed, which all calls but append and cut accept */
	int64_t size;
	char *path;
};

/* Made if it is not there. Only regular files: a run never writes into a device. */
int nr_runfile_open(struct nr_runfile *, const char *path, struct nr_error *);
/* Until the file is closed or the process ends, however that happens. An error if another process holds it. base/lock.h asks. */
int nr_runfile_lock(struct nr_runfile *, struct nr_error *);
/* The same for several at once: an error only if one of them locked it for itself alone. */
int nr_runfile_share(struct nr_runfile *, struct nr_error *);
/* After a failure the file is as it was before. */
int nr_runfile_append(struct nr_runfile *, const void *, size_t, struct nr_error *);
int nr_runfile_cut(struct nr_runfile *, int64_t size, struct nr_error *);
int nr_runfile_sync(struct nr_runfile *, struct nr_error *);
void nr_runfile_close(struct nr_runfile *);

/* Line by line, without the newline and ended by a zero byte. take returns 1 (go on), 0 (this line and the rest are not
 * wanted) or an error. *size becomes the bytes of the lines taken; a last line that lacks its newline is never one. */
typedef int nr_line_take(void *arg, char *line, size_t length, int64_t number, struct nr_error *);
int nr_lines_scan(FILE *f, const char *path, nr_line_take *take, void *arg, int64_t *size, struct nr_error *err);

#endif
