/* Lines of arms, their numbers for the script, their captions: see figure.h. */
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "draw/html.h"
#include "draw/scale.h"

/* Records from which a noisy curve is smoothed; windows in its length; points of a smoothed curve; a line's buckets in the page. */
enum { NOISY = 60, WINDOWS = 30, SMOOTHED = 600, BUCKETS = 700 };

struct figure {
	const struct nr_arms *arms;
	const struct nr_lines *what;
	struct nr_arena *arena;
	struct nr_series *series;               /* room for two of each run */
	int count;
	bool smoothed, unfinished, failed;
};

struct nr_points nr_points_make(int64_t room, struct nr_arena *arena)
{
	const size_t bytes = (size_t)(room + 1) * sizeof(double);
	return (struct nr_points){ .x = nr_arena_alloc(arena, bytes), .y = nr_arena_alloc(arena, bytes) };
}

static struct nr_points make_points(struct figure *f, int64_t room, bool band)
{
	struct nr_points p = nr_points_make(room, f->arena);
	if (band) {
		const struct nr_points ends = nr_points_make(room, f->arena);
		p.lo = ends.x, p.hi = ends.y;
	}
	if (!p.x || !p.y || (band && (!p.lo || !p.hi))) f->failed = true;
	return p;
}

static void add_series(struct figure *f, int arm, const char *label, struct nr_points p, enum nr_weight w)
{
	if (p.n && !f->failed)
		f->series[f->count++] = (struct nr_series){
			.label = label, .x = p.x, .y = p.y, .lo = p.lo, .hi = p.hi, .n = p.n, .arm = arm, .weight = w
		};
}

/* ---- lines of an arm --------------------------------------------------------------------------------------------------- */

/* Where all lines have a point of the same x: mean, least and largest; all rise in x. */
static struct nr_points mean_points(struct figure *f, const struct nr_points *line, int n)
{
	struct nr_points p = make_points(f, line[0].n, true);
	int64_t *at = nr_arena_alloc(f->arena, (size_t)n * sizeof *at);
	if (!at) f->failed = true;
	for (int64_t i = 0; !f->failed && i < line[0].n; i++) {
		double sum = line[0].y[i], lo = sum, hi = sum;
		bool all = true;
		for (int k = 1; k < n && all; k++) {
			while (at[k] < line[k].n && line[k].x[at[k]] < line[0].x[i]) at[k]++;
			all = at[k] < line[k].n && line[k].x[at[k]] == line[0].x[i];
			const double y = all ? line[k].y[at[k]] : 0;
			sum += y;
			lo = all && !(y >= lo) ? y : lo;
			hi = all && !(y <= hi) ? y : hi;
		}
		if (all) p.x[p.n] = line[0].x[i], p.lo[p.n] = lo, p.hi[p.n] = hi, p.y[p.n++] = sum / n;
	}
	return p;
}

/* The mean of the values about i that are finite; NAN if none is. */
static double mean_about(struct nr_points line, int64_t i, int64_t half)
{
	double sum = 0;
	int64_t count = 0;
	for (int64_t k = i > half ? i - half : 0; k <= i + half && k < line.n; k++)
		if (isfinite(line.y[k])) sum += line.y[k], count++;
	return count ? sum / (double)count : (double)NAN;
}

/* A moving mean, centred where both sides are there, at no more places than a chart shows, the last included. */
static struct nr_points smooth_points(struct figure *f, struct nr_points line)
{
	struct nr_points p = make_points(f, line.n, false);
	const int64_t half = line.n / WINDOWS / 2 + 1, every = line.n / SMOOTHED + 1;
	for (int64_t i = (line.n - 1) % every; !f->failed && i < line.n; i += every) {
		p.x[p.n] = line.x[i];
		p.y[p.n++] = mean_about(line, i, half);
	}
	return p;
}

