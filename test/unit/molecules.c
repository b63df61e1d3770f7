/* data/molecules*.c: CSV and raw folders come in with their counts; bad rows are told, left out or fatal; the cache gives the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/molecules.h"
#include "fetch/unpack.h"

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char csv[] = "smiles,active,toxic,split\n"
	"CCO,1,0.5,train\n"
	"c1ccccc1,0,,valid\n"
	"\"C[C@H](N)C(=O)O\",,1,test\r\n"
	"C1CC,1,0,train\n"
	"CC,x,0,train\n"
	"CC,1,0,later\n"
	"CC,1\n"
	"[Na+].[Cl-],0,0,train\n";

struct told { int64_t rows[8]; int n; char detail[8][768]; };

static void note(void *context, int64_t row, const struct nr_error *why)
{
	struct told *t = context;
	assert_true(t->n < 8);
	snprintf(t->detail[t->n], sizeof t->detail[0], "%s", why->detail);
	t->rows[t->n++] = row;
}

static struct nr_molecules *open_set(const struct nr_molecules_config *c)
{
	struct nr_molecules *m;
	struct nr_error err = { 0 };
	char text[1536];
	if (nr_molecules_open(&m, c, &err)) fail_msg("%s", nr_error_text(&err, text, sizeof text));
	return m;
}

static void csv_rows_and_missing_labels(void **state)
{
	(void)state;
	char path[] = "/tmp/norma-molecules-XXXXXX";
	assert_true(mkstemp(path) >= 0);
	write_text(path, csv);
	struct told t = { 0 };
	struct nr_molecules *m = open_set(&(struct nr_molecules_config){ .path = path, .told = note, .context = &t });
	assert_int_equal(m->graphs, 4);
	assert_int_equal(m->bad, 4);
	assert_int_equal(m->tasks, 2);
	assert_int_equal(m->count[NR_MOL_TRAIN], 2);
	assert_int_equal(m->count[NR_MOL_TEST], 1);
	assert_true(m->target[0] == 1 && m->target[1] == 0.5f && isnan(m->target[3]) && isnan(m->target[4]));
	assert_int_equal(t.n, 4);
	assert_int_equal(t.rows[0], 4);
	assert_non_null(strstr(t.detail[0], "column 2: ring 1"));
	assert_non_null(strstr(t.detail[1], "'x' is not a number"));
	assert_non_null(strstr(t.detail[2], "'later' is not a split"));
	assert_non_null(strstr(t.detail[3], "2 cells, but the header has 4"));
	assert_int_equal(m->largest, 6);
	assert_string_equal(m->task_name[0], "active");
	assert_string_equal(m->task_name[1], "toxic");
	assert_null(m->task_name[2]);
	nr_molecules_close(m);
	struct nr_error err = { 0 };
	assert_int_not_equal(nr_molecules_open(&m, &(struct nr_molecules_config){ .path = path, .bad = NR_BAD_FATAL }, &err), 0);
	assert_non_null(strstr(err.detail, "row 4, column 2"));
	write_text(path, "name,target\nCC,1\n");
	err = (struct nr_error){ 0 };
	assert_int_equal(nr_molecules_open(&m, &(struct nr_molecules_config){ .path = path }, &err), NR_EFORMAT);
	unlink(path);
}

static void cache_gives_the_same_and_tells_damage(void **state)
{
	(void)state;
	char path[] = "/tmp/norma-molecules-XXXXXX", cache[64];
	assert_true(mkstemp(path) >= 0);
	write_text(path, csv);
	snprintf(cache, sizeof cache, "%s.cache", path);
	const struct nr_molecules_config c = { .path = path, .bad = NR_BAD_SKIP, .cache = cache };
	struct nr_molecules *a = open_set(&c), *b = open_set(&c);
	assert_true(!a->cached && b->cached);
	assert_int_equal(a->at[a->graphs], b->at[b->graphs]);
	assert_memory_equal(a->packed, b->packed, (size_t)a->at[a->graphs]);
	assert_memory_equal(a->target, b->target, (size_t)(a->graphs * a->tasks) * sizeof *a->target);
	assert_int_equal(b->count[NR_MOL_VALID], 1);
	assert_string_equal(b->task_name[1], "toxic");
	nr_molecules_close(a);
	nr_molecules_close(b);
	FILE *f = fopen(cache, "r+");
	fseek(f, -40, SEEK_END);
	const int was = fgetc(f);
	fseek(f, -40, SEEK_END);
	fputc(was ^ 1, f);
	fclose(f);
	struct nr_error err = { 0 };
	assert_int_equal(nr_molecules_open(&a, &c, &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "checksum"));
	write_text(path, "smiles,target\nCC,1\n");               /* another source: the old cache is replaced */
	a = open_set(&c);
	assert_int_equal(a->graphs, 1);
	nr_molecules_close(a);
	unlink(path);
	unlink(cache);
}

