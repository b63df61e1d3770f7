/* Figures of an analysis: see analysis_figures.h. Lines are over all seeds; maps and heat maps are of the first run that has them. */
#include "report/analysis_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	const char *copy = nr_arena_strdup(arena, nr_str_text(&s));
	nr_str_release(&s);
	return copy ? copy : "";
}

/* ---- by depth ----------------------------------------------------------------------------------------------------------- */

enum { CLS, TOKENS };

static struct nr_points by_depth(const json_t *list, const json_t *(*of)(const json_t *, const struct nr_lines *), const struct nr_lines *v,
	struct nr_arena *arena)
{
	const size_t n = json_array_size(list);
	struct nr_points p = nr_points_make((int64_t)n, arena);
	for (size_t i = 0; i < n && p.x && p.y; i++) {
		const json_t *value = of(json_array_get(list, i), v);
		if (json_is_number(value)) p.x[p.n] = (double)i, p.y[p.n++] = json_number_value(value);
	}
	return p;
}

static const json_t *of_layer(const json_t *layer, const struct nr_lines *v)
{
	return json_object_get(json_object_get(layer, v->kind == CLS ? "cls" : "tokens"), v->key);
}
static const json_t *of_block(const json_t *block, const struct nr_lines *v) { return json_object_get(block, v->key); }

static struct nr_points layer_points(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	return by_depth(json_object_get(r->analysis, "layers"), of_layer, v, arena);
}

static struct nr_points gradient_points(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	return by_depth(json_object_get(json_object_get(r->analysis, "gradients"), "blocks"), of_block, v, arena);
}

/* The mean over heads. */
static struct nr_points attention_points(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *layers = json_object_get(r->analysis, "attention");
	struct nr_points p = nr_points_make((int64_t)json_array_size(layers), arena);
	for (size_t i = 0; i < json_array_size(layers) && p.x && p.y; i++) {
		const json_t *heads = json_object_get(json_array_get(layers, i), "heads");
		double sum = 0;
		for (size_t h = 0; h < json_array_size(heads); h++) sum += number_at(json_array_get(heads, h), v->key);
		sum /= (double)json_array_size(heads);
		if (isfinite(sum)) p.x[p.n] = (double)i, p.y[p.n++] = sum;
	}
	return p;
}

#define DEPTH(name, axis, scale_y, call, what, which, see)                                                                                 \
	{ .title = name, .unit = axis, .x_label = "layer, from input to output", .scale = scale_y, .factor = 1, .x_whole = true,           \
	  .says = see, .of = call, .key = what, .kind = which }
static const struct nr_lines depth[] = {
	DEPTH("Uniformity of [CLS] by layer", "lower is more even", NR_LINEAR, layer_points, "uniformity", CLS,
		"The lowest spreads [CLS] most."),
	DEPTH("Uniformity of tokens by layer", "lower is more even", NR_LINEAR, layer_points, "uniformity", TOKENS,
		"The lowest spreads patches most."),
	DEPTH("Effective rank of [CLS] by layer", "directions", NR_LINEAR, layer_points, "effective_rank", CLS,
		"A fall is a collapse onto few directions."),
	DEPTH("Effective rank of tokens by layer", "directions", NR_LINEAR, layer_points, "effective_rank", TOKENS,
		"A fall is a collapse onto few directions."),
	DEPTH("Mean cosine of [CLS] by layer", "cosine", NR_LINEAR, layer_points, "mean_cosine", CLS,
		"Near 1: every picture has nearly the same [CLS]."),
	DEPTH("Length of tokens by layer", "2-norm", NR_LOG_IF_WIDE, layer_points, "norm_mean", TOKENS,
		"The residual stream grows where nothing normalizes it."),
	DEPTH("Attention distance by layer", "mean over heads, in tokens", NR_LINEAR, attention_points, "distance", 0,
		"Low is local, high is global."),
	DEPTH("Gradient by block", "2-norm of its parameters", NR_LOG_IF_WIDE, gradient_points, "norm", 0,
		"A level line reaches all depths alike."),
};

/* ---- heat maps, one for each arm ---------------------------------------------------------------------------------------- */

struct matrix { int64_t rows, cols; double *value; const char **row, **col; };          /* col NULL: numbers */

