/* norma data info and show of graphs: counts, sizes, targets; a sheet of formulas. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/save.h"
#include "base/table.h"
#include "chem/depict.h"
#include "data.h"
#include "data/molecule_sets.h"

struct sizes { int32_t least, most; double nodes; };
struct targets { int64_t known; double least, most, mean; };

static struct sizes sizes_of(const struct nr_source *s, enum nr_split split)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	struct sizes z = { .least = INT32_MAX };
	for (int64_t i = 0; i < s->count[split]; i++) {
		const int32_t n = nr_molecules_nodes(m, nr_source_graph(s, split, i));
		z.least = n < z.least ? n : z.least;
		z.most = n > z.most ? n : z.most;
		z.nodes += (double)n / (double)s->count[split];
	}
	return z;
}

static struct targets targets_of(const struct nr_source *s, enum nr_split split, int32_t task)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	struct targets t = { .least = INFINITY, .most = -INFINITY };
	for (int64_t i = 0; i < s->count[split]; i++) {
		const double v = (double)m->target[nr_source_graph(s, split, i) * m->tasks + task];
		if (isnan(v)) continue;
		t.known++;
		t.mean += v;
		t.least = fmin(t.least, v);
		t.most = fmax(t.most, v);
	}
	t.mean = t.known ? t.mean / (double)t.known : NAN;
	return t;
}

static int print_json(struct cli *c, const struct nr_source *s, enum nr_split split)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	const struct sizes z = sizes_of(s, split);
	json_t *counts = json_object(), *list = json_array();
	for (enum nr_split i = NR_TRAIN; i < NR_SPLITS; i++) json_object_set_new(counts, nr_split_name(i), json_integer(s->count[i]));
	for (int32_t i = 0; i < m->tasks; i++) {
		const struct targets t = targets_of(s, split, i);
		json_t *one = json_pack("{s:I}", "known", (json_int_t)t.known);
		if (t.known) json_object_update_new(one, json_pack("{s:f, s:f, s:f}", "least", t.least, "most", t.most, "mean", t.mean));
		json_array_append_new(list, one);
	}
	return nr_json_line(stdout, json_pack("{s:s, s:s, s:s, s:s, s:o, s:[ii], s:f, s:i, s:i, s:I, s:I, s:o}", "name", s->of->name,
		"title", s->of->title, "dir", s->dir, "split", nr_split_name(split), "count", counts, "nodes", z.least, z.most,
		"mean_nodes", z.nodes, "node_features", m->node_features, "edge_features", m->edge_features, "rows", (json_int_t)m->rows,
		"bad_rows", (json_int_t)m->bad, "targets", list), c->err);
}

static void row(const char *label) { printf("%s%-10s%s", cli_bold(), label, cli_plain()); }

static void print_targets(const struct nr_source *s, enum nr_split split)
{
	enum { MOST = 40 };
	const struct nr_molecules *m = nr_source_molecules(s);
	static const char *const titles[] = { "target", "known", "least", "mean", "most" };
	struct nr_table *t = nr_table_make();
	for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) nr_table_column(t, titles[i], i || !m->task_name ? NR_RIGHT : NR_LEFT);
	for (int32_t i = 0; i < m->tasks && i < MOST; i++) {
		const struct targets v = targets_of(s, split, i);
		if (m->task_name) nr_table_cell(t, "%s", m->task_name[i]);
		else nr_table_cell(t, "%d", i + 1);
		nr_table_cell(t, "%lld", (long long)v.known);
		if (v.known) nr_table_cell(t, "%.6g", v.least), nr_table_cell(t, "%.6g", v.mean), nr_table_cell(t, "%.6g", v.most);
		else nr_table_cell(t, "-"), nr_table_cell(t, "-"), nr_table_cell(t, "-");
	}
	struct nr_str text = { 0 };
	nr_table_text(t, &text);
	printf("\n%sSplit %s%s, targets\n%s", cli_bold(), nr_split_name(split), cli_plain(), nr_str_text(&text));
	if (m->tasks > MOST) printf("and %d more\n", m->tasks - MOST);
	nr_str_release(&text);
	nr_table_free(t);
}

int data_info_graphs(struct cli *c, const struct data *o, const struct nr_source *s, enum nr_split split)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	if (o->json) return print_json(c, s, split);
	const struct sizes z = sizes_of(s, split);
	printf("%s%s%s: %s\n", cli_bold(), s->of->name, cli_plain(), s->of->title);
	if (*s->of->cite) row("paper"), printf("%s\n", s->of->cite);
	row("licence"), printf("%s\n", s->of->licence);
	row("where"), printf("%s\n", s->dir);
	row("graphs");
	for (enum nr_split i = NR_TRAIN, first = 1; i < NR_SPLITS; i++)
		if (s->count[i]) printf("%s%lld %s", first ? "" : ", ", (long long)s->count[i], nr_split_name(i)), first = 0;
	if (m->bad) printf("; %lld of %lld rows are not molecules", (long long)m->bad, (long long)m->rows);
	printf("\n");
	row("size"), printf("%d to %d nodes, %.2f on average (%s)\n", z.least, z.most, z.nodes, nr_split_name(split));
	row("features"), printf("%d of a node, %d of an edge\n", m->node_features, m->edge_features);
	print_targets(s, split);
	return NR_OK;
}

/* ---- show --------------------------------------------------------------------------------------------------------------------- */

