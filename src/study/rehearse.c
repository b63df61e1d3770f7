/* What a study would stumble over later: data that do not open, samples of another kind, splits that are not there, classes that do not
 * fit, weights that are missing. Every stage of every arm that has yet to run is looked at, every data set is opened once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/mem.h"
#include "norma/data.h"
#include "norma/model.h"
#include "norma/task.h"
#include "study/job.h"
#include "study/results.h"
#include "study/settings.h"

enum { MOST = 64 };
struct opened { const char *data, *root; struct nr_source *source; };
struct rehearsal {
	const struct nr_study *s;
	const struct nr_study_how *how;
	const struct nr_decision *decision;     /* (arms) */
	struct nr_arena *arena;
	struct opened open[MOST];
	int count;
	struct nr_error *err;
};
/* A stage of an arm. */
struct part { struct rehearsal *r; const struct nr_study_stage *stage; const struct nr_settings *all; const struct nr_task *task; };

static const char *setting(const struct part *p, const char *key)
{
	for (int64_t i = 0; i < p->all->count; i++)
		if (!strcmp(p->all->item[i].key, key) && p->all->item[i].count == 1) return p->all->item[i].value[0];
	const struct nr_option *o = nr_study_option(p->stage->command, key);
	return o && o->text ? o->text : "";
}

static int complain(const struct part *p, const struct nr_error *why)
{
	struct nr_error *err = p->r->err;
	nr_fail(err, why->code, "the study would fail in stage", p->stage->name, "%.60s%s%.200s%s%s%.400s", why->what,
		*why->subject ? " '" : "",
		why->subject, *why->subject ? "'" : "", *why->detail ? ": " : "", why->detail);
	return *why->hint ? nr_hint(err, "%s", why->hint) : (int)err->code;
}

/* NULL: it does not open, which was said. */
static const struct nr_source *source_of(const struct part *p, const char *data)
{
	struct rehearsal *r = p->r;
	const char *root = setting(p, "data_root");
	for (int i = 0; i < r->count; i++)
		if (!strcmp(r->open[i].data, data) && !strcmp(r->open[i].root, root)) return r->open[i].source;
	struct nr_error why = { 0 };
	struct nr_source *source = NULL;
	if (r->count == MOST) nr_source_close(r->open[--r->count].source);
	if (nr_source_open(&source, data, *root ? root : NULL, &why)) {
		complain(p, &why);
		return NULL;
	}
	r->open[r->count++] = (struct opened){ data, root, source };
	return source;
}

static const struct nr_task *task_of(const char *command)
{
	for (const struct nr_task *const *t = nr_tasks(); *t; t++)
		if (!strcmp((*t)->command, command) || ((*t)->continued && !strcmp((*t)->continued, command))) return *t;
	return NULL;
}

static int check_split(const struct part *p, const struct nr_source *s, const char *key, const char *data)
{
	struct nr_error why = { 0 };
	const char *name = setting(p, key);
	if (!*name || !strcmp(name, "auto")) return NR_OK;
	const int split = nr_split_find(name, &why);
	if (split >= 0 && !s->count[split]) nr_fail(&why, NR_EVALUE, "cannot use", data, "there is no split %s", name);
	return why.code ? complain(p, &why) : NR_OK;
}

/* The head of the model that is trained here, if its text says how many classes it has. */
static int check_classes(const struct part *p, const struct nr_source *s)
{
	struct nr_error why = { 0 };
	struct nr_model_spec spec = { 0 };
	const char *model = setting(p, "model");
	if (strcmp(p->task->name, "classify") != 0) return NR_OK;
	if (s->classes < 1) nr_fail(&why, NR_EVALUE, "cannot classify", s->of->name, "it has no labels");
	else if (strstr(model, "classes=") && !nr_model_parse(&spec, model, p->r->arena, &why) &&
		nr_model_int(&spec, "classes") != s->classes)
		nr_fail(&why, NR_EVALUE, "cannot use", s->of->name, "the model has %lld classes, the data %d",
			(long long)nr_model_int(&spec, "classes"), s->classes);
	return why.code ? complain(p, &why) : NR_OK;
}

static int check_weights(const struct part *p)
{
	const char *init = setting(p, "init");
	struct nr_error why = { 0 };
	if (!*init || !access(init, R_OK)) return NR_OK;
	nr_fail(&why, NR_EIO, "cannot read", init, "there is no such file");
	return complain(p, &why);
}

/* What the stage gets a checkpoint of: the training before it; -1: a file, or nothing. */
static int64_t trained_by(const struct nr_study *s, int64_t stage)
{
	while (stage >= 0 && !s->stage[stage].trains) stage = s->stage[stage].from_stage;
	return stage;
}

