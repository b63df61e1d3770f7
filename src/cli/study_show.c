/* A study on the terminal: see study.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/save.h"
#include "base/table.h"
#include "norma/task.h"
#include "study.h"
#include "study/published.h"
#include "study/results.h"
#include "study/settings.h"
#include "study/tune.h"

const struct nr_study_command *cli_study_commands(struct cli *c)
{
	size_t n = 0;
	while (cli_commands[n]) n++;
	struct nr_study_command *all = nr_arena_alloc(c->arena, (n + 1) * sizeof *all), *to = all;
	for (const struct cli_command *const *p = cli_commands; all && *p; p++) {
		struct nr_study_command one = { (*p)->name, cli_options(*p, c->arena), sizeof(struct cli_common) + (*p)->conf_size,
			!strncmp((*p)->usage, "CHECKPOINT", 10), false, NULL, NULL };
		const struct nr_task *task = (*p)->task;
		if (task) one.metric = nr_arena_printf(c->arena, "eval_%s", task->of_eval[task->decides].name);
		if (!one.options || (task && !one.metric)) return NULL;
		one.checkpoint_option = task ? task->from : NULL;
		one.trains = nr_study_option(&one, "out") && nr_study_option(&one, "store");      /* it leaves a run directory */
		if (nr_study_option(&one, "json") && (one.trains || one.takes_checkpoint)) *to++ = one;
	}
	return all;
}

/* ---- the bar ----------------------------------------------------------------------------------------------------------------- */

struct show { bool terminal, utf8, drawn; struct cli *c; };

static void clear(void *p)
{
	struct show *s = p;
	if (s->drawn) fputs("\r\033[K", stderr);
	s->drawn = false;
}

static const char *run_name(const struct nr_study *s, const struct nr_study_run *r, char *buf, size_t size)
{
	snprintf(buf, size, "%s, seed %lld", s->arm[r->arm].name, (long long)s->seed[r->seed]);
	return buf;
}

static bool is_running(const struct nr_study_run *r) { return r->status == NR_RUN_RUNNING || r->status == NR_RUN_ELSEWHERE; }

static void draw(struct show *show, const struct nr_study_progress *p)
{
	enum { BAR = 24 };
	struct winsize size;
	const int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
	struct nr_str s = { 0 };
	char text[256];
	double parts = 0;
	for (int64_t i = 0; i < p->runs; i++) {
		const struct nr_study_run *r = &p->run[i];
		const double stage = (double)r->stage + (is_running(r) ? r->share : 0);
		parts += r->status == NR_RUN_FAILED || r->status == NR_RUN_SPARED ? 1 : stage / (double)p->study->stages;
	}
	const int full = (int)(parts / (double)p->runs * BAR + 0.5);
	nr_str_add(&s, "study ");
	for (int i = 0; i < BAR; i++) nr_str_add(&s, show->utf8 ? (i < full ? "━" : "─") : i < full ? "#" : "-");
	nr_str_printf(&s, " %lld/%lld runs", (long long)(p->done + p->failed + p->spared), (long long)p->runs);
	if (p->failed) nr_str_printf(&s, " (%lld failed)", (long long)p->failed);
	if (p->queued) nr_str_printf(&s, "  %lld queued", (long long)p->queued);
	if (!isnan(p->left)) nr_str_printf(&s, "  %s left", nr_duration_text(p->left, text, sizeof text));
	for (int64_t i = 0; i < p->runs; i++) {
		const struct nr_study_run *r = &p->run[i];
		if (!is_running(r)) continue;
		nr_str_printf(&s, "  %s: %s", run_name(p->study, r, text, sizeof text), p->study->stage[r->stage].name);
		if (r->share > 0) nr_str_printf(&s, " %.0f %%, %s", 100 * r->share, r->note);
	}
	const char *line = nr_str_text(&s);
	size_t n = strlen(line);
	char *cut = strdup(line);
	while (cut && n && nr_utf8_width(cut) >= (size_t)columns) {
		do n--;
		while (n && (cut[n] & 0xC0) == 0x80);
		cut[n] = 0;
	}
	fprintf(stderr, "\r%s\033[K", cut ? cut : "");
	fflush(stderr);
	show->drawn = true;
	free(cut);
	nr_str_release(&s);
}

