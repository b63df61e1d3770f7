/* Running a study: which run is due, its processes, signals. What is known of the runs: engine_state.c. */
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
#include "study/engine.h"
#include "study/slurm.h"

enum { PATIENCE = 120 };                    /* seconds to wait for a process that an earlier study left */

/* ---- starting and ending ---------------------------------------------------------------------------------------------------- */

/* Ours from now on, or false: another process has it, or had it and it is over. */
static bool claim(struct engine *e, int64_t i)
{
	struct nr_study_run *r = &e->run[i];
	struct task *t = &e->task[i];
	struct nr_error trouble = { 0 };
	char text[1024];
	if (t->claimed) return true;
	if (nr_claims_take(e->claims, t->claim, &t->claimed, &trouble)) {
		nr_engine_failed(e, r, nr_error_text(&trouble, text, sizeof text));
		return false;
	}
	if (!t->claimed) {
		r->status = NR_RUN_ELSEWHERE;
		r->began = nr_clock();
		return false;
	}
	return !nr_engine_catch_up(e, i, false, true);
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
	if (!claim(e, i)) return;
	if (nr_engine_job(e, i, &trouble) || nr_mark_read(&t->job, &m, e->arena, &trouble) ||
		nr_folder_make(t->job.base, &trouble) || nr_mark_write(&t->job, NR_MARK_BEGUN, m.seconds, NULL, &trouble) ||
		nr_job_start(&t->job, e->how, e->threads, &pid, e->arena, &trouble)) {
		nr_engine_failed(e, r, nr_error_text(&trouble, text, sizeof text));
		return;
	}
	if (!pid) {                                     /* another process still writes there */
		if (r->began <= 0) r->began = now;
		if (now - r->began > PATIENCE) nr_engine_failed(e, r, "another process is recording into this run");
		return;
	}
	t->pace = (struct nr_job_pace){ 0 };
	t->before = m.status == NR_MARK_BEGUN ? m.seconds : 0;
	r->status = NR_RUN_RUNNING;
	r->pid = pid;
	r->began = now;
	r->share = 0;
	r->note[0] = 0;
	nr_engine_tell(e, r);
}

static void finished(struct engine *e, struct nr_study_run *r, struct task *t)
{
	struct nr_error trouble = { 0 };
	char text[1024];
	json_t *o = nr_job_result(&t->job);
	const double seconds = nr_result_seconds(&t->job, o, t->before + nr_clock() - r->began);
	if (!o) {
		nr_mark_write(&t->job, NR_MARK_FAILED, seconds, "it printed no result", &trouble);
		nr_engine_failed(e, r, "it printed no result");
		return;
	}
	if (nr_result_save(&t->job, o, &trouble) || nr_mark_write(&t->job, NR_MARK_DONE, seconds, NULL, &trouble)) {
		nr_engine_failed(e, r, nr_error_text(&trouble, text, sizeof text));
	} else {
		nr_engine_check_metric(e, r, o);
		unlink(t->job.raw);
		nr_engine_stage_done(e, r, seconds);
		r->status = NR_RUN_WAITING;
		if (r->stage == e->s->stages) nr_engine_done(e, r);
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
	const int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const bool asked = (WIFEXITED(status) && WEXITSTATUS(status) == INTERRUPTED) || by == SIGINT || by == SIGTERM;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		finished(e, r, t);
	} else if (e->stopping && asked) {
		nr_mark_write(&t->job, NR_MARK_BEGUN, seconds, NULL, &ignored);
		nr_engine_release(e, r);
		r->status = NR_RUN_WAITING;
		r->pid = 0;
		r->began = 0;
	} else {
		const char *words = nr_job_last_words(&t->job, e->arena);
		char *fault = by ? nr_arena_printf(e->arena, "killed by signal %d; %s", by, words) : nr_arena_printf(e->arena, "%s", words);
		const bool diverged = WIFEXITED(status) && WEXITSTATUS(status) == DIVERGED;
		const bool again = e->how->only && (by == SIGKILL || by == SIGTERM);    /* a scheduler's doing: it can go on elsewhere */
		nr_mark_write(&t->job, again ? NR_MARK_BEGUN : diverged ? NR_MARK_DIVERGED : NR_MARK_FAILED, seconds, again ? NULL : fault,
			&ignored);
		nr_engine_failed(e, r, fault ? fault : "out of memory");
	}
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------ */

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
		for (int64_t i = 0; i < e->runs && !e->stopping && nr_engine_count(e, NR_RUN_RUNNING) < e->parallel; i++)
			if (e->run[i].status == NR_RUN_WAITING && (e->run[i].stage > 0) == begun) start(e, i);
}

/* A process that slept for long (suspended, its file server gone) may find that others gave it up for dead: its child must not write
 * beside theirs. It saves and ends. */
static void keep_claims(struct engine *e)
{
	if (!nr_claims_beat(e->claims)) return;
	for (int64_t i = 0; i < e->runs; i++) {
		struct nr_study_run *r = &e->run[i];
		int status;
		if (!e->task[i].claimed || nr_claims_ours(e->claims, e->task[i].claim)) continue;
		if (r->pid) kill((pid_t)r->pid, SIGTERM);
		if (r->pid) waitpid((pid_t)r->pid, &status, 0);
		nr_engine_release(e, r);
		r->pid = 0;
		r->began = r->share = 0;
		r->status = NR_RUN_ELSEWHERE;
	}
}

