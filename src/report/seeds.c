/* Every seed: see seeds.h. */
#include "report/seeds.h"

#include <math.h>

#include "draw/dotplot.h"
#include "draw/html.h"
#include "report/curves.h"

static void add_plot(struct nr_str *s, const char *title, const char *unit, struct nr_dot_row *row, int count, struct nr_arena *arena)
{
	bool several = false;
	for (int i = 0; i < count; i++) several |= row[i].n > 1;
	if (!several) return;
	const struct nr_dotplot plot = { .name = nr_arena_printf(arena, "Every seed: %s", title),
		.x_label = nr_arena_printf(arena, "%s%s%s", title, *unit ? ", " : "", unit), .row = row, .count = count };
	if (!plot.name || !plot.x_label) {
		s->failed = true;
		return;
	}
	nr_str_add(s, "<div class=\"charts\">\n");
	nr_html_figure_open(s, "dots", plot.name, "Each marker is a run, the upright line the mean, the bar its 95 % interval over seeds.");
	nr_svg_dotplot(s, &plot);
	nr_html_figure_close(s);
	nr_str_add(s, "</div>\n");
}

void nr_seeds_of_study(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const char *metric = nr_study_metric(v, 0);
	struct nr_dot_row *row = nr_arena_alloc(arena, (size_t)v->arms * sizeof *row);
	if (!metric || !row) return;
	const double factor = nr_metric_factor(metric);
	for (int a = 0; a < v->arms; a++) {
		const json_t *cell = nr_study_cell(v, 0, a), *seeds = json_object_get(cell, "by_seed");
		double *value = nr_arena_alloc(arena, (json_array_size(seeds) + 1) * sizeof *value);
		const double mean = factor * nr_json_at(cell, "mean"), half = factor * nr_json_at(cell, "half_width_95");
		int64_t n = 0;
		for (size_t i = 0; value && i < json_array_size(seeds); i++)
			if (json_is_number(json_array_get(seeds, i))) value[n++] = factor * json_number_value(json_array_get(seeds, i));
		row[a] = (struct nr_dot_row){ .label = v->stage[0].arms.arm[a].label, .value = value, .n = n, .mean = mean,
			.lo = mean - half, .hi = mean + half, .arm = a };
	}
	add_plot(s, nr_metric_title(metric, arena), nr_metric_unit(metric), row, v->arms, arena);
}

/* The first measure, which decides, that any run has. */
static const struct nr_measure *measure_of(const struct nr_arms *a)
{
	for (const struct nr_measure *m = nr_measures; m->title; m++)
		if (!m->cost && m->better && nr_best_arm(a, m, -1) >= 0) return m;
	return NULL;
}

void nr_seeds_of_runs(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const struct nr_measure *m = measure_of(a);
	struct nr_dot_row *row = nr_arena_alloc(arena, (size_t)a->count * sizeof *row);
	if (!m || !row) return;
	const double factor = m->kind == NR_PERCENT ? 100 : 1;
	for (int i = 0; i < a->count; i++) {
		const struct nr_estimate e = nr_arm_estimate(a, i, m);
		double *value = nr_arena_alloc(arena, (size_t)(a->arm[i].distinct + 1) * sizeof *value);
		int64_t n = 0;
		for (int k = 0; value && k < a->arm[i].distinct; k++) {
			const double v = factor * m->of(&a->run[a->arm[i].run[k]]);
			if (isfinite(v)) value[n++] = v;
		}
		const bool over_seeds = e.over == NR_OVER_RUNS;
		row[i] = (struct nr_dot_row){ .label = a->arm[i].label, .value = value, .n = n, .mean = factor * e.mean,
			.lo = over_seeds ? factor * e.lo : (double)NAN, .hi = over_seeds ? factor * e.hi : (double)NAN, .arm = i };
	}
	add_plot(s, m->words, m->kind == NR_PERCENT ? "%" : "", row, a->count, arena);
}
