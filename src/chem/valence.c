/* Valences: how many hydrogens an atom takes, which atoms have too many bonds, and the few spellings that are put right first. */
#include <string.h>

#include "chem/elements.h"
#include "chem/molecule.h"

int32_t nr_bond_twice(const struct nr_bond *b, int32_t atom)
{
	switch (b->order) {
	case NR_BOND_AROMATIC: return 3;
	case NR_BOND_ANY: return 0;
	case NR_BOND_DATIVE: return b->to == atom ? 2 : 0;      /* the giver spends none of its valence */
	default: return 2 * b->order;
	}
}

bool nr_atom_like_aromatic(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	if (a->aromatic) return true;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		if (b->aromatic || b->order == NR_BOND_AROMATIC) return true;
	}
	return false;
}

/* N+ bonds like C, O- like F: the element whose valences count. */
static int effective(const struct nr_atom *a)
{
	if (nr_elements[a->number].valence[0] == -1) return a->number;
	const int z = a->number - a->charge;
	return z < 0 ? 0 : z >= NR_ELEMENTS ? NR_ELEMENTS - 1 : z;
}

/* Negative P, S, As and Se would count as halogens, which have but one valence. */
static bool expands(const struct nr_atom *a, int z)
{
	return (z > 16 && (a->number == 15 || a->number == 16)) || (z > 34 && (a->number == 33 || a->number == 34));
}

static int32_t explicit_valence(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	int32_t twice = 2 * a->hydrogens;
	for (int32_t i = 0; i < a->degree; i++) twice += nr_bond_twice(nr_bond_of(m, a, i), atom);
	const struct nr_element *e = &nr_elements[effective(a)];
	const int32_t usual = e->valence[0];
	if (usual >= 0 && twice > 2 * usual && nr_atom_like_aromatic(m, atom)) {
		int32_t most = usual;
		for (int i = 0; i < e->valences && e->valence[i] >= 0 && 2 * e->valence[i] <= twice; i++) most = e->valence[i];
		if (twice - 2 * most <= 3) twice = 2 * most;    /* as the n of c1cccn1C */
	}
	return (twice + 1) / 2;
}

static bool too_many(const struct nr_atom *a)
{
	const int z = effective(a), own = nr_element_top(a->number);
	int most = nr_element_top(z), valence = a->valence;
	if (expands(a, z)) {
		most = own;
		valence -= a->charge;
	}
	if (a->number == 1 && a->charge == -1) most = 2;
	return most >= 0 && own >= 0 && valence > most;
}

/* -1: no valence of the element fits. */
static int32_t implicit_hydrogens(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	int z = effective(a);
	if (a->fixed || !a->number || !z) return 0;
	const int32_t usual = nr_elements[z].valence[0];
	if (usual == -1) return 0;
	int32_t have = a->valence + a->radicals;
	if (expands(a, z)) {
		z = a->number;
		have -= a->charge;
	}
	const struct nr_element *e = &nr_elements[z];
	if (nr_atom_like_aromatic(m, atom)) {
		if (have <= usual) return usual - have;
		for (int i = 0; i < e->valences && e->valence[i] > 0; i++)
			if (have == e->valence[i]) return 0;
		return -1;
	}
	for (int i = 0; i < e->valences && e->valence[i] >= 0; i++)
		if (have <= e->valence[i]) return e->valence[i] - have;
	return nr_element_top(z) != -1 && nr_element_top(a->number) > 0 ? -1 : 0;
}

void nr_valence_update(struct nr_molecule *m, int32_t atom)
{
	struct nr_atom *a = &m->atom[atom];
	a->valence = explicit_valence(m, atom);
	const int32_t n = implicit_hydrogens(m, atom);
	a->implicit = n > 0 ? n : 0;
}

int nr_valences(struct nr_molecule *m, bool strict, struct nr_error *err)
{
	for (int32_t i = 0; i < m->atoms; i++) {
		struct nr_atom *a = &m->atom[i];
		nr_valence_update(m, i);
		if (!strict || !a->number) continue;
		if (too_many(a) || implicit_hydrogens(m, i) < 0)
			return nr_molecule_fail(m, a->column, err, "%s%s has %d bonds, more than its valence allows",
				nr_elements[a->number].symbol, a->charge > 0 ? "+" : a->charge < 0 ? "-" : "", a->valence);
	}
	return NR_OK;
}

void nr_hydrogens_settle(struct nr_molecule *m)
{
	for (int32_t i = 0; i < m->atoms; i++) {
		struct nr_atom *a = &m->atom[i];
		const int32_t before = a->implicit;
		nr_valence_update(m, i);
		if (a->implicit >= before) continue;
		a->hydrogens += before - a->implicit;
		a->valence = explicit_valence(m, i);
	}
}

/* ---- spellings ------------------------------------------------------------------------------------------------------------ */

static void part(struct nr_atom *plus, struct nr_atom *minus, struct nr_bond *b)
{
	b->order--;
	plus->charge = 1;
	minus->charge = -1;
}

