/* norma train: from settings (flags, a recipe, or both) to a trained model and its record. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/yaml.h"
#include "cli.h"
#include "norma/trainer.h"

static volatile sig_atomic_t asked;                     /* to stop */
static void on_signal(int number)
{
	(void)number;
	if (asked++) _exit(130);                        /* the second time at once */
}

struct settings { struct nr_train train; bool resume, json; };          /* train first: its table has its offsets */

static const struct nr_option own[] = {
	NR_OPT_BOOL(struct settings, resume, "0", "go on with the run in --out (or the directory given), with its own settings"),
	NR_OPT_BOOL(struct settings, json, "0", "one line of JSON at the end"),
	NR_OPT_END
};

static const struct nr_option *table(void) { return nr_train_options(); }

struct show { struct nr_progress bar; double began; int64_t first; };

static int watch(void *context, const struct nr_train_result *r, double images_per_second, const char *note)
{
	struct show *s = context;
	(void)note;
	if (r->best_step)
		nr_progress_update(&s->bar, r->step, "%.0f img/s  loss %.3f  acc %.1f %%  eval %.2f %%", images_per_second, r->train_loss,
			100 * r->train_top1, 100 * r->last.top1);
	else
		nr_progress_update(&s->bar, r->step, "%.0f img/s  loss %.3f  acc %.1f %%", images_per_second, r->train_loss,
			100 * r->train_top1);
	return asked != 0;
}

/* The recipe below the flags: defaults, then the file, then the command line once more. */
static int read_recipe(struct cli *c, const char *path, struct settings *s)
{
	struct nr_option *rows = cli_options(&cli_train, c->arena);
	char *conf = nr_arena_alloc(c->arena, sizeof(struct cli_common) + sizeof *s);
	if (!rows || !conf) return nr_fail(c->err, NR_EMEMORY, "cannot read", path, "out of memory");
	nr_option_defaults(rows, conf);
	struct settings *own_conf = (struct settings *)(void *)(conf + sizeof(struct cli_common));
	const struct nr_yaml_section sections[] = { { NULL, nr_train_options(), &own_conf->train }, { 0 } };
	struct nr_yaml_errors errors = { 0 };
	if (nr_yaml_read(path, sections, c->arena, &errors, c->err)) {
		struct nr_str text = { 0 };
		nr_yaml_errors_text(&errors, &text);
		fputs(nr_str_text(&text), stderr);
		nr_str_release(&text);
		return c->err->code;
	}
	char **argv = c->argv;
	while (*argv && strcmp(*argv, cli_train.name)) argv++;
	int argc = 0;
	while (*argv && argv[argc + 1]) argc++;
	struct nr_list rest = { NULL, 0 };
	if (nr_args_parse(rows, conf, argc, argv + 1, &rest, c->arena, c->err)) return c->err->code;
	*s = *own_conf;
	return NR_OK;
}

static const char *command_line(struct cli *c)
{
	struct nr_str s = { 0 };
	for (char **a = c->argv; *a; a++) nr_str_printf(&s, strpbrk(*a, " ()*[]'") ? "%s\"%s\"" : "%s%s", a == c->argv ? "" : " ", *a);
	const char *text = nr_arena_strdup(c->arena, nr_str_text(&s));
	nr_str_release(&s);
	return text ? text : "norma train";
}

static int print_result(bool as_json, const char *out, const struct nr_train_result *r, struct nr_error *err)
{
	char time[64];
	if (as_json) {
		json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}",
			"out", out, "status", r->status, "step", (json_int_t)r->step, "steps",
			(json_int_t)r->steps, "seconds", r->seconds, "train_loss", r->train_loss, "train_top1",
			r->train_top1, "eval_loss", r->last.loss, "eval_top1", r->last.top1, "eval_top5",
			r->last.top5, "best_top1", r->best.top1, "best_step", (json_int_t)r->best_step,
			"eval_samples", (json_int_t)r->last.samples);
		return cli_print_json(j, err);
	}
	printf("%s%s%s after %lld of %lld steps, %s\n", cli_bold(), r->status, cli_plain(), (long long)r->step, (long long)r->steps,
		nr_duration_text(r->seconds, time, sizeof time));
	if (r->best_step)
		printf("evaluation        top-1 %s%.2f %%%s, top-5 %.2f %%, loss %.4f on %lld samples; best %.2f %% at step %lld\n",
			cli_bold(), 100 * r->last.top1, cli_plain(), 100 * r->last.top5, r->last.loss,
			(long long)r->last.samples, 100 * r->best.top1, (long long)r->best_step);
	printf("run               %s (model.safetensors, best.safetensors, metrics.csv; `norma runs`)\n", out);
	if (r->step < r->steps && strcmp(r->status, "stopped early")) printf("go on with        norma train --resume --out %s\n", out);
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	struct settings s = *(const struct settings *)conf;
	if (args->count > 1) return cli_usage(c, "train takes one recipe at most");
	if (args->count && !s.resume && read_recipe(c, args->item[0], &s)) return c->err->code;
	if (s.resume && args->count) s.train.out = args->item[0];
	if (s.resume && !*s.train.out) return cli_usage(c, "--resume wants --out DIRECTORY");
	s.train.resume = s.resume;
	return cli_training(c, &s.train, s.json);
}

int cli_training(struct cli *c, const struct nr_train *settings, bool json)
{
	cli_bound_spin(c);
	struct nr_trainer *t;
	if (nr_trainer_open(&t, settings, command_line(c), c->err)) return c->err->code;
	if (!json) fputs(nr_trainer_header(t), stdout);
	fflush(stdout);
	struct nr_train_result r;
	struct show show;
	int64_t step, steps;
	nr_trainer_progress(t, &step, &steps);
	nr_progress_init(&show.bar, stderr, "train", steps, step);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	const struct nr_train_watch w = { watch, &show };
	const int code = nr_trainer_run(t, &w, &r, c->err);
	nr_progress_release(&show.bar);
	if (!code) print_result(json, nr_trainer_out(t), &r, c->err);
	nr_trainer_close(t);
	if (!code && asked) exit(130);
	return code;
}

const struct cli_command cli_train = {
	.name = "train",
	.title = "train a classifier of pictures",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Trains a model on a data set and leaves a run directory: checkpoints, metrics as CSV, JSON lines and\n"
		 "TensorBoard events, every setting, and a row in the run store. Settings come from flags, from a recipe\n"
		 "(YAML with the flags' names as keys), or from both: flags count more.\n\n"
		 "Ctrl-C finishes the step, writes a checkpoint and says how to go on; --resume continues with the same\n"
		 "bits as if nothing had happened, also after a kill. A loss that is not finite stops the run with exit\n"
		 "code 3, names the first bad site and leaves the last checkpoint whole.",
	.conf_size = sizeof(struct settings),
	.table = table,
	.options = own,
	.run = run,
};
