/* Arenas: bump allocation with marks; nothing is freed one by one. Memory is zeroed and 64-byte aligned blocks are
 * available, so vector code may load whole lines. */
#ifndef NR_MEM_H
#define NR_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "norma/err.h"

struct nr_arena;
struct nr_mark { void *block; size_t used; };

struct nr_arena *nr_arena_make(void);                    /* NULL when out of memory */
void nr_arena_free(struct nr_arena *);                   /* NULL is fine */
void *nr_arena_alloc(struct nr_arena *, size_t size);    /* zeroed, aligned to 16; NULL when out of memory */
char *nr_arena_strdup(struct nr_arena *, const char *);
char *nr_arena_printf(struct nr_arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct nr_mark nr_arena_mark(const struct nr_arena *);
void nr_arena_reset(struct nr_arena *, struct nr_mark);  /* gives back everything allocated since the mark */

/* Large slabs (parameters, activations): page aligned, zeroed on first touch, huge pages asked for. */
void *nr_slab_make(size_t bytes);                        /* NULL when the system refuses */
void nr_slab_free(void *, size_t bytes);

#endif
