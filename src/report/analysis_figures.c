/* Figures of an analysis: see analysis_figures.h. Lines are over all seeds; maps and heat maps are of the first run that has them. */
#include "report/analysis_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/part_told.h"
#include "draw/heatmap.h"
#include "draw/html.h"
#include "draw/scale.h"
#include "draw/scatter.h"
#include "report/curves.h"
#include "report/figure.h"

static double number_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const char *text_at(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));
	return text ? text : "";
}

/* A text about [CLS] and tokens in the words of the analysis: of graphs it says what these are, and what distances are counted in. */
static const char *said(const json_t *analysis, const char *text, struct nr_arena *arena)
{
	const char *cls = text_at(analysis, "cls_is"), *tokens = text_at(analysis, "tokens_are"), *unit = text_at(analysis, "distance_in");
	const struct { const char *word, *by; } words[] = { { "in tokens", unit }, { "patch tokens", tokens }, { "patches", tokens },
		{ "tokens", tokens }, { "[CLS]", cls }, { "picture", "graph" } };
	struct nr_str s = { 0 };
	if (!text || !*cls || !*tokens || !*unit) return text;
	while (*text) {
		size_t i = 0;
		const size_t known = sizeof words / sizeof *words;
		while (i < known && strncmp(text, words[i].word, strlen(words[i].word)) != 0) i++;
		if (!i) nr_str_add(&s, "in ");
		if (i < known) nr_str_add(&s, words[i].by);
		else nr_str_add_n(&s, text, 1);
		text += i < known ? strlen(words[i].word) : 1;
	}
	const char *copy = nr_str_keep(&s, arena);
	return copy ? copy : "";
}

/* ---- by depth ----------------------------------------------------------------------------------------------------------- */

/* nr_lines.key is the name of the part, nr_lines.more its curve. */
static struct nr_points by_depth(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const char *path = ((const struct nr_part_curve *)v->more)->path;
	const json_t *list = nr_part_list_at(json_object_get(r->analysis, v->key), &path);
	struct nr_points p = nr_points_make((int64_t)json_array_size(list), arena);
	for (size_t i = 0; i < json_array_size(list) && p.x && p.y; i++) {
		const double value = nr_part_number_at(json_array_get(list, i), path);
		if (isfinite(value)) p.x[p.n] = (double)i, p.y[p.n++] = value;
	}
	return p;
}

static void add_curve(struct nr_str *s, const struct nr_arms *a, const char *part, const struct nr_part_curve *c, const json_t *analysis,
	struct nr_arena *arena)
{
	nr_figure(s, a, &(struct nr_lines){ .title = said(analysis, c->title, arena), .unit = said(analysis, c->unit, arena),
		.x_label = c->x_label ? c->x_label : "layer, from input to output", .scale = c->scale, .factor = 1, .x_whole = true,
		.says = said(analysis, c->says, arena), .of = by_depth, .key = part, .more = c }, arena);
}

/* ---- heat maps, one for each arm ---------------------------------------------------------------------------------------- */

/* All maps of a kind share their colours, so that arms can be compared. */
static void widen(const struct nr_part_matrix *m, double *low, double *high, double *mean)
{
	double sum = 0;
	int64_t n = 0;
	for (int64_t i = 0; i < m->rows * m->cols; i++) {
		if (!isfinite(m->value[i])) continue;
		*low = fmin(*low, m->value[i]);
		*high = fmax(*high, m->value[i]);
		sum += m->value[i], n++;
	}
	*mean = n ? sum / (double)n : (double)NAN;
}

static const struct nr_runfolder *analysed(const struct nr_arms *a, int arm)
{
	for (int i = 0; i < a->arm[arm].runs; i++)
		if (a->run[a->arm[arm].run[i]].analysis) return &a->run[a->arm[arm].run[i]];
	return NULL;
}

static int add_heats(struct nr_str *s, const struct nr_arms *a, const struct nr_part_heat *h, struct nr_arena *arena)
{
	struct nr_part_matrix *m = nr_arena_alloc(arena, (size_t)a->count * sizeof *m);
	double *mean = nr_arena_alloc(arena, (size_t)a->count * sizeof *mean), low = INFINITY, high = -INFINITY;
	int count = 0;
	if (!m || !mean) s->failed = true;
	for (int i = 0; i < a->count && !s->failed; i++) {
		const struct nr_runfolder *r = analysed(a, i);
		if (r) m[i] = h->of(r->analysis, arena);
		widen(&m[i], &low, &high, &mean[i]);
	}
	for (int i = 0; i < a->count && !s->failed; i++) {
		if (!m[i].rows || isnan(mean[i])) continue;
		char text[64];
		const struct nr_heatmap map = { .name = h->title,
			.x_label = h->cols,
			.y_label = h->rows,
			.rows = m[i].rows,
			.cols = m[i].cols,
			.value = m[i].value,
			.row_label = m[i].row,
			.col_label = m[i].col,
			.low = h->high > h->low ? h->low : low,
			.high = h->high > h->low ? h->high : high };
		const char *title = nr_arena_printf(arena, "%s: %s", h->title, a->arm[i].name);
		const char *caption =
			nr_arena_printf(arena, "Mean %s. %s", nr_short_text(mean[i], text, sizeof text), count ? "" : h->says);
		if (!title || !caption) s->failed = true;
		nr_html_figure_open(s, "heat", title, caption);
		nr_svg_heatmap(s, &map);
		nr_html_figure_close(s);
		count++;
	}
	return count;
}

