/* Lower case atoms to single and double bonds: every atom that lacks one bond must find a partner among its neighbours, which is
 * a perfect matching (J. Edmonds, Paths, trees, and flowers, 1965). A dummy atom may stay alone. */
#include <string.h>

#include "data/elements.h"
#include "data/molecule.h"

struct match {
	struct nr_molecule *m;
	bool *wants;                    /* (atoms): takes part */
	int32_t *with;                  /* (atoms): the bond to its partner; -1: none */
	int32_t *parent, *base, *queue; /* of one search: the bond back, the blossom's base */
	bool *outer, *seen, *blossom;
};

/* ---- who takes a double bond ---------------------------------------------------------------------------------------------- */

static bool takes_double(const struct nr_molecule *m, int32_t atom)
{
	const struct nr_atom *a = &m->atom[atom];
	const struct nr_element *e = &nr_elements[a->number];
	int32_t bonds = nr_all_hydrogens(a), ignored = 0;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const int32_t twice = nr_bond_twice(b, atom);
		if (b->aromatic && b->order != NR_BOND_TRIPLE) bonds++;
		else bonds += (twice + 1) / 2;
		ignored += !twice;
	}
	int32_t charge = a->charge;
	if (nr_element_early(a->number) || (a->number == 6 && charge > 0)) charge = -charge;
	int32_t valence = e->valence[0] + charge;
	const int32_t total = a->valence + a->implicit;
	for (int i = 1; total > valence && i < e->valences && e->valence[i] > 0; i++) valence = e->valence[i] + charge;
	if (a->degree + a->implicit - ignored + a->radicals >= valence) return false;
	return valence == bonds + 1 + a->radicals || (!a->radicals && a->fixed && valence == bonds + 2);
}

/* A dummy atom does if one of its rings has an aromatic atom of its own and not all its neighbours there are plain. */
static bool dummy_takes_double(const struct nr_molecule *m, int32_t atom, const int32_t *rings_of)
{
	const struct nr_atom *a = &m->atom[atom];
	int32_t fit = 0, plain = 0;
	for (int32_t r = 0; r < m->rings; r++) {
		bool mine = false, aromatic = false;
		for (int32_t i = 0; i < m->ring[r].size; i++) {
			const int32_t x = m->ring[r].atom[i];
			mine |= x == atom;
			aromatic |= rings_of[x] == 1 && nr_atom_like_aromatic(m, x);
		}
		fit += mine && aromatic;
	}
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const struct nr_atom *other = &m->atom[nr_bond_other(b, atom)];
		plain += b->in_ring && other->number && !other->aromatic;
	}
	return fit && plain < rings_of[atom];
}

/* ---- matching ------------------------------------------------------------------------------------------------------------- */

/* May the bond become double? */
static bool free_bond(const struct match *k, const struct nr_bond *b)
{
	const struct nr_molecule *m = k->m;
	return b->in_ring && k->wants[b->from] && k->wants[b->to] &&
		(b->aromatic || !m->atom[b->from].number || !m->atom[b->to].number);
}

/* Breadth first; each takes its first free neighbour. Nearly always that is all there is to do. */
static void greedy(struct match *k)
{
	struct nr_molecule *m = k->m;
	for (int32_t start = 0; start < m->atoms; start++) {
		int32_t head = 0, tail = 0;
		if (k->seen[start] || !m->atom[start].in_ring) continue;
		k->queue[tail++] = start;
		k->seen[start] = true;
		while (head < tail) {
			const int32_t a = k->queue[head++];
			for (int32_t i = 0; i < m->atom[a].degree; i++) {
				const int32_t bond = m->incident[m->atom[a].first + i], b = nr_bond_other(&m->bond[bond], a);
				if (m->atom[a].number && k->with[a] < 0 && k->with[b] < 0 && free_bond(k, &m->bond[bond]))
					k->with[a] = k->with[b] = bond;
			}
			for (int32_t i = m->atom[a].degree - 1; i >= 0; i--) {
				const struct nr_bond *bond = nr_bond_of(m, &m->atom[a], i);
				const int32_t b = nr_bond_other(bond, a);
				if (!bond->in_ring || k->seen[b]) continue;
				k->seen[b] = true;
				k->queue[tail++] = b;
			}
		}
	}
}

static int32_t partner(const struct match *k, int32_t a) { return nr_bond_other(&k->m->bond[k->with[a]], a); }
static int32_t above(const struct match *k, int32_t a) { return nr_bond_other(&k->m->bond[k->parent[a]], a); }

/* The base at which the alternating paths of two outer atoms meet. */
static int32_t meeting(struct match *k, int32_t a, int32_t b)
{
	memset(k->seen, 0, (size_t)k->m->atoms);
	for (;;) {
		a = k->base[a];
		k->seen[a] = true;
		if (k->with[a] < 0) break;
		a = above(k, partner(k, a));
	}
	for (;;) {
		b = k->base[b];
		if (k->seen[b]) return b;
		b = above(k, partner(k, b));
	}
}

static void mark_path(struct match *k, int32_t a, int32_t base, int32_t bond)
{
	while (k->base[a] != base) {
		const int32_t p = partner(k, a);
		k->blossom[k->base[a]] = k->blossom[k->base[p]] = true;
		k->parent[a] = bond;
		bond = k->parent[p];
		a = above(k, p);
	}
}

