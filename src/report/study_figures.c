/* Pictures of a study: see study_figures.h. */
#include "report/study_figures.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "draw/html.h"
#include "draw/scale.h"
#include "draw/svg.h"
#include "report/curves.h"
#include "study/results.h"

/* Dots of arms: as many values as there are runs, at most. */
struct dots { struct nr_series *of; double *value; int count; };
enum { X, Y, LOW, HIGH, VALUES };

static bool make_dots(struct dots *d, const struct nr_study_read *v, int each, struct nr_arena *arena)
{
	d->of = nr_arena_alloc(arena, (size_t)v->arms * sizeof *d->of);
	d->value = nr_arena_alloc(arena, (size_t)(v->arms * each * VALUES) * sizeof *d->value);
	d->count = v->arms;
	for (int a = 0; a < v->arms && d->of && d->value; a++) {
		double *at = d->value + a * each * VALUES;
		d->of[a] = (struct nr_series){ .x = at,
			.y = at + each,
			.lo = at + 2 * each,
			.hi = at + 3 * each,
			.arm = a,
			.weight = NR_DOTS,
			.label = v->stage[0].arms.arm[a].label };
	}
	return d->of && d->value;
}

static void add_dot(struct dots *d, int arm, int each, double x, double y, double half)
{
	struct nr_series *v = &d->of[arm];
	double *at = d->value + arm * each * VALUES + v->n++;
	at[X * each] = x, at[Y * each] = y, at[LOW * each] = y - half, at[HIGH * each] = y + half;
}

static void add_chart(struct nr_str *s, const struct nr_chart *c, const char *caption)
{
	nr_html_figure_open(s, "dots", c->name, caption);
	nr_svg_chart(s, c);
	nr_html_figure_close(s);
}

/* ---- against cost ------------------------------------------------------------------------------------------------------- */

static const char *cost_text(bool flops, double v, char *buf, size_t size)
{
	char lead[48];
	if (!flops) return nr_duration_text(v, buf, size);
	return snprintf(buf, size, "%s TFLOP", nr_short_text(v, lead, sizeof lead)), buf;
}

static void add_cost(struct nr_str *s, const struct nr_study_read *v, bool flops, struct nr_arena *arena)
{
	const char *metric = nr_study_metric(v, 0), *title = nr_metric_title(metric, arena);
	const double factor = nr_metric_factor(metric), sign = nr_metric_falls(metric) ? -1 : 1;
	struct dots d;
	int best = -1, cheap = -1;
	double least = INFINITY, most = 0;
	if (!make_dots(&d, v, 1, arena)) {
		s->failed = true;
		return;
	}
	for (int a = 0; a < v->arms; a++) {
		const json_t *arm = json_array_get(v->arm, (size_t)a), *cell = nr_study_cell(v, 0, a);
		const double n = nr_json_at(cell, "n"), mean = factor * nr_json_at(cell, "mean"),
			     half = factor * nr_json_at(cell, "half_width_95");
		const double cost = (flops ? nr_json_at(arm, "flops") / 1e12 : nr_json_at(arm, "seconds")) / n;
		if (!isfinite(cost) || !isfinite(mean) || cost <= 0) continue;
		add_dot(&d, a, 1, cost, mean, half);
		if (best < 0 || sign * mean > sign * d.of[best].y[0]) best = a;
		if (cost < least) least = cost, cheap = a;
		most = fmax(most, cost);
	}
	if (best < 0) return;
	if (flops && most < 1.001 * least && v->arms > 1) return;       /* dots upon each other show nothing: said in a line */
	char high[64], low[64], value[64];
	const struct nr_chart c = { .name = nr_arena_printf(arena, "%s against %s", title, flops ? "FLOPs" : "time"),
		.x_label = flops ? "TFLOP per run" : "seconds per run",
		.y_label = nr_arena_printf(arena, "%s%s%s", title, *nr_metric_unit(metric) ? ", " : "", nr_metric_unit(metric)),
		.scale = NR_LINEAR,
		.x_log = most > 10 * least,
		.series = d.of,
		.count = d.count };
	const char *caption = nr_arena_printf(arena,
		"%s is best (%s) at %s per run; the cheapest is %s (%s). %s; bars are 95 %% intervals over seeds.%s", v->name[best],
		nr_short_text(d.of[best].y[0], value, sizeof value), cost_text(flops, d.of[best].x[0], high, sizeof high),
		v->name[cheap], cost_text(flops, least, low, sizeof low),
		sign > 0 ? "Up and to the left is better" : "Down and to the left is better",
		flops ? "" : " Runs that shared the machine with others took longer.");
	if (!c.name || !c.y_label || !caption) s->failed = true;
	else add_chart(s, &c, caption);
}

