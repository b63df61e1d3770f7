/* Classes: see class_figures.h. */
#include "report/class_figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/heatmap.h"
#include "draw/html.h"
#include "draw/svg.h"
#include "report/curves.h"

enum { MOST_CLASSES = 1024, MOST_ROWS = 30, MOST_DRAWN = 30, MOST_ARMS = 12 };

/* An arm's runs together: means of their scores, and their matrices added up. */
struct told {
	int runs;
	int64_t samples;                        /* of the first run */
	const char *split;
	bool pixels;                            /* samples are pixels: mean is of IoU, otherwise of F1 */
	double mean, *accuracy, *f1, *iou;      /* (classes); NAN: no sample of the class */
	int64_t *count;                         /* (classes) samples, of the first run */
	double *confusion;                      /* (classes,classes); NULL: not known of all runs */
};

/* Those of the first run that says them: arms whose runs have others are left out. */
struct classes { int64_t count; const json_t *list; };

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const char *name_of(const struct classes *c, int64_t k)
{
	const char *name = json_string_value(json_object_get(json_array_get(c->list, (size_t)k), "name"));
	return name ? name : "?";
}

static struct classes classes_of(const struct nr_arms *a)
{
	for (int i = 0; i < a->runs; i++) {
		const json_t *list = json_object_get(a->run[i].classes, "classes");
		const size_t n = json_array_size(list);
		if (n > 0 && n <= MOST_CLASSES) return (struct classes){ (int64_t)n, list };
	}
	return (struct classes){ 0 };
}

static bool same(const struct classes *c, const json_t *list)
{
	if ((int64_t)json_array_size(list) != c->count) return false;
	for (int64_t k = 0; k < c->count; k++)
		if (!json_equal(json_object_get(json_array_get(list, (size_t)k), "name"),
			json_object_get(json_array_get(c->list, (size_t)k), "name")))
			return false;
	return true;
}

/* A file that was changed by hand may hold anything: a matrix of other numbers is none. */
static bool add_matrix(double *sum, int64_t n, const json_t *list)
{
	if (!sum || (int64_t)json_array_size(list) != n) return false;
	for (int64_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, (size_t)i);
		if (!json_is_integer(v) || json_integer_value(v) < 0) return false;
		sum[i] += (double)json_integer_value(v);
	}
	return true;
}

static void add_run(struct told *t, const struct classes *c, const json_t *o)
{
	const json_t *list = json_object_get(o, "classes");
	if (!same(c, list)) return;
	const char *split = json_string_value(json_object_get(o, "split"));
	const double samples = number(o, "samples");
	if (!t->runs) t->split = split ? split : "?", t->samples = samples >= 0 && samples < 1e15 ? (int64_t)samples : 0;
	t->pixels = json_object_get(o, "miou") != NULL;
	t->mean += number(o, t->pixels ? "miou" : "macro_f1");
	for (int64_t k = 0; k < c->count; k++) {
		const json_t *one = json_array_get(list, (size_t)k);
		const double n = number(one, "samples");
		if (!t->runs) t->count[k] = n >= 0 && n < 1e15 ? (int64_t)n : 0;
		t->accuracy[k] += n > 0 ? number(one, "accuracy") : (double)NAN;
		t->f1[k] += number(one, "f1");
		t->iou[k] += number(one, "iou");
	}
	if (!add_matrix(t->confusion, c->count * c->count, json_object_get(o, "confusion"))) t->confusion = NULL;
	t->runs++;
}

static struct told told_of(const struct nr_arms *a, int arm, const struct classes *c, struct nr_arena *arena, struct nr_str *s)
{
	const size_t K = (size_t)c->count;
	struct told t = { .accuracy = nr_arena_alloc(arena, 3 * K * sizeof(double)), .count = nr_arena_alloc(arena, K * sizeof(int64_t)),
		.confusion = nr_arena_alloc(arena, K * K * sizeof(double)) };
	if (!t.accuracy || !t.count || !t.confusion) return s->failed = true, (struct told){ 0 };
	t.f1 = t.accuracy + K, t.iou = t.f1 + K;
	for (int i = 0; i < a->arm[arm].distinct; i++) add_run(&t, c, a->run[a->arm[arm].run[i]].classes);
	t.mean /= t.runs;
	for (size_t k = 0; k < 3 * K; k++) t.accuracy[k] /= t.runs;
	return t;
}

