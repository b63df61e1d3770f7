/* norma probe CKPT: linear probing of frozen features, with what the features look like (uniformity, rank, singular values). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/fresh.h"
#include "analysis/probe_features.h"
#include "analysis/probe_result.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/save.h"
#include "base/table.h"
#include "graph/comm.h"
#include "infer/weights.h"
#include "lists.h"
#include "model_flags.h"
#include "probe_attentive.h"
#include "probe_layers.h"

enum { AUTO, CLS, MEAN, BOTH };

struct probe {
	struct cli_model m;
	int32_t features, solver, stats;
	char *weight_decay, *base_lr, *attentive_lr, *cache, *out;
	double hold_out, tolerance, epochs, warmup, attentive_epochs;
	int64_t iterations, head_batch, seed, train_limit, stats_batches;
	bool keep, layers, augment, attentive;
};

static const char *const feature_choices[] = { "auto", "cls", "mean", "both", NULL };
static const char *const solvers[] = { "exact", "lars", NULL };
static const char *const statistics[] = { "running", "recompute", NULL };
enum { RUNNING, RECOMPUTE };
static const struct nr_option options[] = {
	CLI_MODEL_OPTIONS(struct probe, m),
	NR_OPT_ENUM(struct probe, features, "auto", feature_choices,
		"features to probe: the class token, the mean of the patch tokens, or both; auto: both if there is a "
		"class token"),
	NR_OPT_ENUM(struct probe, solver, "exact", solvers,
		"exact: logistic regression (L-BFGS) on standardised features; lars: MAE's batch norm, linear layer and LARS"),
	NR_OPT_ENUM(struct probe, stats, "running", statistics,
		"statistics of batchwise norms: those kept in training, or measured again on whole training pictures"),
	NR_OPT_INT(struct probe, stats_batches, 50, 1, 1000000, "training batches used by recompute"),
	CLI_TEXT(struct probe, weight_decay, "auto", "LIST",
		"weight decays to try, e.g. 1e-5,1e-3; auto: powers of ten from 1e-6 to 1 for exact, 0 for lars"),
	NR_OPT_FLOAT(struct probe, hold_out, 0.1, 0.001, 0.9,
		"share of each training class held out to choose among several settings"),
	NR_OPT_FLOAT(struct probe, tolerance, 1e-5, 0, 1,
		"exact: stop when no component of the mean loss's gradient is larger"),
	NR_OPT_INT(struct probe, iterations, 1000, 1, 1000000, "exact: maximum number of steps per weight decay"),
	CLI_TEXT(struct probe, base_lr, "0.1", "LIST", "lars: learning rates to try, for a batch of 256"),
	NR_OPT_FLOAT(struct probe, epochs, 90, 0.001, 1e6, "lars: passes over the training features"),
	NR_OPT_FLOAT(struct probe, warmup, 10, 0, 1e6, "lars: epochs of linear warm-up before the cosine"),
	NR_OPT_BOOL(struct probe, augment, "0",
		"lars: a random crop and mirror image of every training picture in every epoch, as in MAE's protocol, through the encoder"),
	NR_OPT_INT(struct probe, head_batch, 512, 2, 1000000, "lars: features per step"),
	NR_OPT_INT(struct probe, seed, 0, 0, 1e15, "seed of the held-out samples, and of lars"),
	NR_OPT_INT(struct probe, train_limit, 0, 0, 1e15, "use only the first N training samples; 0: all"),
	CLI_TEXT(struct probe, cache, "", "DIR", "folder to keep features in; default: beside the checkpoint"),
	NR_OPT_BOOL(struct probe, keep, "1", "keep the features and reuse kept ones"),
	NR_OPT_BOOL(struct probe, attentive, "0", "also fit a head whose learned query attends to all tokens"),
	CLI_TEXT(struct probe, attentive_lr, "1e-3,3e-4", "LIST", "attentive: learning rates of AdamW to try"),
	NR_OPT_FLOAT(struct probe, attentive_epochs, 20, 0.001, 1e6, "attentive: passes over the training tokens"),
	NR_OPT_BOOL(struct probe, layers, "0", "also probe the tokens as they leave every block"),
	CLI_TEXT(struct probe, out, "", "DIR",
		"folder for probe.json and spectrum.csv; default: the run's folder"),
	NR_OPT_END
};

struct job {
	struct cli *c;
	const struct probe *v;
	struct cli_opened *o;
	const char *path, *data, *dir, *out;  /* data: its text; dir: of the checkpoint; out: NULL: none */
	unsigned want;
	struct nr_probe conf;
	struct nr_feature_cache cache;
	struct nr_token_features train, test;
	struct nr_feature_origin train_from, test_from;
	struct nr_probed kind[NR_FEATURE_KINDS];
	struct probed_layers blocks;
	struct probed_attentive attended;
	struct nr_fresh *fresh;             /* with --augment */
	double seconds;                     /* of the probes alone */
};

