/* Marks of arenas, and slabs. norma/arena.h has the arenas: bump allocation; nothing is freed one by one. */
#ifndef NR_MEM_H
#define NR_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "norma/arena.h"
#include "norma/err.h"

struct nr_mark { void *block; size_t used; };
struct nr_mark nr_arena_mark(const struct nr_arena *);
void nr_arena_reset(struct nr_arena *, struct nr_mark);  /* gives back everything allocated since the mark */

/* Large slabs (parameters, activations): page aligned, zeroed on first touch, huge pages asked for. */
void *nr_slab_make(size_t bytes);                        /* NULL when the system refuses */
void nr_slab_free(void *, size_t bytes);

#endif
