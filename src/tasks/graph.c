/* graph: values or classes of molecules, by a model of graphs. Ying et al. 2021, arXiv:2106.05234.
 *
 * Regression by absolute or squared error, one or several yes-or-no tasks by binary cross entropy; targets that are missing count nowhere.
 * Graphs of like sizes share a batch. With `flag` every step is several passes over one batch, whose nodes get noise that climbs the loss
 * (FLAG: Kong et al. 2020, arXiv:2010.09891): the gradients of all passes are averaged.
 *
 * An evaluation is the mean absolute error in the units of the targets, or the area under the ROC curve as OGB's evaluator takes it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/auc.h"
#include "base/real.h"
#include "base/rng.h"
#include "data/order.h"
#include "graph/streams.h"
#include "infer/finite.h"
#include "infer/molecule_runner.h"
#include "infer/weights.h"
#include "norma/nn.h"
#include "train/task.h"

struct settings {
	int32_t objective;                              /* enum nr_mol_objective */
	int32_t standardize;
	int64_t max_nodes, bucket, flag;
	bool test;
	double flag_step;
};

enum { AUTO, YES, NO };
static const char *const answers[] = { "auto", "yes", "no", NULL };
static const struct nr_option options[] = {
	NR_OPT_ENUM(struct settings, standardize, "auto", answers,
		"learn targets with mean 0 and standard deviation 1; auto: those of your own files. Results have the targets' units"),
	NR_OPT_ENUM(struct settings, objective, "auto", nr_mol_objectives,
		"absolute error, squared error, or yes and no; auto: bce if all targets are 0 or 1, otherwise mae"),
	NR_OPT_INT(struct settings, max_nodes, 128, 1, 1024,
		"leave graphs with more nodes out of training; evaluations include them"),
	NR_OPT_INT(struct settings, bucket, 16, 0, 1000000,
		"sort the graphs of N batches by size to reduce padding; 0: do not sort"),
	NR_OPT_BOOL(struct settings, test, "1", "also measure the test split, if it is not the one that decides"),
	NR_OPT_INT(struct settings, flag, 0, 0, 100,
		"passes per step with adversarial noise on the nodes (FLAG: 3); 0: none"),
	NR_OPT_FLOAT(struct settings, flag_step, 0.01, 0, 100, "step of that noise from pass to pass"),
	NR_OPT_END
};

enum { LOSS, MEAN_ERROR, AREA, TEST_ERROR, TEST_AREA, ROOT_ERROR, R2, TEST_ROOT, TEST_R2 };
enum { HELD, TEST, SETS };                              /* what is evaluated */
enum { DRAW_NOISE = 3 };                                /* stream beside those of masks */

struct held { const char *name; struct nr_mol_list list; double *score, *target; };
struct graph {
	struct nr_mol_form form;
	struct nr_mol_list list;
	struct nr_order order;
	struct nr_mol_sizes sizes;
	enum nr_known loss;
	enum nr_mol_objective objective;              /* settled */
	int64_t targets;                                /* known ones, of all samples */
	double *mean, *std;                             /* (tasks) of the training's targets; NULL: not standardised */
	const int32_t *sample;                          /* of the batch at hand */
	struct nr_mol_inputs inputs[NR_TASK_SHAPES];
	struct held held[SETS];                         /* made at the first evaluation */
	struct nr_mol_runner runner;                  /* likewise */
	int64_t batch;                                  /* of it */
};

/* ---- settings that follow the data ---------------------------------------------------------------------------------------------- */

static const struct settings *settings_of(const struct nr_task_run *r) { return r->settings; }