/* ---- maps of samples ---------------------------------------------------------------------------------------------------- */

enum { MOST_POINTS = 1000, MOST_CLASSES = 20 };

/* The CSV has the rows of [CLS], then those of the patch tokens, each from sample 0 on: the first are taken. */
static int add_map(struct nr_str *s, const struct nr_arms *a, int arm, const char *part, const struct nr_part_points *p,
	struct nr_arena *arena)
{
	const struct nr_runfolder *r = analysed(a, arm);
	const struct nr_columns *t = r ? nr_runfolder_points(r, part) : NULL;
	const struct nr_column *cx = t ? nr_column_find(t, p->x) : NULL, *cy = t ? nr_column_find(t, p->y) : NULL;
	const struct nr_column *label = t ? nr_column_find(t, "label") : NULL, *sample = t ? nr_column_find(t, "sample") : NULL;
	if (!cx || !cy || !label || !sample) return 0;
	int64_t rows = 1, n = 0;
	int32_t classes = 0;
	while (rows < t->rows && sample->value[rows] > 0) rows++;
	const json_t *map = json_object_get(r->analysis, part), *cls = json_object_get(map, "cls"),
		     *one = cls ? cls : json_object_get(map, "tokens");
	const bool by_value = !strcmp(text_at(map, "colours"), "target");
	double *at = nr_arena_alloc(arena, (size_t)(2 * MOST_POINTS) * sizeof *at);
	int32_t *group = nr_arena_alloc(arena, (size_t)MOST_POINTS * sizeof *group);
	if (!at || !group) return s->failed = true, 0;
	for (int64_t i = 0; i < rows && n < MOST_POINTS; i++, n++) {
		at[2 * n] = cx->value[i], at[2 * n + 1] = cy->value[i];
		group[n] = label->value[i] >= 0 && label->value[i] < MOST_CLASSES ? (int32_t)label->value[i] : -1;
		if (group[n] >= classes) classes = group[n] + 1;
	}
	const char *names[MOST_CLASSES];
	const json_t *known = json_object_get(map, "classes");
	for (size_t i = 0; i < MOST_CLASSES; i++) names[i] = json_string_value(json_array_get(known, i));
	char text[64];
	const size_t before = strcspn(p->says, "#");
	const char *caption = nr_arena_printf(arena, "%.*s%s%s%s", (int)before, p->says,
		p->says[before] ? nr_short_text(p->number(one), text, sizeof text) : "", p->says + before + (p->says[before] == '#'),
		by_value ? " Colours show the target." : "");
	const char *title = nr_arena_printf(arena, "%s of %s: %s", p->kind, said(r->analysis, cls ? "[CLS]" : "patch tokens", arena),
		a->arm[arm].name);
	if (!caption || !title) return s->failed = true, 0;
	const struct nr_scatter c = { .name = title, .n = n, .at = at, .group = group, .groups = classes,
		.group_name = names, .legend = true,
		.value = by_value ? label->value : NULL, .value_name = "target",
		.x_label = p->x_label, .y_label = p->y_label };
	nr_html_figure_open(s, "map", title, caption);
	nr_svg_scatter(s, &c);
	nr_html_figure_close(s);
	return 1;
}

/* ---- the section -------------------------------------------------------------------------------------------------------- */

static void add_group(struct nr_str *s, const char *title, const char *class_, struct nr_str *figures)
{
	if (figures->len)
		nr_html_element(s, "h3", NULL, title),
			nr_str_printf(s, "\n<div class=\"%s\">\n%s</div>\n", class_, nr_str_text(figures));
	if (figures->failed) s->failed = true;
	nr_str_release(figures);
}

void nr_analysis_figures(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	struct nr_str figures = { 0 };
	const struct nr_runfolder *first = NULL;
	for (int i = 0; i < a->count && !first; i++) first = analysed(a, i);
	if (!first) return;
	nr_str_add(s, "<section id=\"analysis\"><h2>Inside the models</h2>\n<p>");
	nr_html_printf(s,
		"By norma analyze, on %.0f samples of %s/%s. Lines are means over seeds with a band from the lowest "
	        "to the highest; maps and heat maps show the first seed.",
		number_at(first->analysis, "samples"), text_at(first->analysis, "data"), text_at(first->analysis, "split"));
	nr_str_add(s, "</p>\n");
	nr_legend(s, a);
	const struct nr_part_told *p;
	const char *part;
	for (int i = 0; (p = nr_part_told(i, &part)); i++)
		for (const struct nr_part_curve *c = p->curves; c && c->title; c++) add_curve(&figures, a, part, c, first->analysis, arena);
	add_group(s, "By depth", "charts", &figures);
	for (int i = 0; (p = nr_part_told(i, &part)); i++)
		for (const struct nr_part_points *m = p->points; m && m->kind; m++)
			for (int k = 0; k < a->count; k++) add_map(&figures, a, k, part, m, arena);
	add_group(s, "Maps of the samples", "maps", &figures);
	for (int i = 0; (p = nr_part_told(i, &part)); i++)
		for (const struct nr_part_heat *h = p->heats; h && h->title; h++) add_heats(&figures, a, h, arena);
	add_group(s, "Heat maps", "charts", &figures);
	nr_str_add(s, "</section>\n");
}