/* Shrinks an odd cycle; what lay at odd distance in it is reached anew. */
static void shrink(struct match *k, int32_t a, int32_t b, int32_t bond, int32_t *tail)
{
	const int32_t base = meeting(k, a, b);
	memset(k->blossom, 0, (size_t)k->m->atoms);
	mark_path(k, a, base, bond);
	mark_path(k, b, base, bond);
	for (int32_t i = 0; i < k->m->atoms; i++) {
		if (!k->blossom[k->base[i]]) continue;
		k->base[i] = base;
		if (k->outer[i]) continue;
		k->outer[i] = true;
		k->queue[(*tail)++] = i;
	}
}

/* Turns the bonds of the path that ends in a odd one. */
static void turn(struct match *k, int32_t a)
{
	while (a >= 0) {
		const int32_t bond = k->parent[a], up = above(k, a), next = k->with[up] < 0 ? -1 : partner(k, up);
		k->with[a] = k->with[up] = bond;
		a = next;
	}
}

static bool augment(struct match *k, int32_t root)
{
	struct nr_molecule *m = k->m;
	int32_t head = 0, tail = 0;
	for (int32_t i = 0; i < m->atoms; i++) {
		k->parent[i] = -1;
		k->base[i] = i;
		k->outer[i] = false;
	}
	k->outer[root] = true;
	k->queue[tail++] = root;
	while (head < tail) {
		const int32_t a = k->queue[head++];
		if (a != root && !m->atom[a].number) {          /* a dummy atom gives up its partner */
			const int32_t p = partner(k, a);
			k->with[a] = k->with[p] = -1;
			turn(k, p);
			return true;
		}
		for (int32_t i = 0; i < m->atom[a].degree; i++) {
			const int32_t bond = m->incident[m->atom[a].first + i], b = nr_bond_other(&m->bond[bond], a);
			if (!free_bond(k, &m->bond[bond]) || k->base[a] == k->base[b] || k->with[a] == bond) continue;
			if (b == root || (k->with[b] >= 0 && k->parent[partner(k, b)] >= 0)) {
				shrink(k, a, b, bond, &tail);
			} else if (k->parent[b] < 0) {
				k->parent[b] = bond;
				if (k->with[b] < 0) {
					turn(k, b);
					return true;
				}
				const int32_t p = partner(k, b);
				k->outer[p] = true;
				k->queue[tail++] = p;
			}
		}
	}
	return false;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static int choose(struct match *k, struct nr_error *err)
{
	struct nr_molecule *m = k->m;
	bool dummies = false;
	int32_t *rings_of = k->base;
	for (int32_t i = 0; i < m->atoms; i++) {
		const struct nr_atom *a = &m->atom[i];
		if (a->aromatic && !a->in_ring)
			return nr_molecule_fail(m, a->column, err, "aromatic %s is in no ring", nr_elements[a->number].symbol);
		k->wants[i] = a->number && a->in_ring && nr_atom_like_aromatic(m, i) && takes_double(m, i);
		dummies |= !a->number && a->in_ring;
	}
	for (int32_t r = 0; dummies && r < m->rings; r++)
		for (int32_t i = 0; i < m->ring[r].size; i++) rings_of[m->ring[r].atom[i]]++;
	for (int32_t i = 0; dummies && i < m->atoms; i++)
		if (!m->atom[i].number && m->atom[i].in_ring) k->wants[i] = dummy_takes_double(m, i, rings_of);
	return NR_OK;
}

static void apply(struct match *k)
{
	struct nr_molecule *m = k->m;
	for (int32_t i = 0; i < m->bonds; i++) {
		struct nr_bond *b = &m->bond[i];
		const bool inside = m->atom[b->from].in_ring || m->atom[b->to].in_ring;
		if (b->aromatic && inside && b->order != NR_BOND_TRIPLE) b->order = NR_BOND_SINGLE;
		b->aromatic = false;
	}
	for (int32_t i = 0; i < m->atoms; i++)
		if (k->with[i] >= 0) m->bond[k->with[i]].order = NR_BOND_DOUBLE;
	for (int32_t i = 0; i < m->atoms; i++) {
		struct nr_atom *a = &m->atom[i];
		const bool pyrrole = a->aromatic && (a->number == 7 || a->number == 15) && !a->charge && a->hydrogens == 1;
		a->aromatic = false;
		if (!pyrrole) continue;
		a->fixed = false;
		a->hydrogens = 0;
		nr_valence_update(m, i);
	}
}

int nr_kekulise(struct nr_molecule *m, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms;
	bool any = false;
	for (int32_t i = 0; i < m->bonds && !any; i++) any = m->bond[i].aromatic;
	for (int32_t i = 0; i < m->atoms && !any; i++) any = m->atom[i].aromatic;
	if (!any) return NR_OK;
	int32_t *numbers = nr_arena_alloc(m->arena, 4 * n * sizeof *numbers);
	bool *flags = nr_arena_alloc(m->arena, 4 * n * sizeof *flags);
	if (!numbers || !flags) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	struct match k = { .m = m, .with = numbers, .parent = numbers + n, .base = numbers + 2 * n, .queue = numbers + 3 * n,
		.wants = flags, .outer = flags + n, .seen = flags + 2 * n, .blossom = flags + 3 * n };
	if (choose(&k, err)) return err->code;
	memset(k.with, -1, n * sizeof *k.with);
	greedy(&k);
	for (int32_t i = 0; i < m->atoms; i++)
		if (k.wants[i] && m->atom[i].number && k.with[i] < 0 && !augment(&k, i)) {
			nr_molecule_fail(m, m->atom[i].column, err, "no place for the double bond of aromatic %s",
				nr_elements[m->atom[i].number].symbol);
			return nr_hint(err, "a lower case ring must have alternating double bonds; nitrogen may need its hydrogen: [nH]");
		}
	apply(&k);
	return NR_OK;
}
