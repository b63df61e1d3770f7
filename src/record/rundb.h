/* The run database: one SQLite file with a row for each run below a root, its metrics and its results. Several processes write
 * at once: write-ahead log, short transactions, and a wait for whoever holds the lock. metrics.csv stays the truth: whatever
 * is lost here is read from there when a run is resumed.
 *
 *   runs     id name dir kind status started finished seconds steps seed command config env columns host pid
 *   metrics  run name step epoch seconds value           a value that is not a number is NULL
 *   results  run name value
 * dir is relative to the database's folder if it lies below; times are seconds since 1970; columns is a JSON list of the metrics
 * in the order of metrics.csv. PRAGMA user_version is the schema's number. */
#ifndef NR_RUNDB_H
#define NR_RUNDB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "record/recorder.h"

struct nr_rundb;

struct nr_run {                             /* texts are never NULL when read */
	int64_t id;
	const char *name, *dir, *kind, *status, *command, *config, *env, *columns, *host;
	int64_t started, finished, steps, pid, seed;   /* finished 0: not yet */
	double seconds;
	bool seeded;
};
struct nr_curve { int64_t *step; double *value; int64_t count; };

/* wait: seconds, for a lock. write: made if it is not there. Otherwise it must exist, and may lie on a read-only disk. */
int nr_rundb_open(struct nr_rundb **, const char *path, double wait, bool write, struct nr_error *);
void nr_rundb_close(struct nr_rundb *);           /* drops what was not committed; NULL is fine */

/* Writing: between begin and commit. After an error the database can only be closed. */
int nr_rundb_begin(struct nr_rundb *, struct nr_error *);
int nr_rundb_commit(struct nr_rundb *, struct nr_error *);
/* The run that the calls below write to. keep: the row of this dir goes on, without its results and the metrics after step
 * `keep`; *kept is how many it has left. keep < 0: it is replaced. */
int nr_rundb_run(struct nr_rundb *, const struct nr_run *, int64_t keep, int64_t *kept, struct nr_error *);
int nr_rundb_forget(struct nr_rundb *, struct nr_error *);       /* all metrics of the run */
int nr_rundb_metric(struct nr_rundb *, const char *name, int64_t step, double epoch, double seconds, double value,
	struct nr_error *);
int nr_rundb_result(struct nr_rundb *, const char *name, double value, struct nr_error *);
int nr_rundb_state(struct nr_rundb *, const char *status, int64_t finished, int64_t steps, double seconds, struct nr_error *);

/* Reading; everything goes into the arena. */
int nr_rundb_runs(struct nr_rundb *, struct nr_arena *, struct nr_run **, int64_t *count, struct nr_error *);
int nr_rundb_curve(struct nr_rundb *, int64_t run, const char *name, struct nr_arena *, struct nr_curve *, struct nr_error *);
int nr_rundb_results(struct nr_rundb *, int64_t run, struct nr_arena *, struct nr_metric **, int64_t *count, struct nr_error *);

#endif
