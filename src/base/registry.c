/* Lists that grow: see registry.h. */
#include "base/registry.h"

#include <stdlib.h>
#include <string.h>

#include "norma/err.h"

static const void **grown[NR_REGISTRIES];   /* the built-in ones and those added, with room for all; NULL: none was added */
static int added[NR_REGISTRIES];

const void *const *nr_registry_list(enum nr_registry kind, const void *const *built_in) { return grown[kind] ? grown[kind] : built_in; }

int nr_registry_room(enum nr_registry kind) { return NR_REGISTRY_ROOM - added[kind]; }

int nr_registry_added(void)
{
	int n = 0;
	for (int i = 0; i < NR_REGISTRIES; i++) n += added[i];
	return n;
}

int nr_registry_add(enum nr_registry kind, const void *const *list, const void *descriptor)
{
	size_t n = 0;
	while (list[n]) n++;
	if (!nr_registry_room(kind)) return NR_ELIMIT;
	if (!grown[kind]) {
		grown[kind] = calloc(n + NR_REGISTRY_ROOM + 1, sizeof *grown[kind]);
		if (!grown[kind]) return NR_EMEMORY;
		memcpy(grown[kind], list, n * sizeof *list);
	}
	grown[kind][n] = descriptor;
	added[kind]++;
	return NR_OK;
}