/* A checkpoint measured on data: they must be of its kind, and for its head have its classes (before: what it learned from; NULL: no
 * longer needed). */
static int check_measure(const struct part *p, const struct nr_source *s, const struct part *trained, const struct nr_source *before)
{
	struct nr_error why = { 0 };
	unsigned want;
	const char *only = setting(p, "only");
	const bool by_texts = !strcmp(p->stage->command->name, "zeroshot");             /* what a text tower is measured on */
	nr_source_expect(s, by_texts ? NR_PICTURES : trained->task->kind, &why);
	if (!why.code && before && !strcmp(p->stage->command->name, "eval") && s->classes != before->classes)
		nr_fail(&why, NR_EVALUE, "cannot use", s->of->name, "the model has %d classes, the data %d", before->classes, s->classes);
	if (!why.code && !strcmp(p->stage->command->name, "analyze") && *only) nr_parts_read(only, &want, &why);
	return why.code ? complain(p, &why) : NR_OK;
}

/* Of at least one seed. Settings that changed are for the run itself to refuse; with --rerun they are run again. What cannot be told
 * counts as yet to run. */
static bool has_to_run(struct rehearsal *r, int64_t arm, int64_t stage)
{
	if (nr_arm_settled(r->s, r->decision, arm)) return false;
	for (int64_t seed = 0; seed < r->s->seeds; seed++) {
		struct nr_job j;
		struct nr_stage_mark m;
		struct nr_error ignored = { 0 };
		if (nr_job_make(&j, r->s, arm, seed, stage, r->arena, &ignored) || nr_mark_read(&j, &m, r->arena, &ignored)) return true;
		if (!nr_mark_counts(&m, r->how) || (r->how->rerun && strcmp(m.settings, j.settings) != 0)) return true;
	}
	return false;
}

static int check_stage(struct rehearsal *r, int64_t arm, int64_t stage)
{
	const struct nr_study *s = r->s;
	struct part p = { r, &s->stage[stage], nr_study_settings(s, arm, stage, r->arena), NULL }, trained = { .r = r };
	if (!p.all) return nr_fail(r->err, NR_EMEMORY, "cannot check the study", NULL, "out of memory");
	const int64_t by = trained_by(s, stage);
	const char *data = setting(&p, "data");
	if (by >= 0) {
		trained = (struct part){ r, &s->stage[by], nr_study_settings(s, arm, by, r->arena), task_of(s->stage[by].command->name) };
		if (!trained.all) return nr_fail(r->err, NR_EMEMORY, "cannot check the study", NULL, "out of memory");
		if (!*data && nr_study_option(p.stage->command, "data")) data = setting(&trained, "data");
	}
	if (check_weights(&p)) return r->err->code;
	if (!*data || !nr_study_option(p.stage->command, "data")) return NR_OK;         /* it needs none */
	const struct nr_source *source = source_of(&p, data);
	if (!source) return r->err->code;
	p.task = p.stage->trains ? task_of(p.stage->command->name) : NULL;
	struct nr_error why = { 0 };
	if (p.task && nr_source_expect(source, p.task->kind, &why)) return complain(&p, &why);
	if (check_split(&p, source, "split", data) || check_split(&p, source, "eval_split", data)) return r->err->code;
	if (p.task) return check_classes(&p, source);
	if (!trained.task) return r->err->code;
	const struct nr_source *before = has_to_run(r, arm, by) ? source_of(&trained, setting(&trained, "data")) : NULL;
	return r->err->code ? (int)r->err->code : check_measure(&p, source, &trained, before);
}

/* Arms that an early stop has decided. */
static int decisions(struct rehearsal *r)
{
	struct nr_summary m = { 0 };
	if (r->arena && !r->s->stop.on) m.decision = nr_arena_alloc(r->arena, (size_t)r->s->arms * sizeof *m.decision);
	else if (r->arena && nr_summary_make(&m, r->s, NULL, 0, r->arena, r->err)) return r->err->code;
	r->decision = m.decision;
	return m.decision ? NR_OK : nr_fail(r->err, NR_EMEMORY, "cannot check the study", NULL, "out of memory");
}

int nr_study_rehearse(const struct nr_study *s, const struct nr_study_how *how, struct nr_error *err)
{
	struct rehearsal r = { .s = s, .how = how, .arena = nr_arena_make(), .err = err };
	int code = decisions(&r);
	for (int64_t arm = 0; !code && arm < s->arms; arm++)
		for (int64_t stage = 0; !code && stage < s->stages; stage++)
			if (has_to_run(&r, arm, stage)) code = check_stage(&r, arm, stage);
	while (r.count) nr_source_close(r.open[--r.count].source);
	nr_arena_free(r.arena);
	return code;
}
