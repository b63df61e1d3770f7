/* norma serve: the pages of runs and studies, live, over HTTP on loopback, to whoever has the token. It reads their folders only; a
 * training does not know that it is watched.
 *
 *   watcher   once a second: what has been appended to metrics.csv and events.jsonl, what changed in a study's folder. Each piece
 *             of news is made into text once (backlog.h) and wakes the viewers that want it (viewers.h)
 *   maker     a thread for what takes longer: curves so far (data.h), the report; kept until they are too old
 *   HTTP      a thread of libmicrohttpd for IPv4 and one for IPv6; checks requests (route.h) and hands out what the two others made
 *
 * One lock guards all that they share; none of them reads or writes a file while it holds it. */
#ifndef NR_SERVE_H
#define NR_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "norma/option.h"

struct nr_study_command;

struct nr_serve {
	struct nr_list roots;                   /* folders of runs, studies, or folders that hold some */
	int64_t port;                           /* 0: any that is free */
	const char *host;                       /* an address to listen on, for other machines; NULL: both loopback addresses */
	bool open;                              /* no token: whoever reaches the port may read */
	const char *command;                    /* for reports */
	const struct nr_study_command *commands;        /* that stages of studies may run: see study.h */
};

/* What is told once when requests are answered. */
struct nr_serve_start { int port; const char *token; int64_t runs, studies; };       /* token "": none */
typedef void nr_serve_tell(void *context, const struct nr_serve_start *);

/* Serves until SIGINT, SIGTERM or SIGHUP; lowers the priority of the process, for trainings go first. */
int nr_serve_run(const struct nr_serve *, nr_serve_tell *, void *context, struct nr_error *);

#endif
