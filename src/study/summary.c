/* From the files of a study to statistics of its arms: see results.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/mem.h"
#include "base/str.h"
#include "study/job.h"
#include "study/published.h"
#include "study/results.h"
#include "study/settings.h"
#include "study/tune.h"

enum { MOST_SEEDS = 1000 };                 /* more are never a plan */
static const double POWER = 0.8;

static int no_memory(struct nr_error *err) { return nr_fail(err, NR_EMEMORY, "cannot sum up the study", NULL, "out of memory"); }

__attribute__((format(printf, 2, 3)))
static void note(struct nr_summary *m, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	char *copy = nr_arena_strdup(m->arena, text);
	if (copy) nr_list_add(&m->notes, copy, m->arena);
}

/* ---- what a run states --------------------------------------------------------------------------------------------------------- */

/* The line of a run's header that begins with this word, without it; in the arena. */
static char *header_line(const char *header, const char *word, struct nr_arena *arena)
{
	for (const char *s = header; s && *s; s += strcspn(s, "\n"), s += *s == '\n') {
		const size_t n = strlen(word);
		if (strncmp(s, word, n)) continue;
		s += n + strspn(s + n, " ");
		return nr_arena_printf(arena, "%.*s", (int)strcspn(s, "\n"), s);
	}
	return NULL;
}

/* Forward and backward of a training: three times forward, for every sample of every step. */
static double header_flops(const char *header, struct nr_arena *arena)
{
	const char *model = header_line(header, "model", arena), *steps = header_line(header, "steps", arena);
	const char *unit = model ? strstr(model, " GFLOP forward per sample") : NULL;
	double each, count, samples;
	while (unit && unit > model && unit[-1] != ' ') unit--;
	if (!unit || !steps || sscanf(unit, "%lf", &each) != 1 || sscanf(steps, "%lf of %lf", &count, &samples) != 2) return NAN;
	return 3 * each * 1e9 * count * samples;
}

