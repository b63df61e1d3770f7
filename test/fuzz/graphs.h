/* What the fuzzers of sets of molecules share: all that opened can be read back. */
#ifndef NR_FUZZ_GRAPHS_H
#define NR_FUZZ_GRAPHS_H

#include <assert.h>

#include "data/molecules.h"

static inline void read_back(const struct nr_molecules *m)
{
	struct nr_arena *arena = nr_arena_make();
	for (int64_t i = 0; i < m->graphs && i < 16; i++) {
		struct nr_molgraph g;
		struct nr_molgraph_input in;
		struct nr_error err = { 0 };
		assert(m->split[i] < NR_MOL_SPLITS);
		assert(!nr_molecules_graph(m, i, &g, arena, &err));
		assert(g.nodes == nr_molecules_nodes(m, i));
		if (g.nodes > 64 || g.edge_features > 16) continue;
		assert(!nr_molecules_input(m, i, &(struct nr_molgraph_offsets){ 512, 512, 5 }, &in, arena, &err));
	}
	nr_arena_free(arena);
}

#endif
