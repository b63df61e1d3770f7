/* See scaffold.h. Ends are taken off until none is left; what remains is named by colours that spread along its bonds (Weisfeiler and
 * Leman), whose sorted list is hashed. */
#include "chem/scaffold.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
	return (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
}

/* In what is left, how many bonds the atom has. */
static int32_t degree(const struct nr_molecule *m, const bool *left, int32_t atom)
{
	int32_t n = 0;
	for (int32_t i = 0; i < m->atom[atom].degree; i++) n += left[nr_bond_other(nr_bond_of(m, &m->atom[atom], i), atom)];
	return n;
}

static void take_off_ends(const struct nr_molecule *m, bool *left)
{
	for (bool again = true; again;) {
		again = false;
		for (int32_t i = 0; i < m->atoms; i++)
			if (left[i] && degree(m, left, i) < 2) left[i] = false, again = true;
	}
}

static void take_doubly_bonded(const struct nr_molecule *m, const bool *core, bool *left)
{
	for (int32_t i = 0; i < m->bonds; i++) {
		const struct nr_bond *b = &m->bond[i];
		if (b->kekule != 2 || core[b->from] == core[b->to]) continue;
		left[b->from] = left[b->to] = true;
	}
}

static int rising(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t around(const struct nr_molecule *m, const bool *left, const uint64_t *colour, int32_t atom)
{
	uint64_t sum = 0;                               /* the order of neighbours does not matter */
	for (int32_t i = 0; i < m->atom[atom].degree; i++) {
		const struct nr_bond *b = nr_bond_of(m, &m->atom[atom], i);
		const int32_t other = nr_bond_other(b, atom);
		if (left[other]) sum += mix(colour[other], b->aromatic ? 4 : b->kekule);
	}
	return mix(colour[atom], sum);
}

int nr_scaffold(const struct nr_molecule *m, struct nr_arena *arena, uint64_t *key, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms;
	bool *core = nr_arena_alloc(arena, n + 1), *left = nr_arena_alloc(arena, n + 1);
	uint64_t *colour = nr_arena_alloc(arena, (n + 1) * sizeof *colour), *next = nr_arena_alloc(arena, (n + 1) * sizeof *next);
	if (!core || !left || !colour || !next) return nr_fail(err, NR_EMEMORY, "cannot find the scaffold", NULL, "out of memory");
	memset(core, 1, n);
	take_off_ends(m, core);
	memcpy(left, core, n);
	take_doubly_bonded(m, core, left);
	int32_t count = 0;
	for (int32_t i = 0; i < m->atoms; i++) count += left[i], colour[i] = mix(m->atom[i].number, m->atom[i].aromatic);
	for (int32_t round = 0; round < count; round++) {
		for (int32_t i = 0; i < m->atoms; i++)
			if (left[i]) next[i] = around(m, left, colour, i);
		uint64_t *swap = colour;
		colour = next, next = swap;
	}
	int32_t k = 0;
	for (int32_t i = 0; i < m->atoms; i++)
		if (left[i]) next[k++] = colour[i];
	if (k) qsort(next, (size_t)k, sizeof *next, rising);
	*key = count ? (uint64_t)count : 0;
	for (int32_t i = 0; i < k; i++) *key = mix(*key, next[i]);
	return NR_OK;
}
