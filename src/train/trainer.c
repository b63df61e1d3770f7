/* The training loop. One step: batches in, forward and backward (several times with accumulate), clip and update, averages,
 * records. Checkpoints hold all that the next step depends on. */
#include "train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/real.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/optdoc.h"
#include "base/save.h"
#include "base/str.h"
#include "infer/metrics.h"
#include "math/row.h"
#include "norma/nn.h"
#include "plugin/plugin.h"

/* ---- opening ---------------------------------------------------------------------------------------------------------------- */

/* Of "folder:path=/my/pics/,...", "my/pics/:val=0.2" or "my/pics.csv" the last part of the path, "pics"; else what stands before the
 * options. */
static void add_data(struct nr_str *s, const char *data)
{
	const char *path = strstr(data, "path=");
	size_t n = strcspn(data, ":");
	if (path) data = path + 5, n = strcspn(data, ",");
	if (path || memchr(data, '/', n) || memchr(data, '.', n)) {
		while (n && data[n - 1] == '/') n--;
		for (size_t i = n; i-- > 0;)
			if (data[i] == '/') {
				data += i + 1, n -= i + 1;
				break;
			}
		const char *dot = memchr(data, '.', n);
		if (dot && dot > data) n = (size_t)(dot - data);
	}
	nr_str_add_n(s, data, n < 24 ? n : 24);
}

/* runs/DATA-MODEL-NORM-SEED without options, with what is no name for a file replaced; a name that is taken gets a number. */
static char *default_out(const struct nr_trainer *t)
{
	struct nr_str s = { 0 };
	const char *norms = *t->norms ? t->norms : "default";
	nr_str_add(&s, "runs/");
	add_data(&s, t->c.data);
	nr_str_printf(&s, "-%.*s-%.24s", (int)strcspn(t->c.model, ":"), t->c.model, norms);
	for (char *p = s.text ? s.text + 5 : NULL; p && *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=,-", *p)) *p = '_';
	while (s.len && strchr("_-.", s.text[s.len - 1])) s.text[--s.len] = 0;
	nr_str_printf(&s, "-%lld", (long long)t->c.seed);
	const char *name = nr_str_keep(&s, t->arena);
	char *text = name ? nr_arena_strdup(t->arena, name) : NULL;
	for (int i = 2; text && !access(text, F_OK) && i < 10000; i++) text = nr_arena_printf(t->arena, "%s-%d", name, i);
	return text;
}

struct nr_checkpoint nr_trainer_checkpoint(struct nr_trainer *t)
{
	t->asked = nr_trainer_asked(t);
	struct nr_checkpoint k = { .store = t->w.store, .slots = nr_optim_slots(&t->c.optim), .ema = t->ema, .source = t->source,
		.config = &t->asked, .model = t->w.model.text, .norms = t->w.norms, .pooler = t->w.pooler, .objective = t->w.objective,
		.class_name = t->w.class_name, .origin = t->origin, .state = t->state, .teacher = t->run.teacher };
	if (t->task->meta) k.metas = t->task->meta(&t->run, k.meta);
	return k;
}

static int open_loader(struct nr_trainer *t, struct nr_error *err)
{
	if (t->task->kind != NR_PICTURES) return NR_OK;
	struct nr_loader_config config = { .source = t->source, .split = t->split, .augment = &t->c.augment, .batch = t->c.batch,
		.index = t->train_index, .count = t->train_count, .shuffle = true, .drop_last = true, .seed = (uint64_t)t->c.seed,
		.start = t->state.step * t->c.accumulate, .threads = (int)t->c.workers };
	if (t->task->load) t->task->load(&t->run, &config);
	const struct nr_shards *s = &t->shards;
	const int64_t parts = t->c.accumulate;
	if (s->count > 1) {
		config.share.of = s->count * parts, config.share.from = s->first * parts, config.share.take = s->local * parts;
		config.start = t->state.step * config.share.take;
		if (s->together) config.share.across = config.held = s->local;
	}
	return nr_loader_open(&t->loader, &config, err);
}

enum { RATE = 3, OF_LOOP = 5 };                     /* loss: of one step; train_*: means since the last evaluation */
static const char *const of_loop[OF_LOOP] = { "loss", "lr", "grad_norm", "samples_per_s", "train_loss" };

/* A run that goes on keeps its columns: the rate was once called otherwise. */
static bool has_old_rate(const struct nr_trainer *t)
{
	char line[4096] = "";
	FILE *f = t->c.resume ? nr_file_stream(nr_trainer_path(t, "metrics.csv"), NULL) : NULL;
	const bool old = f && fgets(line, sizeof line, f) && strstr(line, ",images_per_s,");
	if (f) fclose(f);
	return old;
}

/* Names of metrics, one after the other: those of the loop, then train_*, eval_* and held_* of the task. */
static const char **columns_of(struct nr_trainer *t)
{
	const char **name = nr_arena_alloc(t->arena, (OF_LOOP + 3 * NR_TASK_METRICS + 1) * sizeof *name);
	int n = 0;
	if (!name) return NULL;
	for (; n < OF_LOOP; n++) name[n] = of_loop[n];
	if (has_old_rate(t)) name[RATE] = "images_per_s";
	for (const struct nr_task_metric *m = t->task->of_step; m->name; m++) name[n++] = nr_arena_printf(t->arena, "train_%s", m->name);
	for (const struct nr_task_metric *m = t->task->of_eval; m->name; m++) name[n++] = nr_arena_printf(t->arena, "eval_%s", m->name);
	for (const struct nr_task_metric *m = t->task->of_eval; t->held_count && m->name; m++)
		name[n++] = nr_arena_printf(t->arena, "held_%s", m->name);
	return name;
}

static int open_recorder(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_str yaml = { 0 };
	const struct nr_train asked = nr_trainer_asked(t);
	if (!(t->column = columns_of(t))) return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	if (!nr_trainer_writes(t)) return NR_OK;
	nr_plugins_yaml(&yaml);
	nr_option_yaml(nr_train_options(t->c.task), &asked, 0, &yaml);
	json_t *env = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s}", "data", t->c.data, "data_sha256", t->origin.data,
		"model",
		t->w.model.text, "norms", t->norms, "task", t->task->name, "sample", t->task->sample, "seed", (json_int_t)t->c.seed,
		"train_samples", (json_int_t)t->train_count, "eval_samples", (json_int_t)t->eval_count, "run", t->header);
	const char *kind = *t->c.init && t->task->continued ? t->task->continued : t->task->command;
	const struct nr_run_info info = { .command = t->command, .kind = kind, .config = nr_str_text(&yaml),
		.env = env, .columns = t->column, .forced = t->forced };
	const int code = yaml.failed || !env
		? nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory")
		: nr_recorder_open(&t->recorder, t->c.out, *t->c.store ? t->c.store : NULL, &info, t->c.resume, t->state.step, err);
	json_decref(env);
	nr_str_release(&yaml);
	return code;
}

