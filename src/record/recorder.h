/* The run directory: what a training leaves behind, readable while it runs and after a crash.
 *
 *   config.yaml     every setting, as `norma train config.yaml` reads it back
 *   env.json        command, version, host, CPU, threads, instruction set, libraries, data checksums, start time
 *   metrics.csv     one line per record; a cell is empty where nothing was measured
 *   events.jsonl    one JSON object per line: start, resume, epoch, checkpoint, eval, warning, stop
 *   tensorboard/    events.out.tfevents.*: the same metrics as scalars
 * and one row per run (with its metrics) in the run database, an SQLite file that all runs below one root share (runs.db).
 *
 * Every record is one write, so that a reader never sees half a line and a killed process leaves at most one. A resumed run
 * first cuts all of these back to the checkpoint's step, so that no step appears twice. A failed write (full disk) is an error
 * with the file's name; what was written before stays whole. The files are the truth: a database that is locked or damaged is
 * given up with one "warning" event, is no error, and is filled from metrics.csv when the run is closed or resumed.
 *
 * While a recorder is open it holds a lock on events.jsonl: a second process cannot record into the same run. One thread at a
 * time may use a recorder. */
#ifndef NR_RECORDER_H
#define NR_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "norma/err.h"

struct nr_run_info {
	const char *command;                /* the exact command line */
	const char *kind;                   /* "train", "pretrain", "finetune" */
	const char *config;                 /* YAML text */
	const char *name;                   /* of the run; NULL: its path below the database's folder, or that of its directory */
	const json_t *env;                  /* further entries for env.json: data, model, norms, seed; may be NULL */
	const char *const *columns;         /* names of metrics, in order, after step, epoch and seconds; ends with NULL */
	const char *forced;                 /* what changed since the last session though bits depend on it; NULL: nothing */
	double db_wait;                     /* seconds to wait for a locked database; 0: 10 */
};
struct nr_metric { const char *name; double value; };

struct nr_recorder;
/* dir is made, with the folders above it. resume: it must hold a run, whose columns are the same; records after `step` are cut
 * off, seconds go on where they ended, and the settings (config.yaml) become those given. Without it a directory that holds
 * records or a checkpoint is an error that names --resume; a run that failed before both is begun anew. db: path of the run
 * database, NULL: runs.db beside dir. Writes the event "start" or "resume". */
int nr_recorder_open(struct nr_recorder **, const char *dir, const char *db, const struct nr_run_info *, bool resume,
	int64_t step, struct nr_error *);
/* One line of metrics; names must be columns, steps must not go back. The files have it when the call returns, the database within
 * a second of further calls. Records of a step must come before its checkpoint: the others are cut off by a resume. */
int nr_recorder_metrics(struct nr_recorder *, int64_t step, double epoch, const struct nr_metric *, int count, struct nr_error *);
/* One line of events.jsonl with time, step and seconds added; more (may be NULL) is an object whose reference is taken. */
int nr_recorder_event(struct nr_recorder *, const char *what, int64_t step, json_t *more, struct nr_error *);
/* Everything on disk: called before a checkpoint is written. */
int nr_recorder_sync(struct nr_recorder *, struct nr_error *);
/* status: "done", "interrupted", "diverged", "failed", "stopped early"; result (may be NULL) goes into the run's row and into
 * the event "stop". NULL is fine. The recorder is gone also after an error. */
int nr_recorder_close(struct nr_recorder *, const char *status, const struct nr_metric *result, int count, struct nr_error *);

/* A number for an event; "nan", "inf" and "-inf" as text, for JSON has no others. */
json_t *nr_record_number(double);

#endif
