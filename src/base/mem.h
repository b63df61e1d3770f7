/* Marks of arenas, and slabs. norma/arena.h has the arenas: bump allocation; nothing is freed one by one. */
#ifndef NR_MEM_H
#define NR_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "norma/arena.h"
#include "norma/err.h"

struct nr_mark { void *block; size_t used; };
struct nr_mark nr_arena_mark(const struct nr_arena *);
void nr_arena_reset(struct nr_arena *, struct nr_mark);  /* gives back everything allocated since the mark */

/* How often an arena or a text (base/str.h), in the command any allocation (cli/memory.c), got no memory. What was made then may be
 * incomplete, even where nobody noticed: whoever writes a file of many parts asks first, as does the command before it ends. */
int64_t nr_memory_failures(void);
void nr_memory_note_failure(void);
/* NR_EMEMORY with a message if there were more than `before`; what, subject: as for nr_fail. */
int nr_memory_since(int64_t before, const char *what, const char *subject, struct nr_error *);

/* Large slabs (parameters, activations): page aligned, zeroed on first touch, huge pages asked for. */
void *nr_slab_make(size_t bytes);                        /* NULL when the system refuses */
void nr_slab_free(void *, size_t bytes);

/* What this process can have at most, in bytes: memory and swap of the machine, or a lower limit of the process (ulimit -v). Slabs are
 * only promised by the system until they are touched: whoever plans large ones asks first. */
int64_t nr_memory_most(void);
/* NR_EMEMORY with a message if `bytes` are more than that; what, subject: as for nr_fail. */
int nr_memory_check(double bytes, const char *what, const char *subject, struct nr_error *);

#endif
