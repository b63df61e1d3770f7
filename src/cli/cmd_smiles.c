/* norma smiles [FILE]: molecules as SMILES to the graphs that models read, one line of JSON each, or to a sheet of drawings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "chem/depict.h"
#include "cli.h"
#include "chem/molecule.h"
#include "chem/molgraph.h"
#include "draw/sheet.h"

struct smiles { char *features, *bad, *draw; };

static const char *const feature_names[] = { "ogb", "zinc", NULL }, *const bad_names[] = { "count", "skip", "fatal", NULL };
enum { OGB, ZINC };
enum { COUNT, SKIP, FATAL };

static const struct nr_option options[] = {
	CLI_TEXT(struct smiles, features, "ogb", "NAMES",
		"features of atoms and bonds: ogb (9 and 3 numbers), zinc (types and bond orders)"),
	CLI_TEXT(struct smiles, bad, "count", "WHAT",
		"what to do with unreadable lines: count (report each and their number), skip (only their number), "
		"fatal"),
	CLI_TEXT(struct smiles, draw, "", "FILE",
		"draw the molecules instead: a sheet of structural formulas as SVG"),
	NR_OPT_END
};

struct run {
	struct nr_arena *arena;
	struct nr_sheet sheet;
	bool draws;
	struct nr_str out;
	int features, bad;
	int64_t row, good, wrong;
};

static int pick(struct cli *c, const char *option, const char *word, const char *const *names, int *which)
{
	for (*which = 0; names[*which]; ++*which)
		if (!strcmp(names[*which], word)) return NR_OK;
	const char *near = nr_nearest(word, names);
	return near ? cli_usage(c, "--%s: there is no choice '%s'; did you mean '%s'?", option, word, near) :
		cli_usage(c, "--%s: there is no choice '%s'", option, word);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

static void add_int(struct nr_str *s, int32_t v)
{
	char text[12], *p = text + sizeof text;
	uint32_t u = v < 0 ? 0u - (uint32_t)v : (uint32_t)v;
	do *--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0) *--p = '-';
	nr_str_add_n(s, p, (size_t)(text + sizeof text - p));
}

static void add_list(struct nr_str *s, const int32_t *v, int32_t n)
{
	nr_str_add_n(s, "[", 1);
	for (int32_t i = 0; i < n; i++) {
		if (i) nr_str_add_n(s, ",", 1);
		add_int(s, v[i]);
	}
	nr_str_add_n(s, "]", 1);
}

static void add_rows(struct nr_str *s, const int32_t *v, int32_t rows, int32_t n)
{
	nr_str_add_n(s, "[", 1);
	for (int32_t i = 0; i < rows; i++) {
		if (i) nr_str_add_n(s, ",", 1);
		add_list(s, v + (int64_t)i * n, n);
	}
	nr_str_add_n(s, "]", 1);
}

/* Only '\' occurs in SMILES and needs an escape. */
static void add_text(struct nr_str *s, const struct nr_molecule *m)
{
	nr_str_add(s, "{\"smiles\":\"");
	for (int32_t i = 0; i < m->length; i++) {
		if (m->text[i] == '\\') nr_str_add_n(s, "\\", 1);
		nr_str_add_n(s, m->text + i, 1);
	}
	nr_str_add(s, "\",");
}

static void add_ogb(struct nr_str *s, const struct nr_molgraph *g)
{
	nr_str_add(s, "\"num_nodes\":");
	add_int(s, g->nodes);
	nr_str_add(s, ",\"node_feat\":");
	add_rows(s, g->node, g->nodes, g->node_features);
	nr_str_add(s, ",\"edge_index\":[");
	add_list(s, g->from, g->edges);
	nr_str_add_n(s, ",", 1);
	add_list(s, g->to, g->edges);
	nr_str_add(s, "],\"edge_feat\":");
	add_rows(s, g->edge, g->edges, g->edge_features);
	nr_str_add(s, "}\n");
}

static void add_zinc(struct nr_str *s, const struct nr_molgraph *g)
{
	nr_str_add(s, "\"atom_type\":");
	add_list(s, g->node, g->nodes);
	nr_str_add(s, ",\"bonds\":[");
	for (int32_t i = 0; i < g->edges; i += 2) {
		if (i) nr_str_add_n(s, ",", 1);
		add_list(s, (const int32_t[]){ g->from[i], g->to[i], g->edge[i] }, 3);
	}
	nr_str_add(s, "]}\n");
}

/* ---- lines ---------------------------------------------------------------------------------------------------------------- */

/* One cell of the sheet, under the name that follows the SMILES, else under the SMILES. */
static int draw(struct run *r, const char *line, size_t size, struct nr_error *err)
{
	enum { LETTERS = 25 };
	char title[4 * LETTERS + 4];
	const struct nr_smiles_span smiles = nr_smiles_span(line, size);
	struct nr_smiles_span name = nr_smiles_name(line, size);
	if (!name.size) name = smiles;
	const bool cut = name.size > LETTERS;
	const size_t shown = cut ? nr_utf8_span(name.text, LETTERS - 1) : name.size;
	snprintf(title, sizeof title, "%.*s%s", (int)shown, name.text, cut ? "\xe2\x80\xa6" : "");
	return nr_depict_on_sheet(&r->sheet, r->good, smiles.text, smiles.size, title, r->arena, err);
}

