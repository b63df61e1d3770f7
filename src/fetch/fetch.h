/* Downloads over HTTP(S): into PATH.part, which the next try goes on with; checked, then renamed. */
#ifndef NR_FETCH_H
#define NR_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "norma/err.h"

/* Told of progress in bytes; total 0: not known. Returns false to stop. */
struct nr_fetch_watch { bool (*tell)(void *arg, const char *name, int64_t done, int64_t total); void *arg; };

struct nr_fetch {
	const char *url, *path;
	const char *md5, *sha256;           /* NULL: not known */
	int64_t bytes;                      /* 0: not known */
	int tries;                          /* how often to go on after a cut connection; 0: 5 */
	double pause;                       /* seconds before the second try, doubled for each further one; 0: 1 */
	struct nr_fetch_watch watch;
};

/* A path that is there already is taken if its sums are right. After a failure PATH.part stays, unless what came was
 * wrong. */
int nr_fetch(const struct nr_fetch *, struct nr_error *);

#endif
