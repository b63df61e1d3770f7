/* A CSV file of a run whose lines begin with their step: what came after a checkpoint is cut off when the run is resumed. */
#ifndef NR_STEPFILE_H
#define NR_STEPFILE_H

#include <locale.h>
#include <stdbool.h>

#include "base/str.h"
#include "record/runfile.h"

struct nr_stepfile {
	struct nr_runfile file;
	struct nr_str text;                 /* the record being made; its memory stays, so that only the first one takes some */
	locale_t plain, old;
};
/* Of a run that begins, or of one that is resumed at this step, whose file has the same header (a line with its end). */
int nr_stepfile_open(struct nr_stepfile *, const char *path, const char *header, bool resume, int64_t step, struct nr_error *);
/* Between these two, `text` is filled; then it is written at once. Numbers have a point in every locale. */
void nr_stepfile_begin(struct nr_stepfile *);
int nr_stepfile_write(struct nr_stepfile *, struct nr_error *);
int nr_stepfile_sync(struct nr_stepfile *, struct nr_error *);
void nr_stepfile_close(struct nr_stepfile *);                 /* all zero is fine */

#endif
