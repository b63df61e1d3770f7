/* Viewers: what each of them has got of the backlog. A viewer holds a place in it and no copy of it, so that a slow one costs
 * nothing; when its place is gone it is told to begin anew. */
#ifndef NR_SERVE_VIEWERS_H
#define NR_SERVE_VIEWERS_H

#include "serve/backlog.h"
#include "serve/entry.h"

struct MHD_Connection;

struct nr_viewer {
	struct nr_viewer *before, *after;       /* of the list that owns it */
	struct MHD_Connection *connection;
	void *server;
	const struct nr_served *of;              /* NULL: the list of all */
	uint64_t next;                          /* the event that comes next, and how much of it is sent */
	size_t offset;
	char note[128];                         /* goes before it */
	bool asleep;                            /* waits for news */
};

/* from: the mark of what the viewer has seen; NULL or too old: it is told to begin anew. */
void nr_viewer_init(struct nr_viewer *, const struct nr_backlog *, const struct nr_served *of, const char *from);
/* Copies what there is, at most max bytes. *lost: an event went away while it was being sent; the stream has to end. */
size_t nr_viewer_read(struct nr_viewer *, const struct nr_backlog *, char *buf, size_t max, bool *lost);
/* Whether there is something to read; steps over what is meant for others. */
bool nr_viewer_ready(struct nr_viewer *, const struct nr_backlog *);
/* A line that says nothing, so that a connection which broke is noticed. */
void nr_viewer_beat(struct nr_viewer *);

#endif
