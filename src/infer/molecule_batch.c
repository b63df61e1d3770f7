/* Graphs into a model's inputs: see graphs.h. */
#include "infer/molecule_batch.h"
#include "base/real.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot prepare the graphs", NULL, "out of memory"); }

/* ---- the form ------------------------------------------------------------------------------------------------------------------ */

/* Rows of a table for several features: each gets as many, at most those of the public preprocessing. */
static int32_t offset_of(int64_t rows, int32_t features)
{
	const int64_t each = rows / features;
	return (int32_t)(each < 512 ? each : 512);
}

struct extremes { int32_t node, edge, degree; bool negative; };

static void widen(struct extremes *x, const struct nr_molgraph *g, const struct nr_molgraph_input *in)
{
	for (int64_t i = 0; i < (int64_t)g->nodes * g->node_features; i++) {
		x->node = g->node[i] > x->node ? g->node[i] : x->node;
		x->negative |= g->node[i] < 0;
	}
	for (int64_t i = 0; i < (int64_t)g->edges * g->edge_features; i++) {
		x->edge = g->edge[i] > x->edge ? g->edge[i] : x->edge;
		x->negative |= g->edge[i] < 0;
	}
	for (int32_t i = 0; i < g->nodes; i++) x->degree = in->degree[i] > x->degree ? in->degree[i] : x->degree;
}

static int too_small(const struct nr_model_spec *model, const char *option, int64_t rows, int64_t need, struct nr_error *err)
{
	nr_fail(err, NR_EVALUE, "cannot use the graphs with", model->text,
		"its table '%s' has %lld rows, but the graphs need %lld", option,
		(long long)rows, (long long)need);
	return nr_hint(err, "add %s=%lld to the model's options", option, (long long)need);
}

static int check_tables(const struct nr_mol_form *f, const struct nr_model_spec *model, const struct extremes *x, struct nr_error *err)
{
	const int64_t nodes = f->set->node_features, edges = f->set->edge_features, path = f->paths > 0;
	const struct { const char *option; int64_t need; } tables[] = {
		{ "atoms", x->node + 2 + (nodes - 1) * f->offsets.node }, { "bonds", x->edge + 2 + path + (edges - 1) * f->offsets.edge },
		{ "in_degrees", x->degree + 1 }, { "out_degrees", x->degree + 1 }, { "distances", NR_PATH_UNREACHABLE + 2 } };
	if (x->negative) return nr_fail(err, NR_EVALUE,
		"cannot use the graphs with", model->text, "some features of the graphs are negative");
	if (nodes > 1 && x->node >= f->offsets.node)
		return too_small(model, "atoms", nr_model_int(model, "atoms"), (x->node + 2) * nodes, err);
	if (edges > 1 && x->edge >= f->offsets.edge)
		return too_small(model, "bonds", nr_model_int(model, "bonds"), (x->edge + 3) * edges, err);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		const int64_t rows = nr_model_int(model, tables[i].option);
		if (rows >= 0 && rows < tables[i].need) return too_small(model, tables[i].option, rows, tables[i].need, err);
	}
	return NR_OK;
}

/* One block of each thread's arena holds all that a graph needs: nothing is allocated later. */
static int make_arenas(struct nr_mol_form *f, struct nr_error *err)
{
	const struct nr_molecules *m = f->set;
	const size_t n = (size_t)m->largest, hops = (size_t)f->offsets.hops, edge = (size_t)m->edge_features;
	const size_t most = n * n * (3 + edge * (2 + hops)) * 4 + n * (size_t)(m->node_features + 2) * 8 + n * n * (edge + 2) * 4 + 4096;
	f->threads = omp_get_max_threads();
	f->arena = calloc((size_t)f->threads, sizeof(struct nr_arena *));
	f->start = calloc((size_t)f->threads, sizeof *f->start);
	if (!f->arena || !f->start) return out_of_memory(err);
	for (int i = 0; i < f->threads; i++) {
		if (!(f->arena[i] = nr_arena_make()) || !nr_arena_alloc(f->arena[i], most)) return out_of_memory(err);
		f->start[i] = nr_arena_mark(f->arena[i]);
		f->start[i].used = 0;
	}
	return NR_OK;
}

int nr_mol_form_open(struct nr_mol_form *f, const struct nr_molecules *set, const struct nr_model_spec *model, struct nr_error *err)
{
	*f = (struct nr_mol_form){ .set = set, .paths = nr_model_int(model, "paths") };
	f->offsets = (struct nr_molgraph_offsets){ .node = offset_of(nr_model_int(model, "atoms"), set->node_features),
		.edge = offset_of(nr_model_int(model, "bonds"), set->edge_features), .hops = (int32_t)f->paths };
	if (f->paths > NR_PATH_EDGES)
		return nr_fail(err, NR_EVALUE, "cannot use the graphs with", model->text,
			"paths=%lld, but at most %d edges of a path are kept",
			(long long)f->paths, NR_PATH_EDGES);
	return make_arenas(f, err);
}

