/* What the threads of the server share. Inside of src/serve. */
#ifndef NR_SERVE_SERVER_H
#define NR_SERVE_SERVER_H

#include <microhttpd.h>
#include <pthread.h>

#include "serve/backlog.h"
#include "serve/entry.h"
#include "serve/route.h"
#include "serve/serve.h"
#include "serve/token.h"
#include "serve/viewers.h"

enum { NR_CONNECTIONS = 1000, NR_VIEWERS = 900 };

/* A request that waits for the maker. */
struct nr_request {
	struct nr_request *next;
	struct MHD_Connection *connection;
	struct nr_made *made;
	bool asked;
};

/* A connection: since when it has been without a whole request. 0: it has one. */
struct nr_caller { struct nr_caller *before, *after; int fd; double since; };

struct nr_server {
	const struct nr_serve *conf;
	struct MHD_Daemon *daemon[2];           /* IPv4 and IPv6; the second may be missing */
	char token[NR_TOKEN];
	struct MHD_Response *file[NR_ROUTE_LIVE_JS + 1];        /* scripts and styles */
	int port;
	pthread_mutex_t lock;                   /* of all below, and of the entries where they say so */
	pthread_cond_t work;                    /* for the maker */
	struct nr_catalogue catalogue;
	struct nr_backlog backlog;
	struct nr_viewer *viewer;
	int64_t viewers;
	struct nr_request *waiting;
	struct nr_caller *caller;
	bool stopping;
	double next_scan;                       /* nr_clock; the watcher's own */
};

/* listen.c: sockets, -1: none; sets the port. */
int nr_listen(struct nr_server *, int fd[2], struct nr_error *);

/* http.c */
int nr_http_start(struct nr_server *, struct nr_error *);
void nr_http_stop(struct nr_server *);
/* A response with the headers that all have; takes the text. NULL when out of memory. */
struct MHD_Response *nr_http_response(struct nr_str *, const char *type, const char *policy);
/* Resumes viewers that have something to read, and requests whose text is made. Without the lock. */
void nr_http_wake(struct nr_server *);
/* Every 15 seconds: dead connections are noticed; every second: those that send no whole request are closed. */
void nr_http_beat(struct nr_server *);
void nr_http_sweep(struct nr_server *);

/* watch.c: one look at all files; the first one is before anything is served. */
void nr_watch(struct nr_server *);

/* maker.c */
bool nr_made_fresh(const struct nr_server *, const struct nr_served *, enum nr_making);
void *nr_maker(void *server);               /* thread */

#endif
