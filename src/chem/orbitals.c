/* Electrons of single atoms: radicals, what they give to conjugation, and hybridisation from bonds and lone pairs. */
#include "chem/elements.h"
#include "chem/molecule.h"

/* Atoms in brackets take no implicit hydrogens: what their shell lacks is radicals. */
void nr_radicals(struct nr_molecule *m)
{
	for (int32_t i = 0; i < m->atoms; i++) {
		struct nr_atom *a = &m->atom[i];
		const struct nr_element *e = &nr_elements[a->number];
		if (!a->fixed || !a->number) continue;
		if (e->valence[0] == -1) {
			const int32_t left = e->outer - a->charge;
			a->radicals = a->degree || left < 0 ? 0 : left % 2;
			continue;
		}
		int32_t twice = 2 * a->hydrogens;
		for (int32_t j = 0; j < a->degree; j++) twice += nr_bond_twice(nr_bond_of(m, a, j), i);
		const int32_t valence = twice / 2, shell = a->number <= 2 ? 2 : 8;
		int32_t n = shell - e->outer - valence + a->charge;
		if (n < 0) {
			n = 0;
			for (int j = 0; e->valences > 1 && j < e->valences; j++)
				if (e->valence[j] - valence + a->charge >= 0) {
					n = e->valence[j] - valence + a->charge;
					break;
				}
		}
		const int32_t early = e->outer - valence - a->charge;
		if (early >= 0 && early < n) n = early;
		a->radicals = (uint8_t)(n < 255 ? n : 255);
	}
}

int32_t nr_pi_electrons(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	const struct nr_element *e = &nr_elements[a->number];
	const int32_t usual = e->valence[0];
	if (usual <= 1) return -1;
	int32_t degree = a->degree + nr_all_hydrogens(a);
	for (int32_t i = 0; i < a->degree; i++) degree -= !nr_bond_twice(nr_bond_of(m, a, i), atom);
	if (degree > 3) return -1;
	int32_t pairs = e->outer - usual - a->charge;
	if (pairs < 0) pairs = 0;
	const int32_t n = usual - degree + pairs - a->radicals;
	return n > 1 && a->valence - a->degree > 1 ? 1 : n;     /* a triple bond gives one electron only */
}

/* ---- conjugation ---------------------------------------------------------------------------------------------------------- */

static bool conjugates(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	const struct nr_element *e = &nr_elements[a->number];
	const int32_t degree = a->degree + nr_all_hydrogens(a);
	if (!a->charge && e->valence[0] >= 0 && a->valence + a->implicit > e->valence[0]) return false;
	if (a->number > 10 && (e->outer == 5 || (e->outer == 6 && degree >= 2))) return false;
	return nr_pi_electrons(m, atom) > 0;
}

static void conjugate_around(struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	const int32_t degree = a->degree + nr_all_hydrogens(a);
	if (degree < 2 || degree > 3 || !conjugates(m, atom)) return;
	for (int32_t i = 0; i < a->degree; i++) {
		struct nr_bond *multiple = nr_bond_of(m, a, i);
		if (nr_bond_twice(multiple, atom) < 3 || !conjugates(m, nr_bond_other(multiple, atom))) continue;
		for (int32_t j = 0; j < a->degree; j++) {
			struct nr_bond *b = nr_bond_of(m, a, j);
			const int32_t other = nr_bond_other(b, atom);
			if (i == j || m->atom[other].degree + nr_all_hydrogens(&m->atom[other]) > 3 || !conjugates(m, other)) continue;
			multiple->conjugated = b->conjugated = true;
		}
	}
}

void nr_conjugation(struct nr_molecule *m)
{
	for (int32_t i = 0; i < m->bonds; i++) m->bond[i].conjugated = m->bond[i].aromatic;
	for (int32_t i = 0; i < m->atoms; i++) conjugate_around(m, i);
}

/* ---- hybridisation -------------------------------------------------------------------------------------------------------- */

static int32_t orbitals(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	int32_t degree = a->degree + nr_all_hydrogens(a);
	if (a->number >= 89) return degree;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		degree -= b->order == NR_BOND_DATIVE && b->to != atom;
	}
	if (a->number <= 1) return degree;
	const int32_t outer = nr_elements[a->number].outer, valence = a->valence + a->implicit;
	const int32_t left = outer - (valence + a->charge);
	if (valence + outer - a->charge < 8) return degree + (left - a->radicals) / 2 + a->radicals;
	return degree + left / 2;
}

static uint8_t hybrid(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	const int32_t degree = a->degree + nr_all_hydrogens(a);
	if (!a->number) return NR_HYBRID_NONE;
	switch (a->chirality) {                 /* a stereo class that fits the neighbours says it all */
	case NR_CHIRAL_CW:
	case NR_CHIRAL_CCW:
		if (degree == 4) return NR_HYBRID_SP3;
		break;
	case NR_CHIRAL_SQUARE:
		if (degree >= 2 && degree <= 4) return NR_HYBRID_SP2D;
		break;
	case NR_CHIRAL_BIPYRAMID:
		if (degree >= 2 && degree <= 5) return NR_HYBRID_SP3D;
		break;
	case NR_CHIRAL_OCTAHEDRON:
		if (degree >= 2 && degree <= 6) return NR_HYBRID_SP3D2;
		break;
	}
	bool conjugated = false;
	for (int32_t i = 0; i < a->degree; i++) conjugated |= nr_bond_of(m, a, i)->conjugated;
	switch (orbitals(m, atom)) {
	case 0:
	case 1: return NR_HYBRID_S;
	case 2: return NR_HYBRID_SP;
	case 3: return NR_HYBRID_SP2;
	case 4: return degree > 3 || !conjugated ? NR_HYBRID_SP3 : NR_HYBRID_SP2;
	case 5: return NR_HYBRID_SP3D;
	case 6: return NR_HYBRID_SP3D2;
	default: return NR_HYBRID_NONE;
	}
}

void nr_hybridisation(struct nr_molecule *m)
{
	for (int32_t i = 0; i < m->atoms; i++) m->atom[i].hybrid = hybrid(m, i);
}
