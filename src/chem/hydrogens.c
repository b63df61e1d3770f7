/* Hydrogens written as atoms become counts of their neighbours, unless they carry something: an isotope, a charge of -1, a second bond, no
 * neighbour or only hydrogens, a dummy atom, or the side of a double bond. */
#include "chem/molecule.h"

static bool marks_a_side(const struct nr_molecule *m, const struct nr_bond *bond, const struct nr_atom *heavy)
{
	if (heavy->degree != 2 || !bond->dir) return false;
	for (int32_t i = 0; i < heavy->degree; i++)
		if (nr_bond_of(m, heavy, i)->order == NR_BOND_DOUBLE) return true;
	return false;
}

static bool absorbed(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *h = &m->atom[atom];
	if (h->number != 1 || h->degree != 1 || h->isotope || h->charge == -1) return false;
	const struct nr_bond *bond = nr_bond_of(m, h, 0);
	const struct nr_atom *heavy = &m->atom[nr_bond_other(bond, atom)];
	return heavy->number > 1 && heavy->chirality < NR_CHIRAL_SQUARE && !marks_a_side(m, bond, heavy);
}

/* Another single bond of the atom takes over what '/' or '\' said. */
static void hand_over(struct nr_molecule *m, const struct nr_bond *bond, int32_t heavy)
{
	const struct nr_atom *a = &m->atom[heavy];
	struct nr_bond *other = NULL;
	if (!bond->dir) return;
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *b = nr_bond_of(m, a, i);
		if (b == bond || b->from < 0) continue;
		if (b->dir) return;
		if (b->order == NR_BOND_SINGLE) other = b;
	}
	if (!other) return;
	const bool flip = (other->from == heavy) == (bond->from == heavy);
	other->dir = !flip ? bond->dir : bond->dir == NR_DIR_UP ? NR_DIR_DOWN : NR_DIR_UP;
}

static void absorb(struct nr_molecule *m, int32_t atom)
{
	const struct nr_bond *bond = nr_bond_of(m, &m->atom[atom], 0);
	const int32_t heavy = nr_bond_other(bond, atom);
	struct nr_atom *a = &m->atom[heavy];
	a->hydrogens++;
	if (a->chirality == NR_CHIRAL_CW || a->chirality == NR_CHIRAL_CCW) {
		int32_t place = 0, last = 0;            /* among the bonds that are still there; a swap for each one behind it */
		for (int32_t i = 0; i < a->degree; i++) {
			const int32_t at = m->incident[a->first + i];
			if (m->bond[at].from < 0) continue;
			if (&m->bond[at] == bond) place = last;
			last++;
		}
		if ((last - 1 - place) % 2) a->chirality = a->chirality == NR_CHIRAL_CW ? NR_CHIRAL_CCW : NR_CHIRAL_CW;
	}
	hand_over(m, bond, heavy);
}

int nr_hydrogens_absorb(struct nr_molecule *m, struct nr_error *err)
{
	int32_t gone = 0;
	for (int32_t i = 0; i < m->atoms; i++) gone += absorbed(m, i);
	if (!gone) return NR_OK;
	int32_t *place = nr_arena_alloc(m->arena, (size_t)m->atoms * sizeof *place);
	if (!place) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	for (int32_t i = 0; i < m->atoms; i++) place[i] = absorbed(m, i) ? -1 : 0;
	for (int32_t i = m->atoms - 1; i >= 0; i--) {
		if (place[i] >= 0) continue;
		const int32_t bond = m->incident[m->atom[i].first];
		absorb(m, i);
		m->bond[bond].from = -1;
		m->bond[bond].dir = NR_DIR_NONE;
	}
	int32_t atoms = 0, bonds = 0;
	for (int32_t i = 0; i < m->atoms; i++) {
		if (place[i] < 0) continue;
		m->atom[atoms] = m->atom[i];
		place[i] = atoms++;
	}
	for (int32_t i = 0; i < m->bonds; i++) {
		if (m->bond[i].from < 0) continue;
		m->bond[bonds] = m->bond[i];
		m->bond[bonds].from = place[m->bond[i].from];
		m->bond[bonds].to = place[m->bond[i].to];
		bonds++;
	}
	m->atoms = atoms;
	m->bonds = bonds;
	return nr_molecule_connect(m, err);
}