static int find_objective(struct graph *s, const struct nr_task_run *r, const struct nr_molecules *m, struct nr_error *err)
{
	const bool classes = nr_mol_yes_or_no(m, &s->targets);
	if (!s->targets) {
		nr_fail(err, NR_EVALUE, "cannot train on", r->c->data, "it has no targets");
		return nr_hint(err, "columns other than `smiles` and `split` are targets");
	}
	const enum nr_mol_objective asked = (enum nr_mol_objective)settings_of(r)->objective;
	if (asked == NR_MOL_BCE && !classes) {
		nr_fail(err, NR_EVALUE,
			"objective=bce cannot be used with", r->c->data, "some targets are neither 0 nor 1");
		return nr_hint(err, "use --objective mae or mse");
	}
	s->objective = asked != NR_MOL_AUTO ? asked : classes ? NR_MOL_BCE : NR_MOL_L1;
	s->loss = s->objective == NR_MOL_BCE ? NR_KNOWN_BCE : s->objective == NR_MOL_MSE ? NR_KNOWN_SQUARE : NR_KNOWN_ABSOLUTE;
	r->w->objective = nr_mol_objectives[s->objective];
	r->w->class_name = m->task_name;
	return NR_OK;
}

/* Edges of a path that the inputs have: as many as the model counts. */
static int64_t paths_of(const struct nr_model_spec *model)
{
	char kind[32] = "";
	const struct nr_option *o = nr_option_find(model->of->options, "edges");
	if (o) nr_option_text(o, model->conf, kind, sizeof kind);
	const int64_t hops = nr_model_int(model, "hops");
	return !strcmp(kind, "simple") ? 0 : hops > 0 && hops < NR_PATH_EDGES ? hops : NR_PATH_EDGES;
}

/* Of the known targets of the training; a task without a spread is only shifted. */
static int standardize(struct graph *s, const struct nr_task_run *r, const struct nr_molecules *m, struct nr_error *err)
{
	const int32_t want = settings_of(r)->standardize;
	if (s->objective == NR_MOL_BCE || want == NO || (want == AUTO && r->source->of->folder)) return NR_OK;
	s->mean = nr_arena_alloc(r->arena, (size_t)m->tasks * sizeof *s->mean);
	s->std = nr_arena_alloc(r->arena, (size_t)m->tasks * sizeof *s->std);
	if (!s->mean || !s->std) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	for (int32_t t = 0; t < m->tasks; t++) {
		double sum = 0, square = 0;
		int64_t n = 0;
		for (int pass = 0; pass < 2; pass++) {
			const double mean = n ? sum / (double)n : 0;
			for (int64_t i = 0; i < s->list.samples; i++) {
				const double v = (double)m->target[s->list.graph[i] * m->tasks + t];
				if (isnan(v)) continue;
				if (!pass) sum += v, n++;
				else square += (v - mean) * (v - mean);
			}
		}
		s->mean[t] = n ? sum / (double)n : 0;
		s->std[t] = n && square > 0 ? sqrt(square / (double)n) : 1;
	}
	return NR_OK;
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	struct graph *s = r->own;
	const struct nr_molecules *m = nr_source_molecules(r->source);
	if (nr_model_expect(&r->w->model, NR_MOLECULES, err) || find_objective(s, r, m, err)) return err->code;
	if (nr_mol_list_make(&s->list, r->source, r->train.split, r->train.index, r->train.count, settings_of(r)->max_nodes, err))
		return err->code;
	if (s->list.samples < r->c->batch) {
		nr_fail(err, NR_EVALUE, "cannot train on", r->c->data,
			"%lld graphs of at most %lld nodes do not fill a batch of %lld",
			(long long)s->list.samples, (long long)settings_of(r)->max_nodes, (long long)r->c->batch);
		return nr_hint(err, "use a smaller --batch");
	}
	s->sizes = nr_mol_sizes(s->list.largest);
	const struct { const char *option; int64_t value; } set[] = { { "nodes", m->largest }, { "node_features", m->node_features },
		{ "edge_features", m->edge_features }, { "classes", m->tasks }, { "paths", paths_of(&r->w->model) } };
	for (size_t i = 0; i < sizeof set / sizeof *set; i++)
		if (nr_task_set(r, set[i].option, set[i].value, err)) return err->code;
	const struct nr_model_spec *model = &r->w->model;
	if (nr_model_int(model, "node_features") != m->node_features || nr_model_int(model, "edge_features") != m->edge_features ||
		nr_model_int(model, "classes") != m->tasks)
		return nr_fail(err, NR_EVALUE, "cannot train", r->c->model,
			"the graphs have %d features of nodes, %d of edges, and %d targets", m->node_features, m->edge_features, m->tasks);
	r->decides = s->loss == NR_KNOWN_BCE ? AREA : MEAN_ERROR;
	r->passes = settings_of(r)->flag > 0 ? settings_of(r)->flag : 1;
	if (nr_mol_form_make(&s->form, m, &r->w->model, err) || standardize(s, r, m, err)) return err->code;
	s->form.mean = s->mean, s->form.std = s->std;
	return nr_order_make(&s->order, s->list.nodes, s->list.samples, r->c->batch, settings_of(r)->bucket, (uint64_t)r->c->seed, err);
}

