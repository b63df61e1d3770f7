/* Ranks of the atoms after Cahn, Ingold and Prelog in the approximation that RDKit uses: an atom is ranked by itself, then by the
 * ranks of its neighbours, highest first and as often as twice the bond order, again and again until nothing changes.
 * P. Labute, An efficient algorithm for the determination of topological RS chirality, 1996. */
#include <stdlib.h>
#include <string.h>

#include "chem/molecule.h"

struct key { int64_t seed; int32_t rank, atom, n, *list; };

static int by_seed(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	return (a->seed > b->seed) - (a->seed < b->seed);
}

static int by_list(const void *x, const void *y)
{
	const struct key *a = x, *b = y;
	if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
	for (int32_t i = 0; i < a->n && i < b->n; i++)
		if (a->list[i] != b->list[i]) return a->list[i] < b->list[i] ? -1 : 1;
	return (a->n > b->n) - (a->n < b->n);
}

/* How often a neighbour counts. Double bonds to P with three or four neighbours are no double bonds here. */
static int32_t weight(const struct nr_molecule *m, const struct nr_bond *b, int32_t other)
{
	static const uint8_t twice[] = { [NR_BOND_ANY] = 0, [NR_BOND_SINGLE] = 2, [NR_BOND_DOUBLE] = 4, [NR_BOND_TRIPLE] = 6,
		[NR_BOND_QUADRUPLE] = 8, [NR_BOND_AROMATIC] = 3, [NR_BOND_DATIVE] = 2 };
	const struct nr_atom *o = &m->atom[other];
	return b->order == NR_BOND_DOUBLE && o->number == 15 && (o->degree == 3 || o->degree == 4) ? 1 : twice[b->order];
}

/* The ranks of the neighbours from 1, highest first, and a 0 for each hydrogen. */
static void neighbours(const struct nr_molecule *m, struct key *k, const int32_t *rank)
{
	const struct nr_atom *a = &m->atom[k->atom];
	k->n = 0;
	for (int32_t i = 0; i < a->degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, a, i);
		const int32_t other = nr_bond_other(b, k->atom), r = rank[other] + 1, w = weight(m, b, other);
		int32_t at = k->n;
		for (; at > 0 && k->list[at - 1] < r; at--) {}
		memmove(k->list + at + w, k->list + at, (size_t)(k->n - at) * sizeof *k->list);
		for (int32_t j = 0; j < w; j++) k->list[at + j] = r;
		k->n += w;
	}
	for (int32_t i = 0; i < nr_all_hydrogens(a); i++) k->list[k->n++] = 0;
}

/* Ranks from sorted keys; returns how many there are. */
static int32_t number(struct key *k, int32_t n, int32_t *rank, int (*order)(const void *, const void *))
{
	qsort(k, (size_t)n, sizeof *k, order);
	int32_t r = 0;
	for (int32_t i = 0; i < n; i++) {
		if (i && order(&k[i - 1], &k[i])) r++;
		rank[k[i].atom] = r;
	}
	for (int32_t i = 0; i < n; i++) k[i].rank = rank[k[i].atom];
	return r + 1;
}

int nr_cip_ranks(const struct nr_molecule *m, const int64_t *seed, int32_t *rank, struct nr_error *err)
{
	const int32_t n = m->atoms;
	size_t room = 0;
	for (int32_t i = 0; i < n; i++) room += 8 * (size_t)m->atom[i].degree + (size_t)nr_all_hydrogens(&m->atom[i]);
	struct key *k = nr_arena_alloc(m->arena, (size_t)n * sizeof *k);
	int32_t *list = nr_arena_alloc(m->arena, (room + 1) * sizeof *list);
	if (!k || !list) return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory");
	for (int32_t i = 0; i < n; i++) {
		k[i] = (struct key){ .seed = seed[i], .atom = i, .list = list };
		list += 8 * (size_t)m->atom[i].degree + (size_t)nr_all_hydrogens(&m->atom[i]);
	}
	int32_t ranks = number(k, n, rank, by_seed), before = -1;
	for (int32_t round = 0; ranks < n && round < n / 2 + 1 && before < ranks; round++) {
		for (int32_t i = 0; i < n; i++) neighbours(m, &k[i], rank);
		before = ranks;
		ranks = number(k, n, rank, by_list);
	}
	return NR_OK;
}
