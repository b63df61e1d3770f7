/* See predict_graphs.h. Lines are taken in blocks, so that a long file needs no more memory than a short one; what is said of a molecule
 * depends on it alone, hence not on the block. */
#include "predict_graphs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "train/graph_runner.h"

enum { BLOCK = 8192, BATCH = 64, MOST_COLUMNS = 12 };

struct job {
	struct cli *c;
	const struct predict_graphs *o;
	const struct nr_weights *w;
	enum nr_graph_objective objective;
	enum nr_features features;
	int64_t tasks;
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

/* Values and yes or no look alike in the weights: training says which, or the user. */
static int find_objective(struct job *j)
{
	const char *said = j->w->objective;
	if (j->o->outputs != OUTPUTS_AUTO) j->objective = j->o->outputs == OUTPUTS_VALUE ? NR_GRAPH_MAE : NR_GRAPH_BCE;
	for (int i = NR_GRAPH_MAE; said && !j->objective && nr_graph_objectives[i]; i++)
		if (!strcmp(said, nr_graph_objectives[i])) j->objective = (enum nr_graph_objective)i;
	if (j->objective) return NR_OK;
	nr_fail(j->c->err, NR_EUSAGE, "cannot tell what the outputs are of", j->w->model.of->name,
		"the file does not say whether it was trained on values or on yes and no");
	return nr_hint(j->c->err, "--outputs value or --outputs probability");
}

static int find_features(struct job *j)
{
	const int64_t nodes = nr_model_int(&j->w->model, "node_features"), edges = nr_model_int(&j->w->model, "edge_features");
	j->features = nodes == 1 ? NR_FEATURES_ZINC : NR_FEATURES_OGB;
	if ((nodes == 9 && edges == 3) || (nodes == 1 && edges == 1)) return NR_OK;
	return nr_fail(j->c->err, NR_EVALUE, "cannot show molecules to", j->w->model.text,
		"it wants %lld features of nodes and %lld of edges; OGB's are 9 and 3, ZINC's 1 and 1", (long long)nodes, (long long)edges);
}

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
	if (j->tasks > MOST_COLUMNS) nr_table_column(j->table, j->objective == NR_GRAPH_BCE ? "probability" : "value", NR_RIGHT);
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
			task_name(j, t, title, sizeof title), j->objective == NR_GRAPH_BCE ? "probability" : "value", shown[t]));
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

static void on_bad_row(void *job, int64_t row, const struct nr_error *why) { tell_bad(job, row - 1, why); }

static int tell(struct job *j, int64_t i, double *score, struct nr_str *text, struct nr_error *err)
{
	for (int64_t t = 0; t < j->tasks; t++) {
		struct nr_error why = { 0 };
		score[t] = nr_graph_shown(j->objective, score[t]);
		if (isfinite(score[t])) continue;
		nr_fail(&why, NR_EDIVERGED, "cannot tell", NULL, "the model's output is not finite");
		tell_bad(j, i, &why);
		return NR_OK;
	}
	if (!j->table) return json_line(j, i, score, text, err);
	table_rows(j, i, score, text);
	return NR_OK;
}

/* ---- a block ---------------------------------------------------------------------------------------------------------------- */

/* Graph k is the k-th line that could be read; those that the model's tables have no rows for are told, the others listed. */
static int list_graphs(struct job *j, const struct nr_graph_form *form, struct nr_graph_list *list, int64_t *line_of)
{
	if (nr_graph_list_open(list, form->set->graphs, j->c->err)) return j->c->err->code;
	for (int64_t i = 0, graph = 0; i < j->count; i++) {
		struct nr_error why = { 0 };
		if (j->bad[i]) continue;
		if (nr_graph_form_check(form, &j->w->model, graph, 1, &why)) tell_bad(j, i, &why);
		else line_of[list->samples] = i, nr_graph_list_add(list, form->set, graph);
		graph++;
	}
	return NR_OK;
}

static int run_list(struct job *j, const struct nr_graph_form *form, const struct nr_graph_list *list, const int64_t *line_of)
{
	struct nr_graph_runner run = { 0 };
	struct nr_str text = { 0 };
	struct nr_error *err = j->c->err;
	double *score = malloc((size_t)(list->samples * j->tasks) * sizeof *score + 1);
	const int64_t batch = list->samples < BATCH ? list->samples : BATCH;
	int code = score ? nr_graph_runner_open(&run, j->w, j->w->norms, form, batch, list->largest, err)
			 : nr_fail(err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	if (!code) code = nr_graph_runner_run(&run, list, score, err);
	for (int64_t k = 0; !code && k < list->samples; k++) code = tell(j, line_of[k], score + k * j->tasks, &text, err);
	if (!code && text.failed) code = nr_fail(err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	nr_graph_runner_close(&run);
	nr_str_release(&text);
	free(score);
	return code;
}

static int predict_block(struct job *j)
{
	const struct nr_molecules_config how = { .features = j->features, .bad = NR_BAD_COUNT, .told = on_bad_row, .context = j };
	struct nr_molecules *set;
	struct nr_graph_form form = { 0 };
	struct nr_graph_list list = { 0 };
	memset(j->bad, 0, sizeof j->bad);
	j->asked += j->count;
	if (nr_molecules_make(&set, &how, j->line, j->count, j->c->err)) return j->c->err->code;
	int64_t *line_of = malloc((size_t)j->count * sizeof *line_of + 1);
	int code = line_of ? NR_OK : nr_fail(j->c->err, NR_EMEMORY, "cannot predict", NULL, "out of memory");
	if (!code && set->graphs) {
		code = nr_graph_form_open(&form, set, &j->w->model, j->c->err);
		if (!code) code = list_graphs(j, &form, &list, line_of);
		if (!code && list.samples) code = run_list(j, &form, &list, line_of);
	}
	free(line_of);
	nr_graph_list_release(&list);
	nr_graph_form_release(&form);
	nr_molecules_close(set);
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
	*j = (struct job){ .c = c, .o = o, .w = w, .tasks = nr_model_int(&w->model, "classes"), .input = !count,
		.alone = count == 1 };
	if (!nr_store_find(w->store, "head.weight"))
		return nr_fail(c->err, NR_EVALUE, "cannot run the model", w->model.of->name, "it has no head");
	if (find_objective(j) || find_features(j)) return c->err->code;
	if (!o->json) make_table(j);
	int code = count ? from_arguments(j, line, count) : from_input(j);
	if (nr_table_rows(j->table)) cli_print_table(j->table);
	else nr_table_free(j->table);
	if (code || !j->failed) return code;
	if (j->alone) *c->err = j->last;
	else nr_fail(c->err, NR_EFORMAT, "molecules failed", NULL, "%lld of %lld", (long long)j->failed, (long long)j->asked);
	return c->err->code;
}
