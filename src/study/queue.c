/* The runs of a study in Slurm's queue: see slurm.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/save.h"
#include "base/str.h"
#include "study/engine.h"
#include "study/slurm.h"

enum { TRIES = 3 };                         /* submissions of a run in a row that bring it no step further */
enum { SOON = 1, LATE = 30 };               /* seconds between questions to Slurm: rarer while nothing happens */

enum place { NONE, QUEUED, AT_WORK, GONE };
struct entry {
	char job[32];                       /* "" : never submitted */
	int64_t index;
	enum place place;
	double asked;                       /* nr_clock of its submission */
	double at;                          /* stages and parts of one done when it was submitted */
	int tries;
	bool cancelled;
	bool old;                           /* another process submitted it, and it was not seen alive: how it ended is no news */
};
struct nr_queue {
	struct entry *entry;                /* by run */
	int64_t number;                     /* of the last script */
	double next, wait;                  /* nr_clock of the next question; seconds between them */
	bool quiet;                         /* said already that squeue cannot be asked */
};

static char *file_of(struct engine *e, int64_t number, const char *end)
{
	return nr_arena_printf(e->arena, "%s/slurm/%lld%s", e->s->out, (long long)number, end);
}

static int64_t find_run(const struct engine *e, const char *name)
{
	int64_t arm, seed;
	struct nr_error ignored = { 0 };
	if (!name || nr_study_find_run(e->s, name, &arm, &seed, &ignored)) return -1;
	return seed * e->s->arms + arm;
}

static double progress_of(struct engine *e, int64_t i)
{
	struct nr_study_run *r = &e->run[i];
	struct nr_error ignored = { 0 };
	double share = 0;
	char note[96];
	struct task *t = &e->task[i];
	if (r->stage < e->s->stages && !nr_engine_job(e, i, &ignored)) nr_job_progress(&t->job, &t->pace, &share, note, sizeof note);
	return (double)r->stage + share;
}

/* Later submissions of a run count more than earlier ones. */
static void read_record(struct engine *e, const char *path)
{
	json_t *o = nr_json_load(path, NULL), *runs = json_object_get(o, "runs");
	const char *job = json_string_value(json_object_get(o, "job"));
	for (size_t k = 0; job && k < json_array_size(runs); k++) {
		const int64_t i = find_run(e, json_string_value(json_array_get(runs, k)));
		if (i < 0) continue;
		struct entry *to = &e->queue->entry[i];
		*to = (struct entry){ .index = (int64_t)k, .place = QUEUED, .tries = 1, .at = progress_of(e, i), .asked = nr_clock(),
			.old = true };
		snprintf(to->job, sizeof to->job, "%s", job);
	}
	json_decref(o);
}

static int read_records(struct engine *e)
{
	for (;; e->queue->number++) {
		const char *script = file_of(e, e->queue->number + 1, ".sh"), *record = file_of(e, e->queue->number + 1, ".json");
		if (!script || !record) return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
		if (access(script, F_OK)) return NR_OK;
		if (!access(record, R_OK)) read_record(e, record);
	}
}

int nr_queue_open(struct engine *e)
{
	struct nr_queue *q = e->queue = nr_arena_alloc(e->arena, sizeof *q);
	if (q) q->entry = nr_arena_alloc(e->arena, (size_t)e->runs * sizeof *q->entry);
	if (!q || !q->entry) return nr_fail(e->err, NR_EMEMORY, "cannot start the study", NULL, "out of memory");
	q->wait = SOON;
	return read_records(e);
}

bool nr_queue_may_run(const struct nr_queue *q, int64_t run)
{
	return *q->entry[run].job && (q->entry[run].place != QUEUED || q->quiet);
}

/* ---- asking --------------------------------------------------------------------------------------------------------------------- */

static const char *first_line(const struct nr_str *s, struct nr_arena *arena)
{
	const char *text = nr_str_text(s);
	const char *line = nr_arena_printf(arena, "%.*s", (int)strcspn(text, "\n"), text);
	return line ? line : "";
}

static void take_line(struct engine *e, const char *line)
{
	char job[32], index[32], state[32];
	int64_t number;
	if (sscanf(line, "%31[^_]_%31s %31s", job, index, state) != 3 || !nr_parse_int(index, &number)) return;
	for (int64_t i = 0; i < e->runs; i++) {
		struct entry *to = &e->queue->entry[i];
		if (to->index != number || strcmp(to->job, job) != 0) continue;
		to->place = !strcmp(state, "PENDING") || !strcmp(state, "CONFIGURING") || !strcmp(state, "REQUEUED") ? QUEUED : AT_WORK;
		to->old = false;
	}
}