int nr_trainer_open(struct nr_trainer **out, const struct nr_train *c, const char *command, struct nr_error *err)
{
	const int64_t failures = nr_memory_failures();
	struct nr_arena *arena = nr_arena_make();
	struct nr_trainer *t = arena ? nr_arena_alloc(arena, sizeof *t) : NULL;
	*out = NULL;
	if (!t) {
		nr_arena_free(arena);
		return nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
	}
	t->arena = arena;
	t->c = *c;
	t->command = nr_arena_strdup(arena, command);
	int code = c->resume ? nr_trainer_settings(t, err) : NR_OK;
	if (!code) code = nr_trainer_setup(t, err);
	if (!code && !*t->c.out && nr_trainer_writes(t)) t->c.out = default_out(t);
	if (!code) code = nr_trainer_origin(t, err);
	if (!code && t->c.resume) code = nr_trainer_resume(t, err);
	if (!code) code = nr_trainer_agree(t, err);
	if (!code) t->header = nr_trainer_describe(t);
	if (!code) code = open_loader(t, err);
	if (!code) code = nr_memory_since(failures, "cannot start the training", NULL, err);    /* the record would lack a part */
	if (!code) code = open_recorder(t, err);
	if (!code && t->c.microscope)
		code = nr_microscope_open(t->shape[0].microscope, nr_trainer_path(t, "microscope.csv"),
			nr_trainer_path(t, "lambda.csv"), t->c.resume, t->state.step, err);
	if (!code && t->layers)
		code = nr_layer_gradients_open(t->layers, nr_trainer_path(t, "layer_gradients.csv"), t->c.resume, t->state.step, err);
	if (!code && t->task->begin && nr_trainer_writes(t)) code = t->task->begin(&t->run, t->c.out, err);
	if (code) nr_trainer_close(t);
	else *out = t;
	return code;
}

