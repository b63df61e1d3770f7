/* The rings of a molecule: all relevant cycles, those that are no sum of shorter ones. Candidates are Horton's (a shortest path to
 * either end of an edge, and the edge), block by block; Gaussian elimination over GF(2) sorts out the rest.
 * J. D. Horton, A polynomial-time algorithm to find the shortest cycle basis of a graph, 1987; P. Vismara, 1997. */
#include <stdlib.h>
#include <string.h>

#include "chem/molecule.h"

enum { MOST_CANDIDATES = 100000 };

/* One block: a maximal part that no single atom cuts in two. */
struct block {
	struct nr_molecule *m;
	int32_t atoms, edges, words;
	int32_t *atom, *bond;                   /* of the molecule, by local number */
	int32_t *first, *near;                  /* local: near[first[a] .. first[a + 1]) are pairs (neighbour, edge) */
	int32_t *depth, *parent, *via, *queue;  /* of the search from one atom */
	struct candidate *list;
	int64_t candidates;
	uint64_t *basis;                        /* (rank, words), each with a leading bit of its own */
	int32_t *pivot, rank;
};
struct candidate { int32_t size; uint64_t hash, *edges; };

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot read molecule", NULL, "out of memory"); }
static void set_bit(uint64_t *w, int32_t i) { w[i / 64] |= (uint64_t)1 << (i % 64); }
static bool bit(const uint64_t *w, int32_t i) { return w[i / 64] >> (i % 64) & 1; }

/* ---- candidates ----------------------------------------------------------------------------------------------------------- */

static void search(struct block *k, int32_t root)
{
	int32_t head = 0, tail = 0;
	memset(k->depth, -1, (size_t)k->atoms * sizeof *k->depth);
	k->depth[root] = 0;
	k->parent[root] = k->via[root] = -1;
	k->queue[tail++] = root;
	while (head < tail) {
		const int32_t a = k->queue[head++];
		for (int32_t i = k->first[a]; i < k->first[a + 1]; i++) {
			const int32_t b = k->near[2 * i];
			if (k->depth[b] >= 0) continue;
			k->depth[b] = k->depth[a] + 1;
			k->parent[b] = a;
			k->via[b] = k->near[2 * i + 1];
			k->queue[tail++] = b;
		}
	}
}

/* Do the two paths to the root meet only there? */
static bool apart(const struct block *k, int32_t a, int32_t b)
{
	while (a != b) {
		if (k->depth[a] >= k->depth[b]) a = k->parent[a];
		else b = k->parent[b];
	}
	return k->depth[a] == 0;
}

static int add_candidate(struct block *k, int32_t a, int32_t b, int32_t edge, struct nr_error *err)
{
	struct candidate *c = &k->list[k->candidates];
	c->edges = nr_arena_alloc(k->m->arena, (size_t)k->words * sizeof *c->edges);
	if (!c->edges) return out_of_memory(err);
	set_bit(c->edges, edge);
	c->size = k->depth[a] + k->depth[b] + 1;
	const int32_t ends[2] = { a, b };
	for (int i = 0; i < 2; i++)
		for (int32_t x = ends[i]; k->parent[x] >= 0; x = k->parent[x]) set_bit(c->edges, k->via[x]);
	for (int32_t i = 0; i < k->words; i++) {
		c->hash = (c->hash ^ c->edges[i]) * 0x9e3779b97f4a7c15u;
		c->hash ^= c->hash >> 29;
	}
	k->candidates++;
	return NR_OK;
}

static int find_candidates(struct block *k, struct nr_error *err)
{
	for (int32_t root = 0; root < k->atoms; root++) {
		search(k, root);
		for (int32_t a = 0; a < k->atoms; a++)
			for (int32_t i = k->first[a]; i < k->first[a + 1]; i++) {
				const int32_t b = k->near[2 * i], edge = k->near[2 * i + 1];
				/* edges outside of the tree whose two paths part at the root; each ring is met from several roots */
				if (a > b || k->via[a] == edge || k->via[b] == edge || !apart(k, a, b)) continue;
				if (add_candidate(k, a, b, edge, err)) return err->code;
			}
	}
	return NR_OK;
}

static int by_size(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	return a->size != b->size ? (a->size > b->size) - (a->size < b->size) : (a->hash > b->hash) - (a->hash < b->hash);
}

/* ---- which of them count -------------------------------------------------------------------------------------------------- */

static int32_t lead(const uint64_t *w, int32_t words)
{
	for (int32_t i = 0; i < words; i++)
		if (w[i]) return i * 64 + __builtin_ctzll(w[i]);
	return -1;
}

/* Subtracts the first rank rows of the basis; returns the leading bit of what is left, -1: nothing. */
static int32_t reduce(const struct block *k, uint64_t *w, int32_t rank)
{
	for (int32_t r = 0; r < rank; r++)
		if (bit(w, k->pivot[r]))
			for (int32_t i = 0; i < k->words; i++) w[i] ^= k->basis[(int64_t)r * k->words + i];
	return lead(w, k->words);
}

