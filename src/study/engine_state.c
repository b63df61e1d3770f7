/* What is known of a study's runs: markers, values, who is at work, time left. See engine.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "study/engine.h"
#include "study/slurm.h"

/* ---- telling ------------------------------------------------------------------------------------------------------------------- */

int64_t nr_engine_count(const struct engine *e, enum nr_run_status status)
{
	int64_t n = 0;
	for (int64_t i = 0; i < e->runs; i++) n += e->run[i].status == status;
	return n;
}

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
		const bool running = r->status == NR_RUN_RUNNING || r->status == NR_RUN_ELSEWHERE;
		if (r->status != NR_RUN_WAITING && !running) continue;
		open++;
		for (int64_t k = r->stage; k < e->s->stages; k++) {
			double part = guess[k];
			if (k == r->stage && running)
				part = r->share > 0 ? part * (1 - r->share) : fmax(0, part - (nr_clock() - r->began));
			left += part;
		}
	}
	const int64_t others = nr_engine_count(e, NR_RUN_ELSEWHERE), slots = e->parallel + others > 0 ? e->parallel + others : 1;
	const int64_t at_once = open < slots ? open : slots;
	return at_once ? left / (double)at_once : 0;
}

void nr_engine_tell(struct engine *e, const struct nr_study_run *changed)
{
	struct nr_study_progress p = { .study = e->s, .run = e->run, .runs = e->runs, .left = seconds_left(e) };
	p.done = nr_engine_count(e, NR_RUN_DONE);
	p.failed = nr_engine_count(e, NR_RUN_FAILED);
	p.running = nr_engine_count(e, NR_RUN_RUNNING);
	p.spared = nr_engine_count(e, NR_RUN_SPARED);
	p.elsewhere = nr_engine_count(e, NR_RUN_ELSEWHERE);
	p.queued = e->queue ? nr_engine_count(e, NR_RUN_WAITING) : 0;
	if (e->watch && e->watch->tell) e->watch->tell(e->watch->context, &p, changed);
}

void nr_engine_say(struct engine *e, const char *fmt, ...)
{
	char text[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	if (e->watch && e->watch->say) e->watch->say(e->watch->context, text);
}

/* ---- early stop ---------------------------------------------------------------------------------------------------------------- */

static void note_value(struct engine *e, int64_t arm, int64_t seed)
{
	if (!e->looks.count) return;
	const char *metric = e->s->metric, *dot = strchr(metric, '.');
	const char *file = nr_arena_printf(e->arena, "%.*s.json", (int)(dot - metric), metric);
	const char *path = file ? nr_study_path(e->s, arm, seed, file, e->arena) : NULL;
	struct nr_error ignored = { 0 };
	json_t *o = path ? nr_json_load(path, &ignored) : NULL;
	double v;
	if (o && nr_result_number(o, dot + 1, &v)) e->value[arm * e->s->seeds + seed] = v;
	json_decref(o);
}

/* What runs may end. */
void nr_engine_spare(struct engine *e)
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
		if (last) nr_engine_tell(e, last);
	}
}

/* ---- runs that end ------------------------------------------------------------------------------------------------------------- */

void nr_engine_release(struct engine *e, struct nr_study_run *r)
{
	struct task *t = &e->task[r - e->run];
	if (t->claimed) nr_claims_drop(e->claims, t->claim);
	t->claimed = false;
}

void nr_engine_failed(struct engine *e, struct nr_study_run *r, const char *fault)
{
	nr_engine_release(e, r);
	r->status = NR_RUN_FAILED;
	r->pid = 0;
	free(r->fault);
	r->fault = strdup(fault);
	nr_engine_tell(e, r);
}

void nr_engine_stage_done(struct engine *e, struct nr_study_run *r, double seconds)
{
	r->seconds += seconds;
	e->spent[r->stage] += seconds;
	e->finished[r->stage++]++;
	r->pid = 0;
	r->began = 0;
	r->share = 0;
}

