/* smiles/NAME.jsonl: one molecule per line, its SMILES and the graph that OGB or ZINC make of it. Atoms, bonds and their order must
 * be equal; of ZINC's bond orders only the sum counts where a ring leaves the choice. */
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "chem/molgraph.h"
#include "golden/check.h"

static bool same_list(json_t *want, const int32_t *got, size_t n, size_t step)
{
	if (json_array_size(want) != n) return false;
	for (size_t i = 0; i < n; i++)
		if (json_integer_value(json_array_get(want, i)) != got[i * step]) return false;
	return true;
}

static bool same_rows(json_t *want, const int32_t *got, size_t rows, size_t n)
{
	if (json_array_size(want) != rows) return false;
	for (size_t i = 0; i < rows; i++)
		if (!same_list(json_array_get(want, i), got + i * n, n, 1)) return false;
	return true;
}

static const char *wrong_ogb(json_t *want, const struct nr_molgraph *g)
{
	json_t *index = json_object_get(want, "edge_index");
	const size_t nodes = (size_t)g->nodes, edges = (size_t)g->edges;
	if (json_integer_value(json_object_get(want, "num_nodes")) != g->nodes) return "num_nodes";
	if (!same_rows(json_object_get(want, "node_feat"), g->node, nodes, (size_t)g->node_features)) return "node_feat";
	if (!same_list(json_array_get(index, 0), g->from, edges, 1) || !same_list(json_array_get(index, 1), g->to, edges, 1))
		return "edge_index";
	return same_rows(json_object_get(want, "edge_feat"), g->edge, edges, (size_t)g->edge_features) ? NULL : "edge_feat";
}

static const char *wrong_zinc(json_t *want, const struct nr_molgraph *g)
{
	json_t *bonds = json_object_get(want, "bonds");
	const size_t n = (size_t)g->edges / 2;
	json_int_t sum = 0;
	if (!same_list(json_object_get(want, "atom_type"), g->node, (size_t)g->nodes, 1)) return "atom_type";
	if (json_array_size(bonds) != n) return "bonds";
	for (size_t i = 0; i < n; i++) {
		json_t *b = json_array_get(bonds, i);
		if (!same_list(json_array_get(bonds, i), (const int32_t[]){ g->from[2 * i], g->to[2 * i],
			(int32_t)json_integer_value(json_array_get(b, 2)) }, 3, 1)) return "bonds";
		sum += g->edge[2 * i] - json_integer_value(json_array_get(b, 2));
	}
	return sum ? "sum of the bond orders" : NULL;
}

static void check_line(struct golden_case *c, const char *line, size_t size, int64_t row)
{
	struct nr_error err = { 0 };
	struct nr_molecule m;
	struct nr_molgraph g;
	char text[1536];
	const struct nr_mark mark = nr_arena_mark(c->arena);
	json_t *want = nr_json_parse(line, size, c->path, &err);
	const char *smiles = json_string_value(json_object_get(want, "smiles")), *wrong = NULL;
	const bool ogb = json_object_get(want, "node_feat") != NULL;
	if (want && !smiles) nr_fail(&err, NR_EFORMAT, "cannot read", c->path, "no \"smiles\"");
	if (!err.code && !nr_molecule_read(&m, c->arena, smiles, strlen(smiles), &err) &&
		!(ogb ? nr_molgraph_ogb(&g, &m, c->arena, &err) : nr_molgraph_zinc(&g, &m, c->arena, &err)))
		wrong = ogb ? wrong_ogb(want, &g) : wrong_zinc(want, &g);
	if (err.code) golden_fail(c, NULL, "row %lld: %s", (long long)row, nr_error_text(&err, text, sizeof text));
	else if (wrong) golden_fail(c, wrong, "row %lld, '%s': not equal", (long long)row, smiles);
	c->checks++;
	json_decref(want);
	nr_arena_reset(c->arena, mark);
}

void golden_smiles(struct golden_case *c)
{
	struct nr_bytes bytes = { 0 };
	struct nr_error err = { 0 };
	char text[1536];
	if (nr_bytes_map(&bytes, c->path, &err)) {
		golden_fail(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
		return;
	}
	const char *p = (const char *)bytes.data, *end = p + bytes.size;
	for (int64_t row = 1; p < end; row++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		if (!stop) stop = end;
		if (stop > p) check_line(c, p, (size_t)(stop - p), row);
		p = stop + 1;
	}
	if (c->verbose && !c->failures) fprintf(c->out, "ok %s: %lld molecules\n", c->path, (long long)c->checks);
	if (!c->checks) golden_fail(c, NULL, "no molecules");
	nr_bytes_release(&bytes);
}
