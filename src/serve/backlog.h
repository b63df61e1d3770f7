/* The last pieces of news, each made once for all viewers, in the form in which they are sent (server-sent events). Bounded: the
 * oldest go first, and who was slower than that begins anew. The caller has the lock. */
#ifndef NR_SERVE_BACKLOG_H
#define NR_SERVE_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NR_BACKLOG_EVENTS = 4096, NR_BACKLOG_BYTES = 4 << 20 };

struct nr_served;

struct nr_event {
	const struct nr_served *about;           /* NULL: all */
	bool listed;                            /* also for those who look at the list of all */
	char *text;
	size_t size;
};

struct nr_backlog {
	uint32_t session;                       /* numbers of another session of the server mean nothing */
	uint64_t first, next;                   /* numbers of the events that are there: first <= n < next */
	size_t bytes;
	struct nr_event event[NR_BACKLOG_EVENTS];  /* number n at n % NR_BACKLOG_EVENTS */
};

/* kind: "rows"; data: one line of JSON. Out of memory, the event is left out and first becomes next: all begin anew. */
void nr_backlog_add(struct nr_backlog *, const struct nr_served *about, bool listed, const char *kind, const char *data);
const struct nr_event *nr_backlog_at(const struct nr_backlog *, uint64_t number);     /* NULL: not there any more, or not yet */
/* "5f3a.17": the number of the event that comes after all that are there; returns buf. */
const char *nr_backlog_mark(const struct nr_backlog *, uint64_t next, char *buf, size_t size);
/* The number after the one that such a text names; false: of another session, too old or no such text. */
bool nr_backlog_after(const struct nr_backlog *, const char *text, uint64_t *next);
void nr_backlog_release(struct nr_backlog *);

#endif
