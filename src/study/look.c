/* A study's folder as it stands: see results.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/job.h"
#include "study/results.h"

/* How far a run is, by its markers. One that was begun counts as running: the marker of a killed process looks the same. */
static int look_at(const struct nr_study *s, struct nr_study_run *r, struct nr_arena *arena, struct nr_error *err)
{
	for (; r->stage < s->stages; r->stage++) {
		struct nr_job j;
		struct nr_stage_mark m;
		if (nr_job_make(&j, s, r->arm, r->seed, r->stage, arena, err) || nr_mark_read(&j, &m, arena, err)) return err->code;
		if (m.status == NR_MARK_BEGUN) r->status = NR_RUN_RUNNING;
		if (m.status == NR_MARK_FAILED || m.status == NR_MARK_DIVERGED) r->status = NR_RUN_FAILED, r->fault = m.fault;
		if (m.status != NR_MARK_DONE || strcmp(m.settings, j.settings)) return NR_OK;
		r->seconds += m.seconds;
	}
	r->status = NR_RUN_DONE;
	return NR_OK;
}

static json_t *summary_of(const struct nr_study *s, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t runs = s->arms * s->seeds;
	struct nr_study_run *run = nr_arena_alloc(arena, (size_t)runs * sizeof *run);
	struct nr_summary m;
	if (!run) return nr_fail(err, NR_EMEMORY, "cannot read the study", s->out, "out of memory"), NULL;
	for (int64_t i = 0; i < runs; i++) {
		run[i] = (struct nr_study_run){ .arm = i % s->arms, .seed = i / s->arms };
		if (look_at(s, &run[i], arena, err)) return NULL;
	}
	if (nr_summary_make(&m, s, run, runs, arena, err)) return NULL;
	json_t *all = nr_summary_json(&m, run, runs);
	if (!all) nr_fail(err, NR_EMEMORY, "cannot read the study", s->out, "out of memory");
	return all;
}

json_t *nr_study_look(const char *dir, const struct nr_study_command *commands, struct nr_arena *arena, struct nr_error *err)
{
	struct nr_yaml_errors errors = { 0 };
	struct nr_study s;
	size_t size;
	const char *path = nr_arena_printf(arena, "%s/study.yaml", dir);
	const char *text = path ? nr_yaml_load(path, &size, arena, err) : NULL;
	if (!path) nr_fail(err, NR_EMEMORY, "cannot read the study", dir, "out of memory");
	if (!text || nr_study_parse(&s, text, size, path, commands, arena, &errors, err)) return NULL;
	s.out = dir;
	return summary_of(&s, arena, err);
}
