/* The recorder's own parts: recorder.c writes, recorder_open.c begins and resumes. */
#ifndef NR_RECORDER_RUN_H
#define NR_RECORDER_RUN_H

#include "base/mem.h"
#include "record/recorder.h"
#include "record/recorder_csv.h"
#include "record/runfile.h"
#include "record/rundb.h"

struct nr_pending { int32_t column; int64_t step; double epoch, seconds, value; };      /* a metric that the database lacks */

struct nr_recorder {
	struct nr_arena *arena;
	const char *dir, *db_path;
	struct nr_runfile csv, events, tb;
	const char **columns;
	int count;
	struct nr_cell *cell;               /* of the line being made */
	struct nr_run run;                  /* the row of the database */
	struct nr_rundb *db;                /* NULL: given up */
	double wait;
	struct nr_pending *pending;
	int64_t n_pending, room;
	double began, before, flushed;      /* nr_clock of the start; seconds of earlier sessions; nr_clock of the last flush */
	int64_t step;                       /* of the last record */
	int64_t *column_step, values;       /* step of each column's last value (-1: none); how many values the database should have */
	bool warned;                        /* that the database is given up */
};

/* The values of a record that is in metrics.csv: a column's value of a step counts once. */
void nr_recorder_count(struct nr_recorder *, const struct nr_csv_row *);
/* Opens the database and writes the row of this run; resume: and what the database lacks of metrics.csv. NULL after an error. */
int nr_recorder_attach(struct nr_recorder *, bool resume, double wait, struct nr_error *);
/* Gives the database up and says so once. An error only if that cannot be written. */
int nr_recorder_lose(struct nr_recorder *, const struct nr_error *why, struct nr_error *);
void nr_recorder_free(struct nr_recorder *);

#endif