/* ---- scores of each class ------------------------------------------------------------------------------------------------ */

struct rank { double accuracy; int64_t k; };

static int by_accuracy(const void *x, const void *y)
{
	const struct rank *a = x, *b = y;
	if (a->accuracy != b->accuracy) return a->accuracy < b->accuracy ? -1 : 1;
	return a->k < b->k ? -1 : 1;
}

/* What a class is told by. */
static double worth(const struct told *t, int64_t k) { return t->pixels ? t->iou[k] : t->accuracy[k]; }

/* All classes in their order; of many those that are told worst, the worst first. */
static int64_t choose(const struct told *t, int arms, const struct classes *c, struct rank *row)
{
	for (int64_t k = 0; k < c->count; k++) {
		double sum = 0;
		int n = 0;
		for (int i = 0; i < arms; i++)
			if (t[i].runs && isfinite(worth(&t[i], k))) sum += worth(&t[i], k), n++;
		row[k] = (struct rank){ n ? sum / n : 2, k };
	}
	if (c->count <= MOST_ROWS) return c->count;
	qsort(row, (size_t)c->count, sizeof *row, by_accuracy);
	return MOST_ROWS;
}

/* In the colour that label maps are drawn in. */
static void name_cell(struct nr_html_table *t, const struct classes *c, int64_t k)
{
	const char *colour = json_string_value(json_object_get(json_array_get(c->list, (size_t)k), "colour"));
	nr_html_cell_open(t, NULL);
	if (colour && strspn(colour, "#0123456789abcdef") == strlen(colour))
		nr_str_printf(t->s, "<svg width=\"10\" height=\"10\" aria-hidden=\"true\">"
			"<rect width=\"10\" height=\"10\" fill=\"%s\"/></svg> ",
			colour);
	nr_html_text(t->s, name_of(c, k));
}

/* what: of the small number. */
static void percent_cell(struct nr_html_table *t, double share, const char *what, double small)
{
	nr_html_cell_open(t, "number");
	if (isfinite(share)) nr_html_printf(t->s, "%.1f %%", 100 * share);
	else nr_str_add(t->s, "–");
	if (isfinite(small)) nr_str_printf(t->s, "<small>%s %.1f</small>", what, 100 * small);
}

static void add_table(struct nr_str *s, const struct nr_arms *a, const struct told *t, const struct classes *c, struct nr_arena *arena)
{
	struct rank *row = nr_arena_alloc(arena, (size_t)c->count * sizeof *row);
	const struct told *first = t;
	while (!first->runs) first++;
	struct nr_html_table table = { .s = s, .caption = first->pixels
		? "IoU of a class: pixels that are both of it and called so, as a share of those that are either. Acc: the share of "
		"its pixels "
		"that are called so. Means over seeds, of the best weights."
		: "Accuracy of a class: the share of its samples that are called so. F1 also counts what is called so but is not; "
		"macro-F1 is its mean over classes, so that rare ones count as much as frequent ones. Means over seeds, of the best "
		"weights." };
	if (!row) return s->failed = true, (void)0;
	const int64_t rows = choose(t, a->count, c, row);
	if (rows < c->count)
		nr_str_printf(s, "<p>The %lld of %lld classes that are told worst:</p>\n", (long long)rows, (long long)c->count);
	nr_html_table_open(&table, "classes");
	nr_html_head(&table, NULL, "class");
	nr_html_head(&table, "number", first->pixels ? "pixels" : "samples");
	for (int i = 0; i < a->count; i++)
		if (t[i].runs) nr_html_head(&table, "number", a->arm[i].label);
	for (int64_t r = 0; r < rows; r++) {
		char text[32];
		snprintf(text, sizeof text, "%lld", (long long)first->count[row[r].k]);
		nr_html_row(&table);
		name_cell(&table, c, row[r].k);
		nr_html_cell(&table, "number", text);
		for (int i = 0; i < a->count; i++)
			if (t[i].runs && t[i].pixels) percent_cell(&table, t[i].iou[row[r].k], "acc", t[i].accuracy[row[r].k]);
			else if (t[i].runs) percent_cell(&table, t[i].accuracy[row[r].k], "F1", t[i].f1[row[r].k]);
	}
	nr_html_row(&table);
	nr_html_cell_open(&table, NULL);
	nr_str_add(s, first->pixels ? "<b>mean IoU</b>" : "<b>macro-F1</b>");
	nr_html_cell(&table, NULL, "");
	for (int i = 0; i < a->count; i++)
		if (t[i].runs) percent_cell(&table, t[i].mean, "", NAN);
	nr_html_table_close(&table);
}

