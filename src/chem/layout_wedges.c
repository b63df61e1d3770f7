/* Wedges: see layout.h. A centre of four neighbours in the order of its bonds (a hydrogen that is no atom comes last) is clockwise if,
 * seen from the first, the others go round so. One bond leaves the plane: which way is told by the sign of a volume. */
#include <math.h>
#include <stdlib.h>

#include "chem/layout.h"

struct vector { double x, y, z; };

static double volume(struct vector a, struct vector b, struct vector c)
{
	return a.x * (b.y * c.z - b.z * c.y) - a.y * (b.x * c.z - b.z * c.x) + a.z * (b.x * c.y - b.y * c.x);
}

static struct vector between(struct vector a, struct vector b) { return (struct vector){ b.x - a.x, b.y - a.y, b.z - a.z }; }

/* What the drawing says if the bond of number `up` rises from the plane: positive is clockwise. */
static double turn_of(const struct nr_layout *l, const struct nr_molecule *m, int32_t atom, int32_t up)
{
	const struct nr_atom *a = &m->atom[atom];
	struct vector v[4] = { 0 };
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_place p = nr_place_unit(nr_place_from(l->at[atom], l->at[nr_bond_other(nr_bond_of(m, a, i), atom)]));
		v[i] = (struct vector){ p.x, p.y, i == up ? 1 : 0 };
	}
	if (a->degree == 3) return -volume(v[0], v[1], v[2]);
	return volume(between(v[0], v[1]), between(v[0], v[2]), between(v[0], v[3]));
}

/* Bonds that may become a wedge, the best lowest: out of rings, to an end, not to another centre, with a clear meaning. */
static double price(const struct nr_layout *l, const struct nr_molecule *m, int32_t atom, int32_t i)
{
	const struct nr_bond *b = nr_bond_of(m, &m->atom[atom], i);
	const struct nr_atom *other = &m->atom[nr_bond_other(b, atom)];
	if (l->wedge[b - m->bond] || b->kekule != 1 || fabs(turn_of(l, m, atom, i)) < .1) return INFINITY;
	double sum = 10 * b->in_ring + .1 * other->degree + (other->number == 6 ? .05 : 0);
	if (other->chirality == NR_CHIRAL_CW || other->chirality == NR_CHIRAL_CCW) sum += 20;
	for (int32_t k = 0; k < other->degree; k++) sum += nr_bond_of(m, other, k)->stereo ? 1 : 0;
	return sum;
}

/* The number of the best bond of a centre, -1: none will do. */
static int32_t best_of(const struct nr_layout *l, const struct nr_molecule *m, int32_t atom, double *least)
{
	int32_t best = -1;
	*least = INFINITY;
	for (int32_t i = 0; i < m->atom[atom].degree; i++) {
		const double now = price(l, m, atom, i);
		if (now < *least) *least = now, best = i;
	}
	return best;
}

static bool is_centre(const struct nr_atom *a)
{
	return (a->chirality == NR_CHIRAL_CW || a->chirality == NR_CHIRAL_CCW) && (a->degree == 3 || a->degree == 4);
}

/* Centres with the fewest choices go first, so that none is left without a bond. */
int nr_layout_wedges(struct nr_layout *l, const struct nr_molecule *m, struct nr_arena *arena, struct nr_error *err)
{
	bool *done = nr_arena_alloc(arena, (size_t)m->atoms * sizeof *done + 1);
	if (!done) return nr_fail(err, NR_EMEMORY, "cannot draw molecule", NULL, "out of memory");
	for (;;) {
		int32_t atom = -1, bond = -1;
		double most = -1;
		for (int32_t i = 0; i < m->atoms; i++) {
			double least;
			if (done[i] || !is_centre(&m->atom[i])) continue;
			const int32_t best = best_of(l, m, i, &least);
			if (best < 0) done[i] = true;
			else if (least > most) most = least, atom = i, bond = best;
		}
		if (atom < 0) return NR_OK;
		const int32_t number = m->incident[m->atom[atom].first + bond];
		const bool clockwise = turn_of(l, m, atom, bond) > 0;
		l->wedge[number] = clockwise == (m->atom[atom].chirality == NR_CHIRAL_CW) ? NR_WEDGE_UP : NR_WEDGE_DOWN;
		l->narrow[number] = atom;
		done[atom] = true;
	}
}