static struct matrix make_matrix(size_t rows, size_t cols, struct nr_arena *arena)
{
	struct matrix m = { .rows = (int64_t)rows, .cols = (int64_t)cols };
	if (!rows || !cols || rows > 512 || cols > 512) return (struct matrix){ 0 };
	m.value = nr_arena_alloc(arena, rows * cols * sizeof *m.value);
	m.row = nr_arena_alloc(arena, rows * sizeof *m.row);
	for (size_t i = 0; m.value && i < rows * cols; i++) m.value[i] = NAN;
	return m.value && m.row ? m : (struct matrix){ 0 };
}

/* "blocks[3]" is read as "3". */
static const char *short_name(const char *name, struct nr_arena *arena)
{
	const size_t n = strcspn(name, "[");
	if (strncmp(name, "blocks[", 7) || !strchr(name, ']')) return name;
	const char *text = nr_arena_printf(arena, "%.*s%s", (int)strcspn(name + n + 1, "]"), name + n + 1, strchr(name, ']') + 1);
	return text ? text : name;
}

static struct matrix distance_matrix(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *layers = json_object_get(r->analysis, "attention");
	const size_t heads = json_array_size(json_object_get(json_array_get(layers, 0), "heads"));
	struct matrix m = make_matrix(json_array_size(layers), heads, arena);
	for (size_t i = 0; i < (size_t)m.rows; i++) {
		const json_t *layer = json_array_get(layers, i), *all = json_object_get(layer, "heads");
		m.row[i] = short_name(text_at(layer, "layer"), arena);
		for (size_t h = 0; h < heads; h++) m.value[i * heads + h] = number_at(json_array_get(all, h), "distance");
	}
	return m;
}

static struct matrix similarity_matrix(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *all = json_object_get(r->analysis, "similarity"), *rows = json_object_get(all, "cls"),
		     *layers = json_object_get(r->analysis, "layers");
	if (!rows) rows = json_object_get(all, "tokens");
	/* Before the first block [CLS] is the same for every picture, and nothing can be said of it. */
	const size_t all_layers = json_array_size(rows), skip = all_layers && !json_is_number(json_array_get(json_array_get(rows, 0), 0));
	const size_t n = all_layers - skip;
	struct matrix m = make_matrix(n, n, arena);
	for (size_t i = 0; i < (size_t)m.rows; i++) {
		const char *name = text_at(json_array_get(layers, i + skip), "name");
		m.row[i] = *name ? short_name(name, arena) : nr_arena_printf(arena, "%zu", i + skip);
		for (size_t k = 0; k < n; k++) {
			const json_t *v = json_array_get(json_array_get(rows, i + skip), k + skip);
			if (json_is_number(v)) m.value[i * n + k] = json_number_value(v);
		}
	}
	m.col = m.row;
	return m;
}

static struct matrix lambda_matrix(const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *sites = json_object_get(r->analysis, "dtn");
	const size_t heads = json_array_size(json_object_get(json_array_get(sites, 0), "lambda_mean"));
	struct matrix m = make_matrix(json_array_size(sites), heads, arena);
	for (size_t i = 0; i < (size_t)m.rows; i++) {
		const json_t *site = json_array_get(sites, i), *all = json_object_get(site, "lambda_mean");
		m.row[i] = short_name(text_at(site, "site"), arena);
		for (size_t h = 0; h < heads; h++) {
			const json_t *v = json_array_get(all, h);
			if (json_is_number(v)) m.value[i * heads + h] = json_number_value(v);
		}
	}
	return m;
}

struct heat {
	const char *title, *rows, *cols, *says;
	double low, high;
	struct matrix (*of)(const struct nr_runfolder *, struct nr_arena *);
};
static const struct heat heats[] = {
	{ "Mean attention distance", "block", "head", "Rows are blocks, columns heads; dark heads look nearby, bright ones far.", 0,
		0, distance_matrix },
	{ "Similarity of layers (CKA)", "layer", "layer",
		"Bright: two layers hold the same information; a dark corner: the last layers differ from the first.", 0, 1,
		similarity_matrix },
	{ "λ of dynamic token normalization", "site", "head", "1 takes the mean within a token as LN, 0 that between tokens as IN.",
		0, 1, lambda_matrix },
};