static int keep(struct block *k, const struct candidate *c, struct nr_error *err)
{
	struct nr_molecule *m = k->m;
	if (m->rings == m->ring_room) {
		struct nr_ring *wider = nr_arena_alloc(m->arena, 2 * (size_t)m->ring_room * sizeof *wider);
		if (!wider) return out_of_memory(err);
		memcpy(wider, m->ring, (size_t)m->rings * sizeof *wider);
		m->ring = wider;
		m->ring_room *= 2;
	}
	struct nr_ring *r = &m->ring[m->rings];
	r->size = c->size;
	r->bond = nr_arena_alloc(m->arena, (size_t)c->size * sizeof *r->bond);
	r->atom = nr_arena_alloc(m->arena, (size_t)c->size * sizeof *r->atom);
	if (!r->bond || !r->atom) return out_of_memory(err);
	int32_t bonds = 0, atoms = 0;
	for (int32_t e = 0; e < k->edges && bonds < c->size; e++)
		if (bit(c->edges, e)) r->bond[bonds++] = k->bond[e];
	for (int32_t i = 0; i < c->size; i++) {
		const int32_t ends[2] = { m->bond[r->bond[i]].from, m->bond[r->bond[i]].to };
		for (int j = 0; j < 2; j++) {
			bool there = false;
			for (int32_t x = 0; x < atoms; x++) there |= r->atom[x] == ends[j];
			if (!there && atoms < c->size) r->atom[atoms++] = ends[j];
		}
		struct nr_bond *b = &m->bond[r->bond[i]];
		const uint8_t size = c->size < 255 ? (uint8_t)c->size : 255;
		if (!b->smallest || size < b->smallest) b->smallest = size;
	}
	m->rings++;
	return NR_OK;
}

/* One size after the other: what shorter rings cannot sum up to is kept, also when equally long ones could. */
static int keep_relevant(struct block *k, struct nr_error *err)
{
	const int32_t full = k->edges - k->atoms + 1;
	uint64_t *w = nr_arena_alloc(k->m->arena, (size_t)k->words * sizeof *w);
	k->basis = nr_arena_alloc(k->m->arena, (size_t)full * (size_t)k->words * sizeof *k->basis);
	k->pivot = nr_arena_alloc(k->m->arena, (size_t)full * sizeof *k->pivot);
	if (!w || !k->basis || !k->pivot) return out_of_memory(err);
	for (int64_t i = 0; i < k->candidates && k->rank < full;) {
		const int32_t shorter = k->rank, size = k->list[i].size;
		const int64_t class_start = i;
		for (; i < k->candidates && k->list[i].size == size; i++) {
			if (i > class_start && k->list[i].hash == k->list[i - 1].hash) continue;        /* the same from another atom */
			memcpy(w, k->list[i].edges, (size_t)k->words * sizeof *w);
			if (reduce(k, w, shorter) < 0) continue;
			if (keep(k, &k->list[i], err)) return err->code;
			const int32_t at = reduce(k, w, k->rank);
			if (at < 0) continue;
			memcpy(k->basis + (int64_t)k->rank * k->words, w, (size_t)k->words * sizeof *w);
			k->pivot[k->rank++] = at;
		}
	}
	return NR_OK;
}

/* ---- blocks --------------------------------------------------------------------------------------------------------------- */

struct walk {
	struct nr_molecule *m;
	int32_t *entered, *low, *from, *next;   /* (atoms): time, earliest time in reach, bond it was entered by, place in its list */
	int32_t *path, depth;                   /* atoms */
	int32_t *edge, edges, time;             /* bonds not yet in a block */
	int32_t *local, *spare;                 /* (atoms), (bonds): for building a block */
};

static int block_list(struct block *k, struct nr_error *err)
{
	struct nr_arena *arena = k->m->arena;
	const size_t n = (size_t)k->atoms;
	k->words = (k->edges + 63) / 64;
	k->first = nr_arena_alloc(arena, (n + 1) * sizeof *k->first);
	k->near = nr_arena_alloc(arena, 4 * (size_t)k->edges * sizeof *k->near);
	k->depth = nr_arena_alloc(arena, 4 * n * sizeof *k->depth);
	k->list = nr_arena_alloc(arena, n * (size_t)(k->edges - k->atoms + 1) * sizeof *k->list);
	if (!k->first || !k->near || !k->depth || !k->list) return out_of_memory(err);
	k->parent = k->depth + n;
	k->via = k->parent + n;
	k->queue = k->via + n;
	return NR_OK;
}

