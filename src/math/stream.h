/* Whether an array is better written past the caches. */
#ifndef NR_STREAM_H
#define NR_STREAM_H

#include <stdint.h>

/* Bytes of the last cache level that a core has a part in, as the processor tells; 0: unknown. */
int64_t nr_last_cache(void);

/* An array of n values to read and one to write do not fit the last cache together. Then ordinary stores push out what is
 * still to be read, cost a read of every line they write, and have left the cache before anyone comes to read them. */
int nr_streams(int64_t n);

#endif