/* All maps of a kind share their colours, so that arms can be compared. */
static void widen(const struct matrix *m, double *low, double *high, double *mean)
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

static int add_heats(struct nr_str *s, const struct nr_arms *a, const struct heat *h, struct nr_arena *arena)
{
	struct matrix *m = nr_arena_alloc(arena, (size_t)a->count * sizeof *m);
	double *mean = nr_arena_alloc(arena, (size_t)a->count * sizeof *mean), low = INFINITY, high = -INFINITY;
	int count = 0;
	if (!m || !mean) s->failed = true;
	for (int i = 0; i < a->count && !s->failed; i++) {
		const struct nr_runfolder *r = analysed(a, i);
		if (r) m[i] = h->of(r, arena);
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

/* map.csv has the rows of [CLS], then those of the patch tokens, each from sample 0 on: the first are taken. */
static int add_map(
	struct nr_str *s, const struct nr_arms *a, int arm, const char *x, const char *y, const char *kind, struct nr_arena *arena)
{
	const struct nr_runfolder *r = analysed(a, arm);
	const struct nr_columns *t = r ? &r->map : NULL;
	const struct nr_column *cx = t ? nr_column_find(t, x) : NULL, *cy = t ? nr_column_find(t, y) : NULL;
	const struct nr_column *label = t ? nr_column_find(t, "label") : NULL, *sample = t ? nr_column_find(t, "sample") : NULL;
	if (!cx || !cy || !label || !sample) return 0;
	int64_t rows = 1, n = 0;
	int32_t classes = 0;
	while (rows < t->rows && sample->value[rows] > 0) rows++;
	const json_t *map = json_object_get(r->analysis, "map"), *cls = json_object_get(map, "cls"),
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
	const bool tsne = !strcmp(kind, "t-SNE");
	char text[64];
	const json_t *explained = json_object_get(one, "explained");
	const double value = tsne
		? number_at(one, "trustworthiness")
		: 100 * (json_number_value(json_array_get(explained, 0)) + json_number_value(json_array_get(explained, 1)));
	const char *caption = nr_arena_printf(arena,
		tsne ? "Trustworthiness %s: near 1, neighbours here are neighbours there. Distances between clusters mean nothing.%s"
		     : "The two components hold %s %% of the variance.%s",
		nr_short_text(value, text, sizeof text), by_value ? " Colours are the target." : "");
	const char *title = nr_arena_printf(arena, "%s of %s: %s", kind, said(r->analysis, cls ? "[CLS]" : "patch tokens", arena),
		a->arm[arm].name);
	if (!caption || !title) return s->failed = true, 0;
	const struct nr_scatter c = { .name = title, .n = n, .at = at, .group = group, .groups = classes, .legend = true,
		.value = by_value ? label->value : NULL, .value_name = "target",
		.x_label = tsne ? NULL : "first component", .y_label = tsne ? NULL : "second component" };
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
		"By norma analyze, on %.0f samples of %s/%s. Lines are means over seeds with a band from the least to the largest; "
	        "maps and heat maps are of "
		"the first seed.",
		number_at(first->analysis, "samples"), text_at(first->analysis, "data"), text_at(first->analysis, "split"));
	nr_str_add(s, "</p>\n");
	nr_legend(s, a);
	for (size_t i = 0; i < sizeof depth / sizeof *depth; i++) {
		struct nr_lines v = depth[i];
		v.title = said(first->analysis, v.title, arena);
		v.unit = said(first->analysis, v.unit, arena);
		v.says = said(first->analysis, v.says, arena);
		nr_figure(&figures, a, &v, arena);
	}
	add_group(s, "By depth", "charts", &figures);
	for (int i = 0; i < a->count; i++) add_map(&figures, a, i, "tsne1", "tsne2", "t-SNE", arena);
	for (int i = 0; i < a->count; i++) add_map(&figures, a, i, "pc1", "pc2", "PCA", arena);
	add_group(s, "Where samples lie", "maps", &figures);
	for (size_t i = 0; i < sizeof heats / sizeof *heats; i++) add_heats(&figures, a, &heats[i], arena);
	add_group(s, "Heat maps", "charts", &figures);
	nr_str_add(s, "</section>\n");
}
