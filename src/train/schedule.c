/* Schedules as pure functions of the step: learning rate, weight decay, EMA momentum, teacher temperature.
 * The formulas stand in train.h; the public recipes they reproduce are in
 * test/golden/metrics/schedules.safetensors. */
#include <stdlib.h>

#include "norma/train.h"

static const char *const kinds[] = { "constant", "cosine", "linear", "rsqrt", "step", "poly", NULL };

const struct nr_option nr_schedule_options[] = {
	NR_OPT_ENUM(struct nr_schedule, kind, "cosine", kinds, "how the value falls after warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, base, 1, -1e30, 1e30, "value after warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, final, 0, -1e30, 1e30, "value at the end (cosine, linear, poly)"),
	NR_OPT_INT(struct nr_schedule, total, 0, 0, 1e15, "steps in all, warm-up included"),
	NR_OPT_INT(struct nr_schedule, warmup, 0, 0, 1e15, "steps of linear warm-up"),
	NR_OPT_FLOAT(struct nr_schedule, warmup_start, 0, -1e30, 1e30,
		"value at step 0 when there is warm-up"),
	NR_OPT_BOOL(struct nr_schedule, inclusive, "0",
		"reach the base at the last step of warm-up, not one later"),
	NR_OPT_BOOL(struct nr_schedule, counted, "1", "the decay begins where warm-up ends, not at step 0"),
	NR_OPT_FLOAT(struct nr_schedule, power, 0.9, 0, 100, "exponent of poly"),
	NR_OPT_FLOAT(struct nr_schedule, timescale, 10000, 1e-9, 1e15, "of rsqrt, in steps"),
	NR_OPT_FLOAT(struct nr_schedule, gamma, 0.1, 0, 1e6, "factor at each milestone of step"),
	NR_OPT_STRING(struct nr_schedule, milestones, "", "steps where gamma applies, separated by spaces"),
	NR_OPT_END
};

static int passed(const char *milestones, int64_t step)
{
	int n = 0;
	for (const char *s = milestones ? milestones : ""; *s;) {
		char *end;
		const long long at = strtoll(s, &end, 10);
		if (end == s) break;
		n += at <= step;
		s = end;
	}
	return n;
}

static double decayed(const struct nr_schedule *s, int64_t step)
{
	const double from = s->counted ? (double)s->warmup : 0, span = (double)s->total - from;
	double x = span > 0 ? ((double)step - from) / span : 1;
	x = x < 0 ? 0 : x > 1 ? 1 : x;
	switch ((enum nr_schedule_kind)s->kind) {
	case NR_SCHED_COSINE:
		return s->final + (s->base - s->final) * .5 * (1 + cos(3.14159265358979323846 * x));
	case NR_SCHED_LINEAR:
		return s->final + (s->base - s->final) * (1 - x);
	case NR_SCHED_POLY:
		return s->final + (s->base - s->final) * pow(1 - x, s->power);
	case NR_SCHED_RSQRT: {
		const double past = (double)step - from;
		return s->base / sqrt(1 + (past > 0 ? past : 0) / s->timescale);
	}
	case NR_SCHED_STEP:
		return s->base * pow(s->gamma, passed(s->milestones, step));
	case NR_SCHED_CONSTANT:
		break;
	}
	return s->base;
}

double nr_schedule_at(const struct nr_schedule *s, int64_t step)
{
	if (step >= s->warmup) return decayed(s, step);
	const double n = s->inclusive ? (double)(s->warmup - 1) : (double)s->warmup;
	return n > 0 ? s->warmup_start + (s->base - s->warmup_start) * (double)step / n : s->warmup_start;
}