/* Our jobs by user, not by number: squeue refuses numbers that it has forgotten. false: Slurm cannot say. */
static bool ask(struct engine *e)
{
	char user[32];
	snprintf(user, sizeof user, "%lu", (unsigned long)getuid());
	const char *const argv[] = { "squeue", "-h", "-r", "-u", user, "-o", "%F_%K %T", NULL };
	struct nr_str out = { 0 }, trouble = { 0 };
	struct nr_error why = { 0 };
	char text[1024];
	int status = 0;
	const double asked = nr_clock();
	const bool failed = nr_call(argv, &out, &trouble, &status, &why);
	if (failed || status) {
		if (!e->queue->quiet) nr_engine_say(e, "%s; watching the run folders only",
			failed ? nr_error_text(&why, text, sizeof text) : first_line(&trouble, e->arena));
	} else {
		for (int64_t i = 0; i < e->runs; i++) {
			struct entry *to = &e->queue->entry[i];
			if (*to->job && to->asked < asked) to->place = GONE;
		}
		for (const char *s = nr_str_text(&out); *s; s += strcspn(s, "\n"), s += *s == '\n') take_line(e, s);
	}
	e->queue->quiet = failed || status;
	nr_str_release(&out);
	nr_str_release(&trouble);
	return !e->queue->quiet;
}

/* What Slurm calls the end of a task: "CANCELLED", "NODE_FAIL"; "" if it no longer knows. */
static void end_of(const struct entry *of, char *state, size_t size)
{
	char id[80];
	snprintf(id, sizeof id, "%s_%lld", of->job, (long long)of->index);
	const char *const now[] = { "scontrol", "-o", "show", "job", id, NULL };
	const char *const then[] = { "sacct", "-n", "-X", "-P", "-j", id, "-o", "State", NULL };
	state[0] = 0;
	for (int k = 0; k < 2 && !*state; k++) {
		struct nr_str out = { 0 }, trouble = { 0 };
		struct nr_error ignored = { 0 };
		int status = 0;
		if (!nr_call(k ? then : now, &out, &trouble, &status, &ignored) && !status) {
			const char *s = k ? nr_str_text(&out) : strstr(nr_str_text(&out), "JobState=");
			if (s) s += k ? 0 : strlen("JobState=");
			if (s) snprintf(state, size, "%.*s", (int)strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), s);
		}
		nr_str_release(&out);
		nr_str_release(&trouble);
	}
}

/* What the task of a run said. */
static const char *log_of(struct engine *e, int64_t i)
{
	const struct entry *of = &e->queue->entry[i];
	const char *log = NULL;
	for (int64_t n = e->queue->number; n > 0 && !log; n--) {         /* which script it was is in its record alone */
		json_t *o = nr_json_load(file_of(e, n, ".json"), NULL);
		const char *job = json_string_value(json_object_get(o, "job"));
		if (job && !strcmp(job, of->job)) log = nr_arena_printf(e->arena, "%s/slurm/%lld-%lld.log", e->s->out, (long long)n,
			(long long)of->index);
		json_decref(o);
	}
	return log ? log : "its log";
}

/* A run whose task is gone, though it is not done. true: it is to be submitted again. */
static bool goes_on(struct engine *e, int64_t i)
{
	struct entry *of = &e->queue->entry[i];
	struct nr_study_run *r = &e->run[i];
	char state[32], name[200], text[1024];
	const double at = progress_of(e, i);
	if (of->old) of->tries = 0;
	if (of->old) return true;
	end_of(of, state, sizeof state);
	snprintf(name, sizeof name, "%s, seed %lld", e->s->arm[r->arm].name, (long long)e->s->seed[r->seed]);
	if (!strcmp(state, "CANCELLED")) {
		snprintf(text, sizeof text, "its task %s_%lld was cancelled; the same command submits it again", of->job,
			(long long)of->index);
		nr_engine_failed(e, r, text);
		return false;
	}
	if (at > of->at) of->tries = 0;
	if (of->tries >= TRIES) {
		snprintf(text, sizeof text, "%d tasks in a row ended (%s) and brought it no step further; see %s", TRIES,
			*state ? state : "unknown", log_of(e, i));
		nr_engine_failed(e, r, text);
		return false;
	}
	nr_engine_say(e, "%s: task %s_%lld ended%s%s%s; submitted again", name, of->job, (long long)of->index, *state ? " (" : "", state,
		*state ? ")" : "");
	return true;
}