/* ---- the graph ------------------------------------------------------------------------------------------------------------------ */

static int64_t shapes(struct nr_task_run *r) { return ((struct graph *)r->own)->sizes.count; }

static nr_t *record(struct nr_task_run *r)
{
	struct graph *s = r->own;
	struct nr_mol_inputs *p = &s->inputs[r->shape];
	const int64_t nodes = s->sizes.largest - r->shape * s->sizes.step;
	nr_mol_inputs(p, r->net, &s->form, r->c->batch, nodes, true);
	if (settings_of(r)->flag > 0) {
		p->in.noise = nr_input(r->net, "noise", NR_REAL, NR_SHAPE(r->c->batch, nodes, nr_model_int(&r->w->model, "dim")));
		if (p->in.noise) p->in.noise->flags |= NR_GRAD;
	}
	nr_t *output = nr_tap(r->net, "output", nr_model_logits(r->net, &r->w->model, &p->in));
	nr_t *loss = nr_known_loss(r->net, output, p->target, s->loss);
	return r->passes > 1 ? nr_scale(r->net, loss, 1 / (double)r->passes) : loss;
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	(void)err;
	((struct graph *)r->own)->batch = batch;
	return NR_OK;
}

/* ---- batches -------------------------------------------------------------------------------------------------------------------- */

static int64_t choose(struct nr_task_run *r, int64_t number)
{
	struct graph *s = r->own;
	int32_t largest;
	s->sample = nr_order_batch(&s->order, number, &largest);
	return nr_mol_size_of(&s->sizes, largest);
}

/* Noise begins between -step and step, as the public code has it if no magnitude is set. */
static void begin_noise(const struct nr_task_run *r, const nr_t *noise, int64_t number)
{
	const struct nr_rng rng = nr_rng_make((uint64_t)r->c->seed, NR_STREAM_MASK + DRAW_NOISE, (uint32_t)number);
	real *x = nr_plan_data(r->plan, noise);
	const real step = (real)settings_of(r)->flag_step;
	const int64_t n = nr_len(noise);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i++) x[i] = step * (real)(2 * nr_rng_uniform(rng, (uint64_t)i) - 1);
}

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	struct graph *s = r->own;
	const struct nr_mol_inputs *p = &s->inputs[r->shape];
	(void)b;
	nr_mol_bind(&s->form, &s->list, r->plan, p, s->sample, r->c->batch);
	if (p->in.noise) begin_noise(r, p->in.noise, number);
}

/* One step up the loss. */
static void again(struct nr_task_run *r)
{
	const nr_t *noise = ((struct graph *)r->own)->inputs[r->shape].in.noise;
	real *x = nr_plan_data(r->plan, noise);
	const real *slope = nr_plan_grad(r->plan, noise), step = (real)settings_of(r)->flag_step;
	const int64_t n = nr_len(noise);
#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < n; i++) x[i] += step * (real)((slope[i] > 0) - (slope[i] < 0));
}

/* ---- evaluation ----------------------------------------------------------------------------------------------------------------- */

/* As the file has them, or as the model learns them. */
static void take_targets(const struct graph *s, struct held *h, bool standard)
{
	const int64_t tasks = s->form.set->tasks;
	for (int64_t i = 0; i < h->list.samples * tasks; i++) {
		const double v = (double)s->form.set->target[h->list.graph[i / tasks] * tasks + i % tasks];
		h->target[i] = standard ? (v - s->mean[i % tasks]) / s->std[i % tasks] : v;
	}
}

