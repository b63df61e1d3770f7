/* Whether an array is better written past the caches. */
#ifndef NR_STREAM_H
#define NR_STREAM_H

#include <stdint.h>

/* Bytes of the last cache level that are ours, as the processor tells; 0: unknown. No result depends on it. */
int64_t nr_last_cache(void);

/* What `cpus` of the `sharers` of a cache can have of it. A rented machine may tell the whole cache of its host, with or without
 * the host's number of sharers: hence at most 16 MiB for each CPU. */
int64_t nr_cache_share(int64_t bytes, int64_t sharers, int64_t cpus);

/* An array of n values to read and one to write do not fit the last cache together. Then ordinary stores push out what is
 * still to be read, cost a read of every line they write, and have left the cache before anyone comes to read them. */
int nr_streams(int64_t n);

#endif