static void raw_folder_has_both_directions(void **state)
{
	(void)state;
	char dir[] = "/tmp/norma-molecules-XXXXXX", path[160];
	static const struct { const char *name, *text; } files[] = {
		{ "raw/num-node-list.csv", "3\n1\n" }, { "raw/num-edge-list.csv", "2\n0\n" }, { "raw/edge.csv", "0,1\n1,2\n" },
		{ "raw/node-feat.csv", "5,0\n6,1\n7,0\n8,0\n" }, { "raw/edge-feat.csv", "1\n2\n" }, { "raw/graph-label.csv", "1\n\n" },
		{ "split/scaffold/train.csv", "1\n" }, { "split/scaffold/valid.csv", "0\n" }, { "split/scaffold/test.csv", "0\n" } };
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, (const char *[]){ "raw", "split", "split/scaffold" }[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i].name);
		write_text(path, files[i].text);
	}
	struct nr_molecules *m = open_set(&(struct nr_molecules_config){ .path = dir });
	struct nr_arena *arena = nr_arena_make();
	struct nr_molgraph g;
	struct nr_error err = { 0 };
	assert_int_equal(m->graphs, 2);
	assert_int_equal(m->node_features, 2);
	assert_null(m->task_name);
	assert_true(m->target[0] == 1 && isnan(m->target[1]));
	assert_int_equal(m->split[0], NR_MOL_TEST);
	assert_int_equal(nr_molecules_graph(m, 0, &g, arena, &err), 0);
	assert_int_equal(g.edges, 4);
	assert_true(g.from[1] == 1 && g.to[1] == 0 && g.edge[2] == 2 && g.edge[3] == 2 && g.node[2] == 6);
	const struct nr_molgraph_offsets offsets = { 512, 512, 20 };
	struct nr_molgraph_input in;
	assert_int_equal(nr_molecules_input(m, 0, &offsets, &in, arena, &err), 0);
	assert_int_equal(in.spatial[2], 3);
	nr_arena_free(arena);
	nr_molecules_close(m);
	snprintf(path, sizeof path, "%s/raw/edge.csv", dir);
	write_text(path, "0,1\n1,3\n");
	assert_int_equal(nr_molecules_open(&m, &(struct nr_molecules_config){ .path = dir }, &err), NR_EFORMAT);
	assert_non_null(strstr(err.detail, "line 2: graph 0 has only 3 nodes"));
	static const struct { int file; const char *text, *why; } wrong[] = {
		{ 0, "3\n1.5\n", "line 2: 1.5 is not a whole number from 1" }, { 0, "3\n0\n", "line 2: 0 is not a whole number from 1" },
		{ 0, "3,1\n", "lines must have one cell" }, { 1, "2\n\n", "line 2: an empty cell is not a whole number" },
		{ 1, "2\n-1\n", "line 2: -1 is not a whole number" }, { 2, "0,1\n1,0.5\n", "line 2: 0.5 is not a whole number" },
		{ 2, "0,1\n,0\n", "line 2: an empty cell" },
		{ 3, "5,0\n6,1\n70000,0\n8,0\n", "line 3: 70000 is not a whole number from 0 to 32767" },
		{ 3, "5,0\n6,1\n7,1e300\n8,0\n", "line 3: 1e+300 is not" }, { 4, "1\n-2\n", "line 2: -2 is not a whole number" },
		{ 4, "1\nnan\n", "line 2: an empty cell is not" }, { 6, "2\n", "line 1: 2 is not a whole number from 0 to 1" } };
	write_text(path, files[2].text);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		err = (struct nr_error){ 0 };
		snprintf(path, sizeof path, "%s/%s", dir, files[wrong[i].file].name);
		write_text(path, wrong[i].text);
		assert_int_equal(nr_molecules_open(&m, &(struct nr_molecules_config){ .path = dir }, &err), NR_EFORMAT);
		if (!strstr(err.detail, wrong[i].why)) fail_msg("'%s', not '%s'", err.detail, wrong[i].why);
		write_text(path, files[wrong[i].file].text);
	}
	assert_int_equal(nr_remove_tree(dir, NULL), 0);
}

static void lines_are_a_set_without_targets(void **state)
{
	(void)state;
	static const char *const text[] = { "  CCO ethanol", "C1CC\tring", "c1ccccc1", "" };
	struct nr_smiles_span line[4];
	struct nr_molecules *m;
	struct nr_error err = { 0 };
	struct told t = { 0 };
	size_t size;
	for (int i = 0; i < 4; i++) line[i] = (struct nr_smiles_span){ text[i], strlen(text[i]) };
	const struct nr_molecules_config c = { .features = NR_FEATURES_ZINC, .told = note, .context = &t };
	assert_int_equal(nr_molecules_make(&m, &c, line, 4, &err), NR_OK);
	assert_int_equal(m->graphs, 2);
	assert_int_equal(m->tasks, 0);
	assert_int_equal(m->node_features, 1);
	assert_int_equal(nr_molecules_nodes(m, 1), 6);
	assert_memory_equal(nr_molecules_smiles(m, 0, &size), "CCO", 3);
	assert_int_equal(size, 3);
	assert_int_equal(t.n, 2);
	assert_true(t.rows[0] == 2 && t.rows[1] == 4);
	nr_molecules_close(m);
	assert_int_equal(nr_molecules_make(&m, &(struct nr_molecules_config){ .bad = NR_BAD_SKIP }, line + 1, 1, &err), NR_OK);
	assert_int_equal(m->graphs, 0);
	nr_molecules_close(m);
}

static void a_name_follows_the_smiles(void **state)
{
	(void)state;
	static const struct { const char *line, *name; } cases[] = { { "CCO ethanol", "ethanol" }, { " CCO\t two words \r\n", "two words" },
		{ "CCO", "" }, { "CCO \t", "" }, { "", "" }, { "  ", "" } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct nr_smiles_span name = nr_smiles_name(cases[i].line, strlen(cases[i].line));
		assert_int_equal(name.size, strlen(cases[i].name));
		assert_memory_equal(name.text, cases[i].name, name.size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_rows_and_missing_labels), cmocka_unit_test(cache_gives_the_same_and_tells_damage),
		cmocka_unit_test(raw_folder_has_both_directions), cmocka_unit_test(lines_are_a_set_without_targets),
		cmocka_unit_test(a_name_follows_the_smiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
