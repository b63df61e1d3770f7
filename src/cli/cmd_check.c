/* norma check NORM | OP | MODEL | TASK | DATA | OPTIMIZER | PLUGIN.so | FILE.c: what our own tests do, for anything that is registered. */
#include <math.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "laws/norm_card.h"
#include "base/args.h"
#include "bench/bench.h"
#include "check/check.h"
#include "check_files.h"
#include "norma/plugin.h"

struct check { bool speed, json; };
static const struct nr_option options[] = {
	NR_OPT_BOOL(struct check, speed, "1", "time norms beside layer"),
	NR_OPT_BOOL(struct check, json, "0", "print one line of JSON"),
	NR_OPT_END
};

/* ---- what came of it --------------------------------------------------------------------------------------------------- */

struct found { int tried, failed; char detail[400]; };
struct report {                                 /* of one subject */
	const char *name;
	struct found of[NR_CHECKS];
	double speed;                           /* its time over that of layer; 0: not measured */
};
struct run {
	struct cli *c;
	const struct check *o;
	struct nr_checker k;
	struct report *report;
	int count, failed;
	json_t *all;
};

static void tell(void *context, const struct nr_subject *s, const struct nr_case *at, enum nr_check_kind kind, bool ok, const char *detail)
{
	struct found *f = &((struct run *)context)->report->of[kind];
	(void)s;
	f->tried++;
	if (ok || f->failed++) return;
	if (at) snprintf(f->detail, sizeof f->detail, "%s [%s] (%s)", detail, at->shapes, at->options);
	else snprintf(f->detail, sizeof f->detail, "%s", detail);
}

static void print_speed(const struct report *r)
{
	printf("%-16s %-54s %.2f x the time of layer, forward and backward\n", r->name, "speed", r->speed);
}

static void print_report(const struct report *r)
{
	for (int i = 0; i < NR_CHECKS; i++) {
		const struct found *f = &r->of[i];
		if (!f->tried) continue;
		printf("%-16s %-54s %s%s%s%s%s\n", r->name, nr_check_names[i], f->failed ? cli_red() : cli_green(),
			f->failed ? "failed" : "ok", cli_plain(), f->failed ? ": " : "", f->detail);
	}
	if (r->speed > 0) print_speed(r);
	fflush(stdout);
}

static json_t *report_json(const struct report *r)
{
	json_t *checks = json_array(), *j;
	for (int i = 0; i < NR_CHECKS; i++) {
		const struct found *f = &r->of[i];
		if (!f->tried) continue;
		json_t *one = json_pack("{s:s, s:b, s:i}", "check", nr_check_names[i], "ok", !f->failed, "tried", f->tried);
		if (f->failed) json_object_set_new(one, "detail", json_string(f->detail));
		json_array_append_new(checks, one);
	}
	j = json_pack("{s:s, s:o}", "name", r->name, "checks", checks);
	if (r->speed > 0) json_object_set_new(j, "times_layer", json_real(r->speed));
	return j;
}

static void finish(struct run *r)
{
	for (int i = 0; i < NR_CHECKS; i++) r->failed += r->report->of[i].failed > 0, r->count += r->report->of[i].tried > 0;
	if (r->o->json) json_array_append_new(r->all, report_json(r->report));
	else print_report(r->report);
}

/* ---- crashes ---------------------------------------------------------------------------------------------------------- */

static char crashed[256];                       /* what is said of one, made before it happens */

static void on_crash(int number)
{
	(void)number;
	if (write(STDERR_FILENO, crashed, strlen(crashed)) < 0) _exit(1);
	_exit(1);
}

/* A kernel finds NULL where it reads what it did not declare. */
static void watch_for_crash(const char *name)
{
	snprintf(crashed, sizeof crashed, "norma: '%.100s' crashed (does backward read what .keeps does not name?)\n", name);
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
}

/* ---- running ----------------------------------------------------------------------------------------------------------- */

/* A norm that does nothing takes no time. */
static double speed_of(const struct nr_norm *norm)
{
	static const struct bench_shape at = { 32, 65, 192 };
	struct bench_times own, layer;
	struct nr_error ignored = { 0 };
	char text[128];
	if (bench_norm_time("layer", at, false, 0.1, &layer, &ignored)) return 0;
	if (bench_norm_time(nr_norm_example(norm, text, sizeof text), at, false, 0.1, &own, &ignored)) return 0;
	return own.both > 0 && layer.both > 0 ? own.both / layer.both : 0;
}

static void run_subject(void *context, const struct nr_subject *s)
{
	struct run *r = context;
	struct report report = { .name = s ? s->name : "" };
	if (!s) return;
	r->report = &report;
	nr_check_run(&r->k, s);
	const struct nr_norm *norm = nr_norm_find(s->name, &(struct nr_error){ 0 });
	if (norm && s->of == norm && r->o->speed) report.speed = speed_of(norm);
	finish(r);
}

/* What is no graph has no twin; everything else is for both programs. */
enum kind { GRAPH, OPTIMIZER, TASK, DATA };

static enum kind kind_of(const char *name)
{
	const size_t n = strcspn(name, ":");
	if (nr_optim_kind(name) >= 0) return OPTIMIZER;
	for (const struct nr_task *const *t = nr_tasks(); *t; t++)
		if (!strcmp((*t)->name, name)) return TASK;
	for (const struct nr_dataset *const *d = nr_datasets(); *d; d++)
		if (!strncmp((*d)->name, name, n) && !(*d)->name[n]) return DATA;
	return GRAPH;
}

