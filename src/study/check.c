/* What is wrong with a study, found before anything runs. */
#include <stdio.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "norma/data.h"
#include "norma/model.h"
#include "norms/plan.h"
#include "study/settings.h"

struct checker { struct nr_study *s; struct nr_error *err; };

#define COMPLAIN(k, at, hint, ...) nr_study_complain((k)->s, at, (k)->err, hint, __VA_ARGS__)

/* Texts that name things which the option tables do not know. */
static int check_meaning(struct checker *k, const struct nr_study_command *c, const char *key, const char *value, struct nr_error *e)
{
	if (!strcmp(key, "norm") && *value) {
		struct nr_norm_plan *plan = nr_arena_alloc(k->s->arena, sizeof *plan);
		if (!plan) return NR_EMEMORY;
		*plan = (struct nr_norm_plan){ .arena = k->s->arena, .defaults = nr_models()[0]->norms };
		return nr_norm_plan_parse(plan, value, e);
	}
	if (!strcmp(key, "data") && *value) return nr_dataset_of(value, e) ? NR_OK : e->code;
	if (!strcmp(key, "model") && *value && strcmp(value, "auto") != 0 && c->trains) {
		struct nr_model_spec spec = { 0 };
		return nr_model_parse(&spec, value, k->s->arena, e);
	}
	return NR_OK;
}

static void check_values(struct checker *k, const struct nr_study_command *c, const struct nr_setting *s)
{
	const struct nr_option *o = nr_study_option(c, s->key);
	void *conf = nr_arena_alloc(k->s->arena, c->conf_size);
	const struct nr_yaml_node *at = s->value_at ? s->value_at : s->at;
	if (!conf) return;
	if (s->count > 1 && o->type != NR_TLIST) {
		COMPLAIN(k, at, "put the list into the grid to make an arm of each value",
			"'%s' of %s takes one value, not a list", o->name, c->name);
		return;
	}
	nr_option_defaults(c->options, conf);
	for (int64_t i = 0; i < s->count; i++) {
		struct nr_error e = { 0 };
		if (!nr_option_set(c->options, conf, o->name, s->value[i], k->s->arena, &e))
			check_meaning(k, c, o->name, s->value[i], &e);
		if (!e.code) continue;
		COMPLAIN(k, at, e.hint, "'%s' of %s: %s '%s'%s%.200s", o->name, c->name, e.what, e.subject, *e.detail ? ": " : "",
			e.detail);
	}
}

/* Nearest among the options of a stage (NULL: of all). */
static void unknown_option(struct checker *k, const struct nr_setting *s, const struct nr_study_stage *stage)
{
	struct nr_near near = { .word = s->key };
	for (int64_t i = 0; i < k->s->stages; i++) {
		const struct nr_study_stage *one = &k->s->stage[i];
		if (!one->command || (stage && one != stage)) continue;
		for (const struct nr_option *o = one->command->options; o && o->name; o++)
			if (!nr_study_reserved(o->name)) nr_near_try(&near, o->name);
	}
	char hint[200] = "";
	if (near.best) snprintf(hint, sizeof hint, "did you mean '%s'?", near.best);
	else if (stage) snprintf(hint, sizeof hint, "`norma help %s` lists its options", stage->command->name);
	if (stage) COMPLAIN(k, s->at, hint, "%s has no option '%.100s'", stage->command->name, s->key);
	else COMPLAIN(k, s->at, hint, "no stage has an option '%.100s'", s->key);
}

static void check_setting(struct checker *k, const struct nr_setting *s)
{
	if (nr_study_reserved(s->key)) {
		COMPLAIN(k, s->at, !strcmp(s->key, "seed") ? "name them under 'seeds:'" : NULL,
			"'%s' is set by the study itself", s->key);
		return;
	}
	bool used = false;
	for (int64_t i = 0; i < k->s->stages; i++) {
		const struct nr_study_stage *stage = &k->s->stage[i];
		if (!stage->command || !nr_setting_goes_to(k->s, s, i)) continue;
		used = true;
		if (nr_study_option(stage->command, s->key)) check_values(k, stage->command, s);
		else unknown_option(k, s, stage);
	}
	for (int64_t i = 0; !used && i < k->s->stages; i++) used = !k->s->stage[i].command;    /* it may belong to that one */
	if (!used) unknown_option(k, s, NULL);
}

