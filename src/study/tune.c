/* Tuning before a study: see tune.h. */
#include "study/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/plot.h"
#include "base/save.h"
#include "base/str.h"
#include "base/table.h"
#include "study/settings.h"

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot plan the tuning", NULL, "out of memory"); }

/* ---- what is asked ---------------------------------------------------------------------------------------------------------------- */

static struct nr_tune *tune_of(struct nr_study *s)
{
	if (!s->tune) s->tune = nr_arena_alloc(s->arena, sizeof *s->tune);
	if (s->tune && !s->tune->seeds) s->tune->seeds = 1;
	return s->tune;
}

static void set_number(struct nr_study *s, const struct nr_setting *one, int64_t *to, struct nr_error *err)
{
	int64_t v = 0;
	if (!nr_parse_int(one->value[0], &v) || v < 1 || v > NR_STUDY_MAX_ARMS)
		nr_study_complain(s, one->value_at, err, NULL, "'%s' of 'tune' should be a number from 1 to %d", one->key,
			NR_STUDY_MAX_ARMS);
	else *to = v;
}

static int add_axis(struct nr_study *s, const struct nr_setting *one, struct nr_error *err)
{
	struct nr_tune *t = s->tune;
	if (t->axes == NR_TUNE_AXES) {
		nr_study_complain(s, one->at, err, NULL, "more than %d options to tune", NR_TUNE_AXES);
		return err->code;
	}
	struct nr_factor *a = &t->axis[t->axes++];
	a->count = one->count;
	a->item = nr_arena_alloc(s->arena, (size_t)one->count * sizeof *a->item);
	a->name = nr_arena_alloc(s->arena, (size_t)one->count * sizeof *a->name);
	if (!a->item || !a->name) return no_memory(err);
	for (int64_t i = 0; i < one->count; i++) {
		a->item[i] = *one;
		a->item[i].value = one->value + i;
		a->item[i].count = 1;
		a->name[i] = nr_arena_printf(s->arena, "%s=%s", one->key, one->value[i]);
	}
	return NR_OK;
}

int nr_tune_set(struct nr_study *s, const struct nr_setting *one, struct nr_error *err)
{
	struct nr_tune *t = tune_of(s);
	if (!t) return no_memory(err);
	if (one->count > 1) return add_axis(s, one, err);
	if (one->stage) return nr_settings_add(&t->own, one, s->arena) ? no_memory(err) : (int)err->code;
	if (!strcmp(one->key, "metric")) t->metric = one->value[0];
	else if (!strcmp(one->key, "seeds")) set_number(s, one, &t->seeds, err);
	else if (!strcmp(one->key, "budget")) set_number(s, one, &t->budget, err);
	else if (!strcmp(one->key, "better")) {
		t->better = !strcmp(one->value[0], "higher") ? 1 : !strcmp(one->value[0], "lower") ? -1 : 0;
		if (!t->better) nr_study_complain(s, one->value_at, err, NULL, "'better' should be higher or lower");
	} else if (nr_settings_add(&t->own, one, s->arena)) return no_memory(err);
	return err->code;
}

int nr_tune_flag(struct nr_study *s, const char *text, struct nr_error *err)
{
	const size_t n = strcspn(text, "=");
	if (!n || !text[n] || !text[n + 1]) return nr_fail(err, NR_EUSAGE, "not an option with values", text,
		"e.g. --tune lr=1e-3,2e-3");
	char *key = nr_arena_printf(s->arena, "%.*s", (int)n, text), *rest = nr_arena_strdup(s->arena, text + n + 1);
	struct nr_list values = { NULL, 0 };
	while (key && rest && *rest) {
		char *end = rest + strcspn(rest, ",");
		const bool last = !*end;
		*end = 0;
		if (nr_list_add(&values, rest, s->arena)) return no_memory(err);
		rest = last ? end : end + 1;
	}
	const struct nr_setting one = { .key = key, .value = (const char *const *)values.item, .count = values.count };
	return key && values.count ? nr_tune_set(s, &one, err) : no_memory(err);
}

/* ---- its runs ------------------------------------------------------------------------------------------------------------------- */

