/* Molecules, packed: each graph is one record
 *   int32 nodes, edges; int16 node features (nodes, F); uint16 from, to (edges); int16 edge features (edges, Fe);
 *   distance (nodes, nodes), via (nodes, nodes): one byte each up to 254 nodes, else two; all ones stand for none. */
#include "data/molecules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chem/molecule.h"

static size_t width(int32_t nodes) { return nodes < 255 ? 1 : 2; }

static int64_t record_size(int32_t nodes, int32_t edges, int32_t node_features, int32_t edge_features)
{
	const int64_t n = nodes, e = edges, pairs = n * n * (int64_t)width(nodes);
	return 8 + 2 * (n * node_features + 2 * e + e * edge_features) + 2 * pairs;
}

static void put16(uint8_t **p, int32_t v)
{
	const uint16_t x = (uint16_t)v;
	memcpy(*p, &x, 2);
	*p += 2;
}

static void put_pairs(uint8_t **p, const int32_t *v, int64_t n, size_t bytes, int32_t none)
{
	for (int64_t i = 0; i < n; i++) {
		const int32_t x = v[i] == none ? 0xffff : v[i];
		if (bytes == 2) put16(p, x);
		else *(*p)++ = (uint8_t)x;
	}
}

static int pack(struct nr_molecules_row *row, const struct nr_molgraph *g, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t pairs = (int64_t)g->nodes * g->nodes;
	if (g->nodes > NR_MOLGRAPH_NODES)
		return nr_fail(err, NR_ELIMIT, "cannot prepare graph", NULL, "%d nodes, more than %d", g->nodes, NR_MOLGRAPH_NODES);
	int32_t *distance = nr_arena_alloc(arena, (size_t)pairs * sizeof *distance + 1);
	int32_t *via = nr_arena_alloc(arena, (size_t)pairs * sizeof *via + 1);
	row->bytes = record_size(g->nodes, g->edges, g->node_features, g->edge_features);
	row->packed = malloc((size_t)row->bytes);
	if (!distance || !via || !row->packed) return nr_fail(err, NR_EMEMORY, "cannot prepare graph", NULL, "out of memory");
	nr_molgraph_distances(g, distance, via);
	uint8_t *p = row->packed;
	memcpy(p, &g->nodes, 4);
	memcpy(p + 4, &g->edges, 4);
	p += 8;
	for (int64_t i = 0; i < (int64_t)g->nodes * g->node_features; i++) put16(&p, g->node[i]);
	for (int32_t i = 0; i < g->edges; i++) put16(&p, g->from[i]);
	for (int32_t i = 0; i < g->edges; i++) put16(&p, g->to[i]);
	for (int64_t i = 0; i < (int64_t)g->edges * g->edge_features; i++) put16(&p, g->edge[i]);
	put_pairs(&p, distance, pairs, width(g->nodes), NR_PATH_UNREACHABLE);
	put_pairs(&p, via, pairs, width(g->nodes), -1);
	return NR_OK;
}

/* ---- reading records back ------------------------------------------------------------------------------------------------- */

struct record { int32_t nodes, edges; const uint8_t *node, *from, *to, *edge, *distance, *via; };

static int32_t get16(const uint8_t *p, int64_t i)
{
	uint16_t x;
	memcpy(&x, p + 2 * i, 2);
	return x;
}

static struct record record_of(const struct nr_molecules *s, int64_t i)
{
	struct record r;
	const uint8_t *p = s->packed + s->at[i];
	memcpy(&r.nodes, p, 4);
	memcpy(&r.edges, p + 4, 4);
	r.node = p + 8;
	r.from = r.node + 2 * (int64_t)r.nodes * s->node_features;
	r.to = r.from + 2 * (int64_t)r.edges;
	r.edge = r.to + 2 * (int64_t)r.edges;
	r.distance = r.edge + 2 * (int64_t)r.edges * s->edge_features;
	r.via = r.distance + (int64_t)r.nodes * r.nodes * (int64_t)width(r.nodes);
	return r;
}

static int32_t pair(const uint8_t *p, int32_t nodes, int32_t a, int32_t b)
{
	const int64_t at = (int64_t)a * nodes + b;
	if (width(nodes) == 2) return get16(p, at);
	return p[at] == 255 ? 65535 : p[at];
}