/* ---- uniformity against accuracy ---------------------------------------------------------------------------------------- */

static double accuracy_of(const struct nr_runfolder *r, const struct nr_measure **which)
{
	for (const struct nr_measure *m = nr_measures; m->title; m++) {
		if (m->kind != NR_PERCENT || !isfinite(m->of(r))) continue;
		if (!*which) *which = m;
		return m == *which ? 100 * m->of(r) : (double)NAN;
	}
	return NAN;
}

struct moments { double n, x, y, xx, yy, xy; };

static void hold(struct moments *m, double x, double y) { m->n++, m->x += x, m->y += y, m->xx += x * x, m->yy += y * y, m->xy += x * y; }

/* Pearson's; NAN below three points or without a spread. */
static double correlation(const struct moments *m)
{
	const double xx = m->xx - m->x * m->x / m->n, yy = m->yy - m->y * m->y / m->n, xy = m->xy - m->x * m->y / m->n;
	return m->n >= 3 && xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
}

/* A dot for each run of the last stage that has both. Returns what the accuracy is; NULL: no run has both. */
static const struct nr_measure *gather_runs(struct dots *d, const struct nr_study_read *v, int each, struct moments *all)
{
	const struct nr_measure *which = NULL;
	for (int k = v->stages - 1; k >= 0 && !which; k--)
		for (int a = 0; a < v->arms; a++)
			for (int i = 0; i < v->stage[k].arms.arm[a].runs && i < each; i++) {
				const struct nr_runfolder *r = &v->stage[k].run[v->stage[k].arms.arm[a].run[i]];
				const double x = nr_uniformity_measure->of(r), y = isfinite(x) ? accuracy_of(r, &which) : (double)NAN;
				if (!isfinite(y)) continue;
				add_dot(d, a, each, x, y, NAN);
				hold(all, x, y);
			}
	return which;
}

static void add_uniformity(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const int each = v->seeds > 0 ? v->seeds : 1;
	struct moments all = { 0 };
	struct dots d;
	int even = 0;
	if (!make_dots(&d, v, each, arena)) {
		s->failed = true;
		return;
	}
	const struct nr_measure *which = gather_runs(&d, v, each, &all);
	if (!which || all.n < 2) return;
	double lowest = INFINITY;
	for (int a = 0; a < v->arms; a++) {
		double sum = 0;
		for (int64_t i = 0; i < d.of[a].n; i++) sum += d.of[a].x[i];
		if (d.of[a].n && sum / (double)d.of[a].n < lowest) lowest = sum / (double)d.of[a].n, even = a;
	}
	for (int a = 0; a < v->arms; a++)
		if (d.of[a].n > 1) d.of[a].label = NULL;        /* a cloud has no end to label */
	char low[64], r[64];
	const double by = correlation(&all);
	const struct nr_chart c = { .name = nr_arena_printf(arena, "Uniformity of [CLS] against %s", which->words),
		.x_label = "uniformity of [CLS]; lower is more even",
		.y_label = nr_arena_printf(arena, "%s, %%", which->words),
		.scale = NR_LINEAR,
		.series = d.of,
		.count = d.count };
	const char *caption = nr_arena_printf(arena,
		"%s spreads [CLS] most (%s on average). Each dot is a run; over all %.0f the correlation is %s. If "
		"an even spread helped accuracy it would be near −1: dots falling from left to right.",
		v->name[even], nr_short_text(lowest, low, sizeof low), all.n, nr_short_text(by, r, sizeof r));
	if (!c.name || !c.y_label || !caption) s->failed = true;
	else add_chart(s, &c, caption);
}