static int64_t combinations(const struct nr_tune *t)
{
	int64_t n = 1;
	for (int64_t a = 0; a < t->axes && n <= NR_STUDY_MAX_ARMS; a++) n *= t->axis[a].count;
	return n;
}

/* Which combinations an arm tries: all, or `budget` of them by a fixed shuffle. In rising order. */
static int64_t draw(const struct nr_tune *t, int64_t *pick)
{
	const int64_t all = combinations(t), n = t->budget && t->budget < all ? t->budget : all;
	uint64_t state = 88172645463325252u;
	int64_t taken = 0;
	for (int64_t i = 0; i < all; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		if ((int64_t)(state % (uint64_t)(all - i)) < n - taken) pick[taken++] = i;
	}
	return taken;
}

static int stages_for(const struct nr_study *s, const char *metric)
{
	int n = (int)s->stages;
	for (int64_t i = 0; i < s->stages; i++) {
		const size_t len = strlen(s->stage[i].name);
		if (!strncmp(metric, s->stage[i].name, len) && metric[len] == '.') n = (int)i + 1;
	}
	return n;
}

/* Keeps of each arm's combinations those that were drawn. */
static int keep_drawn(struct nr_study *t, const struct nr_tune *tune, int64_t arms, struct nr_error *err)
{
	const int64_t all = combinations(tune);
	int64_t *pick = nr_arena_alloc(t->arena, (size_t)all * sizeof *pick);
	if (!pick) return no_memory(err);
	const int64_t n = draw(tune, pick);
	for (int64_t a = 0; a < arms; a++)
		for (int64_t k = 0; k < n; k++) t->arm[a * n + k] = t->arm[a * all + pick[k]];
	t->arms = arms * n;
	return NR_OK;
}

int nr_tune_study(const struct nr_study *s, struct nr_study *t, struct nr_error *err)
{
	const struct nr_tune *tune = s->tune;
	*t = *s;
	t->tune = NULL;
	t->tuning = true;
	t->published = NULL;
	t->stop = (struct nr_study_stop){ 0 };
	t->also = (struct nr_list){ NULL, 0 };
	t->baseline = NULL;
	t->metric = tune->metric ? tune->metric : s->metric;
	t->stages = stages_for(s, t->metric);
	t->title = nr_arena_printf(s->arena, "%s%stuning", s->title, *s->title ? ": " : "");
	t->out = nr_arena_printf(s->arena, "%s/tune", s->out);
	t->seeds = tune->seeds;
	t->seed = nr_arena_alloc(s->arena, (size_t)t->seeds * sizeof *t->seed);
	t->arm = nr_arena_alloc(s->arena, (size_t)s->arms * sizeof *t->arm);
	if (!t->out || !t->title || !t->seed || !t->arm) return no_memory(err);
	for (int64_t i = 0; i < t->seeds; i++) t->seed[i] = NR_TUNE_SEED + i;
	for (int64_t a = 0; a < s->arms; a++) {
		t->arm[a] = s->arm[a];
		t->arm[a].own = (struct nr_settings){ 0 };
		for (int64_t i = 0; i < s->arm[a].own.count; i++)
			if (nr_settings_add(&t->arm[a].own, &s->arm[a].own.item[i], s->arena)) return no_memory(err);
		for (int64_t i = 0; i < tune->own.count; i++)
			if (nr_settings_add(&t->arm[a].own, &tune->own.item[i], s->arena)) return no_memory(err);
	}
	if (!tune->axes) {
		nr_study_complain(s, NULL, err, "e.g. `tune: {lr: [1e-3, 2e-3]}` or --tune lr=1e-3,2e-3",
			"'tune' has no option with several values");
		return err->code;
	}
	if (nr_study_expand(t, tune->axis, tune->axes, err) || keep_drawn(t, tune, s->arms, err)) return err->code;
	return nr_study_check(t, err);
}

/* ---- what was best -------------------------------------------------------------------------------------------------------------- */

static bool lower_is_better(const struct nr_tune *t, const char *metric)
{
	return t->better ? t->better < 0 : nr_metric_falls(metric);
}

