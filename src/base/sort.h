/* A stable sort by small whole numbers: lengths of texts, sizes of graphs. */
#ifndef NR_SORT_H
#define NR_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Puts item (n) in the order of rising key[item], by counting; equal keys keep their order. Keys are from 0 to most.
 * spare: nr_sort_spare numbers. */
void nr_sort_by_key(int32_t *item, int64_t n, const int32_t *key, int32_t most, int32_t *spare);
static inline size_t nr_sort_spare(int64_t n, int32_t most) { return (size_t)n + (size_t)most + 2; }

#endif