/* ---- submitting ----------------------------------------------------------------------------------------------------------------- */

/* What an earlier attempt said of a run no longer counts: it has yet to run. */
static int begin_anew(struct engine *e, int64_t i)
{
	struct task *t = &e->task[i];
	struct nr_stage_mark m;
	if (nr_engine_job(e, i, e->err) || nr_mark_read(&t->job, &m, e->arena, e->err)) return e->err->code;
	if (m.status != NR_MARK_FAILED && m.status != NR_MARK_DIVERGED) return NR_OK;
	t->found = NR_MARK_BEGUN;
	return nr_mark_write(&t->job, NR_MARK_BEGUN, 0, NULL, e->err);
}

static int write_record(struct engine *e, const char *path, const char *job, const int64_t *run, int64_t runs)
{
	struct nr_str text = { 0 };
	json_t *list = json_array(), *o = json_pack("{s:s, s:o}", "job", job, "runs", list);
	for (int64_t k = 0; o && k < runs; k++) {
		const struct nr_study_run *r = &e->run[run[k]];
		const char *name = nr_arena_printf(e->arena, "%s/seed-%lld", e->s->arm[r->arm].folder, (long long)e->s->seed[r->seed]);
		json_array_append_new(list, json_string(name ? name : ""));
	}
	int code = nr_json_add(&text, o, e->err);
	if (!code) code = nr_save_file(path, nr_str_text(&text), text.len, e->err);
	nr_str_release(&text);
	return code;
}

static int refused(struct engine *e, const struct nr_str *trouble, const char *script)
{
	const char *text = nr_str_text(trouble), *last = text;
	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')          /* the first error says why */
		if (strstr(s, "error: ") == s + strcspn(s, " ") + 1) {
			last = s;
			break;
		}
	nr_fail(e->err, NR_EIO, "sbatch refused", script, "%.*s", (int)strcspn(last, "\n"), *last ? last : "it gave no reason");
	return nr_hint(e->err, "--dry-run shows the script; --partition, --time, --account and the like change it");
}

static int submit_array(struct engine *e, const int64_t *run, int64_t runs)
{
	struct nr_queue *q = e->queue;
	struct nr_str script = { 0 }, out = { 0 }, trouble = { 0 };
	char job[32];
	int status = 0;
	const char *file = file_of(e, q->number + 1, ".sh"), *record = file_of(e, q->number + 1, ".json");
	const char *folder = nr_arena_printf(e->arena, "%s/slurm", e->s->out);
	const char *const argv[] = { "sbatch", "--parsable", file, NULL };
	int code = file && record && folder && !nr_study_script(e->s, e->how->slurm, run, runs, q->number + 1, &script)
		? nr_folder_make(folder, e->err) : nr_fail(e->err, NR_EMEMORY, "cannot submit", e->s->out, "out of memory");
	if (!code) code = nr_save_file(file, nr_str_text(&script), script.len, e->err);
	if (!code) q->number++;
	if (!code) code = nr_call(argv, &out, &trouble, &status, e->err);
	if (code && status == 127)
		nr_hint(e->err, "is this a machine of the cluster? --jobs-from writes the commands for other schedulers");
	if (!code && status) code = refused(e, &trouble, file);
	if (!code && sscanf(nr_str_text(&out), "%31[0-9]", job) != 1)
		code = nr_fail(e->err, NR_EFORMAT, "cannot read what sbatch said", file, "'%.80s' is no job", first_line(&out, e->arena));
	if (!code) code = write_record(e, record, job, run, runs);
	for (int64_t k = 0; !code && k < runs; k++) {
		struct entry *to = &q->entry[run[k]];
		const int tries = to->tries + 1;
		*to = (struct entry){ .index = k, .place = QUEUED, .tries = tries, .at = progress_of(e, run[k]), .asked = nr_clock() };
		snprintf(to->job, sizeof to->job, "%s", job);
	}
	if (!code) nr_engine_say(e, "submitted %lld %s as job %s (%s)", (long long)runs, runs == 1 ? "run" : "runs", job, file);
	nr_str_release(&script);
	nr_str_release(&out);
	nr_str_release(&trouble);
	return code;
}

