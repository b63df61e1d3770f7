/* Combined arms as one chart: see study_families.h. */
#include "report/study_families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/html.h"
#include "draw/svg.h"

struct families {
	const struct nr_study_read *v;
	const char **place, **member;           /* distinct names before and behind the last comma, in the study's order */
	int places, members;
	int *at, *of;                           /* (arms): which */
	const char *baseline;                   /* the member that others are compared with; NULL: values are drawn */
};

static int number_of(const char **list, int *count, const char *name)
{
	for (int i = 0; i < *count; i++)
		if (!strcmp(list[i], name)) return i;
	list[*count] = name;
	return (*count)++;
}

/* False: the arms are not combined, or memory is out. */
static bool split(struct families *f, const struct nr_study_read *v, struct nr_arena *arena)
{
	const size_t n = (size_t)v->arms + 1;
	*f = (struct families){ .v = v, .place = nr_arena_alloc(arena, n * sizeof *f->place),
		.member = nr_arena_alloc(arena, n * sizeof *f->member),
		.at = nr_arena_alloc(arena, n * sizeof *f->at), .of = nr_arena_alloc(arena, n * sizeof *f->of) };
	const char *baseline = json_string_value(json_object_get(v->table, "baseline"));
	if (!f->place || !f->member || !f->at || !f->of) return false;
	for (int a = 0; a < v->arms; a++) {
		const char *comma = NULL;
		for (const char *s = strstr(v->name[a], ", "); s; s = strstr(s + 2, ", ")) comma = s;
		const char *before = comma ? nr_arena_printf(arena, "%.*s", (int)(comma - v->name[a]), v->name[a]) : NULL;
		if (!before) return false;
		f->at[a] = number_of(f->place, &f->places, before);
		f->of[a] = number_of(f->member, &f->members, comma + 2);
		if (baseline && !strcmp(comma + 2, baseline)) f->baseline = baseline;
	}
	return f->places > 1 && f->members > 1 && f->places * f->members == v->arms;
}

/* The points of one member, over all places. */
static struct nr_series series_of(const struct families *f, int member, double factor, struct nr_arena *arena)
{
	double *v = nr_arena_alloc(arena, (size_t)(4 * f->places) * sizeof *v);
	struct nr_series s = { .label = f->member[member], .arm = member, .weight = f->baseline ? NR_DOTS : NR_BOLD };
	if (!v) return s;
	s.x = v, s.y = v + f->places, s.lo = v + 2 * f->places, s.hi = v + 3 * f->places;
	for (int a = 0; a < f->v->arms; a++) {
		const json_t *cell = nr_study_cell(f->v, 0, a), *from = f->baseline ? json_object_get(cell, "difference") : cell;
		const double mean = factor * nr_json_at(from, "mean"), half = factor * nr_json_at(from, "half_width_95");
		if (f->of[a] != member || !isfinite(mean)) continue;
		v[s.n] = f->at[a] + 1;
		v[f->places + s.n] = mean;
		v[2 * f->places + s.n] = mean - half;
		v[3 * f->places + s.n] = mean + half;
		s.n++;
	}
	if (f->baseline && s.n > 1) s.label = NULL;     /* a cloud has no end to label: the legend says it */
	return s;
}

/* A straight line at the bound, "-3.088 what it is". */
static bool bound_of(const struct families *f, struct nr_series *s, struct nr_arena *arena)
{
	const char *text = json_string_value(json_object_get(f->v->table, "bound"));
	char *words = NULL;
	const double at = text ? strtod(text, &words) : 0;
	double *v = nr_arena_alloc(arena, 4 * sizeof *v);
	if (!text || words == text || !v) return false;
	v[0] = 1, v[1] = f->places, v[2] = v[3] = at;
	*s = (struct nr_series){ .label = words + strspn(words, " "), .x = v, .y = v + 2, .n = 2, .arm = f->members, .weight = NR_BOLD };
	return true;
}

static void add_legend(struct nr_str *s, const struct families *f)
{
	nr_str_add(s, "<ul class=\"legend\" aria-label=\"lines\">");
	for (int i = 0; i < f->members; i++) {
		nr_str_add(s, "<li>");
		nr_svg_sample(s, i);
		nr_str_add(s, " ");
		nr_html_element(s, "span", "plan", f->member[i]);
		nr_str_add(s, "</li>");
	}
	nr_str_add(s, "</ul>\n");
}

void nr_study_families(struct nr_str *s, const struct nr_study_read *v, struct nr_arena *arena)
{
	struct families f;
	if (!split(&f, v, arena)) return;
	const char *metric = nr_study_metric(v, 0), *title = metric ? nr_metric_title(metric, arena) : NULL,
		*unit = metric ? nr_metric_unit(metric) : "";
	struct nr_series *line = nr_arena_alloc(arena, (size_t)(f.members + 1) * sizeof *line);
	struct nr_str places = { 0 };
	if (!title || !line) return;
	int count = 0;
	for (int i = 0; i < f.members; i++) line[count++] = series_of(&f, i, nr_metric_factor(metric), arena);
	count += bound_of(&f, &line[count], arena);
	for (int i = 0; i < f.places; i++) nr_str_printf(&places, "%s%d %s", i ? ", " : "", i + 1, f.place[i]);
	const char *name = f.baseline ? nr_arena_printf(arena, "%s: difference to %s", title,
		f.baseline) : nr_arena_printf(arena, "%s by arm", title);
	const char *y = nr_arena_printf(arena, "%s%s%s", f.baseline ? "difference" : title, *unit ? ", " : "",
		f.baseline && *unit ? "points" : unit);
	const struct nr_chart c = { .name = name, .x_label = nr_str_text(&places), .y_label = y, .scale = NR_LINEAR, .x_whole = true,
		.series = line, .count = count };
	nr_str_add(s, "<section id=\"families\"><h2>Over all combinations</h2>\n");
	add_legend(s, &f);
	nr_str_add(s, "<div class=\"charts\">\n");
	nr_html_figure_open(s, "dots", name ? name : "", "Bars and bands are 95 % intervals over seeds.");
	nr_svg_chart(s, &c);
	nr_html_figure_close(s);
	nr_str_add(s, "</div></section>\n");
	s->failed |= !name || !y || places.failed;
	nr_str_release(&places);
}