/* The node in the middle must split each distance into two shorter ones: paths put together from them come to an end. */
static bool paths_end(const struct record *r)
{
	for (int32_t a = 0; a < r->nodes; a++)
		for (int32_t b = 0; b < r->nodes; b++) {
			const int32_t k = pair(r->via, r->nodes, a, b), d = pair(r->distance, r->nodes, a, b);
			if (k == 65535) continue;
			if (k >= r->nodes || d == 65535) return false;
			const int32_t first = pair(r->distance, r->nodes, a, k), second = pair(r->distance, r->nodes, k, b);
			if (first < 1 || second < 1 || first + second != d) return false;
		}
	return true;
}

bool nr_molecules_sound(const struct nr_molecules *s, int64_t i)
{
	const int64_t size = s->at[i + 1] - s->at[i];
	int32_t head[2];
	if (size < 8) return false;
	memcpy(head, s->packed + s->at[i], 8);
	if (head[0] < 1 || head[0] > NR_MOLGRAPH_NODES || head[1] < 0 || head[1] > size ||
		record_size(head[0], head[1], s->node_features, s->edge_features) != size) return false;
	const struct record r = record_of(s, i);
	for (int32_t e = 0; e < r.edges; e++)
		if (get16(r.from, e) >= r.nodes || get16(r.to, e) >= r.nodes) return false;
	return paths_end(&r);
}

int32_t nr_molecules_nodes(const struct nr_molecules *s, int64_t i) { return record_of(s, i).nodes; }

const char *nr_molecules_smiles(const struct nr_molecules *s, int64_t i, size_t *size)
{
	*size = (size_t)(s->text_at[i + 1] - s->text_at[i]);
	return s->text + s->text_at[i];
}

int nr_molecules_graph(const struct nr_molecules *s, int64_t i, struct nr_molgraph *g, struct nr_arena *arena, struct nr_error *err)
{
	const struct record r = record_of(s, i);
	*g = (struct nr_molgraph){ .nodes = r.nodes, .edges = r.edges, .node_features = s->node_features,
		.edge_features = s->edge_features };
	if (nr_molgraph_alloc(g, arena, err)) return err->code;
	for (int64_t k = 0; k < (int64_t)r.nodes * s->node_features; k++) g->node[k] = (int16_t)get16(r.node, k);
	for (int32_t e = 0; e < r.edges; e++) {
		g->from[e] = get16(r.from, e);
		g->to[e] = get16(r.to, e);
	}
	for (int64_t k = 0; k < (int64_t)r.edges * s->edge_features; k++) g->edge[k] = (int16_t)get16(r.edge, k);
	return NR_OK;
}

static void get_pairs(const uint8_t *p, int32_t nodes, int32_t none, int32_t *out)
{
	const bool one = width(nodes) == 1;
	for (int64_t i = 0; i < (int64_t)nodes * nodes; i++) {
		const int32_t v = one ? p[i] : get16(p, i);
		out[i] = v == (one ? 255 : 65535) ? none : v;
	}
}

int nr_molecules_input(const struct nr_molecules *s, int64_t i, const struct nr_molgraph_offsets *o, struct nr_molgraph_input *in,
	struct nr_arena *arena, struct nr_error *err)
{
	struct nr_molgraph g;
	const struct record r = record_of(s, i);
	const size_t pairs = (size_t)r.nodes * (size_t)r.nodes;
	int32_t *distance = nr_arena_alloc(arena, pairs * sizeof *distance + 1), *via = nr_arena_alloc(arena, pairs * sizeof *via + 1);
	if (!distance || !via) return nr_fail(err, NR_EMEMORY, "cannot prepare graph", NULL, "out of memory");
	if (nr_molecules_graph(s, i, &g, arena, err)) return err->code;
	get_pairs(r.distance, r.nodes, NR_PATH_UNREACHABLE, distance);
	get_pairs(r.via, r.nodes, -1, via);
	return nr_molgraph_expand(in, &g, o, distance, via, arena, err);
}

/* ---- a source to a set ---------------------------------------------------------------------------------------------------- */

int nr_molecules_blame(struct nr_molecules_row *row, const struct nr_error *why)
{
	if (!row->bad) row->bad = malloc(sizeof *row->bad);
	if (!row->bad) return NR_EMEMORY;
	*row->bad = *why;
	return NR_OK;
}