struct choice { int64_t graph; double target; };

static int by_target(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	return x->target != y->target ? (x->target < y->target ? -1 : 1) : (x->graph > y->graph) - (x->graph < y->graph);
}

/* Some molecules of the split at random, by their first target; those without one come first. */
static int64_t choose(const struct nr_source *s, const struct data *o, struct choice *out)
{
	enum { SHEET_STREAM = 0x53484554 };             /* as for pictures */
	const struct nr_molecules *m = nr_source_molecules(s);
	const enum nr_split split = (enum nr_split)o->split;
	const int64_t n = s->count[split], want = o->count < n ? o->count : n;
	const struct nr_rng rng = nr_rng_make((uint64_t)o->seed, SHEET_STREAM, (uint32_t)split);
	for (int64_t k = 0; k < want; k++) {
		const int64_t graph = nr_source_graph(s, split, (int64_t)nr_rng_permute(rng, (uint64_t)k, (uint64_t)n));
		const double t = m->tasks ? (double)m->target[graph * m->tasks] : (double)NAN;
		out[k] = (struct choice){ graph, isnan(t) ? -INFINITY : t };
	}
	qsort(out, (size_t)want, sizeof *out, by_target);
	return want;
}

int data_show_graphs(struct cli *c, const struct data *o, const struct nr_source *s)
{
	const struct nr_molecules *m = nr_source_molecules(s);
	struct choice *pick = nr_arena_alloc(c->arena, (size_t)o->count * sizeof *pick);
	struct nr_sheet sheet = { 0 };
	struct nr_str text = { 0 };
	if (!pick) return nr_fail(c->err, NR_EMEMORY, "cannot show", s->of->name, "out of memory");
	const int64_t n = choose(s, o, pick);
	int e = NR_OK;
	for (int64_t i = 0; i < n && !e; i++) {
		size_t size;
		char title[64] = "no target";
		const char *smiles = nr_molecules_smiles(m, pick[i].graph, &size);
		if (isfinite(pick[i].target)) snprintf(title, sizeof title, "%.4g", pick[i].target);
		if (!size) e = nr_fail(c->err, NR_EVALUE, "cannot draw", s->of->name, "it has no SMILES");
		else e = nr_depict_on_sheet(&sheet, i, smiles, size, title, c->arena, c->err);
	}
	const char *caption = nr_arena_printf(c->arena, "%lld of %lld molecules of the split %s, with their first target, by its size.",
		(long long)n, (long long)s->count[o->split], nr_split_name((enum nr_split)o->split));
	if (!e) nr_sheet_add(&sheet, s->of->title, caption ? caption : "", &text);
	if (!e && text.failed) e = nr_fail(c->err, NR_EMEMORY, "cannot draw", s->of->name, "out of memory");
	if (!e) e = nr_save_file(o->output, text.text, text.len, c->err);
	if (!e && o->json)
		e = nr_json_line(stdout, json_pack("{s:s, s:s, s:s, s:I}", "name", s->of->name, "output", o->output, "split",
			nr_split_name((enum nr_split)o->split), "molecules", (json_int_t)n), c->err);
	else if (!e) printf("%s: %lld molecules of %s\n", o->output, (long long)n, nr_split_name((enum nr_split)o->split));
	nr_str_release(&text);
	nr_sheet_release(&sheet);
	return e;
}
