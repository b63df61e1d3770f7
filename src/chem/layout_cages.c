/* Cages: ring systems whose bridges would cross in the plane. See layout_rings.c. */
#include <math.h>

#include "chem/layout_rings.h"

/* Do every ring and some other one share more than a bond? */
static bool is_cage(const struct nr_ring_layout *s, int32_t system)
{
	for (int32_t i = 0; i < s->m->rings; i++) {
		bool bridged = false;
		const struct nr_ring *a = &s->m->ring[i];
		if (s->system[a->atom[0]] != system) continue;
		for (int32_t k = 0; k < s->m->rings; k++) {
			const struct nr_ring *b = &s->m->ring[k];
			bridged |= k != i && s->system[b->atom[0]] == system &&
				nr_rings_shared(s, &(struct nr_cycle){ .size = a->size, .atom = a->atom },
					&(struct nr_cycle){ .size = b->size, .atom = b->atom }) > 2;
		}
		if (!bridged) return false;
	}
	return true;
}

/* How bad it looks: atoms on each other and bonds that cross, then how far bonds are from their length. */
static double badness(const struct nr_ring_layout *s, const struct nr_place *at, int32_t system, const int32_t *atom, int32_t count)
{
	const struct nr_molecule *m = s->m;
	double sum = 0;
	for (int32_t i = 0; i < count; i++)
		for (int32_t k = 0; k < i; k++) sum += 10 * (nr_place_length(nr_place_from(at[atom[i]], at[atom[k]])) < .55);
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_bond *p = &m->bond[i];
		if (!p->in_ring || s->system[p->from] != system) continue;
		sum += fabs(log(nr_place_length(nr_place_from(at[p->from], at[p->to])) + 1e-9));
		for (int32_t k = 0; k < i; k++)
			if (m->bond[k].in_ring && s->system[m->bond[k].from] == system) sum += 10 * nr_layout_crossed(m, at, i, k);
	}
	return sum;
}

/* Neighbours of an atom within its system. */
static int32_t inside(const struct nr_ring_layout *s, int32_t atom, int32_t *out, int32_t most)
{
	int32_t n = 0;
	for (int32_t k = 0; k < s->m->atom[atom].degree && n < most; k++) {
		const int32_t other = nr_bond_other(nr_bond_of(s->m, &s->m->atom[atom], k), atom);
		if (s->system[other] == s->system[atom]) out[n++] = other;
	}
	return n;
}

/* W. T. Tutte, How to draw a graph, 1963: a ring as the outline, every other atom in the middle of its neighbours. Those of two neighbours
 * are then moved off the line between them, for a corner is all that is seen of a carbon. Returns how many atoms with
 * substituents lie inside. */
static int32_t place_around(const struct nr_ring_layout *s, const struct nr_cycle *outline, const int32_t *atom, int32_t count,
	struct nr_place *at)
{
	const double r = 1.4 * nr_ring_radius(outline->size), bend = .25;
	int32_t near[8], hidden = 0;
	for (int32_t i = 0; i < count; i++) at[atom[i]] = (struct nr_place){ 0, 0 };
	for (int32_t i = 0; i < outline->size; i++) {
		at[outline->atom[i]] = nr_place_turned((struct nr_place){ 0, r }, -2 * M_PI * i / outline->size);
		s->mark[outline->atom[i]] = 1;
	}
	for (int step = 0; step < 200; step++)
		for (int32_t i = 0; i < count; i++) {
			if (s->mark[atom[i]]) continue;
			struct nr_place sum = { 0, 0 };
			const int32_t n = inside(s, atom[i], near, 8);
			for (int32_t k = 0; k < n; k++) sum = nr_place_sum(sum, nr_place_times(at[near[k]], 1.0 / n));
			at[atom[i]] = sum;
		}
	for (int32_t i = 0; i < count; i++) {
		if (s->mark[atom[i]]) continue;
		const int32_t n = inside(s, atom[i], near, 8);
		hidden += s->m->atom[atom[i]].degree > n;
		if (n != 2) continue;
		const bool first = nr_place_length(at[near[0]]) < nr_place_length(at[near[1]]);         /* from the inner one on */
		const struct nr_place along = nr_place_unit(nr_place_from(at[near[!first]], at[near[first]]));
		at[atom[i]] = nr_place_sum(at[atom[i]], (struct nr_place){ -bend * along.y, bend * along.x });
	}
	for (int32_t i = 0; i < outline->size; i++) s->mark[outline->atom[i]] = 0;
	return hidden;
}

static int32_t independent_rings(const struct nr_ring_layout *s, int32_t system, int32_t count)
{
	int32_t bonds = 0;
	for (int32_t i = 0; i < s->m->bonds; i++) bonds += s->m->bond[i].in_ring && s->system[s->m->bond[i].from] == system;
	return bonds - count + 1;
}

/* Atoms with substituents that lie on no outline. */
static int32_t hidden_bridges(const struct nr_ring_layout *s, int32_t system, const int32_t *atom, int32_t count)
{
	int32_t n = 0, near[8];
	for (int32_t i = 0; i < count; i++) {
		bool outline = false;
		for (int32_t k = 0; k < s->cycles && !outline; k++)
			for (int32_t j = 0; j < s->cycle[k].size && s->cycle[k].system == system && !s->cycle[k].dropped; j++)
				outline |= s->cycle[k].atom[j] == atom[i];
		n += !outline && s->m->atom[atom[i]].degree > inside(s, atom[i], near, 8);
	}
	return n;
}

void nr_rings_open_cage(struct nr_ring_layout *s, int32_t system, const int32_t *atom, int32_t count)
{
	enum { MOST_ATOMS = 40, MOST_RINGS = 12 };      /* the work grows with the rings and the square of the bonds */
	const int32_t independent = independent_rings(s, system, count);
	if (count > MOST_ATOMS || independent < 3 || independent > MOST_RINGS || !is_cage(s, system)) return;
	double best = 3 * hidden_bridges(s, system, atom, count) + badness(s, s->at, system, atom, count);
	struct nr_place *at = nr_arena_alloc(s->arena, (size_t)s->m->atoms * sizeof *at);
	if (!at) return;
	for (int32_t i = 0; i < s->m->rings; i++) {
		struct nr_cycle c = { .size = s->m->ring[i].size, .atom = nr_arena_alloc(s->arena,
			(size_t)s->m->ring[i].size * sizeof *c.atom) };
		if (!c.atom || s->system[s->m->ring[i].atom[0]] != system ||
			!nr_rings_walk(s->m, &s->m->ring[i], s->mark, c.atom)) continue;
		const double now = 3 * place_around(s, &c, atom, count, at) + badness(s, at, system, atom, count);
		if (now >= best - 1e-9) continue;
		best = now;
		for (int32_t k = 0; k < count; k++) s->at[atom[k]] = at[atom[k]];
	}
}