static int save_sheet(struct run *r, const char *path, struct nr_error *err)
{
	struct nr_str text = { 0 };
	char caption[96];
	snprintf(caption, sizeof caption, "%lld structural formula%s, drawn from SMILES.", (long long)r->good, r->good == 1 ? "" : "s");
	nr_sheet_add(&r->sheet, "Molecules", caption, &text);
	int e = text.failed ? nr_fail(err, NR_EMEMORY, "cannot draw", path, "out of memory") : NR_OK;
	if (!e && strcmp(path, "-") != 0) e = nr_save_file(path, text.text, text.len, err);
	else if (!e && fwrite(text.text, 1, text.len, stdout) != text.len)
		e = nr_fail(err, NR_EIO, "cannot write", "standard output", "%s", strerror(errno));
	nr_str_release(&text);
	return e;
}

static int convert(struct run *r, const char *line, size_t size, struct nr_error *err)
{
	struct nr_molecule m;
	struct nr_molgraph g;
	if (r->draws) return draw(r, line, size, err);
	if (nr_molecule_read(&m, r->arena, line, size, err)) return err->code;
	if (r->features == OGB ? nr_molgraph_ogb(&g, &m, r->arena, err) : nr_molgraph_zinc(&g, &m, r->arena, err)) return err->code;
	r->out.len = 0;
	add_text(&r->out, &m);
	if (r->features == OGB) add_ogb(&r->out, &g);
	else add_zinc(&r->out, &g);
	return r->out.failed ? nr_fail(err, NR_EMEMORY, "cannot write graph", NULL, "out of memory") : NR_OK;
}

/* A line of the golden files is taken, too: its "smiles" is the text. */
static const char *text_of(struct run *r, const char *line, size_t *size, struct nr_error *err)
{
	if (!*size || *line != '{') return line;
	json_t *j = nr_json_parse(line, *size, "line", err);
	const char *text = j ? json_string_value(json_object_get(j, "smiles")) : NULL;
	char *copy = text ? nr_arena_strdup(r->arena, text) : NULL;
	if (j && !copy) nr_fail(err, NR_EFORMAT, "cannot read molecule", NULL, "column 1: the object has no \"smiles\"");
	json_decref(j);
	*size = copy ? strlen(copy) : 0;
	return copy;
}

static int one_line(struct run *r, const char *line, size_t size, struct nr_error *err)
{
	struct nr_error bad = { 0 };
	const struct nr_mark mark = nr_arena_mark(r->arena);
	char text[1536];
	r->row++;
	const char *smiles = text_of(r, line, &size, &bad);
	const int e = smiles ? convert(r, smiles, size, &bad) : bad.code;
	nr_arena_reset(r->arena, mark);
	if (!e) {
		r->good++;
		return r->draws || fwrite(r->out.text, 1, r->out.len, stdout) == r->out.len ? NR_OK :
			nr_fail(err, NR_EIO, "cannot write", "standard output", "%s", strerror(errno));
	}
	r->wrong++;
	if (e == NR_EMEMORY) {
		*err = bad;
		return e;
	}
	if (r->bad == FATAL) {
		nr_fail(err, e, bad.what, bad.subject, "row %lld, %s", (long long)r->row, bad.detail);
		return *bad.hint ? nr_hint(err, "%s", bad.hint) : e;
	}
	if (r->bad == COUNT) fprintf(stderr, "row %lld: %s\n", (long long)r->row, nr_error_text(&bad, text, sizeof text));
	return NR_OK;
}

static int all_lines(struct run *r, FILE *in, const char *name, struct nr_error *err)
{
	char *line = NULL;
	size_t room = 0;
	int e = NR_OK;
	errno = 0;
	for (ssize_t n; !e && (n = getline(&line, &room, in)) >= 0;) {
		while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) n--;
		e = one_line(r, line, (size_t)n, err);
	}
	free(line);
	if (!e && ferror(in)) return nr_fail(err, NR_EIO, "cannot read", name, "%s", strerror(errno));
	return e;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct smiles *o = conf;
	struct run r = { .arena = c->arena, .draws = *o->draw != 0 };
	if (args->count > 1) return cli_usage(c, "smiles takes one file");
	if (pick(c, "features", o->features, feature_names, &r.features) || pick(c, "bad", o->bad, bad_names, &r.bad)) return c->err->code;
	const char *name = args->count ? args->item[0] : "-";
	const bool input = !strcmp(name, "-");
	FILE *in = input ? stdin : fopen(name, "r");
	if (!in) return nr_fail(c->err, NR_EIO, "cannot open", name, "%s", strerror(errno));
	int e = all_lines(&r, in, name, c->err);
	if (!input) fclose(in);
	if (!e && r.draws && (r.good || !r.wrong)) e = save_sheet(&r, o->draw, c->err);
	nr_sheet_release(&r.sheet);
	nr_str_release(&r.out);
	fflush(stdout);
	if (!e && r.wrong)
		fprintf(stderr, "%lld of %lld rows could not be read\n", (long long)r.wrong, (long long)r.row);
	if (!e && r.wrong && !r.good) return nr_fail(c->err, NR_EFORMAT, "cannot read", name,
		"none of its rows is a molecule");
	return e;
}

const struct cli_command cli_smiles = {
	.name = "smiles",
	.title = "turn SMILES into graphs or drawings of molecules",
	.usage = "[FILE]",
	.about = "Reads one SMILES per line, from a file or standard input, and writes one line of JSON for each: its graph, with\n"
		"RDKit's perception and the features of the Open Graph Benchmark (--features ogb) or of ZINC (--features zinc).\n"
		"Text after a space is a name; of a line that is a JSON object, the key \"smiles\" is read.\n"
		"\n"
		"With --draw FILE it writes structural formulas instead, as one SVG: rings as polygons, chains at 120 degrees,\n"
		"alternating double bonds in aromatic rings, wedges at stereo centres. The name is written above the formula.\n"
		"\n"
		"Lines that cannot be read are reported on standard error with row and column, and counted. If no line can be\n"
		"read, the command fails.",
	.conf_size = sizeof(struct smiles),
	.options = options,
	.run = run,
};
