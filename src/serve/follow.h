/* Following a run: what its files say that they did not say before. */
#ifndef NR_SERVE_FOLLOW_H
#define NR_SERVE_FOLLOW_H

#include "serve/entry.h"

/* What the watcher found at an entry; texts are the caller's to free. */
struct nr_news {
	struct nr_status status;
	struct nr_str rows;                     /* new rows of metrics.csv as a JSON list of lists; empty: none */
	bool anew;                              /* the file is not the one that was read before: all begin anew */
	bool page;                              /* title, head or body */
	char *title, *head, *body;              /* NULL: as before */
};

void nr_follow_run(struct nr_served *, struct nr_news *);
void nr_follow_study(struct nr_served *, const struct nr_catalogue *, struct nr_news *);
void nr_news_release(struct nr_news *);

/* A text as a JSON string with its quotes. */
void nr_json_text(struct nr_str *, const char *);
/* A path of the site, each part escaped: href("/run/", "a b"). */
void nr_href(struct nr_str *, const char *before, const char *name);

#endif