const char *nr_trainer_header(const struct nr_trainer *t) { return t->header; }
const char *nr_trainer_out(const struct nr_trainer *t) { return t->c.out; }
void nr_trainer_progress(const struct nr_trainer *t, int64_t *step, int64_t *steps) { *step = t->state.step, *steps = t->total; }

void nr_trainer_close(struct nr_trainer *t)
{
	if (!t) return;
	nr_loader_close(t->loader);
	nr_recorder_close(t->recorder, "failed", NULL, 0, NULL);
	if (t->task && t->run.own && t->task->close) t->task->close(&t->run);
	while (t->shapes-- > 0) {                       /* guests of the first one's memory before it */
		nr_microscope_close(t->shape[t->shapes].microscope);
		for (int64_t i = 1; t->shape[t->shapes].twin && i < t->shards.local; i++) nr_plan_free(t->shape[t->shapes].twin[i]);
		nr_plan_free(t->shape[t->shapes].plan);
		nr_net_free(t->shape[t->shapes].net);
	}
	nr_store_free(t->w.store);
	nr_source_close(t->source);
	nr_layer_gradients_close(t->layers);
	nr_params_release(&t->params);
	nr_shards_close(&t->shards);
	free(t->ema);
	free(t->spare);
	free(t->header);
	nr_arena_free(t->arena);
}

/* ---- one step --------------------------------------------------------------------------------------------------------------- */

int nr_trainer_bad_loss(struct nr_trainer *t, const struct nr_exec *ex, const char *what, struct nr_error *err)
{
	const struct nr_node *bad = nr_plan_first_bad(t->run.plan, ex);
	nr_fail(err, NR_EDIVERGED, "training diverged", t->c.out, "the %s of step %lld is not finite%s%s%s%s",
		what, (long long)t->state.step + 1, bad ? "; first at " : "", bad ? bad->where.scope : "",
		bad ? " " : "", bad ? bad->op->name : "");
	return nr_hint(err, "the last checkpoint is intact: try a lower --lr, a longer --warmup or --clip global");
}

struct nr_trainer_shape *nr_trainer_choose(struct nr_trainer *t, int64_t number)
{
	t->run.shape = t->task->choose ? t->task->choose(&t->run, number) : 0;
	struct nr_trainer_shape *s = &t->shape[t->run.shape];
	t->run.net = s->net;
	t->run.plan = s->plan;
	return s;
}

/* Is this step, counted from 1, one of every so many? The first and the last always are. */
static bool due(int64_t every, const struct nr_trainer *t, int64_t step)
{
	return every && (step == 1 || step % every == 0 || step == t->total);
}
static bool looked_at(const struct nr_trainer *t, int64_t step) { return due(t->c.microscope, t, step); }
void nr_trainer_look(struct nr_trainer *t, struct nr_trainer_shape *s, struct nr_exec *ex)
{
	if (looked_at(t, t->state.step + 1)) nr_microscope_look(t->looking = s->microscope, ex);
}

/* Forward and backward on the batch that is bound, once for each pass; the sum of their losses. */
static double run_passes(struct nr_trainer *t, const struct nr_trainer_shape *s, struct nr_exec *ex, bool last, struct nr_error *err)
{
	double loss = 0;
	const int64_t number = ex->step;
	for (int64_t pass = 0; pass < t->run.passes; pass++) {
		if (pass) t->task->again(&t->run);
		ex->step = number * t->run.passes + pass;
		ex->accumulate |= pass > 0;
		if (last && pass + 1 == t->run.passes && nr_shards_last(&t->shards, s->plan, ex, err)) return NAN;
		nr_plan_run(s->plan, ex, NR_RUN_FORWARD | NR_RUN_BACKWARD);
		loss += (double)*(const real *)nr_plan_data(s->plan, s->loss);
		if (!isfinite(loss)) return loss;
		nr_plan_run(s->plan, ex, NR_RUN_COMMIT);
	}
	return loss;
}