/* The place of the best one among an arm's combinations; -1: none has a result. */
static int64_t best_of(const struct nr_study *s, const struct nr_summary *m, int64_t arm)
{
	const int64_t each = m->study->arms / s->arms;
	const double sign = lower_is_better(s->tune, m->study->metric) ? -1 : 1;
	int64_t best = -1;
	for (int64_t k = 0; k < each; k++) {
		const double v = m->cell[arm * each + k].all.mean, other = best < 0 ? NAN : m->cell[arm * each + best].all.mean;
		if (!isnan(v) && (best < 0 || sign * v > sign * other)) best = k;
	}
	return best;
}

/* The tuned settings of one of the tuning arms: the last of its own, one for each axis. */
static const struct nr_setting *tuned(const struct nr_study *s, const struct nr_study_arm *a, int64_t axis)
{
	return &a->own.item[a->own.count - s->tune->axes + axis];
}

static const char *values_text(const struct nr_study *s, const struct nr_study_arm *a)
{
	struct nr_str text = { 0 };
	for (int64_t x = 0; x < s->tune->axes; x++)
		nr_str_printf(&text, "%s%s %s", x ? ", " : "", tuned(s, a, x)->key, nr_setting_text(tuned(s, a, x), s->arena));
	const char *copy = nr_str_keep(&text, s->arena);
	return copy ? copy : "";
}

static int note(const struct nr_study *s, const struct nr_summary *m, int64_t arm, int64_t best, struct nr_error *err)
{
	const int64_t each = m->study->arms / s->arms;
	struct nr_str text = { 0 };
	nr_str_printf(&text, "tuned by %s, %s:", m->study->metric, s->arm[arm].name);
	for (int64_t k = 0; k < each; k++) {
		const double v = m->cell[arm * each + k].all.mean;
		nr_str_printf(&text, "%s %s ", k ? ";" : "", values_text(s, &m->study->arm[arm * each + k]));
		if (isnan(v)) nr_str_add(&text, "no result");
		else nr_str_printf(&text, "%.4g", v);
	}
	nr_str_printf(&text, "; taken: %s", values_text(s, &m->study->arm[arm * each + best]));
	if (s->tune->axes == 1 && each > 1 && (best == 0 || best == each - 1)) nr_str_add(&text,
		", at the end of the list (extend it)");
	char *copy = nr_str_keep(&text, s->arena);
	return copy && !nr_list_add(&s->tune->notes, copy, s->arena) ? NR_OK : no_memory(err);
}

static void put_number(struct nr_table *t, double v)
{
	if (isnan(v)) nr_table_cell(t, "%s", "");
	else nr_table_cell(t, "%.9g", v);
}

static int save_sensitivity(const struct nr_study *s, const struct nr_summary *m, struct nr_error *err)
{
	const int64_t each = m->study->arms / s->arms;
	struct nr_table *t = nr_table_make();
	struct nr_str text = { 0 };
	nr_table_column(t, "arm", NR_LEFT);
	for (int64_t x = 0; x < s->tune->axes; x++) nr_table_column(t, s->tune->axis[x].item[0].key, NR_LEFT);
	nr_table_column(t, "seeds", NR_RIGHT);
	nr_table_column(t, m->study->metric, NR_RIGHT);
	nr_table_column(t, "sd", NR_RIGHT);
	for (int64_t i = 0; i < m->study->arms; i++) {
		const struct nr_sample *v = &m->cell[i].all;
		nr_table_cell(t, "%s", s->arm[i / each].name);
		for (int64_t x = 0; x < s->tune->axes; x++)
			nr_table_cell(t, "%s", nr_setting_text(tuned(s, &m->study->arm[i], x), s->arena));
		nr_table_cell(t, "%lld", (long long)v->n);
		put_number(t, v->mean);
		put_number(t, v->sd);
	}
	nr_table_csv(t, &text);
	nr_table_free(t);
	const char *path = nr_arena_printf(s->arena, "%s/sensitivity.csv", m->study->out);
	const int code = path && !text.failed ? nr_save_file(path, nr_str_text(&text), text.len, err) : no_memory(err);
	nr_str_release(&text);
	return code;
}

