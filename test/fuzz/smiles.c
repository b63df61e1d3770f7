/* Fuzzer: any bytes as SMILES. What is accepted is a graph with features in their ranges and has a place in the plane; what is refused says
 * where. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chem/layout.h"
#include "chem/molgraph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_features(const struct nr_molgraph *g)
{
	static const int32_t most[9] = { 118, 4, 11, 11, 9, 5, 5, 1, 1 }, most_edge[3] = { 4, 5, 1 };
	for (int32_t i = 0; i < g->nodes; i++)
		for (int f = 0; f < 9; f++) assert(g->node[9 * i + f] >= 0 && g->node[9 * i + f] <= most[f]);
	for (int32_t e = 0; e < g->edges; e++) {
		assert(g->from[e] >= 0 && g->from[e] < g->nodes && g->to[e] >= 0 && g->to[e] < g->nodes && g->from[e] != g->to[e]);
		for (int f = 0; f < 3; f++) assert(g->edge[3 * e + f] >= 0 && g->edge[3 * e + f] <= most_edge[f]);
	}
}

static void check_paths(const struct nr_molgraph *g, struct nr_arena *arena)
{
	const struct nr_molgraph_offsets offsets = { 512, 512, 5 };
	struct nr_molgraph_input in;
	struct nr_error err = { 0 };
	if (g->nodes > 64) return;
	assert(!nr_molgraph_preprocess(&in, g, &offsets, arena, &err));
	for (int32_t i = 0; i < in.nodes * in.nodes; i++)
		assert(in.spatial[i] == 1 || in.spatial[i] == 511 || in.path[(int64_t)i * in.longest * 3] > 0);
}

static void check_places(const struct nr_molecule *m, struct nr_arena *arena)
{
	struct nr_layout l;
	struct nr_error err = { 0 };
	if (m->atoms > 64) return;
	assert(!nr_molecule_layout(&l, m, arena, &err));
	for (int32_t i = 0; i < m->atoms; i++) assert(isfinite(l.at[i].x) && isfinite(l.at[i].y));
	for (int32_t i = 0; i < m->bonds; i++) assert(!l.wedge[i] || l.narrow[i] == m->bond[i].from || l.narrow[i] == m->bond[i].to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_error err = { 0 };
	struct nr_molecule m;
	struct nr_molgraph g;
	char *text = malloc(size + !size);
	memcpy(text, data, size);
	const int e = nr_molecule_read(&m, arena, text, size, &err);
	assert(e == (int)err.code);
	if (e) {
		assert(e == NR_EMEMORY || strstr(err.detail, "column "));
	} else {
		assert(m.atoms > 0 && !nr_molgraph_ogb(&g, &m, arena, &err));
		check_features(&g);
		check_paths(&g, arena);
		check_places(&m, arena);
		(void)nr_molgraph_zinc(&g, &m, arena, &err);
	}
	free(text);
	nr_arena_free(arena);
	return 0;
}