static void check_settings(struct checker *k, const struct nr_settings *all)
{
	for (int64_t i = 0; i < all->count; i++) {
		const struct nr_setting *s = &all->item[i];
		bool before = false;                    /* the grid repeats its settings: one complaint each */
		for (int64_t a = 0; all != &k->s->base && a < k->s->arms && &k->s->arm[a].own != all && !before; a++)
			for (int64_t j = 0; j < k->s->arm[a].own.count; j++) {
				const struct nr_setting *other = &k->s->arm[a].own.item[j];
				before |= other->value_at && other->value_at == s->value_at;
			}
		if (!before) check_setting(k, s);
	}
}

/* ---- arms ------------------------------------------------------------------------------------------------------------------ */

/* All settings of an arm as one text; NULL: out of memory. */
static const char *arm_text(const struct nr_study *s, int64_t arm)
{
	struct nr_str text = { 0 };
	for (int64_t i = 0; i < s->stages; i++) {
		const struct nr_settings *all = nr_study_settings(s, arm, i, s->arena);
		for (int64_t j = 0; all && j < all->count; j++)
			nr_str_printf(&text, "%lld %s=%s\n", (long long)i, all->item[j].key, nr_setting_text(&all->item[j], s->arena));
	}
	const char *copy = nr_str_keep(&text, s->arena);
	return copy;
}

static int64_t arm_called(const struct nr_study *s, const char *name)
{
	int64_t i = 0;
	while (i < s->arms && strcmp(s->arm[i].name, name)) i++;
	return i < s->arms ? i : -1;
}

/* "S/16, dual" with the baseline "none" is compared with "S/16, none": the arm whose name differs in one part. */
static int64_t partner(const struct nr_study *s, const char *name)
{
	int64_t found = -1;
	for (const char *part = name, *end; part && found < 0; part = end ? end + 2 : NULL) {
		end = strstr(part, ", ");
		const char *other = nr_arena_printf(s->arena, "%.*s%s%s", (int)(part - name), name, s->baseline, end ? end : "");
		if (other) found = arm_called(s, other);
	}
	return found;
}

static void check_baseline(struct checker *k)
{
	struct nr_study *s = k->s;
	const int64_t one = s->baseline ? arm_called(s, s->baseline) : 0;
	int64_t first = s->arms, lone = -1;
	for (int64_t i = 0; i < s->arms; i++) {
		int64_t *against = &s->arm[i].against;
		*against = one >= 0 ? one : partner(s, s->arm[i].name);
		if (*against < 0) lone = i;
		else if (*against == i && i < first) first = i;
	}
	s->first = first < s->arms ? first : 0;
	if (lone < 0) return;
	struct nr_near near = { .word = s->baseline };
	for (int64_t i = 0; i < s->arms; i++) nr_near_try(&near, s->arm[i].name);
	char hint[200] = "";
	if (near.best) snprintf(hint, sizeof hint, "did you mean '%.100s'?", near.best);
	const struct nr_yaml_node *at = s->tree ? nr_yaml_value(s->tree->root, "baseline") : NULL;
	if (first == s->arms) COMPLAIN(k, at, hint, "there is no arm '%.100s'", s->baseline);
	else COMPLAIN(k, at, "every arm needs a baseline that differs only in that part of its name", "arm '%s' has no baseline '%.100s'",
		s->arm[lone].name, s->baseline);
	for (int64_t i = 0; i < s->arms; i++) s->arm[i].against = 0;
}

static void check_arms(struct checker *k)
{
	struct nr_study *s = k->s;
	const char **text = nr_arena_alloc(s->arena, (size_t)s->arms * sizeof *text);
	for (int64_t i = 0; text && i < s->arms; i++) {
		text[i] = arm_text(s, i);
		for (int64_t j = 0; j < i; j++) {
			if (text[i] && text[j] && !s->tuning && !strcmp(text[i], text[j]))
				COMPLAIN(k, s->arm[i].at, NULL, "arms '%s' and '%s' are the same", s->arm[j].name, s->arm[i].name);
			else if (!strcmp(s->arm[i].name, s->arm[j].name))
				COMPLAIN(k, s->arm[i].at, "give them names", "two arms are called '%s'", s->arm[i].name);
		}
	}
	check_baseline(k);
}

