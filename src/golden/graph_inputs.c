/* in.graph.* of a batch to the other inputs of the model: padding with 0 to the largest graph, paths to the longest of the batch. */
#include "golden/graph_inputs.h"

#include <string.h>

#include "chem/molgraph.h"

struct batch {
	int32_t graphs, nodes, hops, node_features, edge_features;
	int32_t *input_nodes, *degree, *spatial, *edge, *path;
};

/* Graph number g of the batch, with node numbers of its own. */
static struct nr_molgraph pick(struct golden_case *c, int32_t g)
{
	const struct golden_ints node = golden_ints(c, 2, "in.graph.node_feat"), node_of = golden_ints(c, 1, "in.graph.node_graph");
	const struct golden_ints index = golden_ints(c, 2, "in.graph.edge_index"), edge = golden_ints(c, 2, "in.graph.edge_feat");
	const struct golden_ints edge_of = golden_ints(c, 1, "in.graph.edge_graph");
	struct nr_molgraph out = { .node_features = (int32_t)node.d[1], .edge_features = (int32_t)edge.d[1] };
	struct nr_error err = { 0 };
	for (int64_t i = 0; i < node_of.n; i++) out.nodes += node_of.x[i] == g;
	for (int64_t i = 0; i < edge_of.n; i++) out.edges += edge_of.x[i] == g;
	if (nr_molgraph_alloc(&out, c->arena, &err)) golden_stop(c, NULL, "out of memory");
	int64_t n = 0, e = 0;
	for (int64_t i = 0; i < node_of.n; i++)
		if (node_of.x[i] == g) memcpy(out.node + n++ * node.d[1], node.x + i * node.d[1], (size_t)node.d[1] * sizeof *node.x);
	for (int64_t i = 0; i < edge_of.n; i++) {
		if (edge_of.x[i] != g) continue;
		out.from[e] = index.x[i];
		out.to[e] = index.x[edge_of.n + i];
		golden_expect(c, out.from[e] < out.nodes && out.to[e] < out.nodes, "local node numbers");
		memcpy(out.edge + e++ * edge.d[1], edge.x + i * edge.d[1], (size_t)edge.d[1] * sizeof *edge.x);
	}
	return out;
}

static void place(struct batch *b, int64_t g, const struct nr_molgraph_input *in)
{
	const int64_t n = b->nodes, f = b->edge_features;
	memcpy(b->input_nodes + g * n * b->node_features, in->node, (size_t)in->nodes * (size_t)b->node_features * sizeof *in->node);
	memcpy(b->degree + g * n, in->degree, (size_t)in->nodes * sizeof *in->degree);
	for (int64_t i = 0; i < in->nodes; i++)
		for (int64_t j = 0; j < in->nodes; j++) {
			const int64_t from = i * in->nodes + j, to = (g * n + i) * n + j;
			b->spatial[to] = in->spatial[from];
			memcpy(b->edge + to * f, in->edge + from * f, (size_t)f * sizeof *in->edge);
			memcpy(b->path + to * b->hops * f, in->path + from * in->longest * f, (size_t)(in->longest * f) * sizeof *in->path);
		}
}

void golden_check_graph_inputs(struct golden_case *c)
{
	if (!golden_has(c, "in.graph.node_feat")) return;
	const struct golden_ints nodes = golden_ints(c, 3, "in.input_nodes"), path = golden_ints(c, 5, "in.input_edges");
	struct batch b = { .graphs = (int32_t)nodes.d[0], .nodes = (int32_t)nodes.d[1], .node_features = (int32_t)nodes.d[2],
		.hops = (int32_t)path.d[3], .edge_features = (int32_t)path.d[4] };
	const int64_t pairs = (int64_t)b.graphs * b.nodes * b.nodes;
	const struct nr_molgraph_offsets offsets = { (int32_t)golden_number(c, "node_feature_offset"),
		(int32_t)golden_number(c, "edge_feature_offset"), (int32_t)golden_number(c, "collate_max_dist") };
	b.input_nodes = golden_alloc(c, nodes.n, sizeof *b.input_nodes);
	b.degree = golden_alloc(c, (int64_t)b.graphs * b.nodes, sizeof *b.degree);
	b.spatial = golden_alloc(c, pairs, sizeof *b.spatial);
	b.edge = golden_alloc(c, pairs * b.edge_features, sizeof *b.edge);
	b.path = golden_alloc(c, path.n, sizeof *b.path);
	for (int32_t g = 0; g < b.graphs; g++) {
		const struct nr_molgraph graph = pick(c, g);
		struct nr_molgraph_input in;
		struct nr_error err = { 0 };
		if (nr_molgraph_preprocess(&in, &graph, &offsets, c->arena, &err)) golden_stop(c, NULL, "out of memory");
		golden_expect(c, in.nodes <= b.nodes && in.longest <= b.hops, "room for each graph");
		place(&b, g, &in);
	}
	golden_check_ints(c, b.input_nodes, nodes.n, "in.input_nodes");
	golden_check_ints(c, b.degree, (int64_t)b.graphs * b.nodes, "in.in_degree");
	golden_check_ints(c, b.degree, (int64_t)b.graphs * b.nodes, "in.out_degree");
	golden_check_ints(c, b.spatial, pairs, "in.spatial_pos");
	golden_check_ints(c, b.edge, pairs * b.edge_features, "in.attn_edge_type");
	golden_check_ints(c, b.path, path.n, "in.input_edges");
}
