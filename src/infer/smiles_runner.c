/* See smiles_runner.h. Lines are taken in blocks, so that many need no more memory than a few; what is said of a molecule depends on it
 * alone, hence not on the block. */
#include "infer/smiles_runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "infer/molecule_runner.h"

enum { BLOCK = 8192, BATCH = 64 };

struct nr_molecule_runner {
	const struct nr_weights *w;
	struct nr_molecule_how how;
	enum nr_mol_objective objective;
	enum nr_features features;
	int64_t outputs;
	struct nr_error first;                  /* of the molecules that failed, if nobody is told of them */
	/* the block */
	const struct nr_smiles_span *line;
	double *out;
	int64_t at, count;                      /* of its first line among all */
	bool bad[BLOCK];
};

static int out_of_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot predict", NULL, "out of memory"); }

/* ---- what the model is ------------------------------------------------------------------------------------------------------ */

/* Values and yes or no look alike in the weights: training says which, or the caller. */
static int find_objective(struct nr_molecule_runner *r, struct nr_error *err)
{
	const char *said = r->w->objective;
	if (r->how.outputs) r->objective = r->how.outputs == NR_MOLECULE_VALUE ? NR_MOL_L1 : NR_MOL_BCE;
	for (int i = NR_MOL_L1; said && !r->objective && nr_mol_objectives[i]; i++)
		if (!strcmp(said, nr_mol_objectives[i])) r->objective = (enum nr_mol_objective)i;
	if (r->objective) return NR_OK;
	nr_fail(err, NR_EUSAGE, "cannot tell what the outputs are of", r->w->model.of->name,
		"the file does not say whether it was trained on values or on yes and no");
	return nr_hint(err, "--outputs value or --outputs probability");
}

static int find_features(struct nr_molecule_runner *r, struct nr_error *err)
{
	const int64_t nodes = nr_model_int(&r->w->model, "node_features"), edges = nr_model_int(&r->w->model, "edge_features");
	r->features = nodes == 1 ? NR_FEATURES_ZINC : NR_FEATURES_OGB;
	if ((nodes == 9 && edges == 3) || (nodes == 1 && edges == 1)) return NR_OK;
	return nr_fail(err, NR_EVALUE, "cannot show molecules to", r->w->model.text,
		"it wants %lld features of nodes and %lld of edges; OGB's are 9 and 3, ZINC's 1 and 1", (long long)nodes, (long long)edges);
}

int nr_molecule_runner_open(struct nr_molecule_runner **out, const struct nr_weights *w, const struct nr_molecule_how *how,
	struct nr_error *err)
{
	struct nr_molecule_runner *r = *out = NULL;
	int code = nr_model_expect(&w->model, NR_MOLECULES, err);
	if (!code && !nr_store_find(w->store, "head.weight"))
		code = nr_fail(err, NR_EVALUE, "cannot run the model", w->model.of->name, "it has no head");
	if (code) return code;
	if (!(r = calloc(1, sizeof *r))) return out_of_memory(err);
	r->w = w;
	r->outputs = nr_model_int(&w->model, "classes");
	if (how) r->how = *how;
	code = find_objective(r, err);
	if (!code) code = find_features(r, err);
	if (code) free(r);
	else *out = r;
	return code;
}

void nr_molecule_runner_close(struct nr_molecule_runner *r) { free(r); }

int64_t nr_molecule_runner_outputs(const struct nr_molecule_runner *r) { return r->outputs; }

bool nr_molecule_runner_probability(const struct nr_molecule_runner *r) { return r->objective == NR_MOL_BCE; }

/* ---- a block ---------------------------------------------------------------------------------------------------------------- */

static void tell_bad(struct nr_molecule_runner *r, int64_t i, const struct nr_error *why)
{
	r->bad[i] = true;
	for (int64_t t = 0; t < r->outputs; t++) r->out[i * r->outputs + t] = NAN;
	if (r->how.bad) r->how.bad(r->how.context, r->at + i, why);
	else if (!r->first.code) r->first = *why;
}

static void on_bad_row(void *runner, int64_t row, const struct nr_error *why) { tell_bad(runner, row - 1, why); }

