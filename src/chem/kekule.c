/* Lower case atoms to single and double bonds: every atom that lacks one bond must find a partner among its neighbours. The search is
 * RDKit's, system of rings by system of rings, for of two possible forms the same one must come out, and where it gives up (after a
 * hundred steps back) the molecule is refused there, too. A dummy atom may stay alone. */
#include <string.h>

#include "chem/elements.h"
#include "chem/molecule.h"

enum { MOST_BACK = 100, MOST_DUMMIES = 16, MOST_WORK = 50000000 };     /* work: atoms looked at, for one system of rings */

struct search {
	struct nr_molecule *m;
	bool *wants;                    /* (atoms) lacks a double bond */
	int32_t *with;                  /* (atoms) the double bond that it was given first; -1: none */
	int32_t *system, *owner;        /* (rings) one ring for all that share bonds; (bonds) a ring that it is in */
	int32_t *atom, atoms;           /* the system at hand */
	bool *inside, *settled, *waits; /* (atoms) in the system, done with, in the queue */
	int32_t *queue, head, queued;
	int32_t *path, steps;           /* settled atoms in order */
	int32_t *made;                  /* (atoms) the double bond made when it was settled; -1: none */
	int32_t *option, *options, *tried;      /* bonds that it could be, beside incident; (atoms) how many, and how many were tried */
	int32_t *choice, choices;       /* settled atoms with further options */
	int32_t *dummy, stuck;
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

/* A dummy atom does if one of its rings has an aromatic atom of its own and fewer of the neighbours before it than rings are plain. */
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
		const int32_t other = nr_bond_other(b, atom);
		plain += b->in_ring && other < atom && m->atom[other].number && !nr_atom_like_aromatic(m, other);
	}
	return fit && plain < rings_of[atom];
}

/* ---- search --------------------------------------------------------------------------------------------------------------- */

/* May the bond become double? */
static bool free_bond(const struct search *k, const struct nr_bond *b)
{
	return k->wants[b->from] && k->wants[b->to] && (b->aromatic || !k->m->atom[b->from].number || !k->m->atom[b->to].number);
}

static void push_back(struct search *k, int32_t atom)
{
	k->queue[(k->head + k->queued++) % k->atoms] = atom;
	k->waits[atom] = true;
}

static void push_front(struct search *k, int32_t atom)
{
	k->head = (k->head + k->atoms - 1) % k->atoms;
	k->queue[k->head] = atom;
	k->queued++;
	k->waits[atom] = true;
}

/* The next atom to settle: that which waits longest, else the first of the list; -1: all are settled. */
static int32_t next_atom(struct search *k)
{
	if (k->queued) {
		const int32_t a = k->queue[k->head];
		k->head = (k->head + 1) % k->atoms;
		k->queued--;
		k->waits[a] = false;
		return a;
	}
	for (int32_t i = 0; i < k->atoms; i++)
		if (!k->settled[k->atom[i]]) return k->atom[i];
	return -1;
}

/* The neighbours to go on with and those that could share the double bond, by their numbers. */
static void look_around(struct search *k, int32_t atom)
{
	const struct nr_molecule *m = k->m;
	const struct nr_atom *a = &m->atom[atom];
	int32_t *bond = k->option + a->first, n = 0, free = 0;
	for (int32_t i = 0; i < a->degree; i++) {
		const int32_t fresh = m->incident[a->first + i], b = nr_bond_other(&m->bond[fresh], atom);
		if (!k->inside[b] || k->settled[b]) continue;
		int32_t at = n++;
		for (; at > 0 && nr_bond_other(&m->bond[bond[at - 1]], atom) > b; at--) bond[at] = bond[at - 1];
		bond[at] = fresh;
	}
	for (int32_t i = 0; i < n; i++) {
		const int32_t b = nr_bond_other(&m->bond[bond[i]], atom);
		if (!k->waits[b]) push_back(k, b);
	}
	for (int32_t i = 0; i < n; i++)
		if (free_bond(k, &m->bond[bond[i]])) bond[free++] = bond[i];
	k->options[atom] = free;
	k->tried[atom] = 0;
}

static void take_option(struct search *k, int32_t atom)
{
	const struct nr_atom *a = &k->m->atom[atom];
	const bool again = k->choices && k->choice[k->choices - 1] == atom;
	const int32_t bond = k->option[a->first + k->tried[atom]++];
	k->made[atom] = bond;
	k->wants[k->m->bond[bond].from] = k->wants[k->m->bond[bond].to] = false;
	if (k->tried[atom] == k->options[atom]) k->choices -= again;
	else if (!again) k->choice[k->choices++] = atom;
}

static void undo(struct search *k, int32_t atom)
{
	const int32_t bond = k->made[atom];
	k->settled[atom] = false;
	k->made[atom] = -1;
	if (bond >= 0) k->wants[k->m->bond[bond].from] = k->wants[k->m->bond[bond].to] = true;
}

/* Back to the last atom that had a choice; what was settled since waits again, in the same order. */
static void go_back(struct search *k)
{
	const int32_t to = k->choice[k->choices - 1];
	for (int32_t a = -1; a != to;) {
		a = k->path[--k->steps];
		undo(k, a);
		push_front(k, a);
	}
}