/* The main metric of a finished run, as "STAGE.KEY 0.912"; "" if it is not there. */
static void metric_text(struct cli *c, const struct nr_study *s, const struct nr_study_run *r, char *buf, size_t size)
{
	const char *dot = strchr(s->metric, '.'), *file = nr_arena_printf(c->arena, "%.*s.json", (int)(dot - s->metric), s->metric);
	const char *path = file ? nr_study_path(s, r->arm, r->seed, file, c->arena) : NULL;
	struct nr_error ignored = { 0 };
	json_t *o = path ? nr_json_load(path, &ignored) : NULL;
	double v;
	buf[0] = 0;
	if (o && nr_result_number(o, dot + 1, &v)) snprintf(buf, size, ", %s %.4g", s->metric, v);
	json_decref(o);
}

static void tell(void *context, const struct nr_study_progress *p, const struct nr_study_run *changed)
{
	struct show *show = context;
	char name[256], time[32], metric[200];
	const long long ended = (long long)(p->done + p->failed + p->spared), runs = (long long)p->runs;
	if (changed) run_name(p->study, changed, name, sizeof name);
	if (changed && changed->status == NR_RUN_DONE) {
		metric_text(show->c, p->study, changed, metric, sizeof metric);
		nr_duration_text(changed->seconds, time, sizeof time);
		nr_log_line(NR_LOG_INFO, "[%lld/%lld] %s: done in %s%s", ended, runs, name, time, metric);
	} else if (changed && changed->status == NR_RUN_FAILED) {
		const char *stage = p->study->stage[changed->stage].name;
		nr_log_line(NR_LOG_WARNING, "[%lld/%lld] %s failed in %s: %s", ended, runs, name, stage, changed->fault);
	} else if (changed && changed->status == NR_RUN_SPARED) {
		nr_log_line(NR_LOG_INFO,
			"[%lld/%lld] %s is decided: no further runs", ended, runs, p->study->arm[changed->arm].name);
	}
	if (show->terminal) draw(show, p);
}

static void say(void *context, const char *text)
{
	(void)context;
	nr_log_line(NR_LOG_INFO, "%s", text);
}

/* ---- from the runs to the table ------------------------------------------------------------------------------------------------- */

static int print_summary(struct cli *c, const struct nr_study *s, const struct cli_study *how, const struct nr_study_run *run, int64_t runs)
{
	struct nr_summary m;
	if (nr_summary_make(&m, s, run, runs, c->arena, c->err) || nr_summary_write(&m, run, runs, c->err)) return c->err->code;
	if (how->json) return cli_print_json(nr_summary_json(&m, run, runs), c->err);
	struct nr_str text = { 0 };
	nr_summary_text(&m, &text);
	fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	printf("tables            %s/table.md, table.tex, table.csv, table.json, results.csv\n", s->out);
	return NR_OK;
}

