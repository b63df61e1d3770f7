/* From a data set's addresses to its folder below the data root: fetched, checked, unpacked, checked again, renamed. */
#ifndef NR_GET_H
#define NR_GET_H

#include <stdbool.h>

#include "data/dataset.h"
#include "fetch/fetch.h"

struct nr_get {
	const struct nr_dataset *of;
	const char *root;                   /* the data root; made if it is not there */
	const char *from;                   /* "official", "debian", "npm"; NULL: the first that works */
	const char *base;                   /* in place of the official address up to the last slash: a mirror; NULL: none */
	bool optional, force, keep;         /* also optional files; replace what is there; keep the archives */
	struct nr_fetch_watch watch;
};

/* There, with all (not optional) official files of the right size; else *wrong says what is not right, in the arena. */
bool nr_dataset_complete(const struct nr_dataset *, const char *dir, bool optional, const char **wrong,
	struct nr_arena *);
/* Until all is right, work goes on in ROOT/.get-NAME; archives that were cut off stay there for the next try.
 * Two at a time
 * wait for each other. *dir: where the set is now, in the arena; *did: whether anything was to be done. */
int nr_dataset_get(const struct nr_get *, const char **dir, bool *did, struct nr_arena *, struct nr_error *);

#endif