void nr_engine_done(struct engine *e, struct nr_study_run *r)
{
	nr_engine_release(e, r);
	r->status = NR_RUN_DONE;
	nr_engine_tell(e, r);
	note_value(e, r->arm, r->seed);
	nr_engine_spare(e);
}

void nr_engine_check_metric(struct engine *e, const struct nr_study_run *r, json_t *result)
{
	const char *stage = e->s->stage[r->stage].name, *metric = e->s->metric;
	const size_t n = strlen(stage);
	double v;
	if (e->finished[r->stage] || strncmp(metric, stage, n) || metric[n] != '.' || nr_result_number(result, metric + n + 1, &v)) return;
	nr_result_unknown(result, stage, metric, e->err);
	e->stopping = true;
}

/* ---- what is there ------------------------------------------------------------------------------------------------------------- */

static int refuse_change(struct nr_error *err, const struct nr_job *j, const struct nr_stage_mark *m, struct nr_arena *arena)
{
	nr_fail(err, NR_EVALUE, "the settings have changed since", j->dir, "was made: %s", nr_mark_difference(m, j, arena));
	return nr_hint(err,
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

/* Not under the feet of another process. */
static int set_aside(struct engine *e, struct task *t, const struct nr_job *j)
{
	bool taken;
	if (nr_claims_take(e->claims, t->claim, &taken, e->err)) return e->err->code;
	if (!taken) {
		nr_fail(e->err, NR_EVALUE, "cannot set aside", j->dir, "another process is at work on it");
		return nr_hint(e->err, "end that study first");
	}
	const int code = nr_job_set_aside(j, e->err);
	nr_claims_drop(e->claims, t->claim);
	return code;
}

static int look_at_stage(struct engine *e, int64_t i, int64_t stage, bool *done)
{
	struct nr_study_run *r = &e->run[i];
	struct nr_job j;
	struct nr_stage_mark m;
	*done = false;
	if (nr_job_make(&j, e->s, r->arm, r->seed, stage, e->arena, e->err) || nr_mark_read(&j, &m, e->arena, e->err)) return e->err->code;
	if (m.status != NR_MARK_NONE && strcmp(m.settings, j.settings))
		return e->how->rerun ? set_aside(e, &e->task[i], &j) : refuse_change(e->err, &j, &m, e->arena);
	if (m.status == NR_MARK_BEGUN && !nr_claims_held(e->claims, e->task[i].claim, NULL) && adopt(&j, m.seconds) &&
		nr_mark_read(&j, &m, e->arena, e->err)) return e->err->code;
	if (r->stage == stage) e->task[i].found = m.status;
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

int nr_engine_look(struct engine *e)
{
	for (int64_t i = 0; e->how->only && i < e->s->arms * e->s->seeds; i++) note_value(e, i % e->s->arms, i / e->s->arms);
	for (int64_t i = 0; i < e->runs; i++) {
		struct nr_study_run *r = &e->run[i];
		bool all = true, done;
		for (int64_t k = 0; k < e->s->stages; k++) {
			if (look_at_stage(e, i, k, &done)) return e->err->code;
			if (all && done) r->stage = k + 1;
			all &= done;
		}
		if (all) r->status = NR_RUN_DONE, r->reused = true;
		if (all) note_value(e, r->arm, r->seed);
	}
	return NR_OK;
}

int nr_engine_job(struct engine *e, int64_t i, struct nr_error *err)
{
	struct task *t = &e->task[i];
	const struct nr_study_run *r = &e->run[i];
	if (t->made == r->stage + 1) return NR_OK;
	if (nr_job_make(&t->job, e->s, r->arm, r->seed, r->stage, e->arena, err)) return err->code;
	t->made = r->stage + 1;
	t->pace = (struct nr_job_pace){ 0 };
	return NR_OK;
}

/* ---- the work of others ---------------------------------------------------------------------------------------------------------- */

static void note_result(struct engine *e, struct nr_study_run *r, double seconds)
{
	struct nr_error ignored = { 0 };
	json_t *o = nr_json_load(e->task[r - e->run].job.json, &ignored);
	if (o) nr_engine_check_metric(e, r, o);
	json_decref(o);
	nr_engine_stage_done(e, r, seconds);
	e->task[r - e->run].found = NR_MARK_NONE;
}

bool nr_engine_catch_up(struct engine *e, int64_t i, bool held, bool ours)
{
	struct nr_study_run *r = &e->run[i];
	struct task *t = &e->task[i];
	struct nr_error trouble = { 0 };
	struct nr_arena *scratch = nr_arena_make();
	char text[1024];
	const char *fault = scratch ? NULL : "out of memory";
	while (!fault && r->stage < e->s->stages) {
		struct nr_stage_mark m = { 0 };
		int code = nr_engine_job(e, i, &trouble);
		if (!code) code = nr_mark_read(&t->job, &m, scratch, &trouble);
		if (!code && m.status != NR_MARK_NONE && strcmp(m.settings, t->job.settings))
			code = refuse_change(&trouble, &t->job, &m, scratch);
		if (code) {
			fault = nr_error_text(&trouble, text, sizeof text);
		} else if (m.status == NR_MARK_BEGUN && ours && adopt(&t->job, m.seconds)) {
			continue;
		} else if (m.status == NR_MARK_DONE) {
			note_result(e, r, m.seconds);
		} else {
			const bool bad = m.status == NR_MARK_FAILED || m.status == NR_MARK_DIVERGED;
			if (bad && !held && m.status != t->found) snprintf(text, sizeof text, "%s", m.fault), fault = text;
			break;
		}
	}
	nr_arena_free(scratch);
	if (fault) nr_engine_failed(e, r, fault);
	else if (r->stage == e->s->stages) nr_engine_done(e, r);
	return fault || r->stage == e->s->stages;
}

/* Who holds it is asked before the markers are read: they are written before it is let go. */
static void look_elsewhere(struct engine *e, int64_t i)
{
	struct nr_study_run *r = &e->run[i];
	struct task *t = &e->task[i];
	struct nr_holder holder;
	const int64_t stage = r->stage;
	const bool held = nr_claims_held(e->claims, t->claim, &holder);
	if (nr_engine_catch_up(e, i, held, false)) return;
	if (!held) {
		r->status = NR_RUN_WAITING;
		r->began = r->share = 0;
		return;
	}
	if (r->status != NR_RUN_ELSEWHERE || r->stage != stage) r->began = nr_clock();
	r->status = NR_RUN_ELSEWHERE;
	nr_job_progress(&t->job, &t->pace, &r->share, r->note, sizeof r->note);
	const bool moved = t->beat.tv_sec && (holder.beat.tv_sec != t->beat.tv_sec || holder.beat.tv_nsec != t->beat.tv_nsec);
	if (!t->beat.tv_sec) t->beat = holder.beat;
	if (e->how->only && (holder.here || moved)) {
		t->left = true;
		nr_engine_say(e, "%s is done by process %ld on %s", t->claim, holder.pid, *holder.host ? holder.host : "another host");
	}
}

void nr_engine_poll(struct engine *e)
{
	int64_t looked = 0;
	if (nr_clock() < e->next_poll) return;
	for (int64_t i = 0; i < e->runs; i++) {
		const bool waits = e->run[i].status == NR_RUN_WAITING && e->queue && nr_queue_may_run(e->queue, i);
		if (e->run[i].status != NR_RUN_ELSEWHERE && !waits) continue;
		look_elsewhere(e, i);
		looked++;
	}
	e->next_poll = nr_clock() + fmax(1, (double)looked / 50);     /* a thousand runs are no reason to wear out a file server */
}