/* Runs that have not come as far as the longest are drawn thin and are no part of the mean. Returns how many are. */
static int take_short(struct figure *f, int arm, struct nr_points *line, int n)
{
	double end = -INFINITY;
	int whole = 0;
	for (int k = 0; k < n; k++) end = fmax(end, line[k].x[line[k].n - 1]);
	for (int k = 0; k < n; k++) {
		if (line[k].x[line[k].n - 1] >= end) line[whole++] = line[k];
		else add_series(f, arm, NULL, line[k], NR_THIN), f->unfinished = true;
	}
	return whole;
}

/* One line in bold: the only run, or the mean of several with a band; smoothed if noisy, a single run then with what was recorded. */
static void add_arm(struct figure *f, int arm, struct nr_points *line, int n)
{
	if (!n || f->failed) return;
	n = take_short(f, arm, line, n);
	const bool smooth = f->what->noisy && line[0].n > NOISY;
	f->smoothed |= smooth;
	if (smooth && n == 1) add_series(f, arm, NULL, line[0], NR_THIN);
	for (int k = 0; k < n && smooth && !f->failed; k++) line[k] = smooth_points(f, line[k]);
	const struct nr_points bold = n > 1 && !f->failed ? mean_points(f, line, n) : line[0];
	add_series(f, arm, f->arms->arm[arm].label, bold, NR_BOLD);
}

static void gather(struct figure *f)
{
	const struct nr_arms *a = f->arms;
	struct nr_points *line = nr_arena_alloc(f->arena, (size_t)(a->runs + 1) * sizeof *line);
	f->series = nr_arena_alloc(f->arena, (size_t)(2 * a->runs + 1) * sizeof *f->series);
	if (!line || !f->series) f->failed = true;
	for (int m = 0; m < a->count && !f->failed; m++) {
		int n = 0;
		for (int i = 0; i < a->arm[m].distinct && !f->failed; i++) {
			if (f->what->unless && nr_column_find(&a->run[a->arm[m].run[i]].metrics, f->what->unless)) continue;
			line[n] = f->what->of(f->what, &a->run[a->arm[m].run[i]], f->arena);
			if (!line[n].x || !line[n].y) f->failed = true;
			for (int64_t k = 0; k < line[n].n && !f->failed; k++) line[n].y[k] *= f->what->factor;
			n += line[n].n > 0;
		}
		add_arm(f, m, line, n);
	}
}

/* ---- the caption ------------------------------------------------------------------------------------------------------- */

/* Where the caption looks: the last value that is there, or the one in the middle. */
static double told_value(const struct figure *f, const struct nr_series *v)
{
	int64_t i = f->what->told == NR_AT_END ? v->n - 1 : v->n / 2;
	while (i >= 0 && !isfinite(v->y[i])) i--;
	return i < 0 ? (double)NAN : v->y[i];
}

static void add_name(struct nr_str *s, const struct figure *f, const struct nr_series *v)
{
	char text[64];
	nr_str_printf(s, "%s (%s)", f->arms->arm[v->arm].label, nr_short_text(told_value(f, v), text, sizeof text));
}

static void caption_of(const struct figure *f, struct nr_str *s)
{
	const struct nr_series *low = NULL, *high = NULL;
	const char *where = f->what->told == NR_AT_END ? "At the end" : "In the middle";
	for (int k = 0; k < f->count; k++) {
		const struct nr_series *v = &f->series[k];
		const double y = v->weight == NR_BOLD ? told_value(f, v) : (double)NAN;
		if (isfinite(y) && (!low || y < told_value(f, low))) low = v;
		if (isfinite(y) && (!high || y >= told_value(f, high))) high = v;
	}
	if (low && high && high != low && told_value(f, low) == told_value(f, high)) {
		char text[64];
		nr_str_printf(s, "%s all arms have %s.", where, nr_short_text(told_value(f, low), text, sizeof text));
	} else if (low && high != low) {
		nr_str_printf(s, "%s: lowest ", where);
		add_name(s, f, low);
		nr_str_add(s, ", highest ");
		add_name(s, f, high);
		nr_str_add(s, ".");
	} else if (low) {
		nr_str_printf(s, "%s: ", where);
		add_name(s, f, low);
		nr_str_add(s, ".");
	}
	if (f->what->says) nr_str_printf(s, " %s", f->what->says);
	if (f->smoothed) nr_str_add(s, " Smoothed by a moving mean.");
	if (f->unfinished) nr_str_add(s, " Thin lines are runs that have not got as far.");
}