/* Graph k is the k-th line that could be read; those that the model's tables have no rows for are told, the others listed. */
static int list_graphs(struct nr_molecule_runner *r, const struct nr_mol_form *form, struct nr_mol_list *list, int64_t *line_of,
	struct nr_error *err)
{
	if (nr_mol_list_open(list, form->set->graphs, err)) return err->code;
	for (int64_t i = 0, graph = 0; i < r->count; i++) {
		struct nr_error why = { 0 };
		if (r->bad[i]) continue;
		if (nr_mol_form_check(form, &r->w->model, graph, 1, &why)) tell_bad(r, i, &why);
		else line_of[list->samples] = i, nr_mol_list_add(list, form->set, graph);
		graph++;
	}
	return NR_OK;
}

static void keep(struct nr_molecule_runner *r, int64_t i, const double *score)
{
	for (int64_t t = 0; t < r->outputs; t++) {
		struct nr_error why = { 0 };
		const bool scaled = r->objective != NR_MOL_BCE && t < r->w->targets;
		const double shown = scaled ? score[t] * r->w->target_std[t] + r->w->target_mean[t] : nr_mol_shown(r->objective, score[t]);
		r->out[i * r->outputs + t] = shown;
		if (isfinite(shown)) continue;
		nr_fail(&why, NR_EDIVERGED, "cannot tell", NULL, "the model's output is not finite");
		tell_bad(r, i, &why);
		return;
	}
}

static int run_list(struct nr_molecule_runner *r, const struct nr_mol_form *form, const struct nr_mol_list *list, const int64_t *line_of,
	struct nr_error *err)
{
	struct nr_mol_runner run = { 0 };
	double *score = malloc((size_t)(list->samples * r->outputs) * sizeof *score + 1);
	const int64_t batch = list->samples < BATCH ? list->samples : BATCH;
	int code = score ? nr_mol_runner_open(&run, r->w, r->w->norms, form, batch, list->largest, err) : out_of_memory(err);
	if (!code) code = nr_mol_runner_run(&run, list, score, err);
	for (int64_t k = 0; !code && k < list->samples; k++) keep(r, line_of[k], score + k * r->outputs);
	nr_mol_runner_close(&run);
	free(score);
	return code;
}

static int run_block(struct nr_molecule_runner *r, struct nr_error *err)
{
	const struct nr_molecules_config how = { .features = r->features, .bad = NR_BAD_COUNT, .told = on_bad_row, .context = r };
	struct nr_molecules *set;
	struct nr_mol_form form = { 0 };
	struct nr_mol_list list = { 0 };
	memset(r->bad, 0, sizeof r->bad);
	if (nr_molecules_make(&set, &how, r->line, r->count, err)) return err->code;
	int64_t *line_of = malloc((size_t)r->count * sizeof *line_of + 1);
	int code = line_of ? NR_OK : out_of_memory(err);
	if (!code && set->graphs) {
		code = nr_mol_form_open(&form, set, &r->w->model, err);
		if (!code) code = list_graphs(r, &form, &list, line_of, err);
		if (!code && list.samples) code = run_list(r, &form, &list, line_of, err);
	}
	free(line_of);
	nr_mol_list_release(&list);
	nr_mol_form_release(&form);
	nr_molecules_close(set);
	return code;
}

int nr_molecule_runner_lines(struct nr_molecule_runner *r, const struct nr_smiles_span *line, int64_t n, double *out, struct nr_error *err)
{
	struct nr_error own = { 0 };
	if (!err) err = &own;
	r->first = own;
	for (int64_t at = 0; at < n; at += BLOCK) {
		r->at = at;
		r->count = n - at < BLOCK ? n - at : BLOCK;
		r->line = line + at;
		r->out = out + at * r->outputs;
		if (run_block(r, err)) return err->code;
		if (r->first.code) return *err = r->first, r->first.code;
	}
	return NR_OK;
}

int nr_molecule_runner_run(struct nr_molecule_runner *r, const char *const *smiles, int64_t n, double *out, struct nr_error *err)
{
	struct nr_smiles_span *line = malloc((size_t)n * sizeof *line + 1);
	if (!line) return out_of_memory(err);
	for (int64_t i = 0; i < n; i++) line[i] = (struct nr_smiles_span){ smiles[i], strlen(smiles[i]) };
	const int code = nr_molecule_runner_lines(r, line, n, out, err);
	free(line);
	return code;
}