static void interrupt(struct engine *e)
{
	for (int64_t i = 0; i < e->runs; i++)
		if (e->run[i].status == NR_RUN_RUNNING) kill((pid_t)e->run[i].pid, SIGINT);
}

static void fill(struct engine *e)
{
	if (e->queue) nr_queue_turn(e);
	else fill_slots(e);
}

static bool open_runs(const struct engine *e)
{
	int64_t left = 0;
	for (int64_t i = 0; i < e->runs; i++) left += e->task[i].left;
	return nr_engine_count(e, NR_RUN_WAITING) || nr_engine_count(e, NR_RUN_ELSEWHERE) > left;
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
	nr_engine_spare(e);
	fill(e);
	while (nr_engine_count(e, NR_RUN_RUNNING) || (!e->stopping && open_runs(e))) {
		const int number = sigtimedwait(&wanted, NULL, &pause);
		if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
			*interrupted = e->stopping = told = true;
			interrupt(e);
		}
		keep_claims(e);
		reap(e);
		nr_engine_poll(e);
		if (e->stopping && !told) {
			told = true;
			interrupt(e);
		}
		if (!e->stopping) fill(e);
		nr_engine_tell(e, NULL);
	}
	if (e->queue && e->stopping) nr_queue_leave(e, *interrupted);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int nr_study_save(const struct nr_study *s, const char *name, struct nr_error *err)
{
	struct nr_str text = { 0 };
	char *path = nr_arena_printf(s->arena, "%s/%s", s->out, name);
	nr_study_text(s, &text);
	int code = path && !text.failed ? nr_folder_make(s->out, err)
					: nr_fail(err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (!code) code = nr_save_file(path, nr_str_text(&text), text.len, err);
	nr_str_release(&text);
	return code;
}

/* Several processes share a folder; study.lock says to others that one is at it. */
static int take_folder(struct engine *e, struct nr_runfile *lock)
{
	char *path = nr_arena_printf(e->arena, "%s/study.lock", e->s->out), *claims = nr_arena_printf(e->arena, "%s/.claims", e->s->out);
	if (!path || !claims) return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (nr_folder_make(e->s->out, e->err) || nr_runfile_open(lock, path, e->err)) return e->err->code;
	if (nr_runfile_share(lock, e->err) || nr_claims_open(&e->claims, claims, e->err)) return e->err->code;
	nr_save_sweep(e->s->out, NULL);
	return NR_OK;
}

/* Seed by seed, so that the arms can be compared early. */
static int prepare_runs(struct engine *e)
{
	const struct nr_study *s = e->s;
	const struct nr_list *only = e->how->only;
	e->runs = only ? only->count : s->arms * s->seeds;
	e->run = calloc((size_t)e->runs, sizeof *e->run);
	e->task = nr_arena_alloc(e->arena, (size_t)e->runs * sizeof *e->task);
	for (int64_t i = 0; e->run && e->task && i < e->runs; i++) {
		struct nr_study_run *r = &e->run[i];
		r->arm = i % s->arms;
		r->seed = i / s->arms;
		if (only && nr_study_find_run(s, only->item[i], &r->arm, &r->seed, e->err)) return e->err->code;
		e->task[i].claim = nr_arena_printf(e->arena, "%s,seed-%lld", s->arm[r->arm].folder, (long long)s->seed[r->seed]);
		if (!e->task[i].claim) return NR_EMEMORY;
	}
	return e->run && e->task ? NR_OK : NR_EMEMORY;
}

static int prepare(struct engine *e)
{
	const int code = prepare_runs(e);
	if (code == NR_EMEMORY) nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	if (code) return code;
	e->parallel = e->how->only ? 1 : e->s->parallel < e->runs ? e->s->parallel : e->runs;
	if (e->how->slurm) e->parallel = 0;
	const char *asked = getenv("OMP_NUM_THREADS");
	int64_t all = e->how->threads;
	if (!all && (!asked || !nr_parse_int(asked, &all))) all = e->parallel > 1 ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	if (e->parallel) e->threads = all ? all / e->parallel > 1 ? all / e->parallel : 1 : 0;
	e->spent = nr_arena_alloc(e->arena, (size_t)e->s->stages * sizeof *e->spent);
	e->finished = nr_arena_alloc(e->arena, (size_t)e->s->stages * sizeof *e->finished);
	e->value = nr_arena_alloc(e->arena, (size_t)(e->s->arms * e->s->seeds) * sizeof *e->value);
	e->decision = nr_arena_alloc(e->arena, (size_t)e->s->arms * sizeof *e->decision);
	if (!e->spent || !e->finished || !e->value || !e->decision)
		return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	for (int64_t i = 0; i < e->s->arms * e->s->seeds; i++) e->value[i] = NAN;
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
	if (!code) code = nr_engine_look(&e);
	if (!code && !how->only) code = nr_study_save(s, "study.yaml", err);   /* a process for single runs was told what the study is */
	if (!code && how->slurm) code = nr_queue_open(&e);
	if (!code) loop(&e, interrupted);
	if (!code) code = err->code;
	nr_claims_close(e.claims);
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