/* Forward and backward on part a of the local shard i. */
static int run_part(struct nr_trainer *t, int64_t i, int64_t a, struct nr_error *err)
{
	struct nr_batch *b = NULL;
	double *said = t->shards.said + i * NR_SHARD_SAYS;
	if (t->loader && nr_loader_next(t->loader, &b, err)) return err->code;
	const int64_t number = (t->state.step * t->shards.count + t->shards.first + i) * t->c.accumulate + a;
	struct nr_trainer_shape *s = nr_trainer_choose(t, number);
	t->task->bind(&t->run, b, number);
	struct nr_exec ex = { .train = 1, .accumulate = a > 0, .step = number, .total = t->total, .seed = (uint64_t)t->c.seed };
	if (a == 0 && i == 0) nr_trainer_look(t, s, &ex);
	const double part = run_passes(t, s, &ex, i + 1 == t->shards.local && a + 1 == t->c.accumulate, err);
	said[NR_SAID_LOSS] += part;
	if (!isfinite(part)) nr_trainer_bad_loss(t, &ex, "loss", err);
	else if (t->task->measure) t->task->measure(&t->run, b, said + NR_SAID_MEASURES);
	if (b) nr_loader_give_back(t->loader, b);
	return err->code;
}

/* Gradients of one step; *loss its mean loss. */
static int gradients(struct nr_trainer *t, double *loss, struct nr_error *err)
{
	struct nr_shards *s = &t->shards;
	int code = NR_OK;
	memset(s->said, 0, (size_t)s->local * NR_SHARD_SAYS * sizeof *s->said);
	if (s->together && (code = nr_trainer_together(t, err)) && code != NR_EDIVERGED) return code;
	for (int64_t i = 0; i < s->local && !s->together && !code; i++) {
		nr_shards_begin(s, i);
		for (int64_t a = 0; a < t->c.accumulate && !code; a++) code = run_part(t, i, a, err);
		nr_shards_end(s, i);
	}
	struct nr_error travelling = { 0 };             /* all ranks sum, whatever they met */
	if (nr_shards_sum(s, &travelling)) return *err = travelling, err->code;
	if (nr_trainer_share_error(t, code, err)) return err->code;
	*loss = s->said[NR_SAID_LOSS];
	for (int i = 0; i < NR_TASK_METRICS; i++) t->state.sum[i] += s->said[NR_SAID_MEASURES + i];
	t->state.seen += (double)nr_trainer_samples(t);
	t->state.loss_sum += *loss * (double)nr_trainer_samples(t);
	return NR_OK;
}

/* Parameters that the task leaves alone at first have no gradient for the optimizer until then. */
static void hold_still(struct nr_trainer *t)
{
	for (int64_t i = 0, k = 0; t->task->still && i < nr_store_count(t->w.store); i++) {
		const struct nr_entry *e = nr_store_at(t->w.store, i);
		if (e->buffer) continue;
		struct nr_segment *s = &t->params.segment[k++];
		if (!e->frozen) s->grad = t->state.step < s->still ? NULL : nr_grad(e);
	}
}

static int step(struct nr_trainer *t, double *loss, double *lr, double *norm, struct nr_error *err)
{
	if (gradients(t, loss, err)) return err->code;
	if (t->layers && due(t->c.gradients, t, t->state.step + 1) && nr_layer_gradients_write(t->layers, t->state.step + 1, err))
		return err->code;
	struct nr_rates rates = { nr_schedule_at(nr_trainer_schedule_now(t), t->state.step), t->c.optim.weight_decay };
	struct nr_optim_info info;
	if (t->task->rates) t->task->rates(&t->run, t->state.step, &rates);
	hold_still(t);
	if (nr_optim_step(&t->c.optim, &rates, t->state.step + 1, t->params.segment, t->params.count, t->params.scratch, &info)) {
		const struct nr_exec ex = { .train = 1, .step = t->state.step, .seed = (uint64_t)t->c.seed };
		return nr_trainer_bad_loss(t, &ex, "gradient", err);
	}
	t->state.step++;
	if (t->task->moved) t->task->moved(&t->run, t->state.step);
	if (t->ema) {
		int64_t n;
		const real *values = nr_store_values(t->w.store, &n);
		/* a short history at first, so that the start does not linger */
		const double s = (double)t->state.step, keep = t->c.ema < (1 + s) / (10 + s) ? t->c.ema : (1 + s) / (10 + s);
		nr_ema_step(n, t->ema, values, keep);
	}
	*lr = rates.lr;
	*norm = t->last_norm = info.grad_norm;
	return NR_OK;
}