/* ---- which are taken for which ------------------------------------------------------------------------------------------- */

/* The three most frequent mistakes, as shares of the samples of the true class. */
static const char *mistakes(const struct told *t, const struct classes *c, const double *share, struct nr_arena *arena)
{
	const int64_t K = c->count;
	const char *text = "";
	int64_t last = -1;
	for (int n = 0; n < 3 && text; n++) {
		int64_t most = -1;
		for (int64_t i = 0; i < K * K; i++) {
			const bool before = last < 0 || share[i] < share[last] || (share[i] == share[last] && i > last);
			if (i / K != i % K && share[i] > 0 && before && (most < 0 || share[i] > share[most])) most = i;
		}
		if (most < 0) break;
		text = nr_arena_printf(arena, "%s%s%s taken for %s (%.0f %%)", text, n ? ", " : "", name_of(c, most / K),
			name_of(c, most % K), share[most]);
		last = most;
	}
	if (!text) return NULL;
	return nr_arena_printf(arena, "%s%s%s%s", t->runs > 1 ? nr_arena_printf(arena, "%d seeds together. ", t->runs) : "",
		*text ? "Most often: " : "No mistake", text, ".");
}

static void add_matrix_figure(struct nr_str *s, const char *arm, const struct told *t, const struct classes *c, struct nr_arena *arena)
{
	const int64_t K = c->count;
	double *share = nr_arena_alloc(arena, (size_t)(K * K) * sizeof *share);
	const char **name = nr_arena_alloc(arena, (size_t)K * sizeof *name);
	const char *title = nr_arena_printf(arena, "Confusion: %s", arm);
	if (!share || !name || !title) return s->failed = true, (void)0;
	for (int64_t r = 0; r < K; r++) {
		double sum = 0;
		for (int64_t k = 0; k < K; k++) sum += t->confusion[r * K + k];
		for (int64_t k = 0; k < K; k++) share[r * K + k] = sum > 0 ? round(100 * t->confusion[r * K + k] / sum) : (double)NAN;
		name[r] = name_of(c, r);
	}
	const char *caption = mistakes(t, c, share, arena);
	if (!caption) s->failed = true;
	nr_html_figure_open(s, "heat", title, caption);
	nr_svg_heatmap(s, &(struct nr_heatmap){ .name = title, .x_label = "called", .y_label = "% of the class", .rows = K, .cols = K,
		.value = share, .row_label = name, .col_label = name, .low = 0, .high = 100 });
	nr_html_figure_close(s);
}

void nr_section_classes(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const struct classes c = classes_of(a);
	struct told *t = nr_arena_alloc(arena, (size_t)(a->count + 1) * sizeof *t), *first = NULL;
	if (!c.count || !t) return s->failed |= !t, (void)0;
	for (int i = 0; i < a->count && !s->failed; i++) {
		t[i] = told_of(a, i, &c, arena, s);
		if (t[i].runs && !first) first = &t[i];
	}
	if (!first) return;
	nr_str_add(s, "<section id=\"classes\"><h2>Classes</h2>\n<p>");
	nr_html_printf(s, "Which classes are told apart, on %lld %s of the %s split.", (long long)first->samples,
		first->pixels ? "pixels" : "samples", first->split);
	nr_str_add(s, "</p>\n");
	nr_legend(s, a);
	add_table(s, a, t, &c, arena);
	nr_str_add(s, "<div class=\"charts\">\n");
	for (int i = 0; i < a->count && i < MOST_ARMS && c.count <= MOST_DRAWN; i++)
		if (t[i].runs && t[i].confusion) add_matrix_figure(s, a->arm[i].name, &t[i], &c, arena);
	nr_str_add(s, "</div>\n");
	if (c.count > MOST_DRAWN)
		nr_html_element(s, "p", "notes", "So many classes make no readable matrix: norma eval --confusion --json has it.");
	nr_str_add(s, "</section>\n");
}
