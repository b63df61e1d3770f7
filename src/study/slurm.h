/* A study's runs as jobs of Slurm: submitted as arrays, watched with squeue, submitted again when they were preempted or killed. Inside of
 * src/study. The folder OUT/slurm:
 *
 *   N.sh          script of submission N; may be submitted by hand, too
 *   N.json        its job and its runs, by which a later process watches them
 *   N-TASK.log    what the tasks said
 *
 * Slurm is never trusted about what is done: that is for the markers of the runs to say. Two jobs for one run do no harm, since the second
 * finds it claimed. */
#ifndef NR_STUDY_SLURM_H
#define NR_STUDY_SLURM_H

#include <stdbool.h>
#include <stdint.h>

#include "norma/err.h"

struct engine;
struct nr_queue;
struct nr_str;

/* Finds what was submitted before. */
int nr_queue_open(struct engine *);
/* Asks Slurm now and then, and submits what is neither done nor there. */
void nr_queue_turn(struct engine *);
/* Whether the job of this run may have begun. */
bool nr_queue_may_run(const struct nr_queue *, int64_t run);
/* At the end, with runs that are not done. Interrupted: their jobs go on, and how to cancel them is said; else they are cancelled. */
void nr_queue_leave(struct engine *, bool interrupted);

/* Runs a command and waits for it: what it printed, its exit code or 128 + signal. argv ends with NULL; the first one is looked for in
 * PATH. An error with *status 127: it is not there. */
int nr_call(const char *const *argv, struct nr_str *out, struct nr_str *trouble, int *status, struct nr_error *);

#endif
