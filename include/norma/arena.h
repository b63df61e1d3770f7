/* Arenas, for whoever keeps texts and structs that the library makes: one object owns them all, and one call frees them.
 *
 * Example:
 *   struct nr_arena *arena = nr_arena_make();
 *   struct nr_model_spec model;
 *   nr_model_parse(&model, "vit_tiny_patch16_224:classes=10", arena, &err);
 *   printf("%s has a depth of %lld\n", model.of->title, (long long)nr_model_int(&model, "depth"));
 *   nr_arena_free(arena);
 */
#ifndef NORMA_ARENA_H
#define NORMA_ARENA_H

#include <stddef.h>

#include "norma/real.h"

struct nr_arena;
NR_API struct nr_arena *nr_arena_make(void);                    /* NULL when out of memory, as all that follow */
NR_API void nr_arena_free(struct nr_arena *);                   /* NULL is fine */
NR_API void *nr_arena_alloc(struct nr_arena *, size_t size);    /* zeroed, aligned to 16 */
NR_API char *nr_arena_strdup(struct nr_arena *, const char *);
NR_API char *nr_arena_printf(struct nr_arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