/* Arms of the same model often cost the same: then a line says so. */
static void add_equal_cost(struct nr_str *s, const struct nr_study_read *v)
{
	double least = INFINITY, most = 0;
	char text[64];
	for (int a = 0; a < v->arms; a++) {
		const double cost = nr_json_at(json_array_get(v->arm, (size_t)a), "flops") / nr_json_at(nr_study_cell(v, 0, a), "n") / 1e12;
		if (isfinite(cost)) least = fmin(least, cost), most = fmax(most, cost);
	}
	if (most > 0 && most < 1.001 * least && v->arms > 1)
		nr_str_printf(s, "<p>All arms cost the same: %s TFLOP a run.</p>\n", nr_short_text(most, text, sizeof text));
}

void nr_study_trade_offs(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const size_t before = s->len;
	nr_str_add(s, "<section id=\"cost\"><h2>What it costs, and what goes with it</h2>\n");
	add_equal_cost(s, v);
	nr_legend(s, &v->stage[0].arms);
	nr_str_add(s, "<div class=\"charts\">\n");
	const size_t start = s->len;
	add_cost(s, v, true, arena);
	add_cost(s, v, false, arena);
	add_uniformity(s, v, arena);
	if (s->len == start && !s->failed) s->len = before;
	else nr_str_add(s, "</div></section>\n");
}

/* ---- tuning ------------------------------------------------------------------------------------------------------------- */

/* The values of one arm, in percent if they are shares, and its best one in the caption. */
static void add_tuned(struct nr_series *line, const struct nr_column *y, const char *name, struct nr_str *caption)
{
	const double sign = nr_metric_falls(y->name) ? -1 : 1;
	int64_t best = -1;
	for (int64_t i = 0; i < line->n; i++)
		if (isfinite(line->y[i]) && (best < 0 || sign * line->y[i] > sign * line->y[best])) best = i;
	if (best < 0) return;
	nr_str_printf(caption, "%s %s %g%s", line->arm ? "," : "", name, line->x[best],
		best == 0 || best == line->n - 1 ? " (an end of the list)" : "");
}

/* Rows come arm by arm; columns are arm, the options, seeds, the metric and sd. */
void nr_study_tuning(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	const struct nr_columns *t = &v->tuning;
	if (t->count < 5) return;
	const struct nr_column *y = &t->column[t->count - 2], *x = &t->column[1];
	const int64_t each = t->rows / v->arms;
	struct nr_series *line = nr_arena_alloc(arena, (size_t)v->arms * sizeof *line);
	struct nr_str caption = { 0 };
	nr_str_printf(&caption, "Best of %lld values:", (long long)each);
	bool numbers = t->count == 5 && each > 1 && t->rows == each * v->arms && line;
	for (int64_t i = 0; i < t->rows; i++) {
		numbers &= isfinite(x->value[i]);
		y->value[i] *= nr_metric_factor(y->name);
	}
	for (int a = 0; a < v->arms && numbers; a++) {
		line[a] = (struct nr_series){ .label = v->stage[0].arms.arm[a].label, .n = each, .arm = a, .weight = NR_BOLD };
		line[a].x = x->value + a * each;
		line[a].y = y->value + a * each;
		add_tuned(&line[a], y, v->name[a], &caption);
	}
	nr_str_add(&caption, ". A flat line does not mind the choice; a best value at an end of the list says that the list should go on.");
	nr_str_add(s, "<section id=\"tuning\"><h2>Tuning</h2>\n");
	if (numbers) {
		const char *title = nr_metric_title(y->name, arena), *unit = nr_metric_unit(y->name);
		struct nr_chart c = { .x_label = x->name, .scale = NR_LINEAR, .x_log = true, .series = line, .count = v->arms };
		c.name = nr_arena_printf(arena, "%s against %s", title, x->name);
		c.y_label = nr_arena_printf(arena, "%s%s%s", title, *unit ? ", " : "", unit);
		nr_str_add(s, "<div class=\"charts\">\n");
		add_chart(s, &c, nr_str_text(&caption));
		nr_str_add(s, "</div>\n");
	} else {
		nr_str_add(s, "<p class=\"notes\">Several options, or ones that are no numbers, were tuned: "
			"tune/sensitivity.csv has all values.</p>\n");
	}
	nr_str_add(s, "</section>\n");
	if (caption.failed) s->failed = true;
	nr_str_release(&caption);
}
