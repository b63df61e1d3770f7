/* What plug-ins and programs add to the built-in lists of norms, models and so on: norma/plugin.h. */
#ifndef NR_REGISTRY_H
#define NR_REGISTRY_H

enum nr_registry { NR_OF_NORMS, NR_OF_MODELS, NR_OF_TASKS, NR_OF_DATASETS, NR_OF_OPTIMIZERS, NR_OF_SCHEDULES, NR_OF_OPS, NR_REGISTRIES };
enum { NR_REGISTRY_ROOM = 64 };             /* how many can be added to each */

/* A list that ends with NULL: the built-in one, with what was added behind it. Adding leaves older pointers valid. */
const void *const *nr_registry_list(enum nr_registry, const void *const *built_in);
/* list: as nr_registry_list gave it. 0, NR_ELIMIT or NR_EMEMORY. Before other threads use the library. */
int nr_registry_add(enum nr_registry, const void *const *list, const void *descriptor);
int nr_registry_room(enum nr_registry);     /* how many can still be added */
/* How many were added to all lists: tables that derive from them are made anew when it has grown. */
int nr_registry_added(void);

/* The list of one kind: of `const struct nr_TYPE *`. */
#define NR_REGISTRY(kind, type, built_in) ((const struct type *const *)nr_registry_list(kind, (const void *const *)(built_in)))

#endif
