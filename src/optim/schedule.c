/* Schedules as pure functions of the step: learning rate, weight decay, EMA momentum, teacher temperature. A schedule is a function
 * here (at_name) and a line of schedules.def; the public recipes that they reproduce are in test/golden/metrics/schedules.safetensors. */
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "norma/optim.h"

#define FALL(s, share) ((s)->final + ((s)->base - (s)->final) * (share))

static double at_constant(const struct nr_schedule *s, struct nr_schedule_at a) { return s->base; }
static double at_cosine(const struct nr_schedule *s, struct nr_schedule_at a)
{
	return FALL(s, .5 * (1 + cos(3.14159265358979323846 * a.x)));
}
static double at_linear(const struct nr_schedule *s, struct nr_schedule_at a) { return FALL(s, 1 - a.x); }
static double at_poly(const struct nr_schedule *s, struct nr_schedule_at a) { return FALL(s, pow(1 - a.x, s->power)); }
static double at_rsqrt(const struct nr_schedule *s, struct nr_schedule_at a)
{
	return s->base / sqrt(1 + (a.past > 0 ? a.past : 0) / s->timescale);
}
static double at_step(const struct nr_schedule *s, struct nr_schedule_at a)
{
	int passed = 0;
	for (const char *text = s->milestones ? s->milestones : ""; *text;) {
		char *end;
		const long long at = strtoll(text, &end, 10);
		if (end == text) break;
		passed += at <= a.step;
		text = end;
	}
	return s->base * pow(s->gamma, passed);
}

/* The 1x schedule of detectors, 12 epochs with falls after the 8th and the 11th, for any number of steps. */
static double at_detection(const struct nr_schedule *s, struct nr_schedule_at a)
{
	return s->base * pow(s->gamma, (12 * a.step >= 8 * s->total) + (12 * a.step >= 11 * s->total));
}

#define SCHEDULE(name, formula) static const struct nr_schedule_rule name##_rule = { #name, formula, at_##name };
#include "optim/schedules.def"
#undef SCHEDULE
#define SCHEDULE(name, formula) &name##_rule,
static const struct nr_schedule_rule *const built_in[] = {
#include "optim/schedules.def"
	NULL
};
#undef SCHEDULE
enum { BUILT_IN = sizeof built_in / sizeof *built_in - 1 };

const struct nr_schedule_rule *const *nr_schedules(void) { return NR_REGISTRY(NR_OF_SCHEDULES, nr_schedule_rule, built_in); }

static const char *names[BUILT_IN + NR_REGISTRY_ROOM + 1];

const char *const *nr_schedule_names(void)
{
	for (int i = 0; nr_schedules()[i]; i++) names[i] = nr_schedules()[i]->name;
	return names;
}

int32_t nr_schedule_kind(const char *name)
{
	for (int32_t i = 0; nr_schedules()[i]; i++)
		if (!strcmp(nr_schedules()[i]->name, name)) return i;
	return -1;
}

static const struct nr_schedule_rule *rule_of(const struct nr_schedule *s)
{
	int32_t n = 0;
	while (nr_schedules()[n]) n++;
	return s->kind >= 0 && s->kind < n ? nr_schedules()[s->kind] : NULL;
}

static const struct nr_option options[] = {
	NR_OPT_ENUM(struct nr_schedule, kind, "cosine", names, "how the value changes after warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, base, 1, -1e30, 1e30, "value after warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, final, 0, -1e30, 1e30, "value at the end (cosine, linear, poly)"),
	NR_OPT_INT(struct nr_schedule, total, 0, 0, 1e15, "total steps, warm-up included"),
	NR_OPT_INT(struct nr_schedule, warmup, 0, 0, 1e15, "steps of linear warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, warmup_start, 0, -1e30, 1e30, "value at step 0 if there is a warm-up"),
	NR_OPT_BOOL(struct nr_schedule, inclusive, "0", "reach the base at the last step of warm-up, not one later"),
	NR_OPT_BOOL(struct nr_schedule, counted, "1", "start the decay after warm-up instead of at step 0"),
	NR_OPT_FLOAT(struct nr_schedule, power, 0.9, 0, 100, "exponent of poly"),
	NR_OPT_FLOAT(struct nr_schedule, timescale, 10000, 1e-9, 1e15, "timescale of rsqrt, in steps"),
	NR_OPT_FLOAT(struct nr_schedule, gamma, 0.1, 0, 1e6, "factor at each milestone of step"),
	NR_OPT_STRING(struct nr_schedule, milestones, "", "steps where gamma applies, separated by spaces"),
	NR_OPT_END
};

const struct nr_option *nr_schedule_options(void)
{
	nr_schedule_names();
	return options;
}

int nr_schedule_check(const struct nr_schedule *s, struct nr_error *err)
{
	const struct nr_schedule_rule *rule = rule_of(s);
	if (!rule) return nr_fail(err, NR_ENAME, "no such schedule", NULL, NULL);
	if (rule != &step_rule || (s->milestones && *s->milestones)) return NR_OK;
	return nr_fail(err, NR_EUSAGE, "schedule", rule->name, "it needs milestones: steps where the value falls");
}

double nr_schedule_at(const struct nr_schedule *s, int64_t step)
{
	if (step < s->warmup) {
		const double n = s->inclusive ? (double)(s->warmup - 1) : (double)s->warmup;
		return n > 0 ? s->warmup_start + (s->base - s->warmup_start) * (double)step / n : s->warmup_start;
	}
	const double from = s->counted ? (double)s->warmup : 0, span = (double)s->total - from, past = (double)step - from;
	const double x = span > 0 ? past / span : 1;
	const struct nr_schedule_rule *rule = rule_of(s);
	if (!rule) return s->base;
	return rule->at(s, (struct nr_schedule_at){ x < 0 ? 0 : x > 1 ? 1 : x, past, step });
}
