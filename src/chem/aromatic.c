/* Aromaticity as RDKit counts it: 4n + 2 electrons in a ring or in up to six rings fused by one bond each. Every atom of such
 * rings must be able to take part; bonds inside a fused system stay as they are unless a smaller part is aromatic itself. */
#include <string.h>

#include "chem/elements.h"
#include "chem/molecule.h"

enum donor { CANNOT, VACANT, ONE, TWO, ONE_OR_TWO };
enum { MOST_FUSED = 6, LARGEST_RING = 24, MOST_RINGS = 1000, MOST_SYSTEMS = 1000000 };

struct perception {
	struct nr_molecule *m;
	uint8_t *donor;                         /* (atoms) */
	const struct nr_ring **ring;            /* candidates */
	int32_t rings;
	int32_t *first, *near;                  /* fused rings of each: near[first[r] .. first[r + 1]) */
	int32_t *group;                         /* (rings) which connected part */
	bool *done;                             /* (bonds) */
	uint8_t *times;                         /* (atoms or bonds) in how many rings of a system; all zero between uses */
	int64_t tried;
};

/* ---- atoms ---------------------------------------------------------------------------------------------------------------- */

/* The atom at the far end of a multiple bond outside (or, with inside, in) rings; -1: none. */
static int32_t multiple_bond(const struct nr_molecule *m, int32_t atom, bool inside)
{
	const struct nr_atom *a = &m->atom[atom];
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		if (b->in_ring == inside && nr_bond_twice(b, atom) >= 4) return nr_bond_other(b, atom);
	}
	return -1;
}

static bool has_multiple_bond(const struct nr_molecule *m, const struct nr_atom *a)
{
	int32_t degree = a->degree + a->hydrogens;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		degree -= !nr_bond_twice(b, (int32_t)(a - m->atom));
	}
	return a->valence != degree;
}

static enum donor donor_type(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	if (!a->number) return multiple_bond(m, atom, true) >= 0 ? ONE : ONE_OR_TWO;
	int32_t n = nr_pi_electrons(m, atom);
	const int32_t outside = multiple_bond(m, atom, false);
	const bool lost = outside >= 0 && nr_element_pulls(m->atom[outside].number, a->number);
	if (n < 0) return CANNOT;
	if (n == 0) return outside >= 0 ? VACANT : multiple_bond(m, atom, true) >= 0 ? ONE : CANNOT;
	if (n == 1) {
		if (outside >= 0) return lost ? VACANT : ONE;
		return has_multiple_bond(m, a) ? ONE : a->charge == 1 ? VACANT : CANNOT;
	}
	return (n - lost) % 2 ? ONE : TWO;
}

static bool in_large_rings_only(const struct nr_molecule *m, const struct nr_atom *a)
{
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		if (b->smallest && b->smallest <= 8) return false;
	}
	return true;
}

static bool takes_part(const struct nr_molecule *m, int32_t atom, enum donor d)
{
	const struct nr_atom *a = &m->atom[atom];
	if ((a->number > 18 && a->number != 34 && a->number != 52) || d == CANNOT) return false;
	/* oxygen and sulfur between single bonds do not carry a current around large rings */
	if ((a->number == 8 || a->number == 16) && d == TWO && in_large_rings_only(m, a)) return false;
	const int z = a->number - a->charge;
	if (nr_elements[a->number].valence[0] > 0 && z >= 0 && z < NR_ELEMENTS &&
		a->valence + a->implicit > nr_elements[z].valence[0]) return false;
	if (a->radicals && (a->number != 6 || a->charge)) return false;
	int32_t multiple = 0;
	for (int32_t i = 0; i < a->degree; i++) {
		const uint8_t order = nr_bond_of(m, a, i)->order;
		multiple += order == NR_BOND_DOUBLE || order == NR_BOND_TRIPLE;
	}
	return multiple < 2 || a->valence - a->degree <= 1;
}

/* ---- systems of rings ----------------------------------------------------------------------------------------------------- */

