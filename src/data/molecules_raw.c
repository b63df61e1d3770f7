/* The raw folder of a graph data set of the Open Graph Benchmark:
 *   raw/num-node-list.csv.gz, num-edge-list.csv.gz   counts, one graph per line
 *   raw/edge.csv.gz, node-feat.csv.gz, edge-feat.csv.gz, graph-label.csv.gz   rows of all graphs, one after the other
 *   split/NAME/{train,valid,test}.csv.gz              numbers of graphs; without them all are for training
 * Each bond stands there once; both directions are made of it. */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/str.h"
#include "data/molecules.h"

enum { MOST_BYTES = INT_MAX };

struct table { double *value; int64_t rows, columns; char path[512]; };

/* Numbers in lines of equal length; an empty cell is NaN. */
static int parse(struct table *t, struct nr_arena *arena, const char *p, const char *end, struct nr_error *err)
{
	int64_t cells = 1, at = 0, line = 1, in_line = 0;
	for (const char *q = p; q < end; q++) cells += *q == ',' || *q == '\n';
	t->value = nr_arena_alloc(arena, (size_t)cells * sizeof *t->value);
	if (!t->value) return nr_fail(err, NR_EMEMORY, "cannot read", t->path, "out of memory");
	while (p < end) {
		char text[40];
		size_t n = 0;
		while (p < end && *p != ',' && *p != '\n') {
			if (*p != '\r' && n + 1 < sizeof text) text[n++] = *p;
			p++;
		}
		text[n] = 0;
		t->value[at] = NAN;
		if (n && strcmp(text, "nan") && !nr_parse_double(text, &t->value[at]))
			return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
				"line %lld: '%s' is not a number", (long long)line, text);
		at++;
		in_line++;
		if (p < end && *p++ == ',') continue;
		if (!t->columns) t->columns = in_line;
		if (in_line != t->columns)
			return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
				"line %lld has %lld cells, but the first line has %lld",
				(long long)line, (long long)in_line, (long long)t->columns);
		in_line = 0;
		line++;
	}
	t->rows = t->columns ? at / t->columns : 0;
	return NR_OK;
}

static int read_table(struct table *t, struct nr_molecules_source *s, const char *folder, const char *name, struct nr_error *err)
{
	struct nr_bytes b = { 0 };
	*t = (struct table){ 0 };
	snprintf(t->path, sizeof t->path, "%s/%s", folder, name);
	if (nr_bytes_open(&b, t->path, MOST_BYTES, err)) return err->code;
	s->sum = nr_crc32c(s->sum, b.data, b.size);
	const int e = parse(t, s->arena, (const char *)b.data, (const char *)b.data + b.size, err);
	nr_bytes_release(&b);
	return e;
}

struct raw { struct table nodes, edges, edge, node_feature, edge_feature, label; int64_t node_at, edge_at; };

static int expect(const struct table *t, int64_t rows, struct nr_error *err)
{
	return t->rows == rows ? NR_OK : nr_fail(err, NR_EFORMAT, "cannot read", t->path,
		"it has %lld lines instead of %lld",
		(long long)t->rows, (long long)rows);
}

/* Counts, ends of bonds and features are whole numbers; what is none would become some number on the way. */
static int whole(const struct table *t, int64_t least, int64_t most, struct nr_error *err)
{
	for (int64_t i = 0; i < t->rows * t->columns; i++) {
		const double v = t->value[i];
		if (v >= (double)least && v <= (double)most && v == floor(v)) continue;
		char text[48] = "an empty cell";
		if (!isnan(v)) snprintf(text, sizeof text, "%.9g", v);
		return nr_fail(err, NR_EFORMAT, "cannot read", t->path,
			"line %lld: %s is not a whole number from %lld to %lld",
			(long long)(i / t->columns) + 1, text, (long long)least, (long long)most);
	}
	return NR_OK;
}

/* A count for each graph. */
static int counts(const struct table *t, int64_t least, int64_t *sum, struct nr_error *err)
{
	*sum = 0;
	if (t->columns != 1) return nr_fail(err, NR_EFORMAT, "cannot read", t->path, "lines must have one cell");
	if (whole(t, least, 16 * NR_MOLGRAPH_NODES, err)) return err->code;
	for (int64_t i = 0; i < t->rows; i++) *sum += (int64_t)t->value[i];
	return NR_OK;
}

