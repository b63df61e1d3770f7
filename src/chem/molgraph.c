/* Graphormer's view of a graph: degrees, distances, and the edges along one shortest path for every pair of nodes. */
#include "chem/molgraph.h"

#include <string.h>

void nr_shortest_paths(int32_t n, int32_t *restrict distance, int32_t *restrict via)
{
	for (int32_t k = 0; k < n; k++) {
		const int32_t *to = distance + (int64_t)k * n;
		for (int32_t i = 0; i < n; i++) {
			int32_t *d = distance + (int64_t)i * n, *v = via + (int64_t)i * n;
			const int32_t half = d[k];
			if (half >= NR_PATH_UNREACHABLE || i == k) continue;
			for (int32_t j = 0; j < n; j++) {
				const int32_t sum = half + to[j];
				const bool shorter = d[j] > sum;
				d[j] = shorter ? sum : d[j];
				v[j] = shorter ? k : v[j];
			}
		}
	}
}

/* Nodes between a and b in order, at most room of them; returns how many. */
static int32_t between(const struct nr_molgraph_input *g, const int32_t *via, int32_t a, int32_t b, int32_t *out, int32_t room)
{
	const int32_t k = via[(int64_t)a * g->nodes + b];
	if (k < 0 || !room) return 0;
	int32_t n = between(g, via, a, k, out, room);
	if (n < room) out[n++] = k;
	if (n < room) n += between(g, via, k, b, out + n, room - n);
	return n;
}

static void fill_path(struct nr_molgraph_input *g, const int32_t *via, int32_t a, int32_t b)
{
	int32_t stop[NR_PATH_EDGES + 1];
	const int32_t f = g->edge_features, n = between(g, via, a, b, stop, g->longest);
	if (n < g->longest) stop[n] = b;
	int32_t *out = g->path + ((int64_t)a * g->nodes + b) * g->longest * f, last = a;
	for (int32_t e = 0; e < g->longest && e <= n; e++) {
		const int32_t *edge = g->edge + ((int64_t)last * g->nodes + stop[e]) * f;
		for (int32_t i = 0; i < f; i++) out[e * f + i] = edge[i] + 1;
		last = stop[e];
	}
}

static int alloc_input(struct nr_molgraph_input *g, struct nr_arena *arena, struct nr_error *err)
{
	const size_t n = (size_t)g->nodes, pairs = n * n;
	g->node = nr_arena_alloc(arena, n * (size_t)g->node_features * sizeof *g->node + 1);
	g->degree = nr_arena_alloc(arena, n * sizeof *g->degree + 1);
	g->spatial = nr_arena_alloc(arena, pairs * sizeof *g->spatial + 1);
	g->edge = nr_arena_alloc(arena, pairs * (size_t)g->edge_features * sizeof *g->edge + 1);
	if (!g->node || !g->degree || !g->spatial || !g->edge)
		return nr_fail(err, NR_EMEMORY, "cannot prepare graph", NULL, "out of memory");
	return NR_OK;
}

/* Node features and direct edges with their offsets; the degree counts distinct neighbours. */
static void fill_direct(struct nr_molgraph_input *g, const struct nr_molgraph *of, const struct nr_molgraph_offsets *o)
{
	for (int64_t i = 0; i < (int64_t)g->nodes * g->node_features; i++)
		g->node[i] = of->node[i] + 2 + (int32_t)(i % g->node_features) * o->node;
	for (int32_t i = 0; i < g->nodes; i++) g->degree[i] = 1;
	for (int32_t e = 0; e < of->edges; e++) {
		int32_t *to = g->edge + ((int64_t)of->from[e] * g->nodes + of->to[e]) * g->edge_features;
		g->degree[of->from[e]] += to[0] == 0;
		for (int32_t f = 0; f < g->edge_features; f++) to[f] = of->edge[(int64_t)e * g->edge_features + f] + 2 + f * o->edge;
	}
}

int32_t nr_molgraph_distances(const struct nr_molgraph *of, int32_t *distance, int32_t *via)
{
	const int64_t n = of->nodes;
	for (int64_t i = 0; i < n * n; i++) distance[i] = NR_PATH_UNREACHABLE;
	for (int64_t i = 0; i < n; i++) distance[i * n + i] = 0;
	for (int32_t e = 0; e < of->edges; e++)
		if (of->from[e] != of->to[e]) distance[of->from[e] * n + of->to[e]] = 1;
	memset(via, -1, (size_t)(n * n) * sizeof *via);
	nr_shortest_paths(of->nodes, distance, via);
	int32_t longest = 0;
	for (int64_t i = 0; i < n * n; i++) {
		if (distance[i] > NR_PATH_UNREACHABLE) distance[i] = NR_PATH_UNREACHABLE;
		if (distance[i] > longest) longest = distance[i];
	}
	return longest;
}

int nr_molgraph_expand(struct nr_molgraph_input *g, const struct nr_molgraph *of, const struct nr_molgraph_offsets *o,
	const int32_t *distance, const int32_t *via, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t n = of->nodes;
	const int32_t hops = o->hops < NR_PATH_EDGES ? o->hops : NR_PATH_EDGES;
	*g = (struct nr_molgraph_input){ .nodes = of->nodes, .node_features = of->node_features, .edge_features = of->edge_features };
	for (int64_t i = 0; i < n * n; i++)
		if (distance[i] > g->longest) g->longest = distance[i];
	if (g->longest > hops) g->longest = hops;
	if (alloc_input(g, arena, err)) return err->code;
	g->path = nr_arena_alloc(arena, (size_t)(n * n) * (size_t)g->longest * (size_t)g->edge_features * sizeof *g->path + 1);
	if (!g->path) return nr_fail(err, NR_EMEMORY, "cannot prepare graph", NULL, "out of memory");
	fill_direct(g, of, o);
	for (int32_t a = 0; a < of->nodes; a++)
		for (int32_t b = 0; b < of->nodes; b++) {
			const int32_t d = distance[a * n + b];
			g->spatial[a * n + b] = d + 1;
			if (a != b && d < NR_PATH_UNREACHABLE && g->longest) fill_path(g, via, a, b);
		}
	return NR_OK;
}

int nr_molgraph_preprocess(struct nr_molgraph_input *g, const struct nr_molgraph *of, const struct nr_molgraph_offsets *o,
	struct nr_arena *arena, struct nr_error *err)
{
	const size_t pairs = (size_t)of->nodes * (size_t)of->nodes;
	if (of->nodes > NR_MOLGRAPH_NODES)
		return nr_fail(err, NR_ELIMIT, "cannot prepare graph", NULL, "%d nodes, more than %d", of->nodes, NR_MOLGRAPH_NODES);
	int32_t *distance = nr_arena_alloc(arena, pairs * sizeof *distance + 1), *via = nr_arena_alloc(arena, pairs * sizeof *via + 1);
	if (!distance || !via) return nr_fail(err, NR_EMEMORY, "cannot prepare graph", NULL, "out of memory");
	nr_molgraph_distances(of, distance, via);
	return nr_molgraph_expand(g, of, o, distance, via, arena, err);
}
