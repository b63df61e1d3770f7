/* The features of the Open Graph Benchmark: nine small numbers for an atom, three for a bond. The last number of each list stands
 * for whatever the list does not have.
 * W. Hu et al., Open Graph Benchmark: Datasets for Machine Learning on Graphs, 2020. */
#include "chem/molgraph.h"

int nr_molgraph_alloc(struct nr_molgraph *g, struct nr_arena *arena, struct nr_error *err)
{
	g->node = nr_arena_alloc(arena, (size_t)g->nodes * (size_t)g->node_features * sizeof *g->node + 1);
	g->from = nr_arena_alloc(arena, 2 * (size_t)g->edges * sizeof *g->from + 1);
	g->edge = nr_arena_alloc(arena, (size_t)g->edges * (size_t)g->edge_features * sizeof *g->edge + 1);
	if (!g->node || !g->from || !g->edge) return nr_fail(err, NR_EMEMORY, "cannot build graph", NULL, "out of memory");
	g->to = g->from + g->edges;
	return NR_OK;
}

static int32_t within(int32_t value, int32_t misc) { return value >= 0 && value < misc ? value : misc; }

static void atom_features(const struct nr_atom *a, int32_t *f)
{
	static const uint8_t hybrid[] = { [NR_HYBRID_NONE] = 5, [NR_HYBRID_S] = 5, [NR_HYBRID_SP] = 0, [NR_HYBRID_SP2] = 1,
		[NR_HYBRID_SP3] = 2, [NR_HYBRID_SP2D] = 5, [NR_HYBRID_SP3D] = 3, [NR_HYBRID_SP3D2] = 4 };
	const int32_t hydrogens = nr_all_hydrogens(a);
	f[0] = a->number ? a->number - 1 : 118;
	f[1] = within(a->chirality, 4);
	f[2] = within(a->degree + hydrogens, 11);
	f[3] = within(a->charge + 5, 11);
	f[4] = within(hydrogens, 9);
	f[5] = within(a->radicals, 5);
	f[6] = hybrid[a->hybrid];
	f[7] = a->aromatic;
	f[8] = a->in_ring;
}

static void bond_features(const struct nr_bond *b, int32_t *f)
{
	static const uint8_t order[] = { [NR_BOND_ANY] = 4, [NR_BOND_SINGLE] = 0, [NR_BOND_DOUBLE] = 1, [NR_BOND_TRIPLE] = 2,
		[NR_BOND_QUADRUPLE] = 4, [NR_BOND_AROMATIC] = 3, [NR_BOND_DATIVE] = 4 };
	f[0] = order[b->order];
	f[1] = b->stereo;
	f[2] = b->conjugated;
}

int nr_molgraph_ogb(struct nr_molgraph *g, const struct nr_molecule *m, struct nr_arena *arena, struct nr_error *err)
{
	*g = (struct nr_molgraph){ .nodes = m->atoms, .edges = 2 * m->bonds, .node_features = 9, .edge_features = 3 };
	if (nr_molgraph_alloc(g, arena, err)) return err->code;
	for (int32_t i = 0; i < m->atoms; i++) atom_features(&m->atom[i], g->node + 9 * (int64_t)i);
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_bond *b = &m->bond[i];
		g->from[2 * i] = g->to[2 * i + 1] = b->from;
		g->to[2 * i] = g->from[2 * i + 1] = b->to;
		bond_features(b, g->edge + 6 * (int64_t)i);
		bond_features(b, g->edge + 6 * (int64_t)i + 3);
	}
	return NR_OK;
}