/* ---- evaluation, records, checkpoints ------------------------------------------------------------------------------------------ */

static bool evaluates(const struct nr_trainer *t) { return t->task->own_samples ? t->run.evaluates : t->eval_count > 0; }

static int evaluate(struct nr_trainer *t, struct nr_error *err)
{
	int64_t n, samples;
	real *values = nr_store_values(t->w.store, &n);
	const struct nr_evaluation e = { .source = t->source, .split = t->eval_split, .index = t->eval_index, .count = t->eval_count,
		.augment = nr_augment_for_eval(&t->c.augment, t->c.augment.size, t->c.augment.channels, t->c.crop_share),
		.workers = (int)t->c.workers, .comm = t->c.comm };
	struct nr_evaluation held = e;
	held.split = t->split;
	held.index = t->held_index;
	held.count = t->held_count;
	if (!evaluates(t)) return NR_OK;
	if (t->ema) {
		memcpy(t->spare, values, (size_t)n * sizeof *values);
		memcpy(values, t->ema, (size_t)n * sizeof *values);
	}
	int code = t->held_count ? t->task->evaluate(&t->run, &held, t->state.held, &samples, err) : NR_OK;
	if (!code) code = t->task->evaluate(&t->run, &e, t->state.last, &t->state.eval_samples, err);
	if (t->ema) memcpy(values, t->spare, (size_t)n * sizeof *values);
	return code;
}

static int write_last(struct nr_trainer *t, struct nr_error *err)
{
	if (!nr_trainer_writes(t)) return NR_OK;
	const struct nr_checkpoint k = nr_trainer_checkpoint(t);
	if (nr_recorder_sync(t->recorder, err) || (t->c.microscope && nr_microscope_sync(t->shape[0].microscope, err))) return err->code;
	if (t->layers && nr_layer_gradients_sync(t->layers, err)) return err->code;
	return nr_checkpoint_write(&k, nr_trainer_path(t, "last.safetensors"), true, err);
}

static int write_model(struct nr_trainer *t, const char *name, struct nr_error *err)
{
	if (!nr_trainer_writes(t)) return NR_OK;
	const struct nr_checkpoint k = nr_trainer_checkpoint(t);
	return nr_checkpoint_write(&k, nr_trainer_path(t, name), false, err);
}

static double epoch_of(const struct nr_trainer *t) { return (double)t->state.step / (double)t->per_epoch; }

/* A picture of the evaluation: every one is kept, the last under a plain name. */
static int draw(struct nr_trainer *t, struct nr_error *err)
{
	if (!t->task->draw || !evaluates(t)) return NR_OK;
	char name[64];
	snprintf(name, sizeof name, "pictures/%s-%07lld.png", t->task->name, (long long)t->state.step);
	if (nr_folder_make(nr_trainer_path(t, "pictures"), err) || t->task->draw(&t->run, nr_trainer_path(t, name), err)) return err->code;
	if (access(nr_trainer_path(t, name), F_OK)) return NR_OK;       /* there was nothing to draw */
	if (t->state.step == t->total && t->task->draw(&t->run, nr_trainer_path(t, t->task->picture), err)) return err->code;
	return nr_recorder_event(t->recorder, "picture", t->state.step, json_pack("{s:s}", "file", name), err);
}

/* The means since the last evaluation and its own values; what was not measured (no class token) is left out. */
static int write_metrics(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_metric m[1 + 3 * NR_TASK_METRICS] = { { "train_loss", t->state.train_loss } };
	int n = 1, column = OF_LOOP;
	for (int i = 0; t->task->of_step[i].name; i++, column++)
		if (isfinite(t->state.train[i])) m[n++] = (struct nr_metric){ t->column[column], t->state.train[i] };
	for (int i = 0; evaluates(t) && t->task->of_eval[i].name; i++, column++)
		if (isfinite(t->state.last[i])) m[n++] = (struct nr_metric){ t->column[column], t->state.last[i] };
	for (int i = 0; t->held_count && t->task->of_eval[i].name; i++, column++)
		if (isfinite(t->state.held[i])) m[n++] = (struct nr_metric){ t->column[column], t->state.held[i] };
	return nr_recorder_metrics(t->recorder, t->state.step, epoch_of(t), m, n, err);
}

