/* A study's summary as JSON: all that the tables leave out too. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "study/published.h"
#include "study/results.h"
#include "study/settings.h"

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *sample(const struct nr_sample *s)
{
	return json_pack("{s:I, s:o, s:o, s:o}", "n", (json_int_t)s->n, "mean", number(s->mean), "sd", number(s->sd), "half_width_95",
		number(s->half));
}

static json_t *comparison(const struct nr_comparison *c)
{
	json_t *o = sample(&c->difference);
	json_object_set_new(o, "p_t", number(c->p_t));
	json_object_set_new(o, "p_t_holm", number(c->p_t_holm));
	json_object_set_new(o, "p_wilcoxon", number(c->p_wilcoxon));
	json_object_set_new(o, "p_wilcoxon_holm", number(c->p_wilcoxon_holm));
	json_object_set_new(o, "seeds_still_needed", c->needed < 0 ? json_null() : json_integer(c->needed));
	return o;
}

static void set_text(json_t *o, const char *key, const char *text)
{
	if (text) json_object_set_new(o, key, json_string(text));
}

static json_t *texts(const struct nr_list *list)
{
	json_t *all = json_array();
	for (int64_t i = 0; i < list->count; i++) json_array_append_new(all, json_string(list->item[i]));
	return all;
}

/* The digits as printed and their value, in the paper's unit. */
static json_t *published(const struct nr_published_cell *c)
{
	double value = 0, ci95 = 0;
	nr_parse_double(c->value, &value);
	json_t *o = json_pack("{s:s, s:f}", "text", c->value, "value", value);
	if (c->ci95 && nr_parse_double(c->ci95, &ci95)) json_object_set_new(o, "ci95", json_real(ci95));
	set_text(o, "metric", c->of);
	set_text(o, "unsure", c->unsure);
	return o;
}

static json_t *metrics_of(const struct nr_summary *m, int64_t arm)
{
	json_t *all = json_object();
	for (int64_t k = 0; k < m->metrics; k++) {
		const struct nr_arm_metric *cell = &m->cell[k * m->study->arms + arm];
		json_t *o = sample(&cell->all), *values = json_array();
		for (int64_t s = 0; s < m->study->seeds; s++)
			json_array_append_new(values, number(m->value[(k * m->study->arms + arm) * m->study->seeds + s]));
		json_object_set_new(o, "by_seed", values);
		if (m->study->arm[arm].against != arm) json_object_set_new(o, "difference", comparison(&cell->against));
		const struct nr_published_cell *printed = nr_published_cell(m->study, k, arm);
		if (printed) json_object_set_new(o, "published", published(printed));
		json_object_set_new(all, m->metric[k], o);
	}
	return all;
}

static json_t *settings_of(const struct nr_summary *m, int64_t arm)
{
	json_t *all = json_object();
	for (int64_t k = 0; k < m->study->stages; k++) {
		const struct nr_settings *s = nr_study_settings(m->study, arm, k, m->arena);
		json_t *o = json_object();
		for (int64_t i = 0; s && i < s->count; i++)
			json_object_set_new(o, s->item[i].key, json_string(nr_setting_text(&s->item[i], m->arena)));
		json_object_set_new(all, m->study->stage[k].name, o);
	}
	return all;
}

static json_t *runs_of(const struct nr_summary *m, int64_t arm, const struct nr_study_run *run, int64_t runs)
{
	static const char *const names[] = { "waiting", "running", "done", "failed", "spared" };
	json_t *all = json_array();
	for (int64_t i = 0; i < runs; i++) {
		if (run[i].arm != arm) continue;
		json_t *o = json_pack("{s:I, s:s, s:f}", "seed", (json_int_t)m->study->seed[run[i].seed], "status", names[run[i].status],
			"seconds", run[i].seconds);
		if (o && run[i].fault) json_object_set_new(o, "fault", json_string(run[i].fault));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *decision(const struct nr_summary *m, int64_t arm)
{
	const struct nr_decision *d = &m->decision[arm];
	json_t *o = json_pack("{s:b, s:I}", "differs", (int)(d->seeds > 0), "looks", (json_int_t)d->looked);
	if (d->seeds) json_object_update_new(o, json_pack("{s:I, s:f, s:f}", "seeds", (json_int_t)d->seeds, "p", d->p, "level", d->level));
	return o;
}

static json_t *looks(const struct nr_summary *m)
{
	json_t *all = json_array();
	for (int64_t k = 0; k < m->looks.count; k++)
		json_array_append_new(all, json_pack("{s:I, s:f}", "seeds", (json_int_t)m->looks.at[k], "level", m->looks.level[k]));
	return all;
}

json_t *nr_summary_json(const struct nr_summary *m, const struct nr_study_run *run, int64_t runs)
{
	const struct nr_study *s = m->study;
	json_t *arms = json_array(), *stages = json_array(), *seeds = json_array(), *notes = json_array(), *names = json_array();
	for (int64_t a = 0; a < s->arms; a++) {
		json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:o, s:f, s:o}", "name", s->arm[a].name, "folder", s->arm[a].folder, "settings",
			settings_of(m, a), "metrics", metrics_of(m, a), "runs", runs_of(m, a, run, runs), "seconds", m->cost[a].seconds,
			"flops", number(m->cost[a].flops));
		if (o && s->arm[a].against != a) json_object_set_new(o, "against", json_string(s->arm[s->arm[a].against].name));
		if (o && m->looks.count && s->arm[a].against != a) json_object_set_new(o, "decision", decision(m, a));
		if (o && m->cost[a].batch) json_object_set_new(o, "batch_statistics", json_string(m->cost[a].batch));
		json_array_append_new(arms, o);
	}
	for (int64_t k = 0; k < s->stages; k++)
		json_array_append_new(stages, json_pack("{s:s, s:s}", "name", s->stage[k].name, "command", s->stage[k].command->name));
	for (int64_t k = 0; k < s->seeds; k++) json_array_append_new(seeds, json_integer(s->seed[k]));
	for (int64_t k = 0; k < m->metrics; k++) json_array_append_new(names, json_string(m->metric[k]));
	for (int64_t k = 0; k < m->notes.count; k++) json_array_append_new(notes, json_string(m->notes.item[k]));
	const char *baseline = s->baseline ? s->baseline : s->arm[s->first].name;
	json_t *all = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:f, s:o}", "title", s->title, "question", s->question, "out",
		s->out, "baseline", baseline, "stages", stages, "seeds", seeds, "metrics", names, "arms", arms, "level", m->level, "notes",
		notes);
	if (all) set_text(all, "bound", s->bound);
	if (all && m->looks.count) json_object_set_new(all, "looks", looks(m));
	if (all && s->published)
		json_object_set_new(all, "published", json_pack("{s:s, s:s, s:s, s:o, s:o}", "label", s->published->label, "theirs",
			s->published->theirs, "ours", m->ours, "claims", texts(&s->published->claims), "conflicts",
			texts(&s->published->conflicts)));
	return all;
}