/* N(=O)=O is [N+](=O)[O-], N=N#N is N=[N+]=[N-]: on the first neighbour that fits. */
static void part_nitrogen(struct nr_molecule *m, int32_t atom, uint8_t number, uint8_t order)
{
	struct nr_atom *a = &m->atom[atom];
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *b = nr_bond_of(m, a, i);
		struct nr_atom *other = &m->atom[nr_bond_other(b, atom)];
		if (other->number != number || other->charge || b->order != order) continue;
		part(a, other, b);
		return;
	}
}

/* C=P(=O)X is C=[P+]([O-])X. */
static void part_phosphorus(struct nr_molecule *m, int32_t atom)
{
	struct nr_atom *a = &m->atom[atom], *oxygen = NULL;
	struct nr_bond *to_oxygen = NULL;
	bool other_double = false;
	if (a->charge || a->degree != 3 || explicit_valence(m, atom) != 5) return;
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *b = nr_bond_of(m, a, i);
		struct nr_atom *n = &m->atom[nr_bond_other(b, atom)];
		if (b->order != NR_BOND_DOUBLE) continue;
		if (n->number == 8 && !n->charge) {
			oxygen = n;
			to_oxygen = b;
		} else if ((n->number == 6 || n->number == 7) && n->degree >= 2) {
			other_double = true;
		}
	}
	if (other_double && oxygen) part(a, oxygen, to_oxygen);
}

/* Cl(=O)(=O)(=O)O is [Cl+3]([O-])([O-])([O-])O. */
static void part_halogen(struct nr_molecule *m, int32_t atom)
{
	struct nr_atom *a = &m->atom[atom];
	const int32_t v = explicit_valence(m, atom);
	if (a->charge || (v != 3 && v != 5 && v != 7)) return;
	for (int32_t i = 0; i < a->degree; i++)
		if (m->atom[nr_bond_other(nr_bond_of(m, a, i), atom)].number != 8) return;
	int32_t n = 0;
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *b = nr_bond_of(m, a, i);
		if (b->order != NR_BOND_DOUBLE) continue;
		part(a, &m->atom[nr_bond_other(b, atom)], b);
		n++;
	}
	a->charge = n;
}

/* ---- bonds to metals ------------------------------------------------------------------------------------------------------ */

static bool overfull(struct nr_molecule *m, int32_t atom)
{
	struct nr_atom *a = &m->atom[atom];
	const int z = a->number - a->charge;
	if (nr_element_metal(a->number) || a->number < 3 || a->number == 9 || a->number == 10 || z <= 0 || z >= NR_ELEMENTS) return false;
	nr_valence_update(m, atom);
	const int most = nr_element_top(z);
	return most > 0 && (a->valence > most || (a->valence == most && a->aromatic && a->degree + nr_all_hydrogens(a) == 4));
}

static int32_t dative_bonds(const struct nr_molecule *m, int32_t atom)
{
	int32_t n = 0;
	for (int32_t i = 0; i < m->atom[atom].degree; i++) n += nr_bond_of(m, &m->atom[atom], i)->order == NR_BOND_DATIVE;
	return n;
}

/* The order in which RDKit takes atoms here is that of its canonical ranks; these are its first criteria. */
static bool precedes(const struct nr_molecule *m, int32_t a, int32_t b)
{
	const struct nr_atom *x = &m->atom[a], *y = &m->atom[b];
	if (x->degree != y->degree) return x->degree < y->degree;
	return x->number != y->number ? x->number < y->number : a < b;
}

/* A non-metal with more bonds than its valence gives one of them to a metal: that which got the fewest so far, the last of several. */
static void give(struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	struct nr_bond *best = NULL;
	int32_t fewest = 0;
	if (!overfull(m, atom)) return;
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *b = nr_bond_of(m, a, i);
		const int32_t metal = nr_bond_other(b, atom);
		if (b->order != NR_BOND_SINGLE || !nr_element_metal(m->atom[metal].number)) continue;
		const int32_t n = dative_bonds(m, metal);
		if (best && (n > fewest || (n == fewest && precedes(m, metal, nr_bond_other(best, atom))))) continue;
		best = b;
		fewest = n;
	}
	if (!best) return;
	const int32_t metal = nr_bond_other(best, atom);
	best->order = NR_BOND_DATIVE;
	best->from = atom;
	best->to = metal;
}

static void give_all(struct nr_molecule *m)
{
	for (int32_t i = 0, last = -1; i < m->atoms; i++) {
		int32_t next = -1;
		for (int32_t a = 0; a < m->atoms; a++)
			if ((last < 0 || precedes(m, last, a)) && (next < 0 || precedes(m, a, next))) next = a;
		give(m, last = next);
	}
}

void nr_molecule_repair(struct nr_molecule *m)
{
	bool metals = false;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		metals |= nr_element_metal(a->number);
		if (a->number != 7 || a->charge || explicit_valence(m, i) != 5) continue;
		part_nitrogen(m, i, 8, NR_BOND_DOUBLE);
		part_nitrogen(m, i, 7, NR_BOND_TRIPLE);
	}
	for (int32_t i = 0; i < m->atoms; i++) {
		const uint8_t z = m->atom[i].number;
		if (z == 15) part_phosphorus(m, i);
		if (z == 17 || z == 35 || z == 53) part_halogen(m, i);
	}
	if (metals) give_all(m);
}