/* ---- settings ------------------------------------------------------------------------------------------------------------- */

static int64_t read_list(struct cli *c, const char *flag, const char *text, double *out)
{
	return cli_list_numbers(c, &(struct cli_numbers){ flag, "a number of at least 0", 0, 1e30, false, NR_PROBE_MAX }, text, out);
}

static int show_steps(void *context, int64_t done, int64_t of)
{
	struct nr_progress *bar = context;
	bar->total = of;
	nr_progress_update(bar, done, NULL);
	return 0;
}

static int settle(struct job *j)
{
	const struct probe *v = j->v;
	const bool lars = v->solver == NR_PROBE_LARS;
	const char *decays = strcmp(v->weight_decay, "auto") ? v->weight_decay : lars ? "0" : "1e-6,1e-5,1e-4,1e-3,1e-2,1e-1,1";
	j->conf = (struct nr_probe){ .solver = (enum nr_probe_solver)v->solver, .classes = j->o->source->classes, .hold_out = v->hold_out,
		.seed = (uint64_t)v->seed, .tolerance = v->tolerance, .iterations = v->iterations, .epochs = v->epochs, .warmup = v->warmup,
		.batch = v->head_batch, .comm = j->c->comm, .watch = show_steps, .context = &j->o->bar };
	j->conf.weight_decays = read_list(j->c, "weight-decay", decays, j->conf.weight_decay);
	if (j->conf.weight_decays > 0) j->conf.base_lrs = read_list(j->c, "base-lr", v->base_lr, j->conf.base_lr);
	if (j->conf.base_lrs <= 0) return j->c->err->code;
	if (lars && j->conf.weight_decays * j->conf.base_lrs > NR_PROBE_MAX)
		return cli_usage(j->c, "%lld weight decays times %lld learning rates are more than %d heads",
			(long long)j->conf.weight_decays, (long long)j->conf.base_lrs, NR_PROBE_MAX);
	const bool cls = nr_has_class_token(j->o->w);
	if (v->features == CLS || v->features == BOTH || (v->features == AUTO && cls)) j->want |= 1u << NR_FEATURE_CLS;
	if (v->features != CLS) j->want |= 1u << NR_FEATURE_MEAN;
	if (j->want & 1u << NR_FEATURE_CLS && !cls) {
		cli_usage(j->c, "--features %s: the model has no class token", feature_choices[v->features]);
		return nr_hint(j->c->err, "use the mean of the patch tokens: --features mean");
	}
	return NR_OK;
}

/* Before the encoder is run over all of it. */
static int check_data(struct job *j)
{
	const struct nr_source *s = j->o->source;
	const enum nr_split splits[2] = { NR_TRAIN, j->o->e.split };
	if (s->classes < 2) return nr_fail(j->c->err, NR_EVALUE, "cannot probe", j->data, "the data have no classes");
	for (int k = 0; k < 2; k++) {
		if (!s->count[splits[k]])
			return nr_fail(j->c->err, NR_EVALUE, "cannot probe", j->data,
				"there is no split '%s'", nr_split_name(splits[k]));
		for (int64_t i = 0; i < s->count[splits[k]]; i++) {
			const int32_t label = nr_source_label(s, splits[k], i);
			if (label >= 0 && label < s->classes) continue;
			return nr_fail(j->c->err, NR_EVALUE, "cannot probe", j->data, "sample %lld of '%s' has %s", (long long)i,
				nr_split_name(splits[k]), label < 0 ? "no label" : "a label outside the classes");
		}
	}
	if (splits[1] == NR_TRAIN) return cli_usage(j->c, "--split train is the split that the probe is fitted to");
	return NR_OK;
}

/* Then the cached features of the training split serve its labels alone, and the choice among settings. */
static int open_fresh(struct job *j)
{
	if (!j->v->augment) return NR_OK;
	if (j->v->solver != NR_PROBE_LARS) return cli_usage(j->c, "--augment is for --solver lars");
	struct nr_evaluation e = j->o->e;
	e.split = NR_TRAIN;
	if (nr_fresh_open(&j->fresh, j->o->w, &e, j->v->m.batch, (uint64_t)j->v->seed, j->c->err)) return j->c->err->code;
	j->conf.fresh = nr_fresh_take, j->conf.fresh_of = j->fresh;
	return NR_OK;
}