static int open_set(struct graph *s, struct held *h, const struct nr_evaluation *e, enum nr_split split, const int32_t *index,
	int64_t count, struct nr_error *err)
{
	const struct nr_molecules *m = s->form.set;
	h->name = nr_split_name(index ? NR_VAL : split);        /* held out of the training: reports show it as such */
	if (nr_mol_list_make(&h->list, e->source, split, index, count, 0, err)) return err->code;
	h->score = malloc((size_t)(count * m->tasks) * sizeof *h->score + 1);
	h->target = malloc((size_t)(count * m->tasks) * sizeof *h->target + 1);
	if (!h->score || !h->target) return nr_fail(err, NR_EMEMORY, "cannot evaluate", NULL, "out of memory");
	take_targets(s, h, false);
	return NR_OK;
}

static int open_held(struct nr_task_run *r, const struct nr_evaluation *e, struct nr_error *err)
{
	struct graph *s = r->own;
	const int64_t n = e->count ? e->count : e->source->count[e->split], all = e->source->count[NR_TEST];
	if (s->runner.sizes.count) return NR_OK;
	if (open_set(s, &s->held[HELD], e, e->split, e->index, n, err)) return err->code;
	if (settings_of(r)->test && all && (e->split != NR_TEST || e->index) &&
		open_set(s, &s->held[TEST], e, NR_TEST, NULL, r->c->eval_limit && r->c->eval_limit < all ? r->c->eval_limit : all, err))
		return err->code;
	const int32_t a = s->held[HELD].list.largest, b = s->held[TEST].list.largest;
	const int code = nr_mol_runner_open(&s->runner, r->w, r->norms, &s->form, s->batch, a > b ? a : b, err);
	s->runner.comm = e->comm;
	return code;
}

static double loss_of(enum nr_known kind, double x, double t)
{
	if (kind == NR_KNOWN_BCE) return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
	return kind == NR_KNOWN_SQUARE ? (x - t) * (x - t) : fabs(x - t);
}

/* Mean of a loss over the known targets. */
static double mean_of(const struct held *h, int64_t n, enum nr_known kind)
{
	double sum = 0;
	int64_t count = 0;
	for (int64_t i = 0; i < n; i++)
		if (!isnan(h->target[i])) sum += loss_of(kind, h->score[i], h->target[i]), count++;
	return count ? sum / (double)count : NAN;
}

/* The share of the targets' variance that is explained: the mean over the tasks whose targets vary. */
static double explained(const struct held *h, int64_t samples, int64_t tasks)
{
	double all = 0;
	int64_t counted = 0;
	for (int64_t t = 0; t < tasks; t++) {
		double mean = 0, error = 0, spread = 0;
		int64_t n = 0;
		for (int64_t i = t; i < samples * tasks; i += tasks)
			if (!isnan(h->target[i])) mean += (h->target[i] - mean) / (double)++n;
		for (int64_t i = t; i < samples * tasks; i += tasks) {
			if (isnan(h->target[i])) continue;
			error += (h->score[i] - h->target[i]) * (h->score[i] - h->target[i]);
			spread += (h->target[i] - mean) * (h->target[i] - mean);
		}
		if (n > 1 && spread > 0) all += 1 - error / spread, counted++;
	}
	return counted ? all / (double)counted : NAN;
}

/* A value that is none makes ranks and means look sound. */
static int check_finite(const struct nr_task_run *r, const double *score, int64_t n, struct nr_error *err)
{
	int64_t i = 0;
	while (i < n && isfinite(score[i])) i++;
	if (i == n) return NR_OK;
	const char *tensor = nr_store_first_bad(r->w->store);
	nr_fail(err, NR_EDIVERGED, "cannot evaluate", r->c->model, "the model's output is not finite");
	return tensor ? nr_hint(err, "the tensor '%s' has values that are not finite", tensor) : NR_EDIVERGED;
}

