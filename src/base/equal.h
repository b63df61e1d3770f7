/* Which of many texts, or rows of ids, are equal. */
#ifndef NR_EQUAL_H
#define NR_EQUAL_H

#include <stddef.h>
#include <stdint.h>

struct nr_piece { const void *data; size_t bytes; };
/* first (n): place of the first piece that equals piece i, i itself if none does before it. Returns how many different ones there
 * are, or -1 when out of memory. n is at most INT32_MAX. */
int64_t nr_equal_pieces(const struct nr_piece *, int64_t n, int32_t *first);

#endif
