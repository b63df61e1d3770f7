/* Running a study: which run is due, its processes, signals, and what is known already. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "record/runfile.h"
#include "study/job.h"
#include "study/results.h"
#include "study/study.h"

enum { PATIENCE = 120 };                    /* seconds to wait for a process that an earlier study left */

struct task { struct nr_job job; struct nr_job_pace pace; double before; };       /* before: seconds of earlier attempts */

struct engine {
	const struct nr_study *s;
	const struct nr_study_how *how;
	const struct nr_study_watch *watch;
	struct nr_study_run *run;
	struct task *task;
	int64_t runs, parallel, threads;
	double *spent;                      /* by stage: seconds of finished ones */
	int64_t *finished;
	struct nr_arena *arena;
	struct nr_error *err;
	bool stopping;
	struct nr_looks looks;
	double *value;                      /* (arms, seeds) of the main metric; NAN: not there */
	struct nr_decision *decision;       /* (arms) */
};

static void tell(struct engine *e, const struct nr_study_run *changed);
static void note_value(struct engine *e, const struct nr_study_run *r);

/* ---- what is there ---------------------------------------------------------------------------------------------------------- */

static int refuse_change(struct engine *e, const struct nr_job *j, const struct nr_stage_mark *m)
{
	nr_fail(e->err, NR_EVALUE, "the settings have changed since", j->dir, "was made: %s", nr_mark_difference(m, j, e->arena));
	return nr_hint(e->err,
		"give the study another out, or use --rerun to repeat the run and move the old one aside");
}

/* A process that ended while nobody watched has printed its result. */
static bool adopt(const struct nr_job *j, double seconds)
{
	struct nr_error ignored = { 0 };
	json_t *o = nr_job_result(j);
	const char *status = o ? json_string_value(json_object_get(o, "status")) : NULL;
	const bool whole = o && (!status || !strcmp(status, "done") || !strcmp(status, "stopped early"));
	const bool saved = whole && !nr_result_save(j, o, &ignored) &&
		!nr_mark_write(j, NR_MARK_DONE, nr_result_seconds(j, o, seconds), NULL, &ignored);
	json_decref(o);
	return saved;
}

static int look_at_stage(struct engine *e, struct nr_study_run *r, int64_t stage, bool *done)
{
	struct nr_job j;
	struct nr_stage_mark m;
	*done = false;
	if (nr_job_make(&j, e->s, r->arm, r->seed, stage, e->arena, e->err) || nr_mark_read(&j, &m, e->arena, e->err)) return e->err->code;
	if (m.status != NR_MARK_NONE && strcmp(m.settings, j.settings))
		return e->how->rerun ? nr_job_set_aside(&j, e->err) : refuse_change(e, &j, &m);
	if (m.status == NR_MARK_BEGUN && adopt(&j, m.seconds) && nr_mark_read(&j, &m, e->arena, e->err)) return e->err->code;
	if (!nr_mark_counts(&m, e->how)) return NR_OK;
	if (m.status == NR_MARK_DIVERGED) {
		r->status = NR_RUN_FAILED;
		r->reused = true;
		r->fault = strdup(m.fault);
		return NR_OK;
	}
	*done = true;
	r->seconds += m.seconds;
	e->spent[stage] += m.seconds;
	e->finished[stage]++;
	return NR_OK;
}

/* Of every run the first stage that is not done; other settings are found before anything runs. */
static int look(struct engine *e)
{
	for (int64_t i = 0; i < e->runs; i++) {
		struct nr_study_run *r = &e->run[i];
		r->arm = i % e->s->arms;                /* seed by seed, so that the arms can be compared early */
		r->seed = i / e->s->arms;
		bool all = true, done;
		for (int64_t k = 0; k < e->s->stages; k++) {
			if (look_at_stage(e, r, k, &done)) return e->err->code;
			if (all && done) r->stage = k + 1;
			all &= done;
		}
		if (all) r->status = NR_RUN_DONE, r->reused = true;
		if (all) note_value(e, r);
	}
	return NR_OK;
}

/* ---- early stop --------------------------------------------------------------------------------------------------------------- */

static void note_value(struct engine *e, const struct nr_study_run *r)
{
	if (!e->looks.count) return;
	const char *metric = e->s->metric, *dot = strchr(metric, '.');
	const char *file = nr_arena_printf(e->arena, "%.*s.json", (int)(dot - metric), metric);
	const char *path = file ? nr_study_path(e->s, r->arm, r->seed, file, e->arena) : NULL;
	struct nr_error ignored = { 0 };
	json_t *o = path ? nr_json_load(path, &ignored) : NULL;
	double v;
	if (o && nr_result_number(o, dot + 1, &v)) e->value[r->arm * e->s->seeds + r->seed] = v;
	json_decref(o);
}