static int list_runs(struct cli *c, const struct nr_study *s)
{
	struct nr_study tuning;
	if (s->tune && nr_tune_study(s, &tuning, c->err)) return c->err->code;
	struct nr_table *t = nr_table_make();
	struct nr_str text = { 0 };
	nr_table_column(t, "arm", NR_LEFT);
	for (int64_t k = 0; k < s->stages; k++) nr_table_column(t, s->stage[k].name, NR_LEFT);
	if (s->published) nr_table_column(t, "published", NR_RIGHT);
	for (int64_t a = 0; a < s->arms; a++) {
		nr_table_cell(t, "%s", s->arm[a].name);
		for (int64_t k = 0; k < s->stages; k++) {
			const struct nr_settings *all = nr_study_settings(s, a, k, c->arena);
			struct nr_str line = { 0 };
			for (int64_t i = 0; all && i < all->count; i++)
				nr_str_printf(&line, "%s%s=%s", i ? " " : "", all->item[i].key, nr_setting_text(&all->item[i], c->arena));
			nr_table_cell(t, "%s", nr_str_text(&line));
			nr_str_release(&line);
		}
		const struct nr_published_cell *printed = nr_published_cell(s, 0, a);
		char digits[96] = "-";
		if (printed) nr_published_text(printed, digits, sizeof digits);
		if (s->published) nr_table_cell(t, "%s", digits);
	}
	nr_table_text(t, &text);
	fputs(nr_str_text(&text), stdout);
	if (s->tune)
		printf("tuning first: %lld settings x %lld seeds for each arm, in %s\n", (long long)(tuning.arms / s->arms),
			(long long)tuning.seeds, tuning.out);
	printf("%lld arms x %lld seeds = %lld runs, %lld at once, in %s\n", (long long)s->arms, (long long)s->seeds,
		(long long)(s->arms * s->seeds), (long long)s->parallel, s->out);
	nr_str_release(&text);
	nr_table_free(t);
	return NR_OK;
}

int cli_study_tune(struct cli *c, struct nr_study *s, const struct cli_study *how)
{
	struct nr_study tuning;
	struct nr_yaml_tree *tree = s->tree;
	s->tree = NULL;                                 /* what is wrong with a flag is no error of the file */
	for (int64_t i = 0; i < how->tune.count && !c->err->code; i++) nr_tune_flag(s, how->tune.item[i], c->err);
	if (how->tune.count && !c->err->code) nr_tune_study(s, &tuning, c->err);
	s->tree = tree;
	return c->err->code;
}

struct outcome { struct nr_study_run *run; int64_t runs, done, failed, reused; bool interrupted; };

static struct nr_study_how how_to_run(const struct cli *c, const struct cli_study *how)
{
	return (struct nr_study_how){ .program = "/proc/self/exe", .threads = c->common->threads, .retry = how->retry,
		.rerun = how->rerun, .force = how->force, .only = how->only, .launch = how->launch,
		.slurm = how->slurm ? how->away : NULL };
}

/* ---- runs that go elsewhere ------------------------------------------------------------------------------------------------------ */

