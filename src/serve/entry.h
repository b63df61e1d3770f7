/* The catalogue: every run and study below the given folders, under the names that requests may use. Entries stay until the end,
 * also if their folder goes; so pointers to them are good. */
#ifndef NR_SERVE_ENTRY_H
#define NR_SERVE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/str.h"
#include "norma/option.h"

enum { NR_CATALOGUE_MAX = 4000 };

enum nr_state { NR_WAITING, NR_RUNNING, NR_DONE, NR_STOPPED, NR_UNFINISHED, NR_GONE };

struct nr_status {
	enum nr_state state;
	double share;                           /* 0 to 1; NAN: not known */
	time_t when;                            /* of its last record */
	char words[96];                         /* "running", "not finished since 2026-01-02T03:04:05Z" */
	char text[160];                         /* "step 900, epoch 1.9, 3 min 05 s left" */
	char headline[160];                     /* the metric that decides, as it is now: "held-out top-1 81.20 %"; "": none yet */
};

/* The position in a run's files: the watcher's own. */
struct nr_follow {
	bool open, broken;                      /* metrics.csv has a header; it has something else */
	ino_t inode;
	off_t seen, events_seen;                /* bytes of whole lines that were read */
	double total_steps, total_epochs;       /* 0: not known */
	double step, epoch, seconds;            /* of the last row */
	int head;                               /* the column that decides; -1: none */
	char head_name[64];                     /* its title */
	double head_factor, head_value;         /* 100 for a share; NAN: not measured yet */
	char stop[32];                          /* status of the event "stop"; "": none */
	struct timespec changed, settings;      /* of metrics.csv; of config.yaml */
	off_t microscope_size;                  /* of microscope.csv when it was drawn */
	double microscope_next;                 /* nr_clock before which it is not looked at */
	double next, live;                      /* nr_clock of the next look; of the last time that something went on */
};

struct nr_study_view;                       /* follow_study.h */
struct MHD_Response;

/* A text that takes longer to make. wanted: somebody waits for it. */
struct nr_made {
	struct MHD_Response *response;
	unsigned code;                          /* HTTP */
	uint64_t version, mark;                 /* of the entry and of the backlog when it was begun */
	double at, took;                        /* nr_clock; seconds */
	bool wanted;
};
enum nr_making { NR_MAKE_DATA, NR_MAKE_REPORT, NR_MAKINGS };

struct nr_served {
	bool study;
	const char *name, *dir;
	struct nr_served *part_of;               /* a run's study, with its place there */
	const char *arm, *stage;                /* the folder of the arm; both NULL if it is elsewhere in the study's folder */
	int64_t seed;

	/* under the lock */
	struct nr_status status;
	const char *label;                      /* of a run in a study: the name of its arm, NULL: not known */
	int64_t number, turn;                   /* of its arm, of its stage */
	uint64_t version;                       /* grows with every change */
	off_t shown;                            /* bytes of metrics.csv that events have told of */
	char *title;                            /* one line beside the name; HTML */
	char *head, *body;                      /* HTML: what it is; what changes with it */
	struct nr_made made[NR_MAKINGS];

	/* the watcher's own */
	struct nr_follow follow;
	struct nr_study_view *view;             /* of a study */
};

struct nr_catalogue {
	struct nr_arena *arena;
	struct nr_list roots;
	struct nr_served **entry;                /* NR_CATALOGUE_MAX */
	int64_t count;                          /* entries below it are complete */
};

int nr_catalogue_open(struct nr_catalogue *, const struct nr_list *roots, struct nr_error *);
/* Looks for new folders. Entries from `count` on are new: the caller shows them to others by raising count, under its lock. Returns
 * the new count. */
int64_t nr_catalogue_scan(struct nr_catalogue *);
struct nr_served *nr_catalogue_find(const struct nr_catalogue *, const char *name);      /* NULL: none */
void nr_catalogue_close(struct nr_catalogue *);         /* not the responses, which are the server's */

#endif