/* What no decision waits for is not begun; what runs may end. */
static void spare(struct engine *e)
{
	struct nr_error trouble = { 0 };
	if (!e->looks.count || nr_looks_decide(&e->looks, e->s, e->value, e->decision, &trouble)) return;
	for (int64_t a = 0; a < e->s->arms; a++) {
		const struct nr_study_run *last = NULL;
		for (int64_t i = 0; nr_arm_settled(e->s, e->decision, a) && i < e->runs; i++)
			if (e->run[i].arm == a && e->run[i].status == NR_RUN_WAITING) {
				e->run[i].status = NR_RUN_SPARED;
				last = &e->run[i];
			}
		if (last) tell(e, last);
	}
}

/* ---- starting and ending ---------------------------------------------------------------------------------------------------- */

static void failed(struct engine *e, struct nr_study_run *r, const char *fault)
{
	r->status = NR_RUN_FAILED;
	r->pid = 0;
	free(r->fault);
	r->fault = strdup(fault);
	tell(e, r);
}

/* The first unfinished stage of a run, in its slot. Troubles are the run's, not the study's. */
static void start(struct engine *e, int64_t i)
{
	struct nr_study_run *r = &e->run[i];
	struct task *t = &e->task[i];
	struct nr_error trouble = { 0 };
	struct nr_stage_mark m;
	char text[1024];
	pid_t pid = 0;
	const double now = nr_clock();
	if (nr_job_make(&t->job, e->s, r->arm, r->seed, r->stage, e->arena, &trouble) || nr_mark_read(&t->job, &m, e->arena, &trouble) ||
		nr_folder_make(t->job.base, &trouble) || nr_mark_write(&t->job, NR_MARK_BEGUN, m.seconds, NULL, &trouble) ||
		nr_job_start(&t->job, e->how, e->threads, &pid, e->arena, &trouble)) {
		failed(e, r, nr_error_text(&trouble, text, sizeof text));
		return;
	}
	if (!pid) {                                     /* another process still writes there */
		if (r->began <= 0) r->began = now;
		if (now - r->began > PATIENCE) failed(e, r, "another process is recording into this run");
		return;
	}
	t->pace = (struct nr_job_pace){ 0 };
	t->before = m.status == NR_MARK_BEGUN ? m.seconds : 0;
	r->status = NR_RUN_RUNNING;
	r->pid = pid;
	r->began = now;
	r->share = 0;
	r->note[0] = 0;
	tell(e, r);
}

/* A metric that the first result lacks is a slip in the study: better said after one run than after all. */
static void check_metric(struct engine *e, const struct nr_study_run *r, json_t *result)
{
	const char *stage = e->s->stage[r->stage].name, *metric = e->s->metric;
	const size_t n = strlen(stage);
	double v;
	if (e->finished[r->stage] || strncmp(metric, stage, n) || metric[n] != '.' || nr_result_number(result, metric + n + 1, &v)) return;
	nr_result_unknown(result, stage, metric, e->err);
	e->stopping = true;
}

static void finished(struct engine *e, struct nr_study_run *r, struct task *t)
{
	struct nr_error trouble = { 0 };
	char text[1024];
	json_t *o = nr_job_result(&t->job);
	const double seconds = nr_result_seconds(&t->job, o, t->before + nr_clock() - r->began);
	if (!o) {
		nr_mark_write(&t->job, NR_MARK_FAILED, seconds, "it printed no result", &trouble);
		failed(e, r, "it printed no result");
		return;
	}
	if (nr_result_save(&t->job, o, &trouble) || nr_mark_write(&t->job, NR_MARK_DONE, seconds, NULL, &trouble)) {
		failed(e, r, nr_error_text(&trouble, text, sizeof text));
	} else {
		check_metric(e, r, o);
		unlink(t->job.raw);
		r->seconds += seconds;
		e->spent[r->stage] += seconds;
		e->finished[r->stage++]++;
		r->pid = 0;
		r->began = 0;
		r->share = 0;
		r->status = r->stage == e->s->stages ? NR_RUN_DONE : NR_RUN_WAITING;
		if (r->status == NR_RUN_DONE) {
			tell(e, r);
			note_value(e, r);
			spare(e);
		}
	}
	json_decref(o);
}

