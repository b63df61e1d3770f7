/* ZINC's types: the element with the hydrogens that were written and the sign of the charge, in the order of the public data set;
 * bonds 1, 2, 3 of the form with alternating double bonds. */
#include <stdio.h>
#include <string.h>

#include "chem/elements.h"
#include "chem/molgraph.h"

static const char *const types[] = { "C", "O", "N", "F", "C H1", "S", "Cl", "O -", "N H1 +", "Br", "N H3 +", "N H2 +", "N +", "N -",
	"S -", "I", "P", "O H1 +", "N H1 -", "O +", "S +", "P H1", "P H2", "C H2 -", "P +", "S H1 +", "C H1 -", "P H1 +" };

static int32_t type_of(const struct nr_atom *a, char *name, size_t size)
{
	/* the hydrogen of an aromatic [nH] is there in any form and not written in this one */
	const bool pyrrole = a->aromatic && (a->number == 7 || a->number == 15) && !a->charge && a->hydrogens == 1;
	const int32_t hydrogens = pyrrole ? 0 : a->hydrogens;
	int n = snprintf(name, size, "%s", nr_elements[a->number].symbol);
	if (hydrogens) n += snprintf(name + n, size - (size_t)n, " H%d", hydrogens);
	if (a->charge) snprintf(name + n, size - (size_t)n, " %c", a->charge > 0 ? '+' : '-');
	for (int32_t i = 0; i < (int32_t)(sizeof types / sizeof *types); i++)
		if (!strcmp(types[i], name)) return i;
	return -1;
}

int nr_molgraph_zinc(struct nr_molgraph *g, const struct nr_molecule *m, struct nr_arena *arena, struct nr_error *err)
{
	*g = (struct nr_molgraph){ .nodes = m->atoms, .edges = 2 * m->bonds, .node_features = 1, .edge_features = 1 };
	if (nr_molgraph_alloc(g, arena, err)) return err->code;
	for (int32_t i = 0; i < m->atoms; i++) {
		char name[32];
		g->node[i] = type_of(&m->atom[i], name, sizeof name);
		if (g->node[i] >= 0) continue;
		nr_molecule_fail(m, m->atom[i].column, err, "'%s' is not among the 28 atom types of ZINC", name);
		return nr_hint(err, "use OGB's features for other molecules");
	}
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_bond *b = &m->bond[i];
		if (b->kekule < NR_BOND_SINGLE || b->kekule > NR_BOND_TRIPLE)
			return nr_molecule_fail(m, m->atom[b->from].column, err,
				"ZINC has only single, double and triple bonds");
		g->from[2 * i] = g->to[2 * i + 1] = b->from;
		g->to[2 * i] = g->from[2 * i + 1] = b->to;
		g->edge[2 * i] = g->edge[2 * i + 1] = b->kekule;
	}
	return NR_OK;
}
