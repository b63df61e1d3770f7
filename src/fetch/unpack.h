/* Archives (tar in any compression, zip, and ar for Debian packages) that may be hostile: nothing is ever
 * written outside the
 * target folder. */
#ifndef NR_UNPACK_H
#define NR_UNPACK_H

#include <stdint.h>

#include "base/bytes.h"
#include "fetch/fetch.h"
#include "norma/err.h"

struct nr_unpack {
	const char *archive;
	const char *into;                   /* a folder that exists */
	const char *inside;                 /* only what lies in this folder of the archive, without its name; NULL or "": all */
	int64_t max_bytes, max_files;       /* 0: 1100 times the archive and 64 MiB, what deflate could reach; 2 million */
	struct nr_fetch_watch watch;        /* told of bytes of the archive */
};

/* Refused, with a message that names the entry: absolute paths, "..", links that leave the folder, devices,
 * names that occur
 * twice, more bytes or files than allowed. Files get plain permissions and today's date. What was written
 * before a failure
 * stays: unpack into a folder of its own and rename it. */
int nr_unpack(const struct nr_unpack *, struct nr_error *);
/* The first regular entry whose name begins with prefix, as a file of its own: the data of a .deb. */
int nr_unpack_member(const char *archive, const char *prefix, const char *to, struct nr_error *);
/* The contents of the file `name`, for nr_bytes_release; more than limit bytes are an error. */
int nr_unpack_bytes(struct nr_bytes *, const char *archive, const char *name, size_t limit, struct nr_error *);
/* Removes a folder with all that is in it; follows no links. A folder that is not there is fine. */
int nr_remove_tree(const char *path, struct nr_error *);

#endif