static void ended(struct engine *e, int64_t i, int status)
{
	enum { DIVERGED = 3, INTERRUPTED = 130 };
	struct nr_study_run *r = &e->run[i];
	struct task *t = &e->task[i];
	struct nr_error ignored = { 0 };
	const double seconds = t->before + nr_clock() - r->began;
	const bool asked = (WIFEXITED(status) && WEXITSTATUS(status) == INTERRUPTED) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		finished(e, r, t);
	} else if (e->stopping && asked) {
		nr_mark_write(&t->job, NR_MARK_BEGUN, seconds, NULL, &ignored);
		r->status = NR_RUN_WAITING;
		r->pid = 0;
		r->began = 0;
	} else {
		const char *words = nr_job_last_words(&t->job, e->arena);
		char *fault = WIFSIGNALED(status) ? nr_arena_printf(e->arena, "killed by signal %d; %s", WTERMSIG(status), words)
						  : nr_arena_printf(e->arena, "%s", words);
		const bool diverged = WIFEXITED(status) && WEXITSTATUS(status) == DIVERGED;
		nr_mark_write(&t->job, diverged ? NR_MARK_DIVERGED : NR_MARK_FAILED, seconds, fault, &ignored);
		failed(e, r, fault ? fault : "out of memory");
	}
}

/* ---- time left ---------------------------------------------------------------------------------------------------------------- */

/* By the mean time of each stage so far, or, before one has finished, by how far the running one is. */
static double seconds_left(const struct engine *e)
{
	double guess[NR_STUDY_MAX_STAGES] = { 0 }, left = 0;
	for (int64_t k = 0; k < e->s->stages; k++)
		if (e->finished[k]) guess[k] = e->spent[k] / (double)e->finished[k];
	for (int64_t i = 0; i < e->runs; i++) {
		const struct nr_study_run *r = &e->run[i];
		if (r->status != NR_RUN_RUNNING || e->finished[r->stage] || r->share < 0.01) continue;
		guess[r->stage] = (nr_clock() - r->began) / r->share;
	}
	if (guess[0] <= 0) return NAN;
	int64_t open = 0;
	for (int64_t i = 0; i < e->runs; i++) {
		const struct nr_study_run *r = &e->run[i];
		if (r->status != NR_RUN_WAITING && r->status != NR_RUN_RUNNING) continue;
		open++;
		for (int64_t k = r->stage; k < e->s->stages; k++) {
			double part = guess[k];
			if (k == r->stage && r->status == NR_RUN_RUNNING)
				part = r->share > 0 ? part * (1 - r->share) : fmax(0, part - (nr_clock() - r->began));
			left += part;
		}
	}
	const int64_t at_once = open < e->parallel ? open : e->parallel;
	return at_once ? left / (double)at_once : 0;
}