static int submit(struct engine *e, const int64_t *run, int64_t runs)
{
	for (int64_t i = 0; i < runs; i++)
		if (begin_anew(e, run[i])) return e->err->code;
	for (int64_t i = 0; i < runs; i += NR_STUDY_MAX_ARRAY)
		if (submit_array(e, run + i, runs - i < NR_STUDY_MAX_ARRAY ? runs - i : NR_STUDY_MAX_ARRAY)) return e->err->code;
	return NR_OK;
}

static void cancel(struct engine *e, int64_t i)
{
	struct entry *of = &e->queue->entry[i];
	char id[80];
	struct nr_str out = { 0 }, trouble = { 0 };
	struct nr_error ignored = { 0 };
	int status;
	if (!*of->job || of->cancelled || of->place == GONE) return;
	snprintf(id, sizeof id, "%s_%lld", of->job, (long long)of->index);
	const char *const argv[] = { "scancel", id, NULL };
	of->cancelled = true;
	nr_call(argv, &out, &trouble, &status, &ignored);
	nr_str_release(&out);
	nr_str_release(&trouble);
}

static void say_left(struct engine *e)
{
	struct nr_str jobs = { 0 };
	for (int64_t i = 0; i < e->runs; i++) {
		const struct entry *of = &e->queue->entry[i];
		char job[40];
		snprintf(job, sizeof job, " %s ", of->job);
		const bool open = e->run[i].status == NR_RUN_WAITING || e->run[i].status == NR_RUN_ELSEWHERE;
		if (!open || !*of->job || of->place == GONE || strstr(nr_str_text(&jobs), job)) continue;
		nr_str_printf(&jobs, "%s%s ", jobs.len ? "" : " ", of->job);
	}
	if (jobs.len) nr_engine_say(e, "the jobs in Slurm go on; to cancel them: scancel%.*s", (int)jobs.len - 1, nr_str_text(&jobs));
	nr_str_release(&jobs);
}

void nr_queue_leave(struct engine *e, bool interrupted)
{
	if (interrupted) {
		say_left(e);
		return;
	}
	for (int64_t i = 0; i < e->runs; i++)
		if (e->run[i].status != NR_RUN_DONE && e->run[i].status != NR_RUN_FAILED) cancel(e, i);
}

static bool is_lost(const struct engine *e, int64_t i)
{
	const struct entry *of = &e->queue->entry[i];
	return e->run[i].status == NR_RUN_WAITING && (!*of->job || of->place == GONE);
}

/* One process at a time, so that two of them do not submit the same runs; what another one did meanwhile is read first. */
static int submit_lost(struct engine *e, bool asked)
{
	bool taken;
	int64_t *run = nr_arena_alloc(e->arena, (size_t)(e->runs + 1) * sizeof *run), runs = 0;
	if (!run) return nr_fail(e->err, NR_EMEMORY, "cannot submit", e->s->out, "out of memory");
	if (nr_claims_take(e->claims, "submit", &taken, e->err) || read_records(e)) return e->err->code;
	for (int64_t i = 0; taken && i < e->runs; i++)
		if (is_lost(e, i) && (!*e->queue->entry[i].job || (asked && goes_on(e, i)))) run[runs++] = i;
	if (taken) submit(e, run, runs);
	if (taken) nr_claims_drop(e->claims, "submit");
	e->queue->wait = SOON;
	return e->err->code;
}

void nr_queue_turn(struct engine *e)
{
	struct nr_queue *q = e->queue;
	if (nr_clock() < q->next) return;
	bool asked = true, submitted = false, lost = false;
	for (int64_t i = 0; i < e->runs; i++) submitted |= *q->entry[i].job != 0;
	if (submitted) asked = ask(e);
	e->next_poll = 0;
	nr_engine_poll(e);                              /* what is gone may be done */
	q->wait = fmin(LATE, q->wait * 1.5);
	for (int64_t i = 0; i < e->runs; i++) {
		if (e->run[i].status == NR_RUN_SPARED) cancel(e, i);
		lost |= is_lost(e, i);
	}
	if (lost && submit_lost(e, asked)) e->stopping = true;
	q->next = nr_clock() + q->wait;
}
