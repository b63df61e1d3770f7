/* Ring closures, and what @ and @@ mean once the bonds have their numbers: they look from the first neighbour of the text along
 * the others in the order of the text, the molecule keeps them in the order of its bonds. */
#include <stdlib.h>
#include <string.h>

#include "chem/smiles.h"

bool nr_order_odd(const int32_t *a, const int32_t *b, int32_t n)
{
	int32_t swaps = 0;
	for (int32_t i = 0; i < n; i++)
		for (int32_t j = i + 1; j < n; j++) {
			int32_t at_i = 0, at_j = 0;
			for (int32_t k = 0; k < n; k++) {
				if (b[k] == a[i]) at_i = k;
				if (b[k] == a[j]) at_j = k;
			}
			swaps += at_i > at_j;
		}
	return swaps % 2;
}

/* ---- closing -------------------------------------------------------------------------------------------------------------- */

static uint8_t flipped(uint8_t dir) { return dir == NR_DIR_UP ? NR_DIR_DOWN : dir == NR_DIR_DOWN ? NR_DIR_UP : dir; }

/* The bond of two ends: an order given at the opening wins, then that at the closing. */
static void join(struct nr_smiles *s, struct nr_closure *a, struct nr_closure *b)
{
	struct nr_molecule *m = s->of;
	const struct nr_closure *kept = a->loose ? b : a, *other = a->loose ? a : b;
	struct nr_bond *fresh = &m->bond[m->bonds];
	*fresh = (struct nr_bond){ .from = kept->backwards ? other->atom : kept->atom, .to = kept->backwards ? kept->atom : other->atom,
		.order = kept->order, .dir = kept->dir, .aromatic = kept->order == NR_BOND_AROMATIC };
	if (!kept->dir) fresh->dir = flipped(other->dir);
	s->loose[m->bonds] = kept->loose;
	a->bond = b->bond = m->bonds++;
}

struct neighbours { int32_t *head, *next, *end; };      /* lists of bond ends by atom */

static void note_bond(struct neighbours *n, const struct nr_bond *b, int32_t bond)
{
	const int32_t ends[2] = { b->from, b->to };
	for (int i = 0; i < 2; i++) {
		n->next[2 * bond + i] = n->head[ends[i]];
		n->end[2 * bond + i] = ends[1 - i];
		n->head[ends[i]] = 2 * bond + i;
	}
}

static bool joined(const struct neighbours *n, int32_t a, int32_t b)
{
	for (int32_t i = n->head[a]; i >= 0; i = n->next[i])
		if (n->end[i] == b) return true;
	return false;
}

struct entry { int32_t number, at; };

static int by_number(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	return a->number != b->number ? (a->number > b->number) - (a->number < b->number) : (a->at > b->at) - (a->at < b->at);
}

static int close_rings(struct nr_smiles *s, struct nr_error *err)
{
	struct nr_molecule *m = s->of;
	const size_t most = (size_t)m->bonds + (size_t)s->closures;
	struct entry *order = nr_arena_alloc(m->arena, (size_t)s->closures * sizeof *order);
	struct neighbours near = { nr_arena_alloc(m->arena, (size_t)m->atoms * sizeof(int32_t)),
		nr_arena_alloc(m->arena, 2 * most * sizeof(int32_t)), nr_arena_alloc(m->arena, 2 * most * sizeof(int32_t)) };
	if (!order || !near.head || !near.next || !near.end)
		return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	memset(near.head, -1, (size_t)m->atoms * sizeof *near.head);
	for (int32_t b = 0; b < m->bonds; b++) note_bond(&near, &m->bond[b], b);
	for (int32_t i = 0; i < s->closures; i++) order[i] = (struct entry){ s->closure[i].number, i };
	qsort(order, (size_t)s->closures, sizeof *order, by_number);
	for (int32_t i = 0; i < s->closures; i += 2) {
		struct nr_closure *a = &s->closure[order[i].at];
		if (i + 1 == s->closures || order[i + 1].number != order[i].number)
			return nr_molecule_fail(m, a->column, err, "ring %d is opened but not closed", a->number);
		struct nr_closure *b = &s->closure[order[i + 1].at];
		if (a->atom == b->atom)
			return nr_molecule_fail(m, b->column, err, "ring %d joins an atom to itself", a->number);
		if (joined(&near, a->atom, b->atom))
			return nr_molecule_fail(m, b->column, err,
				"ring %d joins two atoms that are already bonded", a->number);
		join(s, a, b);
		note_bond(&near, &m->bond[a->bond], a->bond);
	}
	return NR_OK;
}

/* ---- handedness ----------------------------------------------------------------------------------------------------------- */

static bool unsaturated(const struct nr_molecule *m, const struct nr_atom *a)
{
	for (int32_t i = 0; i < a->degree; i++) {
		const uint8_t order = nr_bond_of(m, a, i)->order;
		if (order >= NR_BOND_DOUBLE && order <= NR_BOND_AROMATIC) return true;
	}
	return false;
}

/* Bonds in the order of the text: the atom before, ring closures, the rest. Bonds of chains are numbered in that order. */
static int32_t text_order(const struct nr_smiles *s, int32_t atom, int32_t *order)
{
	const struct nr_molecule *m = s->of;
	const struct nr_atom *a = &m->atom[atom];
	int32_t n = 0, closures = 0, at = 0;
	for (int32_t c = s->first[atom]; c >= 0; c = s->closure[c].next) closures++;
	if (!a->leads) order[n++] = m->incident[a->first + at++];
	for (int32_t c = s->first[atom]; c >= 0; c = s->closure[c].next) order[n++] = s->closure[c].bond;
	for (; at < a->degree - closures; at++) order[n++] = m->incident[a->first + at];
	return closures;
}

static void turn(struct nr_smiles *s, int32_t atom)
{
	struct nr_molecule *m = s->of;
	struct nr_atom *a = &m->atom[atom];
	int32_t order[8];
	if (a->degree > 8) return;              /* no tetrahedron */
	const int32_t closures = text_order(s, atom, order);
	bool odd = nr_order_odd(order, m->incident + a->first, a->degree);
	/* A hydrogen that leads the text is the one looked from; a ring closure on an atom of three takes the place of the fourth. */
	if (a->degree == 3 && ((a->leads && a->hydrogens == 1) || (a->hydrogens != 1 && closures == 1 && !unsaturated(m, a)))) odd = !odd;
	if (odd) a->chirality = a->chirality == NR_CHIRAL_CW ? NR_CHIRAL_CCW : NR_CHIRAL_CW;
}

int nr_smiles_close(struct nr_smiles *s, struct nr_error *err)
{
	struct nr_molecule *m = s->of;
	if (s->closures && close_rings(s, err)) return err->code;
	for (int32_t b = 0; b < m->bonds; b++) {
		struct nr_bond *bond = &m->bond[b];
		if (!s->loose[b]) continue;
		bond->aromatic = m->atom[bond->from].aromatic && m->atom[bond->to].aromatic;
		bond->order = bond->aromatic ? NR_BOND_AROMATIC : NR_BOND_SINGLE;
	}
	if (nr_molecule_connect(m, err)) return err->code;
	for (int32_t a = 0; a < m->atoms; a++)
		if (m->atom[a].chirality == NR_CHIRAL_CW || m->atom[a].chirality == NR_CHIRAL_CCW) turn(s, a);
	return NR_OK;
}