static void count(struct perception *p, const int32_t *system, int32_t n, bool bonds, int step)
{
	for (int32_t i = 0; i < n; i++) {
		const struct nr_ring *r = p->ring[system[i]];
		const int32_t *member = bonds ? r->bond : r->atom;
		for (int32_t j = 0; j < r->size; j++) p->times[member[j]] = (uint8_t)(step ? p->times[member[j]] + 1 : 0);
	}
}

/* Atoms of three rings lie inside and do not count. */
static bool huckel(struct perception *p, const int32_t *system, int32_t n)
{
	int32_t least = 0, most = 0, open = 0;
	count(p, system, n, false, 1);
	for (int32_t i = 0; i < n; i++) {
		const struct nr_ring *r = p->ring[system[i]];
		for (int32_t j = 0; j < r->size; j++) {
			const int32_t a = r->atom[j];
			if (p->times[a] == 1 || p->times[a] == 2) {
				least += p->donor[a] == TWO ? 2 : p->donor[a] >= ONE;
				most += p->donor[a] >= TWO ? 2 : p->donor[a] == ONE;
				open += p->donor[a] == ONE_OR_TWO;
			}
			p->times[a] = 0;
		}
	}
	if (open > 1) return false;             /* two dummy atoms of which nothing is known */
	if (most < 6) return most == 2;
	for (int32_t e = least; e <= most; e++)
		if (e >= 2 && (e - 2) % 4 == 0) return true;
	return false;
}

/* Bonds of one ring only become aromatic, the atoms all. */
static void mark(struct perception *p, const int32_t *system, int32_t n)
{
	struct nr_molecule *m = p->m;
	count(p, system, n, true, 1);
	for (int32_t i = 0; i < n; i++) {
		const struct nr_ring *r = p->ring[system[i]];
		for (int32_t j = 0; j < r->size; j++) {
			struct nr_bond *b = &m->bond[r->bond[j]];
			m->atom[r->atom[j]].aromatic = true;
			if (p->times[r->bond[j]] != 1) continue;
			b->aromatic = true;
			if (b->order == NR_BOND_SINGLE || b->order == NR_BOND_DOUBLE) b->order = NR_BOND_AROMATIC;
			p->done[r->bond[j]] = true;
		}
	}
	count(p, system, n, true, 0);
}

/* All connected systems of size rings that contain the first one and only later ones else: each is met once. The rings that may
 * still be added are a list that grows with every ring (S. Wernicke, Efficient detection of network motifs, 2006). */
struct growth { int32_t system[MOST_FUSED], size; };

static bool adjacent(const struct perception *p, int32_t a, int32_t b)
{
	for (int32_t i = p->first[a]; i < p->first[a + 1]; i++)
		if (p->near[i] == b) return true;
	return false;
}

/* Is r new to the rings of the system before the last, and no neighbour of theirs? */
static bool fresh(const struct perception *p, const struct growth *g, int32_t n, int32_t r)
{
	for (int32_t i = 0; i < n; i++)
		if (g->system[i] == r || adjacent(p, g->system[i], r)) return false;
	return true;
}

static void grow(struct perception *p, struct growth *g, int32_t n, const int32_t *open, int32_t opens)
{
	if (n == g->size) {
		p->tried++;
		if (huckel(p, g->system, n)) mark(p, g->system, n);
		return;
	}
	int32_t more[256];
	for (int32_t i = 0; i < opens && p->tried < MOST_SYSTEMS; i++) {
		const int32_t r = open[i];
		int32_t count_more = 0;
		for (int32_t j = i + 1; j < opens && count_more < 256; j++) more[count_more++] = open[j];
		for (int32_t j = p->first[r]; j < p->first[r + 1] && count_more < 256; j++)
			if (p->near[j] > g->system[0] && fresh(p, g, n, p->near[j])) more[count_more++] = p->near[j];
		g->system[n] = r;
		grow(p, g, n + 1, more, count_more);
	}
}

static bool all_done(const struct perception *p, int32_t group)
{
	for (int32_t r = 0; r < p->rings; r++)
		for (int32_t j = 0; p->group[r] == group && j < p->ring[r]->size; j++)
			if (!p->done[p->ring[r]->bond[j]]) return false;
	return true;
}

