/* Training from the command line: settings from flags, a recipe, or both; a bar, a header and a result. */
#include "training.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/share.h"
#include "base/yaml.h"
#include "process.h"
#include "ranks.h"

static volatile sig_atomic_t asked;                     /* to stop */
static void on_signal(int number)
{
	(void)number;
	if (asked++) _exit(130);                        /* the second time at once */
}

static const struct nr_option options[] = {
	NR_OPT_BOOL(struct cli_training, resume, "0",
		"resume the run in --out (or the directory given) with its own settings; more --epochs make it longer"),
	NR_OPT_BOOL(struct cli_training, force, "0",
		"with --resume: go on though the data or the instruction set changed; the record says so"),
	NR_OPT_BOOL(struct cli_training, json, "0", "print one line of JSON at the end"),
	NR_OPT_END
};

/* ---- settings ------------------------------------------------------------------------------------------------------------- */

/* What the command's table does not know keeps its default. */
static int complete(struct nr_train *to, const struct nr_train *from, const struct nr_option *rows, struct nr_error *err)
{
	if (nr_train_init(to, from->task, err)) return err->code;
	for (; rows->name; rows++) memcpy((char *)to + rows->offset, (const char *)from + rows->offset, rows->size);
	return NR_OK;
}

/* The text of a recipe for this command; one for another is told from one with wrong keys. */
static const char *load_recipe(struct cli *c, const struct cli_command *command, const char *path, size_t *size)
{
	const char *text = nr_yaml_load(nr_recipe_find(path, c->arena), size, c->arena, c->err), *name;
	if (!text || !(name = nr_yaml_peek(text, *size, NULL, "task", c->arena))) return text;
	const struct nr_task *task = nr_task_find(name, c->err);
	if (!task || task == command->task) return task ? text : NULL;
	cli_usage(c, "the recipe '%s' has the task %s, which is not for `norma %s`", path, name, command->name);
	nr_hint(c->err, "norma %s %s", task->command, path);
	return NULL;
}

/* The recipe below the flags: defaults, then the file, then the command line once more. */
static int read_recipe(struct cli *c, const struct cli_command *command, const char *path, struct cli_training *s)
{
	struct nr_option *rows = cli_options(command, c->arena);
	char *conf = nr_arena_alloc(c->arena, sizeof(struct cli_common) + sizeof *s);
	if (!rows || !conf) return nr_fail(c->err, NR_EMEMORY, "cannot read", path, "out of memory");
	nr_option_defaults(rows, conf);
	struct cli_training *own = (struct cli_training *)(void *)(conf + sizeof(struct cli_common));
	const struct nr_yaml_section sections[] = { { NULL, cli_table(command), &own->train }, { 0 } };
	struct nr_yaml_errors errors = { 0 };
	size_t size;
	const char *recipe = load_recipe(c, command, path, &size);
	if (!recipe) return c->err->code;
	if (nr_yaml_parse(recipe, size, path, sections, c->arena, &errors, c->err)) {
		struct nr_str text = { 0 };
		nr_yaml_errors_text(&errors, &text);
		fputs(nr_str_text(&text), stderr);
		nr_str_release(&text);
		return c->err->code;
	}
	char **argv = c->argv;
	while (*argv && strcmp(*argv, command->name)) argv++;
	int argc = 0;
	while (*argv && argv[argc + 1]) argc++;
	struct nr_list rest = { NULL, 0 };
	if (nr_args_parse(rows, conf, argc, argv + 1, &rest, c->arena, c->err)) return c->err->code;
	*s = *own;
	return NR_OK;
}

/* Flags that change no number. */
static bool is_idle(const char *name)
{
	static const char *const idle[] = { "workers", "log_every", "checkpoint_steps", "checkpoint_minutes", "store", "data_root",
		"rank_timeout", "rank_logs", "overlap", NULL };
	for (int i = 0; idle[i]; i++)
		if (!strcmp(name, idle[i])) return true;
	return false;
}

/* The flag stands on the command line, even with its default as the value. */
static bool is_given(const struct cli *c, const struct nr_option *o)
{
	for (char **a = c->argv; *a; a++) {
		const char *s = *a;
		size_t i = 0;
		if (strncmp(s, "--", 2) != 0) continue;
		s += o->type == NR_TBOOL && !strncmp(s, "--no-", 5) ? 5 : 2;
		while (o->name[i] && (s[i] == o->name[i] || (s[i] == '-' && o->name[i] == '_'))) i++;
		if (!o->name[i] && (!s[i] || s[i] == '=')) return true;
	}
	return false;
}

/* A run may be made longer: the trainer compares. */
static bool is_length(const char *name) { return !strcmp(name, "epochs") || !strcmp(name, "steps"); }

static void ask_longer(const struct cli *c, const struct cli_command *command, struct nr_train *s)
{
	if (is_given(c, nr_option_find(cli_table(command), "epochs"))) s->longer_epochs = s->epochs;
	if (is_given(c, nr_option_find(cli_table(command), "steps"))) s->longer_steps = s->steps;
}