/* Loss as in training; the rest in the units of the targets. */
static int run_set(const struct nr_task_run *r, struct held *h, double *loss, const int *to, double *value, struct nr_error *err)
{
	struct graph *s = r->own;
	const int64_t n = h->list.samples, tasks = s->form.set->tasks;
	*loss = NAN;
	for (int i = 0; i < 4; i++) value[to[i]] = NAN;
	if (!n) return NR_OK;
	if (nr_mol_runner_run(&s->runner, &h->list, h->score, err) || check_finite(r, h->score, n * tasks, err)) return err->code;
	if (s->std) take_targets(s, h, true);
	*loss = mean_of(h, n * tasks, s->loss);
	if (s->loss == NR_KNOWN_BCE) return nr_roc_auc_mean(n, tasks, h->score, h->target, &value[to[1]], err);
	if (s->std) take_targets(s, h, false);
	for (int64_t i = 0; s->std && i < n * tasks; i++) h->score[i] = h->score[i] * s->std[i % tasks] + s->mean[i % tasks];
	value[to[0]] = mean_of(h, n * tasks, NR_KNOWN_ABSOLUTE);
	value[to[2]] = sqrt(mean_of(h, n * tasks, NR_KNOWN_SQUARE));
	value[to[3]] = explained(h, n, tasks);
	return NR_OK;
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	static const int held[] = { MEAN_ERROR, AREA, ROOT_ERROR, R2 }, test[] = { TEST_ERROR, TEST_AREA, TEST_ROOT, TEST_R2 };
	struct graph *s = r->own;
	double ignored;
	if (open_held(r, e, err)) return err->code;
	*samples = s->held[HELD].list.samples;
	if (run_set(r, &s->held[HELD], &value[LOSS], held, value, err)) return err->code;
	return run_set(r, &s->held[TEST], &ignored, test, value, err);
}

static int64_t known_of(const struct held *h, int64_t n)
{
	int64_t known = 0;
	for (int64_t i = 0; i < n; i++) known += !isnan(h->target[i]);
	return known;
}

/* A row for each known target, in the order of the split; probabilities if they are yes or no. Each says how many tasks there are and how
 * many such rows the split has: a file that was cut is seen to be. */
static int predictions(struct nr_task_run *r, struct nr_str *csv, struct nr_error *err)
{
	enum { MOST = 100000 };                         /* rows: for pages, which show some of them */
	const struct graph *s = r->own;
	const struct nr_molecules *m = s->form.set;
	const int64_t most = s->held[TEST].list.samples ? MOST / SETS : MOST;   /* of each set: a large one leaves room for the other */
	(void)err;
	nr_str_add(csv, "split,graph,task,smiles,target,prediction,tasks,known\n");
	for (int k = 0; k < SETS; k++) {
		const struct held *h = &s->held[k];
		const int64_t n = h->list.samples * m->tasks, known = known_of(h, n);
		int64_t rows = 0;
		for (int64_t i = 0; i < n && rows < most; i++) {
			size_t size;
			const char *smiles = nr_molecules_smiles(m, h->list.graph[i / m->tasks], &size);
			if (isnan(h->target[i])) continue;
			nr_str_printf(csv, "%s,%lld,%lld,", h->name, (long long)h->list.graph[i / m->tasks], (long long)(i % m->tasks + 1));
			nr_str_add_n(csv, smiles, size);
			nr_str_printf(csv, ",%.7g,%.7g,%d,%lld\n", h->target[i], nr_mol_shown(s->objective, h->score[i]), m->tasks,
				(long long)known);
			rows++;
		}
	}
	return NR_OK;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------- */

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	static const char *const names[] = { "absolute error", "squared error", "binary cross entropy" };
	const struct graph *s = r->own;
	const struct settings *o = r->settings;
	const struct nr_molecules *m = s->form.set;
	int64_t nodes = 0;
	for (int64_t i = 0; i < s->list.samples; i++) nodes += s->list.nodes[i];
	nr_str_printf(text, "graphs            %.1f nodes each, at most %d; batches of %lld sizes%s",
		(double)nodes / (double)s->list.samples, s->list.largest, (long long)s->sizes.count,
		o->bucket ? ", sorted within windows" : "");
	if (s->list.left_out) nr_str_printf(text,
		"; %lld larger ones left out of training", (long long)s->list.left_out);
	if (m->bad) nr_str_printf(text,
		"; %lld of %lld rows are not molecules", (long long)m->bad, (long long)m->rows);
	nr_str_printf(text, "\nobjective         %s, %d target%s", names[s->loss], m->tasks, m->tasks > 1 ? "s" : "");
	const int64_t missing = m->graphs * m->tasks - s->targets;
	if (missing) nr_str_printf(text, ", %.3g %% missing", 100 * (double)missing / (double)(m->graphs * m->tasks));
	if (s->std) nr_str_printf(text, m->tasks > 1
		? ", standardised" : ", standardised (mean %.4g, standard deviation %.4g)", s->mean[0], s->std[0]);
	if (o->flag) nr_str_printf(text, "; FLAG: %lld passes, noise by steps of %g", (long long)o->flag, o->flag_step);
	nr_str_add(text, "\n");
}