int nr_mol_form_check(const struct nr_mol_form *f, const struct nr_model_spec *model, int64_t first, int64_t count,
	struct nr_error *err)
{
	struct extremes x = { 0 };
	for (int64_t i = first; i < first + count; i++) {
		const struct nr_molgraph_offsets none = { 0 };
		struct nr_molgraph g;
		struct nr_molgraph_input in;
		nr_arena_reset(f->arena[0], f->start[0]);
		if (nr_molecules_graph(f->set, i, &g, f->arena[0], err) || nr_molecules_input(f->set, i, &none, &in, f->arena[0], err))
			return err->code;
		widen(&x, &g, &in);
	}
	return check_tables(f, model, &x, err);
}

int nr_mol_form_make(struct nr_mol_form *f, const struct nr_molecules *set, const struct nr_model_spec *model, struct nr_error *err)
{
	return nr_mol_form_open(f, set, model, err) ? err->code : nr_mol_form_check(f, model, 0, set->graphs, err);
}

void nr_mol_form_release(struct nr_mol_form *f)
{
	for (int i = 0; f->arena && i < f->threads; i++) nr_arena_free(f->arena[i]);
	free(f->arena);
	free(f->start);
	*f = (struct nr_mol_form){ 0 };
}

int nr_mol_expect(const struct nr_molecules *set, const struct nr_model_spec *model, struct nr_error *err)
{
	if (nr_model_expect(model, NR_MOLECULES, err)) return err->code;
	if (nr_model_int(model, "node_features") == set->node_features && nr_model_int(model,
		"edge_features") == set->edge_features) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot use the graphs with", model->text,
		"they have %d node and %d edge features, the model needs %lld and %lld",
		set->node_features, set->edge_features, (long long)nr_model_int(model, "node_features"),
		(long long)nr_model_int(model, "edge_features"));
}

bool nr_mol_yes_or_no(const struct nr_molecules *set, int64_t *known)
{
	bool classes = true;
	*known = 0;
	for (int64_t i = 0; i < set->graphs * set->tasks; i++) {
		const float t = set->target[i];
		if (isnan(t)) continue;
		++*known;
		classes &= t == 0 || t == 1;
	}
	return classes;
}

/* ---- lists and sizes ------------------------------------------------------------------------------------------------------------ */

int nr_mol_list_open(struct nr_mol_list *l, int64_t most, struct nr_error *err)
{
	*l = (struct nr_mol_list){ .graph = malloc((size_t)most * sizeof *l->graph + 1),
		.nodes = malloc((size_t)most * sizeof *l->nodes + 1) };
	return l->graph && l->nodes ? NR_OK : out_of_memory(err);
}

void nr_mol_list_add(struct nr_mol_list *l, const struct nr_molecules *set, int64_t graph)
{
	const int32_t nodes = nr_molecules_nodes(set, graph);
	l->graph[l->samples] = graph;
	l->nodes[l->samples++] = nodes;
	l->largest = nodes > l->largest ? nodes : l->largest;
}

int nr_mol_list_make(struct nr_mol_list *l, const struct nr_source *s, enum nr_split split, const int32_t *index, int64_t count,
	int64_t most, struct nr_error *err)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	if (nr_mol_list_open(l, count, err)) return err->code;
	for (int64_t i = 0; i < count; i++) {
		const int64_t graph = nr_source_graph(s, split, index ? index[i] : i);
		if (most && nr_molecules_nodes(m, graph) > most) l->left_out++;
		else nr_mol_list_add(l, m, graph);
	}
	return NR_OK;
}

void nr_mol_list_release(struct nr_mol_list *l)
{
	free(l->graph);
	free(l->nodes);
	*l = (struct nr_mol_list){ 0 };
}

struct nr_mol_sizes nr_mol_sizes(int64_t nodes)
{
	struct nr_mol_sizes s = { .largest = nodes > 0 ? (nodes + 3) / 4 * 4 : 4 };
	s.step = ((s.largest + NR_TASK_SHAPES - 1) / NR_TASK_SHAPES + 3) / 4 * 4;
	s.count = (s.largest + s.step - 1) / s.step;
	return s;
}

int64_t nr_mol_batch(int64_t batch, int64_t nodes)
{
	const int64_t most_pairs = 1 << 21, most = most_pairs / (nodes * nodes);
	return most < 1 ? 1 : most < batch ? most : batch;
}

int64_t nr_mol_size_of(const struct nr_mol_sizes *s, int64_t nodes)
{
	const int64_t i = (s->largest - nodes) / s->step;
	return i < s->count ? i : s->count - 1;
}

/* ---- inputs --------------------------------------------------------------------------------------------------------------------- */