/* What the best weights say of samples or classes, for a report. */
static int write_predictions(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_str text = { 0 };
	const char *name = t->task->predicted ? t->task->predicted : "predictions.csv";
	if (!t->task->predictions || !nr_trainer_writes(t)) return NR_OK;
	int code = t->task->predictions(&t->run, &text, err);
	if (!code && text.failed) code = nr_fail(err, NR_EMEMORY, "cannot write", name, "out of memory");
	if (!code && text.len) code = nr_save_file(nr_trainer_path(t, name), text.text, text.len, err);
	nr_str_release(&text);
	return code;
}

static int tell_notice(struct nr_trainer *t, struct nr_error *err)
{
	struct nr_str text = { 0 };
	int code = NR_OK;
	if (t->task->notice) t->task->notice(&t->run, t->state.train, &text);
	if (text.len) {
		nr_log_line(NR_LOG_WARNING, "%s", text.text);
		code = nr_recorder_event(t->recorder, "warning", t->state.step, json_pack("{s:s}", "text", text.text), err);
	}
	nr_str_release(&text);
	return code;
}

static int record_eval(struct nr_trainer *t, struct nr_error *err)
{
	const double seen = t->state.seen > 0 ? t->state.seen : 1;
	t->state.train_loss = t->state.loss_sum / seen;
	t->state.loss_sum = t->state.seen = 0;
	for (int i = 0; i < NR_TASK_METRICS; i++) t->state.train[i] = t->state.sum[i] / seen, t->state.sum[i] = 0;
	if (nr_trainer_writes(t) && (write_metrics(t, err) || tell_notice(t, err) || draw(t, err))) return err->code;
	if (!evaluates(t)) return NR_OK;
	const bool lower = t->task->of_eval[t->run.decides].lower;
	const double value = t->held_count ? t->state.held[t->run.decides] : t->state.last[t->run.decides];
	const double best = t->held_count ? t->state.best_held : t->state.best;
	const bool better = t->state.best_step == 0 || (isnan(best) ? !isnan(value) : lower ? value < best : value > best);
	t->state.stale = better ? 0 : t->state.stale + 1;
	if (!better) return NR_OK;
	t->state.best = t->state.last[t->run.decides];
	t->state.best_held = t->state.held[t->run.decides];
	t->state.best_step = t->state.step;
	return write_model(t, "best.safetensors", err) ? err->code : write_predictions(t, err);
}

struct pace { double began, before, saved, noted; int64_t first, step, log_every, eval_steps, evaluated; };

static int record_step(struct nr_trainer *t, struct pace *p, double loss, double lr, double norm, struct nr_error *err)
{
	if (!nr_trainer_writes(t)) return NR_OK;
	if (looked_at(t, t->state.step) && nr_microscope_write(t->shape[0].microscope, t->looking, t->state.step, err)) return err->code;
	if (t->state.step % p->log_every && t->state.step != t->total) return NR_OK;
	const double now = nr_clock(), rate = (double)((t->state.step - p->step) * nr_trainer_samples(t)) / (now - p->noted);
	const struct nr_metric m[] = { { "loss", loss }, { "lr", lr }, { "grad_norm", norm }, { t->column[RATE], rate } };
	p->noted = now;
	p->step = t->state.step;
	return nr_recorder_metrics(t->recorder, t->state.step, epoch_of(t), m, 4, err);
}

static void report(const struct nr_trainer *t, struct nr_train_result *r, const struct pace *p)
{
	const struct nr_progress_state *now = &t->state;
	const char *status = r->status;
	*r = (struct nr_train_result){ .step = now->step, .steps = t->total, .seconds = p->before + nr_clock() - p->began,
		.train_loss = now->seen > 0 ? now->loss_sum / now->seen : now->train_loss, .of_step = t->task->of_step,
		.of_eval = t->task->of_eval, .sample = t->task->sample, .decides = t->run.decides, .best = now->best,
		.has_held = t->held_count > 0, .best_held = now->best_held, .best_step = now->best_step,
		.eval_samples = now->eval_samples, .eval_step = p->evaluated, .status = status };
	for (int i = 0; i < NR_TASK_METRICS; i++) r->train[i] = now->seen > 0 ? now->sum[i] / now->seen : now->train[i];
	memcpy(r->last, now->last, sizeof r->last);
	memcpy(r->held, now->held, sizeof r->held);
}

