/* Who works on what, among processes on one or many machines that share a folder and nothing else.
 *
 * HOST.PID.MARK.process      a process that is at work: its host, pid, start and system; its time is its heartbeat
 * NAME.N.claim               "NAME is done by the process ...": made with O_EXCL, which also NFS does as one step
 *
 * A claim whose process is gone is dead: no such file; no such process, if it was of this system; else no heartbeat for a minute, by the
 * clock of the file system. Nobody removes a dead claim N and then takes the name, which two could do at once: claim N + 1 is made first,
 * which only one can, and it counts if no other claim but the dead ones is there then. */
#ifndef NR_CLAIMS_H
#define NR_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "norma/err.h"

enum { NR_CLAIM_BEAT = 10, NR_CLAIM_PATIENCE = 60 };     /* seconds: between heartbeats, and until a silent process counts as dead */

struct nr_claims;
struct nr_holder {
	char host[128];
	long pid;
	bool here;                          /* a process of this system: that it lives is certain */
	struct timespec beat;               /* its last heartbeat; one that moves is certain too */
};

/* Joins those at work in the folder, which is made if it is not there. */
int nr_claims_open(struct nr_claims **, const char *folder, struct nr_error *);
/* Drops what is claimed, leaves, and removes the folder if it is empty then. NULL is fine. */
void nr_claims_close(struct nr_claims *);
/* *taken: it is ours now, or was already; else somebody else's. name: letters that a file may have, without '/'. */
int nr_claims_take(struct nr_claims *, const char *name, bool *taken, struct nr_error *);
void nr_claims_drop(struct nr_claims *, const char *name);
/* Still ours: after a long sleep somebody else may have taken it over. */
bool nr_claims_ours(const struct nr_claims *, const char *name);
/* Whether a living process holds it, this one included. holder may be NULL. */
bool nr_claims_held(struct nr_claims *, const char *name, struct nr_holder *holder);
/* To be called at least every few seconds. true: a heartbeat was due and is done. */
bool nr_claims_beat(struct nr_claims *);

#endif
