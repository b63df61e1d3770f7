/* Which of the marked centres and double bonds are stereo: those whose neighbours have different ranks. What one pass finds may tell
 * further neighbours apart, so passes repeat with new ranks. Marks on other atoms go, except on pairs in rings (cis and trans). */
#include <string.h>

#include "chem/elements.h"
#include "chem/molecule.h"

struct stereo {
	struct nr_molecule *m;
	int32_t *rank;
	int64_t *seed;
	char *code;                             /* (atoms) 'R', 'S' or 0 */
	bool ranked, unsure_atoms, unsure_bonds, news;
	struct nr_error *err;
};

/* ---- ranks ---------------------------------------------------------------------------------------------------------------- */

static int first_ranks(struct stereo *s)
{
	const struct nr_molecule *m = s->m;
	if (s->ranked) return NR_OK;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		int32_t mass = 0;
		if (a->isotope) {
			mass = a->isotope - nr_elements[a->number].isotope;
			mass += mass >= 0;
		}
		mass = mass < -512 ? 0 : (mass + 512) % 1024;
		s->seed[i] = ((int64_t)a->number << 10 | mass) << 10 | (a->map + 1) % 1024;
	}
	s->ranked = true;
	return nr_cip_ranks(m, s->seed, s->rank, s->err);
}

/* R before S before nothing, then Z and E bonds. */
static int next_ranks(struct stereo *s)
{
	const struct nr_molecule *m = s->m;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		s->seed[i] = (int64_t)s->rank[i] * 1000000 + (s->code[i] == 'R' ? 20 : s->code[i] == 'S' ? 10 : 0);
		for (int32_t j = 0; j < a->degree; j++) {
			const struct nr_bond *b = nr_bond_of(m, a, j);
			if (b->order == NR_BOND_DOUBLE) s->seed[i] += b->stereo == NR_STEREO_E ? 1 : b->stereo == NR_STEREO_Z ? 2 : 0;
		}
	}
	return nr_cip_ranks(m, s->seed, s->rank, s->err);
}

/* ---- atoms ---------------------------------------------------------------------------------------------------------------- */

static bool shapes(const struct nr_bond *b, int32_t atom)
{
	return b->order != NR_BOND_ANY && !(b->order == NR_BOND_DATIVE && b->from == atom);
}

static bool through(const struct nr_ring *r, int32_t atom)
{
	for (int32_t i = 0; i < r->size; i++)
		if (r->atom[i] == atom) return true;
	return false;
}

static int32_t shared_bonds(const struct nr_ring *a, const struct nr_ring *b)
{
	int32_t n = 0;
	for (int32_t i = 0; i < a->size; i++)
		for (int32_t j = 0; j < b->size; j++) n += a->bond[i] == b->bond[j];
	return n;
}

/* Nitrogen turns inside out, unless a ring of three or a bridge holds it. */
static bool held(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	int32_t ring_bonds = 0;
	for (int32_t i = 0; i < a->degree; i++) ring_bonds += nr_bond_of(m, a, i)->in_ring;
	for (int32_t i = 0; i < m->rings; i++) {
		if (!through(&m->ring[i], atom)) continue;
		if (m->ring[i].size == 3) return true;
		for (int32_t j = 0; j < i && ring_bonds >= 3; j++)
			if (through(&m->ring[j], atom) && shared_bonds(&m->ring[i], &m->ring[j]) > 1) return true;
	}
	return false;
}

static bool can_be_centre(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	int32_t degree = 0;
	bool hydrogen = false;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const struct nr_atom *other = &m->atom[nr_bond_other(b, atom)];
		degree += shapes(b, atom);
		hydrogen |= other->number == 1 && !other->isotope;
	}
	const int32_t hs = nr_all_hydrogens(a), all = degree + hs;
	if (all > 4 || all < 3 || (degree < 3 && a->number != 15 && a->number != 33)) return false;
	if (degree != 3) return true;
	if (hs == 1) return !hydrogen;
	switch (a->number) {
	case 7: return held(m, atom);
	case 15:
	case 33: return true;
	case 16:
	case 34: return a->valence == 4 || (a->valence == 3 && a->charge == 1);
	default: return false;
	}
}

/* The bonds of the atom by the rank of what they lead to; false if two are alike. */
static bool ranked_bonds(const struct stereo *s, int32_t atom, int32_t *order)
{
	const struct nr_molecule *m = s->m;
	const struct nr_atom *a = &m->atom[atom];
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const int32_t r = s->rank[nr_bond_other(b, atom)];
		int32_t at = i;
		for (; at > 0; at--) {
			const struct nr_bond *lower = &m->bond[order[at - 1]];
			const int32_t below = s->rank[nr_bond_other(lower, atom)];
			if (below == r && shapes(b, atom) && shapes(lower, atom)) return false;
			if (below <= r) break;
			order[at] = order[at - 1];
		}
		order[at] = m->incident[a->first + i];
	}
	return true;
}

