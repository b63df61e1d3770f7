/* The cycles of a ring system, in walking order, and the outlines of bridged ones: see layout_rings.c. */
#include <math.h>
#include <string.h>

#include "chem/layout_rings.h"

double nr_ring_radius(int32_t n) { return .5 / sin(M_PI / n); }

/* The bonds of one closed walk, as its atoms in order; false: they are not one cycle. room: a flag for each bond. */
static bool walk(const struct nr_molecule *m, const int32_t *bond, int32_t n, int32_t *atom)
{
	bool used[64] = { false };
	if (n < 3 || n > 64) return false;
	int32_t now = m->bond[bond[0]].to;
	used[0] = true;
	atom[0] = m->bond[bond[0]].from;
	for (int32_t k = 1; k < n; k++) {
		int32_t next = -1;
		for (int32_t i = 0; i < n; i++) {
			const struct nr_bond *b = &m->bond[bond[i]];
			if (used[i] || (b->from != now && b->to != now)) continue;
			if (next >= 0) return false;
			next = i;
		}
		if (next < 0) return false;
		used[next] = true;
		atom[k] = now;
		now = nr_bond_other(&m->bond[bond[next]], now);
	}
	return now == atom[0];
}

int32_t nr_rings_bond(const struct nr_molecule *m, int32_t a, int32_t b)
{
	for (int32_t i = 0; i < m->atom[a].degree; i++) {
		const int32_t bond = m->incident[m->atom[a].first + i];
		if (nr_bond_other(&m->bond[bond], a) == b) return bond;
	}
	return -1;
}

/* Large rings are walked atom by atom, for they have more bonds than walk has room for. */
bool nr_rings_walk(const struct nr_molecule *m, const struct nr_ring *r, int32_t *mark, int32_t *atom)
{
	for (int32_t i = 0; i < r->size; i++) mark[r->bond[i]] = 1;
	int32_t now = r->atom[0], n = 0;
	for (bool more = true; more && n < r->size;) {
		atom[n++] = now;
		more = false;
		for (int32_t i = 0; i < m->atom[now].degree && !more; i++) {
			const int32_t b = m->incident[m->atom[now].first + i];
			if (mark[b] != 1) continue;
			mark[b] = 0;
			now = nr_bond_other(&m->bond[b], now);
			more = true;
		}
	}
	for (int32_t i = 0; i < r->size; i++) mark[r->bond[i]] = 0;
	return n == r->size && now == r->atom[0];
}

int32_t nr_rings_shared(const struct nr_ring_layout *s, const struct nr_cycle *a, const struct nr_cycle *b)
{
	int32_t n = 0;
	for (int32_t i = 0; i < a->size; i++) s->mark[a->atom[i]] = 1;
	for (int32_t i = 0; i < b->size; i++) n += s->mark[b->atom[i]];
	for (int32_t i = 0; i < a->size; i++) s->mark[a->atom[i]] = 0;
	return n;
}

/* The outline of two rings becomes the first of them; false: their outline is no cycle. */
static bool merge(const struct nr_ring_layout *s, struct nr_cycle *a, const struct nr_cycle *b)
{
	int32_t bond[64], n = 0, atom[64];
	const struct nr_cycle *of[2] = { a, b };
	for (int k = 0; k < 2; k++)
		for (int32_t i = 0; i < of[k]->size; i++) {
			const int32_t one = nr_rings_bond(s->m, of[k]->atom[i], of[k]->atom[(i + 1) % of[k]->size]);
			int32_t at = 0;
			while (at < n && bond[at] != one) at++;
			if (at < n) bond[at] = bond[--n];
			else if (n == 64) return false;
			else bond[n++] = one;
		}
	if (!walk(s->m, bond, n, atom)) return false;
	int32_t *kept = nr_arena_alloc(s->arena, (size_t)n * sizeof *kept);
	if (!kept) return false;
	memcpy(kept, atom, (size_t)n * sizeof *kept);
	a->atom = kept;
	a->size = n;
	return true;
}

void nr_rings_merge(const struct nr_ring_layout *s)
{
	for (int32_t i = 0; i < s->cycles; i++)
		for (int32_t k = i + 1; k < s->cycles && !s->cycle[i].dropped; k++) {
			struct nr_cycle *a = &s->cycle[i], *b = &s->cycle[k];
			if (b->dropped || a->system != b->system || nr_rings_shared(s, a, b) < 3) continue;
			b->dropped = true;
			if (merge(s, a, b)) k = i;              /* the outline may share more with the others */
		}
}