static int attend(struct job *j)
{
	const struct probe *v = j->v;
	struct nr_attentive o = { .classes = j->conf.classes, .heads = nr_model_int(&j->o->w->model, "heads"), .batch = v->m.batch,
		.epochs = v->attentive_epochs, .hold_out = v->hold_out, .weight_decay = 0.01, .seed = (uint64_t)v->seed,
		.watch = show_steps, .context = &j->o->bar };
	if ((o.lrs = read_list(j->c, "attentive-lr", v->attentive_lr, o.lr)) <= 0) return j->c->err->code;
	return probe_attentive(j->c, j->o, &j->attended, &o, v->m.batch, v->train_limit, v->m.limit);
}

static void find_folders(struct job *j)
{
	struct nr_arena *a = j->c->arena;
	const char *slash = strrchr(j->path, '/');
	j->dir = slash ? nr_arena_printf(a, "%.*s", slash == j->path ? 1 : (int)(slash - j->path), j->path) : ".";
	const char *events = nr_arena_printf(a, "%s/events.jsonl", j->dir), *config = nr_arena_printf(a, "%s/config.yaml", j->dir);
	const bool of_run = events && config && !access(events, R_OK) && !access(config, R_OK);
	j->out = *j->v->out ? j->v->out : of_run ? j->dir : NULL;
	j->cache.dir = !j->v->keep ? NULL : *j->v->cache ? j->v->cache : j->dir;
	j->cache.resample = j->v->m.resample;
	j->cache.stats = j->v->stats == RUNNING ? statistics[RUNNING]
		: nr_arena_printf(a, "recompute %lld %lld", (long long)j->v->stats_batches, (long long)j->v->m.batch);
}

/* ---- measuring ------------------------------------------------------------------------------------------------------------ */

static int take_split(struct job *j, enum nr_split split, int64_t limit, const char *label, struct nr_token_features *f,
	struct nr_feature_origin *from)
{
	struct nr_evaluation e = cli_model_split(j->o, split, label);
	e.count = limit && limit < j->o->source->count[split] ? limit : 0;
	const int code = nr_probe_features(f, from, &j->cache, j->o->w, &e, j->data, j->v->m.batch, j->want, j->c->err);
	nr_progress_release(&j->o->bar);
	if (code || !j->cache.dir) return code;
	if (from->cached) fprintf(stderr, "norma: features of %s taken from '%s'\n", nr_split_name(split), from->path);
	else if (!*from->path)
		fprintf(stderr, "norma: warning: cannot keep the features in '%s'; --cache names another folder\n", j->cache.dir);
	return NR_OK;
}

static int probe_kind(struct job *j, int kind)
{
	static const char *const labels[] = { "probe cls", "probe mean" };
	struct nr_probed *s = &j->kind[kind];
	const struct nr_probe_data train = { j->train.count, j->train.width, j->train.x[kind], j->train.label };
	const struct nr_probe_data test = { j->test.count, j->test.width, j->test.x[kind], j->test.label };
	const double start = nr_clock();
	nr_progress_init(&j->o->bar, stderr, labels[kind], 1, 0);
	if (j->fresh) nr_fresh_kind(j->fresh, (enum nr_feature_kind)kind);
	int code = nr_probe_run(&j->conf, &train, &test, &s->probe, j->c->err);
	nr_progress_release(&j->o->bar);
	j->seconds += nr_clock() - start;
	return code ? code : nr_probed_look(s, &test, j->c->arena, j->c->err);
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

static json_t *settings_json(const struct probe *v)
{
	json_t *j = json_object();
	for (const struct nr_option *o = options; o->name; o++) {
		char text[512];
		json_object_set_new(j, o->name, json_string(nr_option_text(o, v, text, sizeof text)));
	}
	return j;
}

static json_t *report(const struct job *j)
{
	json_t *kinds = json_object();
	int64_t held = 0;
	for (int k = 0; k < NR_FEATURE_KINDS; k++) {
		if (!j->kind[k].there) continue;
		held = j->kind[k].probe.held;
		json_object_set_new(kinds, nr_feature_names[k], nr_probed_json(&j->kind[k], j->v->solver == NR_PROBE_LARS));
	}
	json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:b, s:o, s:o}",
		"command", cli_command_line(j->c), "file", j->path, "sha256", j->cache.checkpoint,
		"model", j->o->w->model.text, "norms", j->o->w->norms, "data", j->data, "split", nr_split_name(j->o->e.split),
		"solver", solvers[j->v->solver], "train", (json_int_t)j->train.count, "held_out", (json_int_t)held,
		"samples", (json_int_t)j->test.count, "width", (json_int_t)j->test.width, "seconds", j->seconds,
		"cached", j->train_from.cached && j->test_from.cached, "features", kinds, "settings", settings_json(j->v));
	if (j->blocks.layers) json_object_set_new(all, "layers", probe_layers_json(&j->blocks));
	if (j->attended.there) json_object_set_new(all, "attentive", probe_attentive_json(&j->attended));
	return all;
}

