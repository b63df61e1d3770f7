/* A study at work: what its parts share. Inside of src/study. */
#ifndef NR_STUDY_ENGINE_H
#define NR_STUDY_ENGINE_H

#include "base/claims.h"
#include "study/job.h"
#include "study/results.h"

struct nr_queue;                            /* slurm.h */

struct task {
	struct nr_job job;
	int64_t made;                       /* job is of the stage before this one; 0: of none */
	struct nr_job_pace pace;
	double before;                      /* seconds of earlier attempts */
	char *claim;                        /* its name among the claims */
	bool claimed;
	bool left;                          /* to the process that is certainly at work on it: ours is one for single runs */
	struct timespec beat;               /* of whoever holds it; tv_sec 0: not seen yet */
	enum nr_mark_status found;          /* of its stage when we came: a failure that was there already is no news */
};

struct engine {
	const struct nr_study *s;
	const struct nr_study_how *how;
	const struct nr_study_watch *watch;
	struct nr_study_run *run;
	struct task *task;
	int64_t runs, parallel, threads;
	double *spent;                      /* by stage: seconds of finished ones */
	int64_t *finished;
	struct nr_arena *arena;
	struct nr_error *err;
	bool stopping;
	struct nr_looks looks;
	double *value;                      /* (arms, seeds) of the main metric; NAN: not there */
	struct nr_decision *decision;       /* (arms) */
	struct nr_claims *claims;
	struct nr_queue *queue;             /* NULL: runs are our own processes */
	double next_poll;                   /* nr_clock: of the runs of others */
};

/* Of every run the first stage that is not done; other settings are found before anything runs. */
int nr_engine_look(struct engine *);
/* What the markers say by now of a run that others may have gone on with. held: by one of them; ours: nobody else is at it.
 * true: it is over, and told. */
bool nr_engine_catch_up(struct engine *, int64_t run, bool held, bool ours);
/* The runs of others, now and then: how far they are, and which nobody holds any more. */
void nr_engine_poll(struct engine *);
void nr_engine_failed(struct engine *, struct nr_study_run *, const char *fault);
/* Its last stage is done. */
void nr_engine_done(struct engine *, struct nr_study_run *);
/* The stage of a run is done: r->stage is the next one. */
void nr_engine_stage_done(struct engine *, struct nr_study_run *, double seconds);
/* A metric that the first result lacks is a slip in the study: better said after one run than after all. */
void nr_engine_check_metric(struct engine *, const struct nr_study_run *, json_t *result);
/* What no decision waits for is not begun. */
void nr_engine_spare(struct engine *);
void nr_engine_release(struct engine *, struct nr_study_run *);
void nr_engine_tell(struct engine *, const struct nr_study_run *changed);
void nr_engine_say(struct engine *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int64_t nr_engine_count(const struct engine *, enum nr_run_status);
/* The job of its stage, made once. */
int nr_engine_job(struct engine *, int64_t run, struct nr_error *);

#endif