/* A run that goes on keeps its settings: flags that say otherwise are an error if they would change its numbers. */
static int refuse_others(struct cli *c, const struct cli_command *command, const struct nr_train *given)
{
	struct nr_train first, own;
	struct nr_error ignored = { 0 };
	const char *path = nr_arena_printf(c->arena, "%s/config.yaml", given->out);
	if (!path || nr_train_read(&own, path, c->arena, &ignored)) return NR_OK;       /* the trainer says what is wrong */
	nr_option_defaults(cli_table(command), &first);
	struct nr_str unused = { 0 };
	for (const struct nr_option *o = cli_table(command); o->name && !c->err->code; o++) {
		char said[512], unsaid[512], kept[512] = "";
		const struct nr_option *of_run = nr_option_find(nr_train_options(own.task), o->name);
		nr_option_text(o, given, said, sizeof said);
		const bool same = !strcmp(said, nr_option_text(o, &first, unsaid, sizeof unsaid));
		if (!strcmp(o->name, "out") || is_length(o->name) || (same && !is_given(c, o))) continue;
		if (of_run && !strcmp(said, nr_option_text(of_run, &own, kept, sizeof kept))) continue;
		if (is_idle(o->name)) nr_str_printf(&unused, "%s%s", unused.len ? ", " : "", o->name);
		else nr_fail(c->err, NR_EUSAGE, "cannot resume with other settings", given->out,
			"its %s is '%s', not '%s'", o->name, kept, said);
	}
	if (c->err->code) nr_hint(c->err,
		"leave the flag out, or begin a new run with these weights: --init %s/last.safetensors", given->out);
	else if (unused.len)
		nr_log_line(NR_LOG_WARNING, "the run in '%s' resumes with its own settings; not used: %s", given->out,
			nr_str_text(&unused));
	nr_str_release(&unused);
	return c->err->code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct cli_command *command = c->command;
	struct cli_training s = *(const struct cli_training *)conf;
	if (args->count > 1) return cli_usage(c, "%s takes at most one recipe", command->name);
	if (args->count && !s.resume && read_recipe(c, command, args->item[0], &s)) return c->err->code;
	if (s.resume && args->count) s.train.out = args->item[0];
	if (s.resume && !*s.train.out) return cli_usage(c, "--resume needs --out DIRECTORY");
	if (s.force && !s.resume) return cli_usage(c, "--force is for --resume");
	s.train.resume = s.resume;
	s.train.force = s.force;
	cli_bound_spin(c);                              /* it may begin anew: told once */
	if (s.resume && refuse_others(c, command, &s.train)) return c->err->code;
	if (s.resume) ask_longer(c, command, &s.train);
	return cli_train_with(c, command, &s.train, s.json);
}

struct cli_command cli_training_command(const struct nr_task *t)
{
	return (struct cli_command){ .name = t->command, .title = t->summary, .usage = t->usage, .about = t->about,
		.conf_size = sizeof(struct cli_training), .options = options, .task = t, .run = run };
}

/* ---- the run --------------------------------------------------------------------------------------------------------------- */

static void add_shown(struct nr_str *line, const struct nr_task_metric *m, const double *value)
{
	for (; m->name; m++, value++)
		if (m->label && isfinite(*value))
			nr_str_printf(line, nr_metric_percent(m) ? "  %s %.2f %%" : "  %s %.3g", m->label,
				nr_metric_percent(m) ? 100 * *value : *value);
}

struct watcher { struct nr_progress bar; bool lines; int64_t told; };    /* lines: where no bar is drawn; of which evaluation */

/* "step 500 of 1000  loss 0.312  top1 81.20 %" */
static void tell_evaluation(struct watcher *w, const struct nr_train_result *r)
{
	struct nr_str line = { 0 };
	if (!w->lines || r->eval_step == w->told) return;
	w->told = r->eval_step;
	nr_str_printf(&line, "step %lld of %lld  loss %.3f", (long long)r->eval_step, (long long)r->steps, r->train_loss);
	add_shown(&line, r->of_eval, r->last);
	printf("%s\n", nr_str_text(&line));
	fflush(stdout);
	nr_str_release(&line);
}

static int watch(void *context, const struct nr_train_result *r, double rate, const char *note)
{
	struct watcher *w = context;
	struct nr_progress *bar = &w->bar;
	struct nr_str line = { 0 };
	(void)note;
	tell_evaluation(w, r);
	nr_str_printf(&line, "%.0f %ss/s  loss %.3f", rate, r->sample, r->train_loss);
	add_shown(&line, r->of_step, r->train);
	if (r->best_step) add_shown(&line, r->of_eval, r->last);
	nr_progress_update(bar, r->step, "%s", nr_str_text(&line));
	nr_str_release(&line);
	return asked != 0;
}

static void add_metrics(json_t *j, const char *when, const struct nr_task_metric *m, const double *value)
{
	char key[64];
	for (; m->name; m++, value++) {
		snprintf(key, sizeof key, "%s_%s", when, m->name);
		if (isfinite(*value)) json_object_set_new(j, key, json_real(*value));
	}
}