/* The file that their commands read: study.yaml, or with tuning what came of it. */
static int name_file(struct cli *c, const struct nr_study *s, const struct cli_study *how, struct nr_study *to)
{
	if (!how->away) return NR_OK;
	*to = *s;
	to->tune = NULL;
	const char *name = s->tune ? "tuned.yaml" : "study.yaml";
	how->away->study = nr_arena_printf(c->arena, "%s/%s", s->out, name);
	if (!how->away->study) return nr_fail(c->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	return how->dry_run ? NR_OK : nr_study_save(to, name, c->err);
}

static int print_scripts(struct cli *c, const struct nr_study *s, const struct cli_study *how)
{
	struct nr_study plain;
	const struct nr_study_how way = how_to_run(c, how);
	int64_t runs, number = 0;
	if (name_file(c, s, how, &plain)) return c->err->code;
	const int64_t *run = nr_study_open_runs(s, &way, &runs, c->arena, c->err);
	struct nr_str text = { 0 };
	for (int64_t i = 0; run && i < runs; i += NR_STUDY_MAX_ARRAY)
		nr_study_script(s, how->away, run + i, runs - i < NR_STUDY_MAX_ARRAY ? runs - i : NR_STUDY_MAX_ARRAY, ++number, &text);
	if (text.failed) nr_fail(c->err, NR_EMEMORY, "cannot print the scripts", NULL, "out of memory");
	else fputs(nr_str_text(&text), stdout);
	if (!runs && !c->err->code) nr_log_line(NR_LOG_INFO, "all runs are done: there is nothing to submit");
	nr_str_release(&text);
	return c->err->code;
}

/* *left: so many runs are to be done, and the file has their commands. */
static int write_jobs(struct cli *c, const struct nr_study *s, const struct cli_study *how, int64_t *left)
{
	struct nr_study plain;
	const struct nr_study_how way = how_to_run(c, how);
	int64_t runs = 0;
	struct nr_str text = { 0 };
	*left = 0;
	if (name_file(c, s, how, &plain)) return c->err->code;
	const int64_t *run = nr_study_open_runs(s, &way, &runs, c->arena, c->err);
	const bool out = !strcmp(how->jobs_from, "-");
	if (!run || (!runs && out)) return c->err->code;
	if (!runs) return nr_save_file(how->jobs_from, "", 0, c->err);  /* the lines of an earlier call are done */
	int code = nr_study_commands(s, how->away, run, runs, &text);
	if (code) nr_fail(c->err, NR_EMEMORY, "cannot write", how->jobs_from, "out of memory");
	if (!code && out) fputs(nr_str_text(&text), stdout);
	else if (!code) code = nr_save_file(how->jobs_from, nr_str_text(&text), text.len, c->err);
	const long long all = (long long)(s->arms * s->seeds);
	if (!code) nr_log_line(NR_LOG_INFO, "%lld of %lld runs are left%s%s; when they are done, the same command makes the table",
		(long long)runs, all, out ? "" : ", in ", out ? "" : how->jobs_from);
	nr_str_release(&text);
	*left = runs;
	return code;
}

static int run_all(struct cli *c, const struct nr_study *s, const struct cli_study *how, struct outcome *o)
{
	const char *term = getenv("TERM");
	struct show show = { .terminal = isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb")), .c = c };
	struct nr_progress plain;
	nr_progress_init(&plain, NULL, "", 1, 0);       /* knows what the terminal can draw */
	show.utf8 = plain.utf8;
	const struct nr_study_watch watch = { tell, say, &show };
	const struct nr_study_how way = how_to_run(c, how);
	*o = (struct outcome){ 0 };
	if (show.terminal) nr_log_before(clear, &show);
	const int code = nr_study_run(s, &way, &watch, &o->run, &o->runs, &o->interrupted, c->err);
	clear(&show);
	nr_log_before(NULL, NULL);
	for (int64_t i = 0; i < o->runs; i++) {
		o->done += o->run[i].status == NR_RUN_DONE;
		o->failed += o->run[i].status == NR_RUN_FAILED;
		o->reused += o->run[i].status == NR_RUN_DONE && o->run[i].reused;
	}
	if (!code && o->reused) nr_log_line(NR_LOG_INFO,
		"%lld of %lld runs were done already", (long long)o->reused, (long long)o->runs);
	return code;
}

static void stop_if_interrupted(const struct outcome *o, const struct cli_study *how, const char *again)
{
	if (!o->interrupted) return;
	nr_log_line(NR_LOG_INFO, "interrupted with %lld of %lld runs done; %s with: %s", (long long)o->done, (long long)o->runs,
		how->slurm ? "watch the others" : "resume", again);
	fflush(stdout);
	exit(130);
}

/* The tuning runs, then the study with what was best in each arm. A setting that diverges is no trouble: it is not taken. *jobs: other
 * programs have to do the tuning runs first. */
static int tune_first(struct cli *c, const struct nr_study *s, const struct cli_study *how, const char *again, struct nr_study *to,
	bool *jobs)
{
	struct nr_study tuning;
	struct nr_summary m;
	struct outcome o;
	struct nr_str text = { 0 };
	const char *record = nr_arena_printf(c->arena, "%s/study.yaml", s->out);
	if (nr_tune_study(s, &tuning, c->err)) return c->err->code;
	/* so that it can be gone on with */
	if (record && access(record, F_OK) && nr_study_save(s, "study.yaml", c->err)) return c->err->code;
	nr_log_line(NR_LOG_INFO, "tuning: %lld runs for each of %lld arms", (long long)(tuning.arms / s->arms * tuning.seeds),
		(long long)s->arms);
	int64_t left = 0;
	int code = how->jobs_from ? write_jobs(c, &tuning, how, &left) : name_file(c, &tuning, how, &(struct nr_study){ 0 });
	if (left) *jobs = true;
	if (code || left) return code;
	code = run_all(c, &tuning, how, &o);
	if (!code) stop_if_interrupted(&o, how, again);
	if (!code) code = nr_summary_make(&m, &tuning, o.run, o.runs, c->arena, c->err);
	if (!code) code = nr_tune_apply(s, &m, to, c->err);
	nr_study_runs_free(o.run, o.runs);
	if (code) return code;
	nr_tune_plot(s, &m, &text);
	if (!how->json) fputs(nr_str_text(&text), stdout);
	nr_str_release(&text);
	return NR_OK;
}

static int say_failed(struct cli *c, const struct nr_study *s, const struct outcome *o)
{
	if (!o->failed) return NR_OK;
	nr_fail(c->err, NR_EIO, "the study has failed runs", s->out, "%lld of %lld", (long long)o->failed, (long long)o->runs);
	return nr_hint(c->err, "their logs are beside their folders; repeat the command to try again");
}

int cli_study_runs(struct cli *c, const struct nr_study *s, const struct cli_study *how, const char *again)
{
	struct outcome o;
	const struct nr_study_how way = how_to_run(c, how);
	if (nr_study_rehearse(s, &way, c->err)) return c->err->code;
	const int code = run_all(c, s, how, &o);
	nr_study_runs_free(o.run, o.runs);
	if (code) return code;
	stop_if_interrupted(&o, how, again);
	return say_failed(c, s, &o);
}

int cli_study_alone(struct cli *c, const struct nr_study *s, const struct cli_study *how, const char *again)
{
	struct outcome o;
	if (s->tune) {
		nr_fail(c->err, NR_EVALUE, "cannot run single runs of", s->out, "its arms are tuned first");
		return nr_hint(c->err, "the tuning runs are those of %s/tune/study.yaml; then there is %s/tuned.yaml", s->out, s->out);
	}
	const int code = run_all(c, s, how, &o);
	nr_study_runs_free(o.run, o.runs);
	if (code) return code;
	stop_if_interrupted(&o, how, again);
	return say_failed(c, s, &o);
}

int cli_study_go(struct cli *c, const struct nr_study *asked, const struct cli_study *how, const char *again)
{
	struct nr_study study = *asked, *s = &study, plain, tuning;
	struct outcome o;
	bool tuning_left = false;
	int64_t left = 0;
	s->columns = how->columns;
	if (nr_tex_columns_check(s, how->columns, c->err)) return c->err->code;
	const struct nr_study_how way = how_to_run(c, how);
	const int fault = nr_study_rehearse(s, &way, c->err);
	if (how->dry_run && how->slurm && !fault)
		return s->tune && nr_tune_study(s, &tuning, c->err) ? (int)c->err->code : print_scripts(c, s->tune ? &tuning : s, how);
	if (how->dry_run) return fault == NR_EMEMORY || list_runs(c, s) ? (int)c->err->code : fault;     /* the list, then what is wrong */
	if (fault) return fault;
	if (s->tune && tune_first(c, asked, how, again, s, &tuning_left)) return c->err->code;
	if (tuning_left) return NR_OK;
	int code = how->jobs_from ? write_jobs(c, s, how, &left) : name_file(c, s, how, &plain);
	const bool some = left && left < s->arms * s->seeds && strcmp(how->jobs_from, "-") != 0;
	if (!code && some) code = print_summary(c, s, how, NULL, 0);   /* of what is there */
	if (code || left) return code;
	code = run_all(c, s, how, &o);
	if (!code) code = print_summary(c, s, how, o.run, o.runs);
	nr_study_runs_free(o.run, o.runs);
	if (code) return code;
	stop_if_interrupted(&o, how, again);
	return say_failed(c, s, &o);
}