static int one_graph(struct nr_molecules_source *s, struct raw *r, int64_t i, struct nr_error *err)
{
	struct nr_molecules_row *row = &s->row[i];
	struct nr_molgraph *g = &row->graph;
	const int64_t nodes = (int64_t)r->nodes.value[i], bonds = (int64_t)r->edges.value[i];
	*g = (struct nr_molgraph){ .nodes = (int32_t)nodes, .edges = (int32_t)(2 * bonds), .node_features = s->node_features,
		.edge_features = s->edge_features };
	if (nr_molgraph_alloc(g, s->arena, err)) return err->code;
	for (int64_t k = 0; k < nodes * g->node_features; k++)
		g->node[k] = (int32_t)r->node_feature.value[r->node_at * g->node_features + k];
	for (int64_t b = 0; b < bonds; b++) {
		const double *ends = r->edge.value + (r->edge_at + b) * 2;
		if (ends[0] >= (double)nodes || ends[1] >= (double)nodes)
			return nr_fail(err, NR_EFORMAT, "cannot read", r->edge.path,
				"line %lld: graph %lld has only %lld nodes",
				(long long)(r->edge_at + b + 1), (long long)i, (long long)nodes);
		g->from[2 * b] = g->to[2 * b + 1] = (int32_t)ends[0];
		g->to[2 * b] = g->from[2 * b + 1] = (int32_t)ends[1];
		for (int32_t f = 0; f < g->edge_features; f++)
			g->edge[2 * b * g->edge_features + f] = g->edge[(2 * b + 1) * g->edge_features + f] =
				(int32_t)r->edge_feature.value[(r->edge_at + b) * g->edge_features + f];
	}
	row->target = nr_arena_alloc(s->arena, (size_t)s->tasks * sizeof *row->target + 1);
	if (!row->target) return nr_fail(err, NR_EMEMORY, "cannot read molecules", NULL, "out of memory");
	for (int32_t t = 0; t < s->tasks; t++) row->target[t] = (float)r->label.value[i * s->tasks + t];
	r->node_at += nodes;
	r->edge_at += bonds;
	return NR_OK;
}

/* The first folder of split/, by name. */
static int read_splits(struct nr_molecules_source *s, const char *folder, struct nr_error *err)
{
	static const char *const names[NR_MOL_SPLITS] = { "train.csv", "valid.csv", "test.csv" };
	char splits[512], path[800], first[256] = "";
	snprintf(splits, sizeof splits, "%s/split", folder);
	DIR *d = opendir(splits);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.' && (!*first || strcmp(e->d_name, first) < 0)) snprintf(first, sizeof first, "%s", e->d_name);
	if (d) closedir(d);
	if (!*first) return NR_OK;
	snprintf(path, sizeof path, "%s/%s", splits, first);
	for (int k = 0; k < NR_MOL_SPLITS; k++) {
		struct table t;
		if (read_table(&t, s, path, names[k], err)) return err->code;
		if (whole(&t, 0, s->rows - 1, err)) return err->code;
		for (int64_t i = 0; i < t.rows; i++) s->row[(int64_t)t.value[i * t.columns]].split = (uint8_t)k;
	}
	return NR_OK;
}

int nr_molecules_read_raw(struct nr_molecules_source *s, const char *folder, struct nr_error *err)
{
	struct raw *r = nr_arena_alloc(s->arena, sizeof *r);
	char in[400];
	if (!r) return nr_fail(err, NR_EMEMORY, "cannot read", folder, "out of memory");
	snprintf(in, sizeof in, "%s/raw", folder);
	if (read_table(&r->nodes, s, in, "num-node-list.csv", err) || read_table(&r->edges, s, in, "num-edge-list.csv", err) ||
		read_table(&r->edge, s, in, "edge.csv", err) || read_table(&r->node_feature, s, in, "node-feat.csv", err) ||
		read_table(&r->edge_feature, s, in, "edge-feat.csv", err) ||
		read_table(&r->label, s, in, "graph-label.csv", err)) return err->code;
	const int64_t graphs = r->nodes.rows;
	int64_t nodes, bonds;
	if (counts(&r->nodes, 1, &nodes, err) || counts(&r->edges, 0, &bonds, err) || expect(&r->edges, graphs, err) ||
		expect(&r->label, graphs, err) || expect(&r->node_feature, nodes, err) || expect(&r->edge, bonds, err) ||
		expect(&r->edge_feature, bonds, err)) return err->code;
	/* a record of a graph holds 16 bits of a feature */
	if (whole(&r->edge, 0, INT_MAX, err) || whole(&r->node_feature, 0, INT16_MAX, err) || whole(&r->edge_feature, 0, INT16_MAX, err))
		return err->code;
	if (r->edge.columns != 2 && bonds) return nr_fail(err, NR_EFORMAT, "cannot read", r->edge.path, "lines must have two cells");
	s->tasks = (int32_t)r->label.columns;
	s->node_features = (int32_t)r->node_feature.columns;
	s->edge_features = bonds ? (int32_t)r->edge_feature.columns : 1;
	s->row = nr_arena_alloc(s->arena, (size_t)graphs * sizeof *s->row + 1);
	if (!s->row) return nr_fail(err, NR_EMEMORY, "cannot read", folder, "out of memory");
	for (s->rows = 0; s->rows < graphs; s->rows++)
		if (one_graph(s, r, s->rows, err)) return err->code;
	return read_splits(s, folder, err);
}
