/* See probe_result.h. */
#include "analysis/probe_result.h"

#include <stdlib.h>

#include "analysis/uniformity.h"

enum { SPECTRUM_ROWS = 10000 };

int nr_probed_look(struct nr_probed *s, const struct nr_probe_data *test, struct nr_arena *arena, struct nr_error *err)
{
	const int64_t C = test->width, n = test->count < SPECTRUM_ROWS ? test->count : SPECTRUM_ROWS;
	struct nr_spread spread = { 0 };
	real *rows = malloc((size_t)(n * C) * sizeof *rows);
	s->singulars = n < C ? n : C;
	s->singular = nr_arena_alloc(arena, (size_t)s->singulars * sizeof *s->singular);
	int code = rows && s->singular ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot measure", "features", "out of memory");
	for (int64_t i = 0; !code && i < n * C; i++) rows[i] = (real)test->x[i];
	if (!code) code = nr_spread(n, C, rows, s->singular, &spread, err);
	free(rows);
	s->uniformity = spread.uniformity;
	s->rank = spread.rank;
	nr_wilson(s->probe.best.top1, test->count, 1.96, &s->low, &s->high);
	s->there = !code;
	return code;
}

static json_t *try_json(const struct nr_probe_try *t, bool lars)
{
	json_t *j = json_pack("{s:f, s:f, s:f, s:f, s:I}", "weight_decay", t->weight_decay, "top1", t->top1, "top5", t->top5, "loss",
		t->loss, lars ? "steps" : "iterations", (json_int_t)t->iterations);
	if (t->held_top1 >= 0) json_object_set_new(j, "held_top1", json_real(t->held_top1));
	if (lars) json_object_set_new(j, "base_lr", json_real(t->base_lr));
	else json_object_set_new(j, "gradient", json_real(t->gradient)), json_object_set_new(j, "converged", json_boolean(t->converged));
	return j;
}

json_t *nr_probed_json(const struct nr_probed *s, bool lars)
{
	json_t *j = try_json(&s->probe.best, lars), *all = json_array(), *interval = json_pack("[f, f]", s->low, s->high);
	for (int64_t i = 0; i < s->probe.tries; i++) json_array_append_new(all, try_json(&s->probe.each[i], lars));
	json_object_set_new(j, "top1_interval", interval);
	json_object_set_new(j, "uniformity", json_real(s->uniformity));
	json_object_set_new(j, "effective_rank", json_real(s->rank));
	json_object_set_new(j, "tried", all);
	return j;
}

void nr_probe_spectrum(const struct nr_probed kind[NR_FEATURE_KINDS], struct nr_str *csv)
{
	nr_str_add(csv, "index");
	for (int k = 0; k < NR_FEATURE_KINDS; k++)
		if (kind[k].there) nr_str_printf(csv, ",%s", nr_feature_names[k]);
	const int64_t n = kind[kind[NR_FEATURE_CLS].there ? NR_FEATURE_CLS : NR_FEATURE_MEAN].singulars;
	for (int64_t i = 0; i < n; i++) {
		nr_str_printf(csv, "\n%lld", (long long)i + 1);
		for (int k = 0; k < NR_FEATURE_KINDS; k++)
			if (kind[k].there) nr_str_printf(csv, ",%.9g", kind[k].singular[i]);
	}
	nr_str_add(csv, "\n");
}