static int result_json(const char *out, const struct nr_train_result *r, struct nr_error *err)
{
	json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:I, s:I}", "out", out, "status", r->status, "step", (json_int_t)r->step,
		"steps", (json_int_t)r->steps, "seconds", r->seconds, "train_loss", r->train_loss, "best_step",
		(json_int_t)r->best_step, "eval_samples", (json_int_t)r->eval_samples);
	char key[64];
	add_metrics(j, "train", r->of_step, r->train);
	if (r->best_step) add_metrics(j, "eval", r->of_eval, r->last);
	if (r->best_step && r->has_held) add_metrics(j, "held", r->of_eval, r->held);
	snprintf(key, sizeof key, "best_%s", r->of_eval[r->decides].name);
	if (r->best_step) json_object_set_new(j, key, json_real(r->best));
	return cli_print_json(j, err);
}

static void print_number(const struct nr_task_metric *m, double value)
{
	printf(nr_metric_percent(m) ? "%.2f %%" : "%.4g", nr_metric_percent(m) ? 100 * value : value);
}

static void print_result(const char *command, const char *out, const struct nr_train_result *r)
{
	char time[64];
	printf("%s%s%s after %lld of %lld steps, %s\n", cli_bold(), r->status, cli_plain(), (long long)r->step, (long long)r->steps,
		nr_duration_text(r->seconds, time, sizeof time));
	const bool known = r->best_step && isfinite(r->best);
	const char *before = "evaluation        ";
	for (int i = 0; r->best_step && r->of_eval[i].name; i++) {
		if (!isfinite(r->last[i])) continue;
		printf("%s%s ", before, r->of_eval[i].name);
		print_number(&r->of_eval[i], r->last[i]);
		before = ", ";
	}
	if (r->best_step && !known)
		printf("%s%s unknown on %lld samples: none of them counts\n", before, r->of_eval[r->decides].name,
			(long long)r->eval_samples);
	if (known) {
		printf(" on %lld samples; best %s ", (long long)r->eval_samples, r->of_eval[r->decides].name);
		print_number(&r->of_eval[r->decides], r->best);
		printf(" at step %lld", (long long)r->best_step);
		if (r->has_held) {
			fputs(", chosen by ", stdout);
			print_number(&r->of_eval[r->decides], r->best_held);
			fputs(" on held-out samples", stdout);
		}
		puts("");
	}
	printf("run               %s (model.safetensors, best.safetensors, metrics.csv; `norma runs`)\n", out);
	if (r->step < r->steps && strcmp(r->status, "stopped early"))
		printf("go on with        norma %s --resume --out %s\n", command, out);
}

static int train(struct cli *c, const struct cli_command *command, const struct nr_train *all, bool json)
{
	struct nr_trainer *t;
	const char *line = cli_command_line(c);
	const bool first = nr_comm_rank(all->comm) == 0, speaks = first || all->rank_logs;
	if (!speaks) nr_log_open(NULL, NR_LOG_ERROR);
	if (nr_memory_since(0, "cannot start", command->name, c->err) || nr_trainer_open(&t, all, line, c->err)) return c->err->code;
	if (!json && speaks) fputs(nr_trainer_header(t), stdout);
	fflush(stdout);
	struct nr_train_result r;
	struct watcher watcher = { 0 };
	int64_t step, steps;
	nr_trainer_progress(t, &step, &steps);
	nr_progress_init(&watcher.bar, first ? stderr : NULL, command->name, steps, step);
	watcher.lines = !json && speaks && !watcher.bar.out;
	cli_on_stop(on_signal);
	const struct nr_train_watch w = { watch, &watcher };
	int code = nr_trainer_run(t, &w, &r, c->err);
	nr_progress_release(&watcher.bar);
	if (!code) tell_evaluation(&watcher, &r);
	if (!code && json && first) code = result_json(nr_trainer_out(t), &r, c->err);
	else if (!code && first) print_result(command->name, nr_trainer_out(t), &r);
	nr_trainer_close(t);
	return code;
}

int cli_train_with(struct cli *c, const struct cli_command *command, const struct nr_train *settings, bool json)
{
	cli_bound_spin(c);
	struct nr_train all;
	const struct nr_task *task = nr_task_find(settings->task, c->err);
	if (!task || complete(&all, settings, cli_table(command), c->err)) return c->err->code;
	all.resume = settings->resume;
	all.force = settings->force;
	all.longer_epochs = settings->longer_epochs;
	all.longer_steps = settings->longer_steps;
	if (!all.resume && nr_train_options(all.task) != cli_table(command)) {
		cli_usage(c, "the task %s is not for `norma %s`", all.task, command->name);
		return nr_hint(c->err, "it is for `norma %s`", task->command);
	}
	if (nr_comm_open(&all.comm, all.rank_timeout, true, c->err)) return c->err->code;
	const int code = train(c, command, &all, json);
	cli_ranks_close(c, all.comm);
	if (!code && asked) exit(130);
	return code;
}
