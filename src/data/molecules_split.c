/* See molecules_split.h. */
#include "data/molecules_split.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chem/scaffold.h"

struct ranked { uint64_t key; int64_t graph, frequency, first; };

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->graph < y->graph ? -1 : 1;
}

/* Frequent ones first; among equals the one that comes first in the file. */
static int by_frequency(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->frequency != y->frequency) return x->frequency > y->frequency ? -1 : 1;
	if (x->first != y->first) return x->first < y->first ? -1 : 1;
	return x->graph < y->graph ? -1 : 1;
}

static uint64_t hash(const char *text, size_t size)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
	h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
	return (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
}

static void place(struct nr_molecules *m, int64_t graph, int split)
{
	m->split[graph] = (uint8_t)split;
	m->count[split]++;
}

/* Groups of one key stay together: the first ones are train until it is full, then val, then test. */
static void fill(struct nr_molecules *m, const struct ranked *r, double val, double test)
{
	const int64_t n = m->graphs, train_end = n - (int64_t)((val + test) * (double)n), val_end = n - (int64_t)(test * (double)n);
	memset(m->count, 0, sizeof m->count);
	for (int64_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && r[end].key == r[i].key; end++) {}
		const int split = end <= train_end || !i ? NR_MOL_TRAIN : end <= val_end || test <= 0 ? NR_MOL_VALID : NR_MOL_TEST;
		for (int64_t k = i; k < end; k++) place(m, r[k].graph, split);
	}
}

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot divide the molecules", NULL, "out of memory"); }

int nr_molecules_split_random(struct nr_molecules *m, double val, double test, struct nr_error *err)
{
	struct ranked *r = malloc((size_t)(m->graphs + 1) * sizeof *r);
	if (!r) return no_memory(err);
	for (int64_t i = 0; i < m->graphs; i++) {
		size_t size;
		const char *smiles = nr_molecules_smiles(m, i, &size);
		r[i] = (struct ranked){ .key = size ? hash(smiles, size) : hash((const char *)&i, sizeof i), .graph = i };
	}
	memset(m->count, 0, sizeof m->count);
	for (int64_t i = 0; i < m->graphs; i++) {
		const double u = (double)(r[i].key >> 11) * 0x1p-53;
		place(m, i, u < val ? NR_MOL_VALID : u < val + test ? NR_MOL_TEST : NR_MOL_TRAIN);
	}
	if (!m->count[NR_MOL_TRAIN] || (val > 0 && !m->count[NR_MOL_VALID])) {  /* few molecules: by rank, so that none is empty */
		qsort(r, (size_t)m->graphs, sizeof *r, by_key);
		const int64_t n = m->graphs, held = val > 0 && n > 1 ? (int64_t)(val * (double)n) + !(int64_t)(val * (double)n) : 0;
		memset(m->count, 0, sizeof m->count);
		for (int64_t i = 0; i < n; i++) place(m, r[i].graph, i < held ? NR_MOL_VALID : NR_MOL_TRAIN);
	}
	free(r);
	return NR_OK;
}

static int scaffolds(const struct nr_molecules *m, struct ranked *r, struct nr_error *err)
{
	struct nr_arena *arena = nr_arena_make();
	int code = arena ? NR_OK : no_memory(err);
	for (int64_t i = 0; !code && i < m->graphs; i++) {
		size_t size;
		struct nr_molecule molecule;
		const char *smiles = nr_molecules_smiles(m, i, &size);
		const struct nr_mark mark = nr_arena_mark(arena);
		r[i] = (struct ranked){ .graph = i };
		if (!size) code = nr_fail(err, NR_EVALUE, "cannot divide by scaffold", NULL, "the molecules have no SMILES");
		if (!code) code = nr_molecule_read(&molecule, arena, smiles, size, err);
		if (!code) code = nr_scaffold(&molecule, arena, &r[i].key, err);
		nr_arena_reset(arena, mark);
	}
	nr_arena_free(arena);
	return code;
}

int nr_molecules_split_scaffold(struct nr_molecules *m, double val, double test, struct nr_error *err)
{
	struct ranked *r = malloc((size_t)(m->graphs + 1) * sizeof *r);
	if (!r) return no_memory(err);
	const int code = scaffolds(m, r, err);
	if (!code) {
		qsort(r, (size_t)m->graphs, sizeof *r, by_key);
		for (int64_t i = 0, end; i < m->graphs; i = end) {
			for (end = i; end < m->graphs && r[end].key == r[i].key; end++) {}
			for (int64_t k = i; k < end; k++) r[k].frequency = end - i, r[k].first = r[i].graph;
		}
		qsort(r, (size_t)m->graphs, sizeof *r, by_frequency);
		fill(m, r, val, test);
	}
	free(r);
	return code;
}