static int prepare(struct nr_molecules_row *row, enum nr_features features, struct nr_arena *arena)
{
	struct nr_error err = { 0 };
	struct nr_molecule m;
	struct nr_molgraph g = row->graph;
	if (row->bad) return NR_OK;
	if (row->smiles && !nr_molecule_read(&m, arena, row->smiles, row->size, &err)) {
		if (features == NR_FEATURES_OGB) nr_molgraph_ogb(&g, &m, arena, &err);
		else nr_molgraph_zinc(&g, &m, arena, &err);
	}
	if (!err.code) pack(row, &g, arena, &err);
	return !err.code ? NR_OK : err.code == NR_EMEMORY ? NR_EMEMORY : nr_molecules_blame(row, &err);
}

/* Rows do not depend on each other: any number of threads gives the same records. */
static int prepare_all(struct nr_molecules_source *s, enum nr_features features, struct nr_error *err)
{
#pragma omp parallel
	{
		struct nr_arena *arena = nr_arena_make();
#pragma omp for schedule(dynamic, 64)
		for (int64_t i = 0; i < s->rows; i++) {
			const struct nr_mark mark = arena ? nr_arena_mark(arena) : (struct nr_mark){ 0 };
			if (!arena || prepare(&s->row[i], features, arena)) s->row[i].bytes = -1;
			if (arena) nr_arena_reset(arena, mark);
		}
		nr_arena_free(arena);
	}
	for (int64_t i = 0; i < s->rows; i++)
		if (s->row[i].bytes < 0) return nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	return NR_OK;
}

static int judge(struct nr_molecules_source *s, const struct nr_molecules_config *c, struct nr_error *err)
{
	for (int64_t i = 0; i < s->rows; i++) {
		const struct nr_error *bad = s->row[i].bad;
		if (!bad || c->bad == NR_BAD_SKIP) continue;
		if (c->bad == NR_BAD_FATAL) {
			nr_fail(err, bad->code, "cannot read", c->path, "row %lld, %s%s%s%s", (long long)(i + 1), bad->detail,
				*bad->subject ? " ('" : "", bad->subject, *bad->subject ? "')" : "");
			return nr_hint(err, "use bad=count or bad=skip to skip such rows");
		}
		if (c->told) c->told(c->context, i + 1, bad);
	}
	return NR_OK;
}

static int gather(struct nr_molecules *m, const struct nr_molecules_source *s, struct nr_error *err)
{
	int64_t bytes = 0, letters = 0, good = 0;
	for (int64_t i = 0; i < s->rows; i++) {
		good += s->row[i].packed != NULL;
		bytes += s->row[i].packed ? s->row[i].bytes : 0;
		if (s->row[i].packed) letters += (int64_t)nr_smiles_span(s->row[i].smiles, s->row[i].size).size;
	}
	*m = (struct nr_molecules){ .graphs = good, .rows = s->rows, .bad = s->rows - good, .tasks = s->tasks,
		.node_features = s->node_features,
		.edge_features = s->edge_features };
	m->split = malloc((size_t)good + 1);
	m->target = malloc((size_t)good * (size_t)s->tasks * sizeof *m->target + 1);
	m->at = malloc(((size_t)good + 1) * sizeof *m->at);
	m->packed = malloc((size_t)bytes + 1);
	m->text_at = malloc(((size_t)good + 1) * sizeof *m->text_at);
	m->text = malloc((size_t)letters + 1);
	if (!m->split || !m->target || !m->at || !m->packed || !m->text_at || !m->text)
		return nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	m->at[0] = m->text_at[0] = 0;
	for (int64_t i = 0, k = 0; i < s->rows; i++) {
		const struct nr_molecules_row *r = &s->row[i];
		if (!r->packed) continue;
		m->split[k] = r->split;
		m->count[r->split]++;
		for (int32_t t = 0; t < s->tasks; t++) m->target[k * s->tasks + t] = r->target[t];
		memcpy(m->packed + m->at[k], r->packed, (size_t)r->bytes);
		m->at[k + 1] = m->at[k] + r->bytes;
		const struct nr_smiles_span smiles = nr_smiles_span(r->smiles, r->size);
		if (smiles.size) memcpy(m->text + m->text_at[k], smiles.text, smiles.size);
		m->text_at[k + 1] = m->text_at[k] + (int64_t)smiles.size;
		const int32_t nodes = nr_molecules_nodes(m, k++);
		if (nodes > m->largest) m->largest = nodes;
	}
	return NR_OK;
}

