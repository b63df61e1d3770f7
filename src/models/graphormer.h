/* What other files know of Graphormer's configuration. */
#ifndef NR_GRAPHORMER_H
#define NR_GRAPHORMER_H

#include "norma/model.h"

enum nr_graphormer_edges { NR_EDGES_MULTI_HOP, NR_EDGES_SIMPLE };
struct nr_graphormer {
	int64_t nodes, node_features, edge_features, paths;         /* of the inputs */
	int64_t atoms, bonds, in_degrees, out_degrees, distances, hop_matrices;     /* of the tables */
	int64_t hops, cut;
	int64_t dim, depth, heads, hidden, classes;
	double dropout, attention_dropout, activation_dropout;
	int32_t edges;                      /* enum nr_graphormer_edges */
	char *act;
};
/* The bias of attention (B,H,N+1,N+1), without a cut if `whole`. */
nr_t *nr_graphormer_bias(struct nr_net *, const struct nr_inputs *, const struct nr_graphormer *, bool whole);

#endif