static bool checkpoint_due(const struct nr_trainer *t, const struct pace *p, bool evaluated)
{
	if (t->c.checkpoint_steps) return t->state.step % t->c.checkpoint_steps == 0 || t->state.step == t->total;
	return evaluated || nr_clock() - p->saved > 60 * t->c.checkpoint_minutes;
}

/* After a step: evaluation and checkpoint where they are due. */
static int after_step(struct nr_trainer *t, struct pace *p, bool stop, struct nr_error *err)
{
	const bool evaluated = t->state.step % p->eval_steps == 0 || t->state.step == t->total;
	if (evaluated && (evaluate(t, err) || record_eval(t, err))) return err->code;
	if (evaluated && evaluates(t)) p->evaluated = t->state.step;
	if (!stop && !checkpoint_due(t, p, evaluated)) return NR_OK;
	t->state.seconds = p->before + nr_clock() - p->began;
	p->saved = nr_clock();
	return write_last(t, err);
}

static int finish(struct nr_trainer *t, const struct nr_train_result *r, struct nr_error *err)
{
	struct nr_metric m[2 * NR_TASK_METRICS + 3] = { { "train_loss", r->train_loss } };
	int n = 1;
	const int first = OF_LOOP + nr_task_metrics(t->task->of_step), held = first + nr_task_metrics(t->task->of_eval);
	for (int i = 0; r->best_step && t->task->of_eval[i].name; i++)
		if (isfinite(r->last[i])) m[n++] = (struct nr_metric){ t->column[first + i], r->last[i] };
	if (r->best_step && isfinite(r->best))
		m[n++] = (struct nr_metric){ nr_arena_printf(t->arena, "best_%s", t->task->of_eval[r->decides].name), r->best };
	for (int i = 0; r->best_step && r->has_held && t->task->of_eval[i].name; i++)
		if (isfinite(r->held[i])) m[n++] = (struct nr_metric){ t->column[held + i], r->held[i] };
	if (t->state.step == t->total && write_model(t, "model.safetensors", err)) return err->code;
	struct nr_recorder *recorder = t->recorder;
	t->recorder = NULL;
	return nr_recorder_close(recorder, r->status, m, n, err);
}

/* The record says how the run ended; the error itself stays. */
static int broken(struct nr_trainer *t, const struct nr_error *err)
{
	struct nr_recorder *recorder = t->recorder;
	struct nr_error ignored = { 0 };
	t->recorder = NULL;
	nr_recorder_close(recorder, err->code == NR_EDIVERGED ? "diverged" : "failed", NULL, 0, &ignored);
	return err->code;
}

int nr_trainer_run(struct nr_trainer *t, const struct nr_train_watch *watch, struct nr_train_result *r, struct nr_error *err)
{
	struct pace p = { .began = nr_clock(), .before = t->state.seconds, .first = t->state.step, .step = t->state.step };
	p.saved = p.noted = p.began;
	p.log_every = t->c.log_every ? t->c.log_every : t->per_epoch > 20 ? t->per_epoch / 20 : 1;
	p.eval_steps = (int64_t)llround(t->c.eval_every * (double)t->per_epoch);
	if (p.eval_steps < 1) p.eval_steps = t->c.eval_every > 0 ? 1 : t->total;
	double loss = 0, lr = 0, norm = 0;
	bool stop = false;
	*r = (struct nr_train_result){ .status = "done", .steps = t->total };
	if (!t->state.step && write_last(t, err)) return broken(t, err);        /* from now on it can be resumed */
	while (t->state.step < t->total && !stop) {
		if (step(t, &loss, &lr, &norm, err) || record_step(t, &p, loss, lr, norm, err)) return broken(t, err);
		report(t, r, &p);
		const double rate = (double)((t->state.step - p.first) * nr_trainer_samples(t)) / (nr_clock() - p.began);
		t->stopping |= watch && watch->step && watch->step(watch->context, r, rate, NULL);
		stop = nr_trainer_stops(t);
		if (stop) r->status = "interrupted";
		if (after_step(t, &p, stop, err)) return broken(t, err);
		if (t->c.patience && t->state.stale >= t->c.patience && !stop) stop = true, r->status = "stopped early";
	}
	report(t, r, &p);
	return finish(t, r, err);
}