static void check_required(struct checker *k)
{
	for (int64_t a = 0; a < k->s->arms; a++)
		for (int64_t i = 0; i < k->s->stages; i++) {
			const struct nr_study_stage *stage = &k->s->stage[i];
			const struct nr_settings *all = nr_study_settings(k->s, a, i, k->s->arena);
			for (const struct nr_option *o = all ? stage->command->options : NULL; o && o->name; o++) {
				bool given = o->text || nr_study_reserved(o->name);
				for (int64_t j = 0; j < all->count; j++) given |= !strcmp(all->item[j].key, o->name);
				if (!given) COMPLAIN(k, stage->at, NULL, "'%s' is missing: %s", o->name, o->help ? o->help : "");
			}
			bool data = !stage->trains || !nr_study_option(stage->command, "data");
			for (int64_t j = 0; all && j < all->count; j++) data |= !strcmp(all->item[j].key, "data") && *all->item[j].value[0];
			if (!data && !a) COMPLAIN(k, stage->at,
				"e.g. `base: {data: fashion-mnist}`", "'%s' has no data set", stage->name);
		}
}

/* ---- metrics ------------------------------------------------------------------------------------------------------------------ */

static void check_metric(struct checker *k, const char *metric, const struct nr_yaml_node *at)
{
	const char *dot = strchr(metric, '.');
	struct nr_near near = { .word = dot ? nr_arena_printf(k->s->arena, "%.*s", (int)(dot - metric), metric) : metric };
	for (int64_t i = 0; near.word && i < k->s->stages; i++) {
		if (dot && !strcmp(near.word, k->s->stage[i].name)) return;
		nr_near_try(&near, k->s->stage[i].name);
	}
	char hint[200];
	snprintf(hint, sizeof hint, near.best ? "did you mean '%.100s.%.60s'?" : "as '%.100s.%.60s'",
		near.best ? near.best : k->s->stage[k->s->stages - 1].name, dot ? dot + 1 : "top1");
	COMPLAIN(k, at, hint, "metric '%.100s' is not STAGE.KEY of one of the stages", metric);
}

/* Without a metric: what the last stage is about. */
static const char *usual_metric(const struct nr_study_command *c)
{
	if (!strcmp(c->name, "probe")) return "cls.top1";
	if (!strcmp(c->name, "robust")) return "corrupted_error";
	if (c->metric) return c->metric;
	return c->trains ? "eval_top1" : "top1";
}

static void check_metrics(struct checker *k)
{
	struct nr_study *s = k->s;
	const struct nr_yaml_node *root = s->tree ? s->tree->root : NULL, *also = nr_yaml_value(root, "also");
	const struct nr_study_stage *last = &s->stage[s->stages - 1];
	if (!s->metric) s->metric = nr_arena_printf(s->arena, "%s.%s", last->name, last->command ? usual_metric(last->command) : "top1");
	else check_metric(k, s->metric, nr_yaml_value(root, "metric"));
	for (int64_t i = 0; i < s->also.count; i++)
		check_metric(k, s->also.item[i], also && also->kind == NR_YAML_LIST ? also->item[i] : also);
}

int nr_study_check(struct nr_study *s, struct nr_error *err)
{
	struct checker k = { s, err };
	bool known = true;
	for (int64_t i = 0; i < s->stages; i++) known &= s->stage[i].command != NULL;
	check_settings(&k, &s->base);
	for (int64_t i = 0; i < s->stages; i++) check_settings(&k, &s->stage[i].own);
	for (int64_t i = 0; i < s->arms; i++) check_settings(&k, &s->arm[i].own);
	if (known) {
		check_arms(&k);
		check_required(&k);
	}
	check_metrics(&k);
	if (!s->metric) return nr_fail(err, NR_EMEMORY, "cannot check the study", NULL, "out of memory");
	return s->tree && s->tree->errors->count ? NR_EFORMAT : (int)err->code;
}