void nr_mol_inputs(struct nr_mol_inputs *g, struct nr_net *n, const struct nr_mol_form *f, int64_t B, int64_t N, bool target)
{
	const int64_t edges = f->set->edge_features;
	g->in = (struct nr_inputs){ .nodes = nr_input(n, "nodes", NR_I32, NR_SHAPE(B, N, f->set->node_features)),
		.in_degree = nr_input(n, "in_degree", NR_I32, NR_SHAPE(B, N)),
		.out_degree = nr_input(n, "out_degree", NR_I32, NR_SHAPE(B, N)),
		.distance = nr_input(n, "distance", NR_I32, NR_SHAPE(B, N, N)), .valid = nr_input(n, "valid", NR_I32, NR_SHAPE(B)),
		.edges = f->paths ? nr_input(n, "edges", NR_I32, NR_SHAPE(B, N, N, f->paths, edges))
				  : nr_input(n, "edges", NR_I32, NR_SHAPE(B, N, N, edges)) };
	g->target = target ? nr_input(n, "target", NR_REAL, NR_SHAPE(B, f->set->tasks)) : NULL;
}

/* Rows of `width` values each into rows of `room`; the rest is 0. */
static void put_rows(int32_t *to, const int32_t *from, int64_t rows, int64_t width, int64_t room)
{
	for (int64_t i = 0; i < rows; i++) {
		if (width) memcpy(to + i * room, from + i * width, (size_t)width * sizeof *to);
		memset(to + i * room + width, 0, (size_t)(room - width) * sizeof *to);
	}
}

static void put_degrees(int32_t *to, const struct nr_molgraph_input *g, int64_t N)
{
	put_rows(to, g->degree, 1, g->nodes, N);
}

/* Pairs of the nodes at hand, each of `width` values, into (N,N,room). */
static void put_pairs(int32_t *to, const int32_t *from, int64_t nodes, int64_t width, int64_t N, int64_t room)
{
	for (int64_t i = 0; i < nodes; i++) {
		put_rows(to + i * N * room, from + i * nodes * width, nodes, width, room);
		memset(to + (i * N + nodes) * room, 0, (size_t)((N - nodes) * room) * sizeof *to);
	}
	memset(to + nodes * N * room, 0, (size_t)((N - nodes) * N * room) * sizeof *to);
}

struct rows { int32_t *nodes, *in_degree, *out_degree, *distance, *valid, *edges; real *target; };

static struct rows rows_of(const struct nr_plan *plan, const struct nr_mol_inputs *g)
{
	return (struct rows){ nr_plan_data(plan, g->in.nodes), nr_plan_data(plan, g->in.in_degree), nr_plan_data(plan, g->in.out_degree),
		nr_plan_data(plan, g->in.distance), nr_plan_data(plan, g->in.valid), nr_plan_data(plan, g->in.edges),
		g->target ? nr_plan_data(plan, g->target) : NULL };
}

static void put_graph(const struct nr_mol_form *f, const struct rows *to, int64_t b, int64_t N, const struct nr_molgraph_input *g)
{
	const int64_t F = f->set->node_features, edges = f->set->edge_features, room = (f->paths ? f->paths : 1) * edges;
	put_rows(to->nodes + b * N * F, g->node, 1, g->nodes * F, N * F);
	put_degrees(to->in_degree + b * N, g, N);
	put_degrees(to->out_degree + b * N, g, N);
	put_pairs(to->distance + b * N * N, g->spatial, g->nodes, 1, N, 1);
	if (f->paths) put_pairs(to->edges + b * N * N * room, g->path, g->nodes, g->longest * edges, N, room);
	else put_pairs(to->edges + b * N * N * room, g->edge, g->nodes, edges, N, room);
	to->valid[b] = g->nodes;
}

/* sample NULL: those from `first` on. */
static void bind(const struct nr_mol_form *f, const struct nr_mol_list *l, struct nr_plan *plan, const struct nr_mol_inputs *g,
	const int32_t *sample, int64_t first, int64_t count)
{
	const int64_t B = g->in.nodes->d[0], N = g->in.nodes->d[1], tasks = f->set->tasks;
	const struct rows to = rows_of(plan, g);
#pragma omp parallel for schedule(dynamic, 4) num_threads(f->threads)
	for (int64_t b = 0; b < B; b++) {
		const int t = omp_get_thread_num();
		struct nr_molgraph_input in = { 0 };
		struct nr_error none = { 0 };
		nr_arena_reset(f->arena[t], f->start[t]);
		const int64_t graph = b < count ? l->graph[sample ? sample[b] : first + b] : 0;
		const bool there = b < count && !nr_molecules_input(f->set, graph, &f->offsets, &in, f->arena[t], &none);
		if (!there) in = (struct nr_molgraph_input){ 0 };
		put_graph(f, &to, b, N, &in);
		for (int64_t k = 0; to.target && k < tasks; k++) {
			const double target = there ? (double)f->set->target[graph * tasks + k] : NAN;
			to.target[b * tasks + k] = (real)(f->std ? (target - f->mean[k]) / f->std[k] : target);
		}
	}
}

void nr_mol_bind(const struct nr_mol_form *f, const struct nr_mol_list *l, struct nr_plan *plan, const struct nr_mol_inputs *g,
	const int32_t *sample, int64_t count)
{
	bind(f, l, plan, g, sample, 0, count);
}

void nr_mol_bind_from(const struct nr_mol_form *f, const struct nr_mol_list *l, struct nr_plan *plan, const struct nr_mol_inputs *g,
	int64_t first, int64_t count)
{
	bind(f, l, plan, g, NULL, first, count);
}
