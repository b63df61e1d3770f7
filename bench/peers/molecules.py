"""Graphormer's preprocessing with scipy and numpy: shortest paths, degrees, and the edge features along each path.

python molecules.py --graphs FILE [--seconds 6]
FILE has a graph per line: nodes, edges, node types, then from, to and order of each edge. Prints one JSON line.
"""
import argparse, json, time
import numpy as np
from scipy.sparse.csgraph import floyd_warshall

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--graphs", required=True)
p.add_argument("--seconds", type=float, default=6)
a = p.parse_args()


def read(line):
    v = np.array(line.split(), dtype=np.int64)
    n, e = v[:2]
    return v[2:2 + n], v[2 + n:].reshape(e, 3)


def prepare(types, edges, hops=5):
    n = len(types)
    adjacency = np.zeros((n, n), dtype=bool)
    adjacency[edges[:, 0], edges[:, 1]] = True
    edge_type = np.zeros((n, n, 1), dtype=np.int64)
    edge_type[edges[:, 0], edges[:, 1], 0] = edges[:, 2] + 2
    distance, before = floyd_warshall(adjacency, unweighted=True, return_predecessors=True)
    reached = np.isfinite(distance)
    spatial = np.where(reached, distance, 510).astype(np.int64) + 1
    longest = min(int(np.where(reached, distance, 510).max()), hops)
    path = np.zeros((n, n, longest, 1), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            if i == j or not reached[i, j]:
                continue
            nodes = [j]
            while nodes[-1] != i:
                nodes.append(before[i, nodes[-1]])
            nodes.reverse()
            for k in range(min(len(nodes) - 1, longest)):
                path[i, j, k] = edge_type[nodes[k], nodes[k + 1]] + 1
    return types + 2, adjacency.sum(1) + 1, spatial, edge_type, path


def main():
    graphs = [read(line) for line in open(a.graphs)]
    for g in graphs[:20]:
        prepare(*g)
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < a.seconds:
        prepare(*graphs[n % len(graphs)])
        n += 1
    print(json.dumps({"molecules_per_s": n / (time.perf_counter() - start)}), flush=True)


if __name__ == "__main__":
    main()