/* The local graph; local[a] is the number of atom a in the block. */
static void block_graph(struct block *k, const int32_t *local)
{
	const struct nr_molecule *m = k->m;
	for (int32_t e = 0; e < k->edges; e++) {
		k->first[local[m->bond[k->bond[e]].from] + 1]++;
		k->first[local[m->bond[k->bond[e]].to] + 1]++;
	}
	for (int32_t a = 0; a < k->atoms; a++) k->first[a + 1] += k->first[a];
	memcpy(k->queue, k->first, (size_t)k->atoms * sizeof *k->queue);
	for (int32_t e = 0; e < k->edges; e++) {
		const int32_t ends[2] = { local[m->bond[k->bond[e]].from], local[m->bond[k->bond[e]].to] };
		for (int i = 0; i < 2; i++) {
			const int32_t at = k->queue[ends[i]]++;
			k->near[2 * at] = ends[1 - i];
			k->near[2 * at + 1] = e;
		}
	}
}

/* The bonds edge[from ..] are a block. */
static int block_rings(struct walk *w, int32_t from, struct nr_error *err)
{
	struct nr_molecule *m = w->m;
	struct block k = { .m = m, .edges = w->edges - from, .bond = w->edge + from };
	w->edges = from;
	if (k.edges < 2) return NR_OK;          /* a bridge */
	for (int32_t e = 0; e < k.edges; e++) {
		struct nr_bond *b = &m->bond[k.bond[e]];
		b->in_ring = true;
		const int32_t ends[2] = { b->from, b->to };
		for (int i = 0; i < 2; i++) {
			m->atom[ends[i]].in_ring = true;
			if (w->spare[ends[i]] == k.bond[0] + 1) continue;
			w->spare[ends[i]] = k.bond[0] + 1;
			w->local[ends[i]] = k.atoms++;
		}
	}
	const int64_t rank = k.edges - k.atoms + 1, most = rank * k.atoms;
	if (rank > 1 && most > MOST_CANDIDATES)
		return nr_molecule_fail(m, m->atom[m->bond[k.bond[0]].from].column, err,
			"a ring system of %d atoms and %d rings is too large", k.atoms, (int32_t)rank);
	if (block_list(&k, err)) return err->code;
	block_graph(&k, w->local);
	if (rank == 1) {
		struct candidate all = { .size = k.edges, .edges = nr_arena_alloc(m->arena, (size_t)k.words * sizeof *all.edges) };
		if (!all.edges) return out_of_memory(err);
		for (int32_t e = 0; e < k.edges; e++) set_bit(all.edges, e);
		return keep(&k, &all, err);
	}
	if (find_candidates(&k, err)) return err->code;
	qsort(k.list, (size_t)k.candidates, sizeof *k.list, by_size);
	return keep_relevant(&k, err);
}

static bool counts(const struct nr_bond *b) { return b->order != NR_BOND_DATIVE; }

/* Depth first from one atom, without recursion; blocks are cut off where nothing below reaches above. */
static int walk_from(struct walk *w, int32_t root, struct nr_error *err)
{
	struct nr_molecule *m = w->m;
	w->path[w->depth++] = root;
	w->entered[root] = w->low[root] = ++w->time;
	w->from[root] = -1;
	while (w->depth) {
		const int32_t a = w->path[w->depth - 1];
		if (w->next[a] < m->atom[a].degree) {
			const int32_t bond = m->incident[m->atom[a].first + w->next[a]++], b = nr_bond_other(&m->bond[bond], a);
			if (bond == w->from[a] || !counts(&m->bond[bond])) continue;
			if (!w->entered[b]) {
				w->edge[w->edges++] = bond;
				w->entered[b] = w->low[b] = ++w->time;
				w->from[b] = bond;
				w->path[w->depth++] = b;
			} else if (w->entered[b] < w->entered[a]) {
				w->edge[w->edges++] = bond;
				if (w->entered[b] < w->low[a]) w->low[a] = w->entered[b];
			}
			continue;
		}
		if (!--w->depth) break;
		const int32_t up = w->path[w->depth - 1];
		if (w->low[a] < w->low[up]) w->low[up] = w->low[a];
		if (w->low[a] < w->entered[up]) continue;
		int32_t at = w->edges;
		while (w->edge[--at] != w->from[a]) {}
		if (block_rings(w, at, err)) return err->code;
	}
	return NR_OK;
}

int nr_rings(struct nr_molecule *m, struct nr_error *err)
{
	const size_t n = (size_t)m->atoms;
	int32_t *space = nr_arena_alloc(m->arena, (7 * n + (size_t)m->bonds + 1) * sizeof *space);
	if (!space) return out_of_memory(err);
	struct walk w = { .m = m, .entered = space, .low = space + n, .from = space + 2 * n, .next = space + 3 * n,
		.path = space + 4 * n, .local = space + 5 * n, .spare = space + 6 * n, .edge = space + 7 * n };
	m->rings = 0;
	m->ring_room = 16;
	m->ring = nr_arena_alloc(m->arena, (size_t)m->ring_room * sizeof *m->ring);
	if (!m->ring) return out_of_memory(err);
	for (int32_t a = 0; a < m->atoms; a++)
		if (!w.entered[a] && walk_from(&w, a, err)) return err->code;
	return NR_OK;
}