static void try_group(struct perception *p, int32_t group, int32_t members)
{
	for (int32_t size = 1; size <= MOST_FUSED && size <= members && !all_done(p, group); size++)
		for (int32_t r = 0; r < p->rings; r++) {
			if (p->group[r] != group) continue;
			struct growth g = { .system = { r }, .size = size };
			int32_t open[256], opens = 0;
			for (int32_t j = p->first[r]; j < p->first[r + 1] && opens < 256; j++)
				if (p->near[j] > r) open[opens++] = p->near[j];
			grow(p, &g, 1, open, opens);
		}
}

/* ---- rings ---------------------------------------------------------------------------------------------------------------- */

/* Rings that share exactly one bond; large ones are never fused. */
static int find_fused(struct perception *p, struct nr_error *err)
{
	const struct nr_molecule *m = p->m;
	const int32_t n = p->rings;
	if (n > MOST_RINGS)
		return nr_molecule_fail(m, m->atom[p->ring[0]->atom[0]].column, err,
			"too many rings that may be aromatic: %d", n);
	p->near = nr_arena_alloc(m->arena, ((size_t)n * (size_t)n + 1) * sizeof *p->near);
	if (!p->near) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	int32_t at = 0;
	for (int32_t i = 0; i < n; i++) {
		p->first[i] = at;
		for (int32_t x = 0; x < p->ring[i]->size; x++) p->times[p->ring[i]->bond[x]] = 1;
		for (int32_t j = 0; j < n; j++) {
			int32_t shared = 0;
			for (int32_t x = 0; j != i && x < p->ring[j]->size; x++) shared += p->times[p->ring[j]->bond[x]];
			if (shared == 1 && p->ring[i]->size <= LARGEST_RING && p->ring[j]->size <= LARGEST_RING) p->near[at++] = j;
		}
		for (int32_t x = 0; x < p->ring[i]->size; x++) p->times[p->ring[i]->bond[x]] = 0;
	}
	p->first[n] = at;
	return NR_OK;
}

static int32_t spread(struct perception *p, int32_t from, int32_t group, int32_t *stack)
{
	int32_t n = 0, members = 0;
	stack[n++] = from;
	p->group[from] = group;
	while (n) {
		const int32_t r = stack[--n];
		members++;
		for (int32_t i = p->first[r]; i < p->first[r + 1]; i++) {
			if (p->group[p->near[i]]) continue;
			p->group[p->near[i]] = group;
			stack[n++] = p->near[i];
		}
	}
	return members;
}

static void find_candidates(struct perception *p)
{
	struct nr_molecule *m = p->m;
	for (int32_t i = 0; i < m->rings; i++) {
		bool fit = true, dummies = true;
		for (int32_t j = 0; j < m->ring[i].size; j++) {
			const int32_t a = m->ring[i].atom[j];
			dummies &= !m->atom[a].number;
			fit &= takes_part(m, a, p->donor[a] = (uint8_t)donor_type(m, a));
		}
		if (fit && !dummies) p->ring[p->rings++] = &m->ring[i];
	}
}

int nr_aromaticity(struct nr_molecule *m, struct nr_error *err)
{
	const size_t n = (size_t)m->rings;
	struct perception p = { .m = m };
	if (!n) return NR_OK;
	p.donor = nr_arena_alloc(m->arena, (size_t)m->atoms);
	p.ring = nr_arena_alloc(m->arena, n * sizeof *p.ring);
	p.first = nr_arena_alloc(m->arena, (3 * n + 1) * sizeof *p.first);
	p.done = nr_arena_alloc(m->arena, (size_t)m->bonds * sizeof *p.done);
	p.times = nr_arena_alloc(m->arena, (size_t)(m->bonds > m->atoms ? m->bonds : m->atoms));
	if (!p.donor || !p.ring || !p.first || !p.done || !p.times)
		return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	p.group = p.first + n + 1;
	find_candidates(&p);
	if (find_fused(&p, err)) return err->code;
	for (int32_t r = 0, group = 0; r < p.rings; r++) {
		if (p.group[r]) continue;
		const int32_t members = spread(&p, r, ++group, p.group + n);
		try_group(&p, group, members);
	}
	return NR_OK;
}