static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	const struct graph *s = r->own;
	if (!s->std) return 0;
	m[0] = (struct nr_st_meta){ "norma.target_mean", nr_numbers_text(s->mean, s->form.set->tasks, r->arena) };
	m[1] = (struct nr_st_meta){ "norma.target_std", nr_numbers_text(s->std, s->form.set->tasks, r->arena) };
	return 2;
}

static void close(struct nr_task_run *r)
{
	struct graph *s = r->own;
	nr_mol_runner_close(&s->runner);
	for (int k = 0; k < SETS; k++) {
		nr_mol_list_release(&s->held[k].list);
		free(s->held[k].score);
		free(s->held[k].target);
	}
	nr_order_release(&s->order);
	nr_mol_list_release(&s->list);
	nr_mol_form_release(&s->form);
}

static const struct nr_task_default defaults[] = { { "model", "graphormer-slim" }, { "batch", "64" }, { "lr", "2e-4" },
	{ "weight_decay", "0.01" }, { "schedule", "linear" }, { "clip", "global" }, { "clip_norm", "5" }, { NULL, NULL } };

#define TARGET "in units of the target"
static const struct nr_task_metric of_step[] = { { .name = NULL } };
static const struct nr_task_metric of_eval[] = {
	{ .name = "loss", .title = "Held-out loss", .lower = true, .wide = true },
	{ .name = "mae", .label = "mae", .title = "Held-out mean absolute error", .unit = TARGET, .lower = true, .wide = true },
	{ .name = "auc", .label = "auc", .title = "Held-out area under the ROC curve", .unit = "%" },
	{ .name = "test_mae", .label = "test", .title = "Mean absolute error on the test split", .unit = TARGET, .lower = true,
	  .wide = true },
	{ .name = "test_auc", .label = "test", .title = "Area under the ROC curve on the test split", .unit = "%" },
	{ .name = "rmse", .title = "Held-out root mean square error", .unit = TARGET, .lower = true, .wide = true },
	{ .name = "r2", .label = "R2", .title = "Held-out R2",
		.says = "The share of the targets' variance that is explained: 1 is perfect, 0 the mean." },
	{ .name = "test_rmse", .title = "Root mean square error on the test split", .unit = TARGET, .lower = true, .wide = true },
	{ .name = "test_r2", .title = "R2 on the test split" },
	{ .name = NULL },
};

const struct nr_task nr_task_graph = {
	.name = "graph",
	.title = "properties of graphs",
	.cite = "arXiv:2106.05234",
	.command = "graph",
	.summary = "train a graph model on properties of molecules (Graphormer)",
	.usage = "[RECIPE.yaml] --data zinc12k | --data molecules:path=FILE.csv | --resume DIRECTORY",
	.about = "Learns values (absolute or squared error) or yes-or-no answers (binary cross entropy) for molecules given as "
		 "SMILES;\n"
		 "there may be several targets, some of them missing. Batches hold molecules of similar size, and norms see no "
		 "padding.\n"
		 "Evaluations are MAE, RMSE and R2 in the targets' own units, or the area under the ROC curve, on the validation\n"
		 "and test splits. Settings, metrics, checkpoints, Ctrl-C and resuming work as in `norma train`.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.defaults = defaults,
	.kind = NR_MOLECULES,
	.sample = "molecule",
	.own_size = sizeof(struct graph),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = MEAN_ERROR,
	.settle = settle,
	.shapes = shapes,
	.record = record,
	.ready = ready,
	.choose = choose,
	.bind = bind,
	.again = again,
	.evaluate = evaluate,
	.predictions = predictions,
	.describe = describe,
	.meta = meta,
	.close = close,
};