static int run_one(struct run *r, const char *name, const char *dir)
{
	struct nr_error *err = r->c->err;
	struct report report = { .name = name };
	const enum kind kind = kind_of(name);
	int code;
	r->report = &report;
	watch_for_crash(name);
	if (kind == TASK) code = nr_check_task(&r->k, nr_task_find(name, err), dir, err);
	else if (kind == OPTIMIZER) code = nr_check_optimizer(&r->k, nr_optimizers()[nr_optim_kind(name)], err);
	else if (kind == DATA) code = nr_check_dataset(&r->k, name, err);
	else code = nr_subjects_find(name, run_subject, r, r->c->arena, err);
	if (!code && kind != GRAPH) finish(r);
	r->report = NULL;
	return code;
}

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static int add(struct cli *c, struct nr_list *to, const char *name)
{
	char *copy = nr_arena_strdup(c->arena, name);
	return copy && !nr_list_add(to, copy, c->arena) ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot check", name, "out of memory");
}

/* All that a plug-in brings and that can be checked. */
static int add_all(struct cli *c, const struct nr_plugin *p, struct nr_list *to)
{
	for (const struct nr_norm *const *d = p->norms; d && *d; d++) add(c, to, (*d)->name);
	for (const struct nr_op *const *d = p->ops; d && *d; d++) add(c, to, (*d)->name);
	for (const struct nr_model *const *d = p->models; d && *d; d++) add(c, to, (*d)->name);
	for (const struct nr_task *const *d = p->tasks; d && *d; d++) add(c, to, (*d)->name);
	for (const struct nr_dataset *const *d = p->datasets; d && *d; d++) add(c, to, (*d)->name);
	for (const struct nr_optimizer *const *d = p->optimizers; d && *d; d++) add(c, to, (*d)->name);
	return c->err->code;
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n > m && !strcmp(s + n - m, end);
}

static int add_argument(struct cli *c, const char *text, const char *dir, struct nr_list *to)
{
	int before, after;
	const bool source = ends_with(text, ".c");
	if (!source && !ends_with(text, ".so")) return add(c, to, text);
	nr_plugins(&before);
	if (source ? check_compile(c, text, dir) : nr_plugin_load(text, c->err)) return c->err->code;
	const struct nr_plugin_file *file = nr_plugins(&after);
	if (after > before) return add_all(c, file[after - 1].table, to);
	for (int i = 0; i < after; i++)                 /* it was loaded before, by --plugin */
		if (ends_with(file[i].path, strrchr(text, '/') ? strrchr(text, '/') : text)) return add_all(c, file[i].table, to);
	return NR_OK;
}

static void ignore(void *context, const struct nr_subject *s) { (void)context, (void)s; }

static int check_all(struct cli *c, const struct check *o, const struct nr_list *args, const char *dir)
{
	struct nr_list names = { NULL, 0 }, shared = { NULL, 0 };
	struct run r = { .c = c, .o = o, .all = json_array() };
	struct check_twin twin = { 0 };
	for (int64_t i = 0; i < args->count; i++)
		if (add_argument(c, args->item[i], dir, &names)) return c->err->code;
	for (int64_t i = 0; i < names.count; i++) {
		if (kind_of(names.item[i]) != GRAPH) continue;
		if (nr_subjects_find(names.item[i], ignore, NULL, c->arena, c->err) || add(c, &shared, names.item[i])) return c->err->code;
	}
	if (shared.count && check_twin_start(c, &shared, &twin)) return c->err->code;
	r.k = (struct nr_checker){ .tell = tell, .context = &r, .twin = twin.out };
	int code = NR_OK;
	for (int64_t i = 0; i < names.count && !code; i++) code = run_one(&r, names.item[i], dir);
	check_twin_end(&twin);
	if (!code && o->json) code = cli_print_json(json_pack("{s:b, s:O}", "ok", !r.failed, "subjects", r.all), c->err);
	json_decref(r.all);
	if (!code && !r.count) return cli_usage(c, "there is nothing in it that can be checked");
	if (!code && r.failed) code = nr_fail(c->err, NR_EVALUE, "checks failed", NULL, "%d of %d", r.failed, r.count);
	return code;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	char *dir;
	if (!args->count) return cli_usage(c, "check needs the name of a norm, model, task, ... or a plug-in or its source");
	cli_bound_spin(c);
	if (check_folder_make(c, &dir)) return c->err->code;
	const int code = check_all(c, conf, args, dir);
	check_folder_remove(dir);
	return code;
}

static void words(struct nr_str *s)
{
	for (const struct nr_norm *const *n = nr_norms(); *n; n++) nr_str_printf(s, "%s\n", (*n)->name);
	for (const struct nr_op *const *n = nr_ops(); *n; n++) nr_str_printf(s, "%s\n", (*n)->name);
}

const struct cli_command cli_check = {
	.name = "check",
	.title = "run norma's own tests on a norm, an op, a model, a plug-in, ...",
	.usage = "NAME | PLUGIN.so | FILE.c...",
	.about = "Compares the gradient in double with finite differences and float with double, fills memory that backward has not\n"
		 "declared with NaN, tries padding, checks for equal bits on 1, 2 and 3 threads, adds to gradients, and reads views\n"
		 "with gaps; norms are also timed beside layer. Prints one line per check; the exit code is 1 if any fails.\n\n"
		 "    norma check own_norm.c     compiles it for both precisions, then checks it\n"
		 "    norma check ./own_norm.so  needs own_norm64.so (pkg-config norma64), too\n"
		 "    norma check dtn            something built in, or from a --plugin\n\n"
		 "Optimizers take a few steps, the first samples of a data set are read, and a task on pictures is trained for a few\n"
		 "steps on made-up data, stopped and resumed.",
	.conf_size = sizeof(struct check),
	.options = options,
	.words = words,
	.run = run,
};
