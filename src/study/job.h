/* One stage of one run: its files, its settings as text, its marker and its process. Inside of src/study. */
#ifndef NR_STUDY_JOB_H
#define NR_STUDY_JOB_H

#include <sys/types.h>

#include "base/json.h"
#include "study/study.h"

struct nr_job {
	const struct nr_study *study;
	int64_t arm, seed, stage;
	char *base;                         /* OUT/ARM/seed-S */
	char *dir;                          /* base/STAGE: of a stage that has --out */
	char *mark, *json, *log, *raw;      /* base/STAGE.mark ...; raw: what the process printed */
	char *settings;                     /* command, seed, source and options: what the result depends on, one a line */
	char hash[65];                      /* of settings */
};

enum nr_mark_status { NR_MARK_NONE, NR_MARK_BEGUN, NR_MARK_DONE, NR_MARK_FAILED, NR_MARK_DIVERGED };
struct nr_stage_mark { enum nr_mark_status status; char *settings, *version, *fault; double seconds; };

int nr_job_make(struct nr_job *, const struct nr_study *, int64_t arm, int64_t seed, int64_t stage, struct nr_arena *, struct nr_error *);
/* Absent: NR_MARK_NONE. */
int nr_mark_read(const struct nr_job *, struct nr_stage_mark *, struct nr_arena *, struct nr_error *);
int nr_mark_write(const struct nr_job *, enum nr_mark_status, double seconds, const char *fault, struct nr_error *);
/* Nothing is left to do for this stage: it is done, or diverged and is not to be repeated. */
bool nr_mark_counts(const struct nr_stage_mark *, const struct nr_study_how *);
/* The first setting that differs: "epochs=3 became epochs=5". */
const char *nr_mark_difference(const struct nr_stage_mark *, const struct nr_job *, struct nr_arena *);
/* Moves the stage's folder and result out of the way; nothing is deleted. */
int nr_job_set_aside(const struct nr_job *, struct nr_error *);

/* Starts the stage, or goes on with it where its folder has a checkpoint. *pid 0: not yet, another process still writes there. */
int nr_job_start(const struct nr_job *, const struct nr_study_how *, int64_t threads, pid_t *pid, struct nr_arena *, struct nr_error *);
/* The last line that the process printed, as an object; NULL without an error: it has not finished. */
json_t *nr_job_result(const struct nr_job *);
/* The last line of its log that says something, or a text in its place; in the arena. */
char *nr_job_last_words(const struct nr_job *, struct nr_arena *);

struct nr_job_pace { double steps, epochs; };      /* in all; 0: not known yet */
/* How far a training is, from its own records. */
void nr_job_progress(const struct nr_job *, struct nr_job_pace *, double *share, char *note, size_t size);

#endif
