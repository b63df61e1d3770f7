/* See predict_graphs.h. Lines are taken in blocks, so that a long file needs no more memory than a short one. */
#include "predict_graphs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "infer/smiles_runner.h"

enum { BLOCK = 8192, MOST_COLUMNS = 12 };

struct job {
	struct cli *c;
	const struct predict_graphs *o;
	struct nr_molecule_runner *run;
	int64_t tasks;
	const char *unit;                       /* "value" or "probability" */
	bool input, alone;                      /* lines of standard input, not arguments; one argument only */
	struct nr_table *table;                 /* NULL: JSON */
	int64_t lines, asked, failed;           /* lines: empty ones, too */
	struct nr_error last;                   /* of those that failed */
	/* the block */
	struct nr_smiles_span line[BLOCK];
	int64_t number[BLOCK], count;           /* of the line or argument, from 1 */
	bool bad[BLOCK];
};

/* ---- what the model is ------------------------------------------------------------------------------------------------------ */

static const char *task_name(const struct job *j, int64_t task, char *buf, size_t size)
{
	if (task >= j->o->names) snprintf(buf, size, "task %lld", (long long)task + 1);
	else snprintf(buf, size, "%s", j->o->name[task]);
	return buf;
}

static void make_table(struct job *j)
{
	char name[256];
	j->table = nr_table_make();
	nr_table_column(j->table, "molecule", NR_LEFT);
	if (j->tasks > MOST_COLUMNS) nr_table_column(j->table, "task", NR_LEFT);
	for (int64_t t = 0; t < j->tasks && j->tasks <= MOST_COLUMNS; t++)
		nr_table_column(j->table, task_name(j, t, name, sizeof name), NR_RIGHT);
	if (j->tasks > MOST_COLUMNS) nr_table_column(j->table, j->unit, NR_RIGHT);
}

/* ---- results ---------------------------------------------------------------------------------------------------------------- */

/* A text of the user's for a terminal and for JSON: bytes that are neither UTF-8 nor printable become '?'. */
static const char *clean(struct nr_smiles_span s, struct nr_str *out)
{
	out->len = 0;
	for (size_t at = 0; at < s.size;) {
		const size_t good = nr_utf8_span(s.text + at, s.size - at);
		nr_str_add_n(out, s.text + at, good);
		at += good;
		if (at < s.size) nr_str_add_n(out, "?", 1), at++;
	}
	for (size_t i = 0; i < out->len; i++)
		if ((unsigned char)out->text[i] < 0x20 || out->text[i] == 0x7F) out->text[i] = '?';
	return nr_str_text(out);
}

static int json_line(const struct job *j, int64_t i, const double *shown, struct nr_str *text, struct nr_error *err)
{
	const struct nr_smiles_span line = j->line[i], smiles = nr_smiles_span(line.text, line.size);
	const struct nr_smiles_span name = nr_smiles_name(line.text, line.size);
	json_t *list = json_array(), *all = json_pack("{s:I, s:s}", j->input ? "line" : "argument", (json_int_t)j->number[i], "smiles",
		clean(smiles, text));
	if (name.size) json_object_set_new(all, "name", json_string(clean(name, text)));
	for (int64_t t = 0; t < j->tasks; t++) {
		char title[256];
		json_array_append_new(list, json_pack("{s:I, s:s, s:f}", "task", (json_int_t)t + 1, "name",
			task_name(j, t, title, sizeof title), j->unit, shown[t]));
	}
	json_object_set_new(all, "tasks", list);
	return nr_json_line(stdout, all, err);
}

static void table_rows(struct job *j, int64_t i, const double *shown, struct nr_str *text)
{
	struct nr_smiles_span name = nr_smiles_name(j->line[i].text, j->line[i].size);
	char title[256];
	if (!name.size) name = nr_smiles_span(j->line[i].text, j->line[i].size);
	clean(name, text);
	for (int64_t t = 0; t < j->tasks; t++) {
		if (!t || j->tasks > MOST_COLUMNS) nr_table_cell(j->table, "%s", nr_str_text(text));
		if (j->tasks > MOST_COLUMNS) nr_table_cell(j->table, "%s", task_name(j, t, title, sizeof title));
		nr_table_cell(j->table, "%.7g", shown[t]);
	}
}

/* One molecule alone is the command's error; of several each is told. */
static void tell_bad(struct job *j, int64_t i, const struct nr_error *why)
{
	char text[1536];
	j->bad[i] = true;
	j->failed++;
	j->last = *why;
	if (j->alone) return;
	nr_log_line(NR_LOG_ERROR, "%s %lld: %s", j->input ? "line" : "argument", (long long)j->number[i],
		nr_error_text(why, text, sizeof text));
}