/* Breadth first; each atom shares its double bond with its first free neighbour, and choices are taken back where none is left. */
static bool search(struct search *k)
{
	k->head = k->queued = k->steps = k->choices = 0;
	for (int32_t i = 0; i < k->atoms; i++) {
		k->made[k->atom[i]] = -1;
		k->waits[k->atom[i]] = false;
	}
	for (int32_t a, back = 0; (a = next_atom(k)) >= 0;) {
		k->settled[a] = true;
		k->path[k->steps++] = a;
		if (!k->choices || k->choice[k->choices - 1] != a) look_around(k, a);
		if (!k->wants[a]) continue;
		if (k->tried[a] < k->options[a]) {
			take_option(k, a);
		} else if (!k->m->atom[a].number) {
			continue;                       /* a dummy atom may stay without */
		} else if (k->choices && back++ < MOST_BACK) {
			go_back(k);
		} else {
			k->stuck = a;
			while (k->steps) undo(k, k->path[--k->steps]);
			return false;
		}
	}
	return true;
}

/* Dummy atoms that must stay without: the first, the second, both ... */
static bool search_without(struct search *k)
{
	int32_t n = 0;
	for (int32_t i = 0; i < k->atoms; i++)
		if (!k->m->atom[k->atom[i]].number && k->wants[k->atom[i]]) k->choice[n++] = k->atom[i];
	if (!n || n > MOST_DUMMIES) return false;
	memcpy(k->dummy, k->choice, (size_t)n * sizeof *k->dummy);
	for (uint32_t off = 1; off < 1u << n && (int64_t)off * k->atoms < MOST_WORK; off++) {
		for (int32_t i = 0; i < n; i++) k->wants[k->dummy[i]] = !(off >> i & 1);
		for (int32_t i = 0; i < k->atoms; i++) k->settled[k->atom[i]] = false;
		if (search(k)) return true;
	}
	return false;
}

/* ---- systems of rings ----------------------------------------------------------------------------------------------------- */

static int32_t system_of(struct search *k, int32_t ring)
{
	while (k->system[ring] != ring) ring = k->system[ring] = k->system[k->system[ring]];
	return ring;
}

/* Rings that share bonds belong together; those of dummy atoms alone do not count. */
static void find_systems(struct search *k)
{
	const struct nr_molecule *m = k->m;
	memset(k->owner, -1, (size_t)m->bonds * sizeof *k->owner);
	for (int32_t r = 0; r < m->rings; r++) {
		bool dummies = true;
		for (int32_t i = 0; i < m->ring[r].size; i++) dummies &= !m->atom[m->ring[r].atom[i]].number;
		k->system[r] = dummies ? -1 : r;
		for (int32_t i = 0; !dummies && i < m->ring[r].size; i++) {
			int32_t *owner = &k->owner[m->ring[r].bond[i]];
			if (*owner >= 0) k->system[system_of(k, r)] = system_of(k, *owner);
			*owner = r;
		}
	}
}

static void collect(struct search *k, int32_t system)
{
	const struct nr_molecule *m = k->m;
	memset(k->inside, 0, (size_t)m->atoms);
	for (int32_t r = 0; r < m->rings; r++) {
		if (k->system[r] < 0 || system_of(k, r) != system) continue;
		for (int32_t i = 0; i < m->ring[r].size; i++) k->inside[m->ring[r].atom[i]] = true;
	}
	k->atoms = 0;
	for (int32_t a = 0; a < m->atoms; a++)
		if (k->inside[a]) k->atom[k->atoms++] = a;
}

static int solve(struct search *k, struct nr_error *err)
{
	struct nr_molecule *m = k->m;
	find_systems(k);
	for (int32_t r = 0; r < m->rings; r++) {
		if (k->system[r] != r) continue;
		collect(k, r);
		for (int32_t i = 0; i < k->atoms; i++) {
			const int32_t a = k->atom[i];
			k->settled[a] = m->atom[a].number ? !nr_atom_like_aromatic(m, a) : !k->wants[a];
		}
		if (!search(k) && !search_without(k)) {
			nr_molecule_fail(m, m->atom[k->stuck].column, err, "no place for the double bond of aromatic %s",
				nr_elements[m->atom[k->stuck].number].symbol);
			return nr_hint(err, "a lower case ring must have alternating double bonds; nitrogen may need its hydrogen: [nH]");
		}
		for (int32_t i = 0; i < k->atoms; i++)
			if (k->made[k->atom[i]] >= 0) k->with[k->atom[i]] = k->made[k->atom[i]];
	}
	return NR_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------------ */

static int choose(struct search *k, struct nr_error *err)
{
	struct nr_molecule *m = k->m;
	bool dummies = false;
	int32_t *rings_of = k->path;
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

static void apply(struct search *k)
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
	int32_t *numbers = nr_arena_alloc(m->arena, (9 * n + 3 * (size_t)m->bonds + (size_t)m->rings) * sizeof *numbers);
	bool *flags = nr_arena_alloc(m->arena, 4 * n * sizeof *flags);
	if (!numbers || !flags) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	struct search k = { .m = m };
	int32_t **const lists[] = { &k.with, &k.atom, &k.queue, &k.path, &k.made, &k.options, &k.tried, &k.choice, &k.dummy, &k.option };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) *lists[i] = numbers + i * n;
	k.owner = k.option + 2 * m->bonds;
	k.system = k.owner + m->bonds;
	bool **const marks[] = { &k.wants, &k.inside, &k.settled, &k.waits };
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) *marks[i] = flags + i * n;
	if (choose(&k, err)) return err->code;
	memset(k.with, -1, n * sizeof *k.with);
	if (solve(&k, err)) return err->code;
	apply(&k);
	return NR_OK;
}