static int assign_atoms(struct stereo *s)
{
	struct nr_molecule *m = s->m;
	s->unsure_atoms = false;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		int32_t order[8];
		if (!a->chirality || s->code[i]) continue;
		if (first_ranks(s)) return s->err->code;
		if (a->degree > 8 || !can_be_centre(m, i)) continue;
		if (!ranked_bonds(s, i, order)) {
			s->unsure_atoms = true;
			continue;
		}
		bool odd = nr_order_odd(order, m->incident + a->first, a->degree);
		if (a->degree == 3 && nr_all_hydrogens(a) == 1) odd = !odd;
		s->code[i] = (a->chirality == NR_CHIRAL_CCW) != odd ? 'S' : 'R';
		s->news = true;
	}
	return NR_OK;
}

/* ---- double bonds --------------------------------------------------------------------------------------------------------- */

struct side { int32_t n, atom[2]; uint8_t dir[2]; };

static uint8_t turned(uint8_t dir) { return dir == NR_DIR_UP ? NR_DIR_DOWN : NR_DIR_UP; }

/* Neighbours of one end with the direction as seen from it; empty if there is none or they are alike. */
static struct side look(const struct stereo *s, int32_t atom, const struct nr_bond *dbl)
{
	const struct nr_molecule *m = s->m;
	const struct nr_atom *a = &m->atom[atom];
	struct side side = { 0 };
	bool seen = false;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		if (b == dbl) continue;
		seen |= b->dir != NR_DIR_NONE;
		side.dir[side.n] = b->dir && b->from != atom ? turned(b->dir) : b->dir;
		side.atom[side.n++] = nr_bond_other(b, atom);
	}
	if (!seen || (side.n == 2 && s->rank[side.atom[0]] == s->rank[side.atom[1]])) return (struct side){ 0 };
	for (int i = 0; i < 2 && side.n == 2; i++)
		if (!side.dir[i]) side.dir[i] = turned(side.dir[1 - i]);
	return side;
}

static uint8_t leading_dir(const struct stereo *s, const struct side *side)
{
	return side->n == 1 || s->rank[side->atom[0]] > s->rank[side->atom[1]] ? side->dir[0] : side->dir[1];
}

static void clear_dirs(struct nr_molecule *m, int32_t atom, const struct nr_bond *dbl)
{
	for (int32_t i = 0; i < m->atom[atom].degree; i++) {
		struct nr_bond *b = nr_bond_of(m, &m->atom[atom], i);
		if (b != dbl) b->dir = NR_DIR_NONE;
	}
}

static int assign_bonds(struct stereo *s)
{
	struct nr_molecule *m = s->m;
	s->unsure_bonds = false;
	for (int32_t i = 0; i < m->bonds; i++) {
		struct nr_bond *b = &m->bond[i];
		if (b->order != NR_BOND_DOUBLE || b->stereo) continue;
		if (first_ranks(s)) return s->err->code;
		const int32_t from = m->atom[b->from].degree, to = m->atom[b->to].degree;
		if ((b->smallest && b->smallest < 8) || from < 2 || from > 3 || to < 2 || to > 3) continue;
		const struct side x = look(s, b->from, b), y = look(s, b->to, b);
		if (!x.n || !y.n) {
			s->unsure_bonds = true;
			continue;
		}
		const bool bad_x = x.n == 2 && x.dir[0] == x.dir[1], bad_y = y.n == 2 && y.dir[0] == y.dir[1];
		if (bad_x) clear_dirs(m, b->from, b);
		if (bad_y) clear_dirs(m, b->to, b);
		if (!bad_x && !bad_y) b->stereo = leading_dir(s, &x) == leading_dir(s, &y) ? NR_STEREO_Z : NR_STEREO_E;
		s->news = true;
	}
	return NR_OK;
}

/* ---- cis and trans in rings ----------------------------------------------------------------------------------------------- */