static void on_bad(void *job, int64_t i, const struct nr_error *why) { tell_bad(job, i, why); }

/* ---- a block ---------------------------------------------------------------------------------------------------------------- */

static int predict_block(struct job *j)
{
	struct nr_str text = { 0 };
	struct nr_error *err = j->c->err;
	double *out = malloc((size_t)(j->count * j->tasks) * sizeof *out + 1);
	memset(j->bad, 0, sizeof j->bad);
	j->asked += j->count;
	int code = out ? nr_molecule_runner_lines(j->run, j->line, j->count, out, err)
		       : nr_fail(err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	for (int64_t i = 0; !code && i < j->count; i++) {
		if (j->bad[i]) continue;
		if (j->table) table_rows(j, i, out + i * j->tasks, &text);
		else code = json_line(j, i, out + i * j->tasks, &text, err);
	}
	if (!code && text.failed) code = nr_fail(err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	nr_str_release(&text);
	free(out);
	j->count = 0;
	return code;
}

/* ---- lines ------------------------------------------------------------------------------------------------------------------ */

static void put_line(struct job *j, const char *text, size_t size)
{
	j->number[j->count] = j->lines;
	j->line[j->count++] = (struct nr_smiles_span){ text, size };
}

static int from_arguments(struct job *j, char *const *line, int64_t count)
{
	int code = NR_OK;
	for (int64_t i = 0; !code && i < count; i++) {
		j->lines++;
		put_line(j, line[i], strlen(line[i]));
		if (j->count == BLOCK || i + 1 == count) code = predict_block(j);
	}
	return code;
}

/* Lines of a block lie in an arena of their own. Empty ones are passed over. */
static int from_input(struct job *j)
{
	struct nr_arena *arena = nr_arena_make();
	struct nr_error *err = j->c->err;
	char *line = NULL;
	size_t room = 0;
	int code = arena ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot read", "standard input", "out of memory");
	const struct nr_mark start = arena ? nr_arena_mark(arena) : (struct nr_mark){ 0 };
	errno = 0;
	for (ssize_t n; !code && (n = getline(&line, &room, stdin)) >= 0;) {
		j->lines++;
		if (!nr_smiles_span(line, (size_t)n).size) continue;
		char *copy = nr_arena_alloc(arena, (size_t)n + 1);
		if (!copy) code = nr_fail(err, NR_EMEMORY, "cannot read", "standard input", "out of memory");
		else put_line(j, memcpy(copy, line, (size_t)n), (size_t)n);
		if (code || j->count < BLOCK) continue;
		code = predict_block(j);
		nr_arena_reset(arena, start);
	}
	if (!code && ferror(stdin)) code = nr_fail(err, NR_EIO, "cannot read", "standard input", "%s", strerror(errno));
	if (!code && j->count) code = predict_block(j);
	free(line);
	nr_arena_free(arena);
	if (code || j->asked) return code;
	nr_fail(err, NR_EUSAGE, "predict needs molecules", NULL, "standard input has none");
	return nr_hint(err, "echo CCO | norma predict runs/x/best.safetensors, or give SMILES as arguments");
}

int cli_predict_graphs(struct cli *c, const struct predict_graphs *o, const struct nr_weights *w, char *const *line, int64_t count)
{
	struct job *j = nr_arena_alloc(c->arena, sizeof *j);
	if (!j) return nr_fail(c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	*j = (struct job){ .c = c, .o = o, .input = !count, .alone = count == 1 };
	const struct nr_molecule_how how = { .outputs = o->outputs, .bad = on_bad, .context = j };
	if (nr_molecule_runner_open(&j->run, w, &how, c->err)) return c->err->code;
	j->tasks = nr_molecule_runner_outputs(j->run);
	j->unit = nr_molecule_runner_probability(j->run) ? "probability" : "value";
	if (!o->json) make_table(j);
	int code = count ? from_arguments(j, line, count) : from_input(j);
	nr_molecule_runner_close(j->run);
	if (nr_table_rows(j->table)) cli_print_table(j->table);
	else nr_table_free(j->table);
	if (code || !j->failed) return code;
	if (j->alone) *c->err = j->last;
	else nr_fail(c->err, NR_EFORMAT, "molecules failed", NULL, "%lld of %lld", (long long)j->failed, (long long)j->asked);
	return c->err->code;
}