/* ---- numbers for the script -------------------------------------------------------------------------------------------- */

/* Markup inside of a script would end it early or break the page as XML. */
static void add_text(struct nr_str *s, const char *key, const char *text)
{
	json_t *v = json_string(text);
	char *json = v ? nr_json_dump(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
	if (v && !json) s->failed = true;
	nr_str_printf(s, "\"%s\":", key);
	for (const char *p = json ? json : "\"\""; *p; p++) {
		if (strchr("<>&", *p)) nr_str_printf(s, "\\u%04x", *p);
		else nr_str_add_n(s, p, 1);
	}
	free(json);
	json_decref(v);
}

static void add_numbers(struct nr_str *s, const char *key, const double *v, const int64_t *keep, int64_t n, int digits)
{
	nr_str_printf(s, ",\"%s\":[", key);
	for (int64_t i = 0; i < n; i++) {
		if (i) nr_str_add(s, ",");
		if (nr_ruler_takes(false, v[keep[i]])) nr_str_printf(s, "%.*g", digits, v[keep[i]]);
		else nr_str_add(s, "null");
	}
	nr_str_add(s, "]");
}

static void add_line(struct nr_str *s, const struct figure *f, const struct nr_series *v)
{
	int64_t *keep = malloc((3 * BUCKETS + 2) * sizeof *keep);
	if (!keep) {
		s->failed = true;
		return;
	}
	const int64_t n = nr_thin(v->y, v->n, BUCKETS, false, keep);
	nr_str_printf(s, "{\"arm\":%d,\"thin\":%d,", v->arm, v->weight == NR_THIN);
	add_text(s, "name", f->arms->arm[v->arm].label);
	add_numbers(s, "x", v->x, keep, n, 10);
	add_numbers(s, "y", v->y, keep, n, 5);
	if (v->lo) add_numbers(s, "lo", v->lo, keep, n, 5), add_numbers(s, "hi", v->hi, keep, n, 5);
	nr_str_add(s, "}");
	free(keep);
}

static void add_data(struct nr_str *s, const struct figure *f, const struct nr_chart *c)
{
	nr_str_add(s, "<script type=\"application/json\">{");
	add_text(s, "x", c->x_label);
	nr_str_add(s, ",");
	add_text(s, "y", c->y_label);
	nr_str_printf(s, ",\"log\":%d,\"whole\":%d,\"floor\":%g,\"lines\":[", nr_chart_is_log(c), c->x_whole, c->floor);
	for (int k = 0; k < f->count; k++) {
		if (k) nr_str_add(s, ",\n");
		add_line(s, f, &f->series[k]);
	}
	nr_str_add(s, "]}</script>\n");
}

int nr_figure(struct nr_str *s, const struct nr_arms *a, const struct nr_lines *what, struct nr_arena *arena)
{
	const struct nr_mark mark = nr_arena_mark(arena);
	struct figure f = { .arms = a, .what = what, .arena = arena };
	struct nr_str caption = { 0 };
	gather(&f);
	if (f.failed) s->failed = true;
	const struct nr_chart chart = { .name = what->title, .x_label = what->x_label, .y_label = what->unit, .scale = what->scale,
		.floor = what->floor, .x_whole = what->x_whole, .series = f.series, .count = f.count };
	const bool drawn = f.count && !s->failed;
	if (drawn) {
		caption_of(&f, &caption);
		nr_html_figure_open(s, "curve", what->title, nr_str_text(&caption));
		add_data(s, &f, &chart);
		nr_svg_chart(s, &chart);
		nr_html_figure_close(s);
	}
	if (caption.failed) s->failed = true;
	nr_str_release(&caption);
	nr_arena_reset(arena, mark);
	return drawn;
}