/* One neighbour outside of the ring, two that differ, or ring neighbours of which two are alike. */
static bool ring_candidate(const struct stereo *s, int32_t atom)
{
	const struct nr_molecule *m = s->m;
	const struct nr_atom *a = &m->atom[atom];
	int32_t outside = 0, inside = 0, kinds = 0, rank[8], out[2] = { 0 };
	if (!a->chirality || s->code[atom] || !a->in_ring || a->degree > 8) return false;
	if (a->number == 7 && a->degree + nr_all_hydrogens(a) == 3 && !held(m, atom)) return false;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const int32_t r = s->rank[nr_bond_other(b, atom)];
		bool known = false;
		if (!b->in_ring) {
			if (outside < 2) out[outside] = r;
			outside++;
			continue;
		}
		inside++;
		for (int32_t j = 0; j < kinds; j++) known |= rank[j] == r;
		if (!known) rank[kinds++] = r;
	}
	if (outside == 2) return out[0] != out[1];
	if (outside == 1) return inside >= 2;
	return outside == 0 && ((inside == 4 && kinds == 3) || (inside == 3 && kinds == 2));
}

struct ring_walk { bool *seen, *used, *bond, *paired; int32_t *queue, tail; };

static void push_neighbours(const struct stereo *s, struct ring_walk *w, int32_t atom, bool start)
{
	const struct nr_molecule *m = s->m;
	for (int32_t i = 0; i < m->atom[atom].degree; i++) {
		const int32_t bond = m->incident[m->atom[atom].first + i], other = nr_bond_other(&m->bond[bond], atom);
		if (w->bond[bond]) continue;
		w->bond[bond] = true;
		if (!m->bond[bond].in_ring || w->seen[other] || (!start && w->used[other])) continue;
		w->used[other] = true;
		w->queue[w->tail++] = other;
	}
}

/* From each candidate along ring bonds to others: those keep their marks, for each gives the other a meaning. */
static int keep_pairs(struct stereo *s, bool **paired)
{
	struct nr_molecule *m = s->m;
	const size_t n = (size_t)m->atoms;
	bool *flags = nr_arena_alloc(m->arena, 3 * n + (size_t)m->bonds);
	struct ring_walk w = { .queue = nr_arena_alloc(m->arena, (n + (size_t)m->bonds) * sizeof *w.queue) };
	if (!flags || !w.queue) return nr_fail(s->err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	w.seen = flags;
	w.used = flags + n;
	*paired = w.paired = flags + 2 * n;
	w.bond = flags + 3 * n;
	for (int32_t i = 0; i < m->atoms; i++) {
		if (w.seen[i] || !ring_candidate(s, i)) continue;
		w.tail = 0;
		push_neighbours(s, &w, i, true);
		for (int32_t head = 0; head < w.tail; head++) {
			const int32_t a = w.queue[head];
			w.seen[a] = true;
			if (ring_candidate(s, a)) w.paired[a] = w.paired[i] = true;
			push_neighbours(s, &w, a, false);
		}
		w.seen[i] = true;
	}
	return NR_OK;
}

static void drop_mark(struct nr_molecule *m, int32_t atom)
{
	struct nr_atom *a = &m->atom[atom];
	a->chirality = NR_CHIRAL_NONE;
	if (a->hydrogens != 1 || a->charge || a->aromatic) return;
	a->hydrogens = 0;                       /* it was written for the mark only */
	a->fixed = false;
	nr_valence_update(m, atom);
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

int nr_stereo(struct nr_molecule *m, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms;
	bool centres = false, dirs = false, *paired = NULL;
	for (int32_t i = 0; i < m->atoms; i++) centres |= m->atom[i].chirality != NR_CHIRAL_NONE;
	for (int32_t i = 0; i < m->bonds; i++) dirs |= m->bond[i].dir != NR_DIR_NONE;
	if (!centres && !dirs) return NR_OK;
	struct stereo s = { .m = m, .rank = nr_arena_alloc(m->arena, n * sizeof *s.rank), .unsure_atoms = centres, .unsure_bonds = dirs,
		.seed = nr_arena_alloc(m->arena, n * sizeof *s.seed), .code = nr_arena_alloc(m->arena, n), .news = true, .err = err };
	if (!s.rank || !s.seed || !s.code) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	for (bool again = true; again;) {
		s.news = false;
		if (s.unsure_atoms && assign_atoms(&s)) return err->code;
		if (s.unsure_bonds && assign_bonds(&s)) return err->code;
		again = (s.unsure_atoms || s.unsure_bonds) && s.news;
		if (again && next_ranks(&s)) return err->code;
	}
	if (!centres) return NR_OK;
	if (keep_pairs(&s, &paired)) return err->code;
	for (int32_t i = 0; i < m->atoms; i++)
		if (m->atom[i].chirality && m->atom[i].chirality <= NR_CHIRAL_OTHER && !s.code[i] && !paired[i]) drop_mark(m, i);
	return NR_OK;
}