static void add_cost(struct nr_arm_cost *cost, const struct nr_job *j, json_t *result, struct nr_arena *arena)
{
	char *path = nr_arena_printf(arena, "%s/env.json", j->dir);
	struct nr_error ignored = { 0 };
	json_t *env = path && !access(path, R_OK) ? nr_json_load(path, &ignored) : NULL;
	const char *header = env ? json_string_value(json_object_get(env, "run")) : NULL;
	double flops = NAN;
	if (!nr_result_number(result, "flops", &flops) && header) flops = header_flops(header, arena);
	if (!isnan(flops)) cost->flops = isnan(cost->flops) ? flops : cost->flops + flops;
	if (header && !cost->batch) cost->batch = header_line(header, "batch statistics", arena);
	json_decref(env);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

struct reading {
	struct nr_summary *m;
	const char *version;
	bool versions, *found;              /* found: by metric */
	struct nr_error *missing;           /* by metric: what the first result without it has */
	struct nr_error *err;
};

static double *place(const struct nr_summary *m, int64_t metric, int64_t arm, int64_t seed)
{
	return &m->value[(metric * m->study->arms + arm) * m->study->seeds + seed];
}

static int read_stage(struct reading *r, int64_t arm, int64_t seed, int64_t stage, bool *done)
{
	struct nr_summary *m = r->m;
	struct nr_job j;
	struct nr_stage_mark mark;
	if (nr_job_make(&j, m->study, arm, seed, stage, m->arena, r->err) || nr_mark_read(&j, &mark, m->arena, r->err)) return r->err->code;
	/* a result made with other settings is not one of this study */
	if (mark.status != NR_MARK_DONE || strcmp(mark.settings, j.settings)) {
		*done = false;
		return NR_OK;
	}
	json_t *o = nr_json_load(j.json, r->err);
	if (!o) return r->err->code;
	const char *name = m->study->stage[stage].name;
	const size_t n = strlen(name);
	for (int64_t k = 0; k < m->metrics; k++) {
		if (strncmp(m->metric[k], name, n) || m->metric[k][n] != '.') continue;
		if (nr_result_number(o, m->metric[k] + n + 1, place(m, k, arm, seed))) r->found[k] = true;
		else nr_result_unknown(o, name, m->metric[k], &r->missing[k]);
	}
	m->cost[arm].seconds += mark.seconds;
	add_cost(&m->cost[arm], &j, o, m->arena);
	r->versions |= r->version && strcmp(r->version, mark.version);
	r->version = mark.version;
	json_decref(o);
	return NR_OK;
}

static int read_runs(struct reading *r)
{
	struct nr_summary *m = r->m;
	for (int64_t a = 0; a < m->study->arms; a++) {
		m->cost[a].flops = NAN;
		for (int64_t s = 0; s < m->study->seeds; s++) {
			bool done = true;
			for (int64_t k = 0; k < m->study->stages && done; k++)
				if (read_stage(r, a, s, k, &done)) return r->err->code;
			m->cost[a].done += done;
		}
	}
	return NR_OK;
}

/* ---- statistics ------------------------------------------------------------------------------------------------------------------ */

static int64_t needed(const struct nr_sample *d, double level)
{
	if (d->n < 2 || d->mean == 0) return -1;
	const int64_t n = nr_t_pairs(d->sd > 0 ? d->mean / d->sd : INFINITY, POWER, level, MOST_SEEDS);
	return !n ? -1 : n > d->n ? n - d->n : 0;
}

static void compare(struct nr_summary *m, int64_t metric, int64_t arm, double *d)
{
	struct nr_comparison *c = &m->cell[metric * m->study->arms + arm].against;
	int64_t n = 0;
	for (int64_t s = 0; s < m->study->seeds; s++) {
		const double x = *place(m, metric, arm, s), base = *place(m, metric, m->study->arm[arm].against, s);
		if (!isnan(x) && !isnan(base)) d[n++] = x - base;
	}
	c->difference = nr_sample(d, n);
	c->p_t = nr_t_test(d, n);
	c->p_wilcoxon = n > 1 ? nr_wilcoxon(d, n) : NAN;
	c->needed = needed(&c->difference, m->level);
}

static int correct(struct nr_summary *m, int64_t metric)
{
	const int64_t n = m->study->arms;
	struct nr_arm_metric *cell = &m->cell[metric * n];
	double *p = nr_arena_alloc(m->arena, (size_t)n * 2 * sizeof *p);
	if (!p) return NR_EMEMORY;
	double *w = p + n;
	for (int64_t a = 0; a < n; a++) {
		p[a] = m->study->arm[a].against == a ? NAN : cell[a].against.p_t;
		w[a] = m->study->arm[a].against == a ? NAN : cell[a].against.p_wilcoxon;
	}
	nr_holm(p, n);
	nr_holm(w, n);
	for (int64_t a = 0; a < n; a++) cell[a].against.p_t_holm = p[a], cell[a].against.p_wilcoxon_holm = w[a];
	return NR_OK;
}

static int statistics(struct nr_summary *m)
{
	const struct nr_study *s = m->study;
	double *d = nr_arena_alloc(m->arena, (size_t)s->seeds * sizeof *d);
	for (int64_t a = 0; a < s->arms; a++) m->comparisons += s->arm[a].against != a;
	m->level = NR_STUDY_LEVEL / (double)(m->comparisons > 1 ? m->comparisons : 1);
	for (int64_t k = 0; d && k < m->metrics; k++) {
		for (int64_t a = 0; a < s->arms; a++) {
			int64_t n = 0;
			for (int64_t i = 0; i < s->seeds; i++)
				if (!isnan(*place(m, k, a, i))) d[n++] = *place(m, k, a, i);
			m->cell[k * s->arms + a].all = nr_sample(d, n);
			compare(m, k, a, d);
		}
		if (correct(m, k)) return NR_EMEMORY;
	}
	return d ? NR_OK : NR_EMEMORY;
}

/* ---- notes ------------------------------------------------------------------------------------------------------------------------ */

/* Norms over the batch see what the batch holds: arms that differ in it differ in more than their norm. */
static void note_batches(struct nr_summary *m)
{
	const struct nr_study *s = m->study;
	bool differ = false;
	for (int64_t a = 1; a < s->arms; a++)
		differ |= m->cost[a].batch && m->cost[0].batch && strcmp(m->cost[a].batch, m->cost[0].batch);
	if (!differ) return;
	note(m, "the arms differ in what their batch statistics saw:");
	for (int64_t a = 0; a < s->arms; a++) {
		bool before = !m->cost[a].batch;
		for (int64_t b = 0; b < a && !before; b++) before = m->cost[b].batch && !strcmp(m->cost[a].batch, m->cost[b].batch);
		if (before) continue;
		struct nr_str names = { 0 };
		for (int64_t b = a; b < s->arms; b++)
			if (m->cost[b].batch && !strcmp(m->cost[a].batch, m->cost[b].batch))
				nr_str_printf(&names, "%s%s", names.len ? "; " : "", s->arm[b].name);
		note(m, "  %s: %s", nr_str_text(&names), m->cost[a].batch);
		nr_str_release(&names);
	}
}

static void note_missing(struct nr_summary *m, const struct nr_study_run *run, int64_t runs)
{
	for (int64_t i = 0; i < runs; i++) {
		const struct nr_study_run *r = &run[i];
		if (r->status == NR_RUN_FAILED)
			note(m, "%s, seed %lld failed in %s: %s", m->study->arm[r->arm].name, (long long)m->study->seed[r->seed],
				m->study->stage[r->stage].name, r->fault ? r->fault : "");
	}
}

/* The values of an option in all arms, each once: "stl10/svhn"; "" without any. */
static void add_values(const struct nr_summary *m, int64_t stage, const char *key, struct nr_str *to)
{
	const struct nr_study *s = m->study;
	struct nr_list seen = { NULL, 0 };
	for (int64_t a = 0; a < s->arms; a++) {
		const struct nr_settings *all = nr_study_settings(s, a, stage, m->arena);
		for (int64_t i = 0; all && i < all->count; i++) {
			if (strcmp(all->item[i].key, key)) continue;
			const char *value = nr_setting_text(&all->item[i], m->arena);
			char *text = value ? nr_arena_strdup(m->arena, value) : NULL;
			int64_t k = 0;
			while (text && k < seen.count && strcmp(seen.item[k], text)) k++;
			if (text && k == seen.count) nr_list_add(&seen, text, m->arena);
		}
	}
	for (int64_t i = 0; i < seen.count; i++)
		nr_str_printf(to, "%s%s%s", i ? "/" : to->len ? " " : "", i ? "" : nr_arena_printf(m->arena, "%s ", key), seen.item[i]);
}

/* Our side of the difference in scale: what decides the size of a run. */
static int describe_runs(struct nr_summary *m)
{
	static const char *const keys[] = { "data", "model", "epochs", "steps", "batch", "accumulate", "head_batch", NULL };
	struct nr_str all = { 0 };
	for (int64_t k = 0; k < m->study->stages; k++) {
		struct nr_str one = { 0 };
		for (int i = 0; keys[i]; i++) add_values(m, k, keys[i], &one);
		if (one.len) nr_str_printf(&all, "%s%s: %s", all.len ? "; " : "", m->study->stage[k].name, nr_str_text(&one));
		nr_str_release(&one);
	}
	nr_str_printf(&all, "; seeds %lld", (long long)m->study->seeds);
	m->ours = nr_str_keep(&all, m->arena);
	return m->ours ? NR_OK : NR_EMEMORY;
}

static void note_published(struct nr_summary *m)
{
	const struct nr_study *s = m->study;
	for (int64_t i = 0; s->published && i < s->published->notes.count; i++) note(m, "%s", s->published->notes.item[i]);
	for (int64_t k = 0; k < m->metrics; k++)
		for (int64_t a = 0; a < s->arms; a++) {
			const struct nr_published_cell *c = nr_published_cell(s, k, a);
			if (c && c->unsure) note(m,
				"published %s of %s is uncertain: %s", c->value, s->arm[a].name, c->unsure);
		}
}

/* An arm may lack a metric, such as that of a [CLS] token; one that all lack was misspelt. */
static int note_unknown(struct nr_summary *m, const struct reading *r)
{
	char text[1500];
	for (int64_t k = 0; k < m->metrics; k++) {
		if (r->found[k] || !r->missing[k].code) continue;
		if (!k) {
			*r->err = r->missing[k];
			return r->err->code;
		}
		note(m, "%s", nr_error_text(&r->missing[k], text, sizeof text));
	}
	return NR_OK;
}

int nr_summary_make(struct nr_summary *m, const struct nr_study *s, const struct nr_study_run *run, int64_t runs, struct nr_arena *arena,
	struct nr_error *err)
{
	const int64_t failures = nr_memory_failures();
	*m = (struct nr_summary){ .study = s, .arena = arena, .metrics = 1 + s->also.count };
	const size_t cells = (size_t)(m->metrics * s->arms), values = cells * (size_t)s->seeds;
	m->metric = nr_arena_alloc(arena, (size_t)m->metrics * sizeof *m->metric);
	m->value = nr_arena_alloc(arena, values * sizeof *m->value);
	m->cell = nr_arena_alloc(arena, cells * sizeof *m->cell);
	m->cost = nr_arena_alloc(arena, (size_t)s->arms * sizeof *m->cost);
	struct reading r = { .m = m, .err = err };
	r.found = nr_arena_alloc(arena, (size_t)m->metrics * sizeof *r.found);
	r.missing = nr_arena_alloc(arena, (size_t)m->metrics * sizeof *r.missing);
	if (!m->metric || !m->value || !m->cell || !m->cost || !r.found || !r.missing) return no_memory(err);
	for (int64_t i = 0; i < m->metrics; i++) m->metric[i] = i ? s->also.item[i - 1] : s->metric;
	for (size_t i = 0; i < values; i++) m->value[i] = NAN;
	if (read_runs(&r) || note_unknown(m, &r)) return err->code;
	if (statistics(m) || describe_runs(m)) return no_memory(err);
	m->decision = nr_arena_alloc(arena, (size_t)s->arms * sizeof *m->decision);
	if (!m->decision) return no_memory(err);
	if (nr_looks_make(&m->looks, s, arena, err) || nr_looks_decide(&m->looks, s, m->value, m->decision, err)) return err->code;
	note_missing(m, run, runs);
	note_batches(m);
	for (int64_t i = 0; s->tune && i < s->tune->notes.count; i++) note(m, "%s", s->tune->notes.item[i]);
	note_published(m);
	if (r.versions) note(m, "the runs were made by different versions of norma");
	return nr_memory_since(failures, "cannot sum up the study", NULL, err);         /* a note would be missing */
}