static void drop(struct nr_molecules *m)
{
	free(m->split);
	free(m->target);
	free(m->at);
	free(m->packed);
	free(m->text_at);
	free(m->text);
	free(m->task_name);
	*m = (struct nr_molecules){ 0 };
}

/* One block holds the list and the texts. */
static int name_tasks(struct nr_molecules *m, const struct nr_molecules_source *s, struct nr_error *err)
{
	size_t letters = 0;
	if (!s->task_name || m->tasks != s->tasks) return NR_OK;
	for (int32_t t = 0; t < s->tasks; t++) letters += s->task_name[t].size + 1;
	m->task_name = malloc(((size_t)s->tasks + 1) * sizeof *m->task_name + letters);
	if (!m->task_name) return nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	char *text = (char *)(m->task_name + s->tasks + 1);
	for (int32_t t = 0; t < s->tasks; text += s->task_name[t++].size + 1) {
		m->task_name[t] = text;
		memcpy(text, s->task_name[t].text, s->task_name[t].size);
		text[s->task_name[t].size] = 0;
	}
	m->task_name[s->tasks] = NULL;
	return NR_OK;
}

static int build(struct nr_molecules *m, struct nr_molecules_source *s, const struct nr_molecules_config *c, struct nr_error *err)
{
	if (c->cache) {
		const int e = nr_molecules_load(m, c->cache, s->sum, c->features, err);
		if (e ? e != NR_ENAME : !m->bad || c->bad != NR_BAD_FATAL) return e;
		*err = (struct nr_error){ 0 };
		drop(m);
	}
	if (prepare_all(s, c->features, err) || judge(s, c, err) || gather(m, s, err)) return err->code;
	if (!m->graphs) return nr_fail(err, NR_EFORMAT, "cannot read", c->path, "none of its %lld rows is a molecule", (long long)s->rows);
	return c->cache ? nr_molecules_save(m, c->cache, s->sum, c->features, err) : NR_OK;
}

static int open_source(struct nr_molecules_source *s, struct nr_molecules **m, const struct nr_molecules_config *c, struct nr_error *err)
{
	const bool ogb = c->features == NR_FEATURES_OGB;
	*s = (struct nr_molecules_source){ .arena = nr_arena_make(), .node_features = ogb ? 9 : 1, .edge_features = ogb ? 3 : 1 };
	*m = calloc(1, sizeof **m);
	return s->arena && *m ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
}

/* The source goes; the set stays if nothing failed. */
static int close_source(struct nr_molecules_source *s, struct nr_molecules **m, int e)
{
	for (int64_t i = 0; i < s->rows; i++) {
		free(s->row[i].packed);
		free(s->row[i].bad);
	}
	nr_arena_free(s->arena);
	if (!e) return NR_OK;
	nr_molecules_close(*m);
	*m = NULL;
	return e;
}

int nr_molecules_open(struct nr_molecules **m, const struct nr_molecules_config *c, struct nr_error *err)
{
	struct nr_molecules_source s;
	struct stat st;
	struct nr_error own = { 0 };
	if (!err) err = &own;
	int e = open_source(&s, m, c, err);
	const bool folder = !stat(c->path, &st) && S_ISDIR(st.st_mode);
	if (!e) e = folder ? nr_molecules_read_raw(&s, c->path, err) : nr_molecules_read_csv(&s, c, err);
	if (!e) e = build(*m, &s, c, err);
	if (!e) e = name_tasks(*m, &s, err);
	return close_source(&s, m, e);
}

int nr_molecules_make(struct nr_molecules **m, const struct nr_molecules_config *c, const struct nr_smiles_span *line, int64_t count,
	struct nr_error *err)
{
	struct nr_molecules_source s;
	int e = open_source(&s, m, c, err);
	if (!e && !(s.row = nr_arena_alloc(s.arena, (size_t)count * sizeof *s.row + 1)))
		e = nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	for (int64_t i = 0; !e && i < count; i++)
		s.row[s.rows++] = (struct nr_molecules_row){ .smiles = line[i].text, .size = line[i].size };
	if (!e) e = prepare_all(&s, c->features, err);
	if (!e) e = judge(&s, c, err);
	if (!e) e = gather(*m, &s, err);
	return close_source(&s, m, e);
}

void nr_molecules_close(struct nr_molecules *m)
{
	if (m) drop(m);
	free(m);
}