static int write_files(const struct job *j, json_t *all)
{
	struct nr_str csv = { 0 };
	nr_probe_spectrum(j->kind, &csv);
	char *text = nr_json_dump(all, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	const char *json = nr_arena_printf(j->c->arena, "%s/probe.json", j->out);
	const char *table = nr_arena_printf(j->c->arena, "%s/spectrum.csv", j->out);
	int code = text && json && table && !csv.failed ? nr_folder_make(j->out, j->c->err)
							: nr_fail(j->c->err, NR_EMEMORY, "cannot write", j->out, "out of memory");
	if (!code) code = nr_save_file(json, text, strlen(text), j->c->err);
	if (!code) code = nr_save_file(table, nr_str_text(&csv), csv.len, j->c->err);
	free(text);
	nr_str_release(&csv);
	return code;
}

/* Every setting that was tried, if there were several. */
static void print_tries(const struct job *j)
{
	const bool lars = j->v->solver == NR_PROBE_LARS;
	struct nr_table *t = nr_table_make();
	nr_table_column(t, "features", NR_LEFT);
	if (lars) nr_table_column(t, "base lr", NR_RIGHT);
	nr_table_column(t, "weight decay", NR_RIGHT);
	nr_table_column(t, "held-out top-1", NR_RIGHT);
	nr_table_column(t, "test top-1", NR_RIGHT);
	nr_table_column(t, "loss", NR_RIGHT);
	nr_table_column(t, "steps", NR_RIGHT);
	if (!lars) nr_table_column(t, "gradient", NR_RIGHT);
	for (int k = 0; k < NR_FEATURE_KINDS; k++)
		for (int64_t i = 0; j->kind[k].there && i < j->kind[k].probe.tries; i++) {
			const struct nr_probe_try *e = &j->kind[k].probe.each[i];
			nr_table_cell(t, "%s%s", nr_feature_names[k], i == j->kind[k].probe.chosen ? " *" : "");
			if (lars) nr_table_cell(t, "%g", e->base_lr);
			nr_table_cell(t, "%g", e->weight_decay);
			nr_table_cell(t, "%.2f %%", 100 * e->held_top1);
			nr_table_cell(t, "%.2f %%", 100 * e->top1);
			nr_table_cell(t, "%.4f", e->loss);
			nr_table_cell(t, "%lld", (long long)e->iterations);
			if (!lars) nr_table_cell(t, "%.1e%s", e->gradient, e->converged ? "" : " (not converged)");
		}
	cli_print_table(t);
}

static void print(const struct job *j)
{
	const bool lars = j->v->solver == NR_PROBE_LARS;
	static const char *const titles[] = { "features", "top-1", "95 %", "top-5", "weight decay", "uniformity", "effective rank", NULL };
	struct nr_table *t = nr_table_make();
	int64_t held = 0;
	for (int i = 0; titles[i]; i++) nr_table_column(t, titles[i], i ? NR_RIGHT : NR_LEFT);
	for (int k = 0; k < NR_FEATURE_KINDS; k++) {
		const struct nr_probed *s = &j->kind[k];
		if (!s->there) continue;
		held = s->probe.held;
		nr_table_cell(t, "%s", nr_feature_names[k]);
		nr_table_cell(t, "%.2f %%", 100 * s->probe.best.top1);
		nr_table_cell(t, "%.2f to %.2f", 100 * s->low, 100 * s->high);
		nr_table_cell(t, "%.2f %%", 100 * s->probe.best.top5);
		nr_table_cell(t, "%g", s->probe.best.weight_decay);
		nr_table_cell(t, "%.3f", s->uniformity);
		nr_table_cell(t, "%.1f of %lld", s->rank, (long long)s->singulars);
	}
	printf("%s on %s/%s: linear probe (%s), %lld training and %lld test samples, %.1f s\n", j->path, j->data,
		nr_split_name(j->o->e.split), solvers[j->v->solver], (long long)j->train.count, (long long)j->test.count, j->seconds);
	cli_print_table(t);
	if (held) {
		printf("\nchosen on %lld held-out training samples (*)%s:\n", (long long)held,
			lars ? "" : ", then fitted to all training samples");
		print_tries(j);
	}
	for (int k = 0; k < NR_FEATURE_KINDS && !lars; k++) {
		const struct nr_probe_try *b = &j->kind[k].probe.best;
		if (!j->kind[k].there) continue;
		printf("%s: %s after %lld steps, largest component of the gradient %.1e (tolerance %g)\n", nr_feature_names[k],
			b->converged ? "converged" : "not converged", (long long)b->iterations, b->gradient, j->v->tolerance);
	}
	if (j->attended.there) probe_attentive_print(&j->attended);
	if (j->blocks.layers) probe_layers_print(&j->blocks);
	if (j->out) printf("written to %s/probe.json and spectrum.csv\n", j->out);
}

static int measure(struct cli *c, const struct cli_model *m, struct cli_opened *o, const char *path)
{
	const struct probe *v = (const struct probe *)(const void *)m;
	struct job j = { .c = c, .v = v, .o = o, .path = nr_weights_path(path, c->arena), .data = *m->data ? m->data : o->w->data };
	if (!j.path) return nr_fail(c->err, NR_EMEMORY, "cannot probe", path, "out of memory");
	find_folders(&j);
	int code = settle(&j);
	if (!code) code = check_data(&j);
	if (!code) code = nr_weights_checksum(path, j.cache.checkpoint, c->err);
	/* A masked autoencoder's running statistics are of the few tokens that it saw in training; the probe sees whole pictures. */
	if (!code && v->stats == RECOMPUTE) code = cli_model_recompute(c, o, m->batch, v->stats_batches);
	if (!code) code = take_split(&j, NR_TRAIN, v->train_limit, "train features", &j.train, &j.train_from);
	if (!code) code = take_split(&j, o->e.split, m->limit, "features", &j.test, &j.test_from);
	if (!code) code = open_fresh(&j);
	for (int k = 0; !code && k < NR_FEATURE_KINDS; k++)
		if (j.want & 1u << k) code = probe_kind(&j, k);
	j.conf.fresh = NULL;                                    /* blocks are probed as they are kept */
	if (!code && v->attentive) code = attend(&j);
	if (!code && v->layers) code = probe_layers(c, o, &j.blocks, &j.conf, j.want, m->batch, v->train_limit, m->limit);
	if (!code) {
		json_t *all = report(&j);
		if (j.out && !nr_comm_rank(c->comm)) code = write_files(&j, all);
		if (!code && m->json) code = cli_print_json(json_incref(all), c->err);
		else if (!code) print(&j);
		json_decref(all);
	}
	nr_fresh_close(j.fresh);
	nr_token_features_release(&j.train);
	nr_token_features_release(&j.test);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args) { return cli_model_run(c, conf, args, measure); }

const struct cli_command cli_probe = {
	.name = "probe",
	.title = "linear probe of a (pre-trained) encoder",
	.usage = "CHECKPOINT",
	.about = "Runs the encoder once over whole pictures of the training and test splits, without augmentation and with running\n"
		 "statistics, and fits linear classifiers to its features: the class token, the mean of the patch tokens, or both.\n"
		 "The features are kept beside the checkpoint for the next call. A decoder in the file is ignored.\n"
		 "\n"
		 "`exact` standardises the features by the training split's mean and standard deviation and minimises the mean cross\n"
		 "entropy plus weight decay / 2 times the squared weights (not the bias) by L-BFGS until no component of the gradient\n"
		 "is larger than --tolerance. `lars` is MAE's protocol on fixed features: batch norm without gain and bias, a linear\n"
		 "layer, LARS with momentum 0.9, warm-up and cosine; all learning rates and weight decays are heads of the same pass.\n"
		 "With --augment its random resized crops and mirror images are drawn for every epoch, and the encoder runs on them.\n"
		 "\n"
		 "`--stats recompute` first measures the statistics of batchwise norms again: a masked autoencoder's own come from "
		 "the\n"
		 "few patches that it saw.\n"
		 "\n"
		 "Settings are chosen on held-out training samples, never on the test split. The table also has the uniformity of the\n"
		 "test features (first 10000; log mean exp(-2 |u - v|^2) of unit vectors) and the effective rank of their centred\n"
		 "singular values, which spectrum.csv lists.\n"
		 "\n"
		 "`--layers` also probes what leaves every block, before any norm that follows; the report draws it over the depth.\n"
		 "`--attentive` fits a head whose learned query attends to all tokens (AdamW), which can read what a mean loses.",
	.conf_size = sizeof(struct probe),
	.options = options,
	.run = run,
};