static void tell(struct engine *e, const struct nr_study_run *changed)
{
	struct nr_study_progress p = { .study = e->s, .run = e->run, .runs = e->runs, .left = seconds_left(e) };
	for (int64_t i = 0; i < e->runs; i++) {
		p.done += e->run[i].status == NR_RUN_DONE;
		p.failed += e->run[i].status == NR_RUN_FAILED;
		p.running += e->run[i].status == NR_RUN_RUNNING;
		p.spared += e->run[i].status == NR_RUN_SPARED;
	}
	if (e->watch && e->watch->tell) e->watch->tell(e->watch->context, &p, changed);
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------ */

static int64_t count(const struct engine *e, enum nr_run_status status)
{
	int64_t n = 0;
	for (int64_t i = 0; i < e->runs; i++) n += e->run[i].status == status;
	return n;
}

static void reap(struct engine *e)
{
	for (int64_t i = 0; i < e->runs; i++) {
		struct nr_study_run *r = &e->run[i];
		int status;
		if (r->status != NR_RUN_RUNNING) continue;
		if (waitpid((pid_t)r->pid, &status, WNOHANG) == (pid_t)r->pid) ended(e, i, status);
		else nr_job_progress(&e->task[i].job, &e->task[i].pace, &r->share, r->note, sizeof r->note);
	}
}

/* Runs that have begun go on first, so that a slot is kept until its run is over. */
static void fill_slots(struct engine *e)
{
	for (int begun = 1; begun >= 0; begun--)
		for (int64_t i = 0; i < e->runs && !e->stopping && count(e, NR_RUN_RUNNING) < e->parallel; i++)
			if (e->run[i].status == NR_RUN_WAITING && (e->run[i].stage > 0) == begun) start(e, i);
}

static void interrupt(struct engine *e)
{
	for (int64_t i = 0; i < e->runs; i++)
		if (e->run[i].status == NR_RUN_RUNNING) kill((pid_t)e->run[i].pid, SIGINT);
}

static void loop(struct engine *e, bool *interrupted)
{
	sigset_t wanted, before;
	const struct timespec pause = { .tv_nsec = 500000000 };
	bool told = false;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGCHLD);
	sigprocmask(SIG_BLOCK, &wanted, &before);
	spare(e);
	fill_slots(e);
	while (count(e, NR_RUN_RUNNING) || (!e->stopping && count(e, NR_RUN_WAITING))) {
		const int number = sigtimedwait(&wanted, NULL, &pause);
		if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
			*interrupted = e->stopping = told = true;
			interrupt(e);
		}
		reap(e);
		if (e->stopping && !told) {
			told = true;
			interrupt(e);
		}
		fill_slots(e);
		tell(e, NULL);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int nr_study_save(const struct nr_study *s, struct nr_error *err)
{
	struct nr_str text = { 0 };
	char *path = nr_arena_printf(s->arena, "%s/study.yaml", s->out);
	nr_study_text(s, &text);
	int code = path && !text.failed ? nr_folder_make(s->out, err)
					: nr_fail(err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (!code) code = nr_save_file(path, nr_str_text(&text), text.len, err);
	nr_str_release(&text);
	return code;
}

/* One study at a time in a folder. */
static int take_folder(struct engine *e, struct nr_runfile *lock)
{
	char *path = nr_arena_printf(e->arena, "%s/study.lock", e->s->out);
	if (!path) return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (nr_folder_make(e->s->out, e->err) || nr_runfile_open(lock, path, e->err)) return e->err->code;
	if (nr_runfile_lock(lock, e->err)) return e->err->code;
	nr_save_sweep(e->s->out, NULL);
	return NR_OK;
}

static int prepare(struct engine *e)
{
	e->runs = e->s->arms * e->s->seeds;
	e->parallel = e->s->parallel < e->runs ? e->s->parallel : e->runs;
	const char *asked = getenv("OMP_NUM_THREADS");
	int64_t all = e->how->threads;
	if (!all && (!asked || !nr_parse_int(asked, &all))) all = e->parallel > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	e->threads = all ? all / e->parallel > 1 ? all / e->parallel : 1 : 0;
	e->run = calloc((size_t)e->runs, sizeof *e->run);
	e->task = nr_arena_alloc(e->arena, (size_t)e->runs * sizeof *e->task);
	e->spent = nr_arena_alloc(e->arena, (size_t)e->s->stages * sizeof *e->spent);
	e->finished = nr_arena_alloc(e->arena, (size_t)e->s->stages * sizeof *e->finished);
	e->value = nr_arena_alloc(e->arena, (size_t)e->runs * sizeof *e->value);
	e->decision = nr_arena_alloc(e->arena, (size_t)e->s->arms * sizeof *e->decision);
	if (!e->run || !e->task || !e->spent || !e->finished || !e->value || !e->decision)
		return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	for (int64_t i = 0; i < e->runs; i++) e->value[i] = NAN;
	return nr_looks_make(&e->looks, e->s, e->arena, e->err);
}

int nr_study_run(const struct nr_study *s, const struct nr_study_how *how, const struct nr_study_watch *watch, struct nr_study_run **runs,
	int64_t *n, bool *interrupted, struct nr_error *err)
{
	struct engine e = { .s = s, .how = how, .watch = watch, .arena = nr_arena_make(), .err = err };
	struct nr_runfile lock = { .fd = -1 };
	*runs = NULL;
	*n = 0;
	*interrupted = false;
	int code = e.arena ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (!code) code = prepare(&e);
	if (!code) code = take_folder(&e, &lock);
	if (!code) code = look(&e);
	if (!code) code = nr_study_save(s, err);
	if (!code) loop(&e, interrupted);
	if (!code) code = err->code;
	nr_runfile_close(&lock);
	nr_arena_free(e.arena);
	*runs = e.run;
	*n = e.run ? e.runs : 0;
	return code;
}

void nr_study_runs_free(struct nr_study_run *r, int64_t n)
{
	for (int64_t i = 0; r && i < n; i++) free(r[i].fault);
	free(r);
}
