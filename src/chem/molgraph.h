/* Graphs with integer features, and what Graphormer reads of them: degrees, shortest paths and the edges along them.
 * C. Ying et al., Do Transformers Really Perform Badly for Graph Representation?, 2021. */
#ifndef NR_MOLGRAPH_H
#define NR_MOLGRAPH_H

#include <stdint.h>

#include "chem/molecule.h"

struct nr_molgraph {
	int32_t nodes, edges;                   /* edges: both directions of a bond count */
	int32_t node_features, edge_features;
	int32_t *node;                          /* (nodes, node_features) */
	int32_t *from, *to;                     /* (edges) */
	int32_t *edge;                          /* (edges, edge_features) */
};

/* Arrays for the sizes set in it; NR_EMEMORY. */
int nr_molgraph_alloc(struct nr_molgraph *, struct nr_arena *, struct nr_error *);

/* OGB's nine features of an atom and three of a bond; ZINC's atom type (28) and bond order. Each bond is i -> j, then j -> i. */
int nr_molgraph_ogb(struct nr_molgraph *, const struct nr_molecule *, struct nr_arena *, struct nr_error *);
int nr_molgraph_zinc(struct nr_molgraph *, const struct nr_molecule *, struct nr_arena *, struct nr_error *);

enum { NR_PATH_UNREACHABLE = 510, NR_PATH_EDGES = 20, NR_MOLGRAPH_NODES = 1024 };

/* What the public preprocessing makes of a graph. node and edge are shifted: feature + 2 + number of the feature times offset, so
 * that one table holds them all; 0 is left for padding. */
struct nr_molgraph_input {
	int32_t nodes, longest;                 /* longest: edges of the longest path kept */
	int32_t node_features, edge_features;
	int32_t *node;                          /* (nodes, node_features) */
	int32_t *degree;                        /* (nodes) + 1 */
	int32_t *spatial;                       /* (nodes, nodes) length of the shortest path + 1; unreachable: 511 */
	int32_t *edge;                          /* (nodes, nodes, edge_features) of direct edges; 0: none */
	int32_t *path;                          /* (nodes, nodes, longest, edge_features) edge + 1 along the path; 0: beyond it */
};

struct nr_molgraph_offsets { int32_t node, edge, hops; };  /* 512, 512 and at most 20 in the public code */

/* More than NR_MOLGRAPH_NODES nodes are an error: the time grows with their cube. */
int nr_molgraph_preprocess(struct nr_molgraph_input *, const struct nr_molgraph *, const struct nr_molgraph_offsets *, struct nr_arena *,
	struct nr_error *);

/* The two halves of it. distance and via are (nodes, nodes); the first returns the longest distance. */
int32_t nr_molgraph_distances(const struct nr_molgraph *, int32_t *distance, int32_t *via);
int nr_molgraph_expand(struct nr_molgraph_input *, const struct nr_molgraph *, const struct nr_molgraph_offsets *, const int32_t *distance,
	const int32_t *via, struct nr_arena *, struct nr_error *);

/* Floyd and Warshall with k outermost; a path changes only when it gets shorter, so that rings have one answer. distance (n, n) holds 0,
 * 1 or NR_PATH_UNREACHABLE on entry; via (n, n) is the node in the middle, -1: a direct edge or none. */
void nr_shortest_paths(int32_t n, int32_t *distance, int32_t *via);

#endif