static int replace(struct nr_settings *all, const struct nr_setting *one, struct nr_arena *arena)
{
	for (int64_t i = 0; i < all->count; i++) {
		const char *a = all->item[i].stage, *b = one->stage;
		if (strcmp(all->item[i].key, one->key) || !a != !b || (a && strcmp(a, b))) continue;
		all->item[i] = *one;
		return NR_OK;
	}
	return nr_settings_add(all, one, arena);
}

int nr_tune_apply(const struct nr_study *s, const struct nr_summary *m, struct nr_study *to, struct nr_error *err)
{
	const int64_t each = m->study->arms / s->arms;
	*to = *s;
	to->arm = nr_arena_alloc(s->arena, (size_t)s->arms * sizeof *to->arm);
	if (!to->arm) return no_memory(err);
	s->tune->notes = (struct nr_list){ NULL, 0 };
	if (save_sensitivity(s, m, err)) return err->code;
	for (int64_t a = 0; a < s->arms; a++) {
		const int64_t best = best_of(s, m, a);
		if (best < 0)
			return nr_fail(err, NR_EIO, "no tuning run has a result", s->arm[a].name, "see the logs in %s", m->study->out);
		to->arm[a] = s->arm[a];
		to->arm[a].own = (struct nr_settings){ 0 };
		for (int64_t i = 0; i < s->arm[a].own.count; i++)
			if (nr_settings_add(&to->arm[a].own, &s->arm[a].own.item[i], s->arena)) return no_memory(err);
		for (int64_t x = 0; x < s->tune->axes; x++)
			if (replace(&to->arm[a].own, tuned(s, &m->study->arm[a * each + best], x), s->arena)) return no_memory(err);
		if (note(s, m, a, best, err)) return err->code;
	}
	return NR_OK;
}

void nr_tune_plot(const struct nr_study *s, const struct nr_summary *m, struct nr_str *to)
{
	const int64_t each = m->study->arms / s->arms;
	int64_t *x = nr_arena_alloc(s->arena, (size_t)each * sizeof *x);
	double *y = nr_arena_alloc(s->arena, (size_t)each * sizeof *y);
	if (s->tune->axes != 1 || each < 2 || !x || !y) return;
	for (int64_t a = 0; a < s->arms; a++) {
		nr_str_printf(to, "%s: %s against %s =", s->arm[a].name, m->study->metric, s->tune->axis[0].item[0].key);
		for (int64_t k = 0; k < each; k++) {
			x[k] = k + 1;
			y[k] = m->cell[a * each + k].all.mean;
			nr_str_printf(to, " %s", nr_setting_text(tuned(s, &m->study->arm[a * each + k], 0), s->arena));
		}
		nr_str_add(to, "\n");
		const struct nr_plot plot = { x, y, each, 30, 4 };
		nr_plot_text(&plot, to);
	}
}

/* ---- the record ----------------------------------------------------------------------------------------------------------------- */

static void put(struct nr_str *s, const struct nr_setting *one)
{
	nr_str_printf(s, ", %s%s%s: ", one->stage ? one->stage : "", one->stage ? "." : "", one->key);
}

void nr_tune_write(const struct nr_study *study, struct nr_str *s)
{
	const struct nr_tune *t = study->tune;
	if (!t) return;
	nr_str_printf(s, "tune: {seeds: %lld", (long long)t->seeds);
	if (t->budget) nr_str_printf(s, ", budget: %lld", (long long)t->budget);
	if (t->better) nr_str_printf(s, ", better: %s", t->better > 0 ? "higher" : "lower");
	if (t->metric) nr_str_add(s, ", metric: "), nr_study_quote(s, t->metric);
	for (int64_t i = 0; i < t->own.count; i++) {
		put(s, &t->own.item[i]);
		nr_study_quote(s, t->own.item[i].value[0]);
	}
	for (int64_t x = 0; x < t->axes; x++) {
		put(s, &t->axis[x].item[0]);
		for (int64_t k = 0; k < t->axis[x].count; k++) {
			nr_str_add(s, k ? ", " : "[");
			nr_study_quote(s, t->axis[x].item[k].value[0]);
		}
		nr_str_add(s, "]");
	}
	nr_str_add(s, "}\n");
}
