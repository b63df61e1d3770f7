/* Objects: see object_figures.h. */
#include "report/object_figures.h"

#include <math.h>
#include <stdlib.h>

#include "draw/html.h"
#include "report/curves.h"
#include "report/figure.h"

enum { MOST_CLASSES = 2048, MOST_ROWS = 30, RECALLS = 101 };
static const char *const kinds[] = { "boxes", "masks" };

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static const json_t *of_run(const struct nr_arms *a, int arm, int i, const char *kind)
{
	return json_object_get(a->run[a->arm[arm].run[i]].objects, kind);
}

/* The first run of all arms that has such scores. */
static const json_t *first_of(const struct nr_arms *a, const char *kind)
{
	for (int i = 0; i < a->runs; i++)
		if (json_object_get(a->run[i].objects, kind)) return json_object_get(a->run[i].objects, kind);
	return NULL;
}

/* Over the seeds of an arm that know it; NAN: none does. */
static double mean_stat(const struct nr_arms *a, int arm, const char *kind, const char *stat)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < a->arm[arm].distinct; i++) {
		const double x = number(of_run(a, arm, i, kind), stat);
		if (isfinite(x)) sum += x, n++;
	}
	return n ? sum / n : (double)NAN;
}

/* Runs with other classes are left out. */
static double mean_class(const struct nr_arms *a, int arm, const char *kind, const json_t *of, size_t k)
{
	double sum = 0;
	int n = 0;
	for (int i = 0; i < a->arm[arm].distinct; i++) {
		const json_t *list = json_object_get(of_run(a, arm, i, kind), "classes"), *one = json_array_get(list, k);
		if (json_array_size(list) != json_array_size(of)) continue;
		if (!json_equal(json_object_get(one, "name"), json_object_get(json_array_get(of, k), "name"))) continue;
		const double x = number(one, "AP");
		if (isfinite(x)) sum += x, n++;
	}
	return n ? sum / n : (double)NAN;
}

static void percent_cell(struct nr_html_table *t, double share)
{
	nr_html_cell_open(t, "number");
	if (isfinite(share)) nr_html_printf(t->s, "%.1f %%", 100 * share);
	else nr_str_add(t->s, "–");
}

static void add_scores(struct nr_str *s, const struct nr_arms *a, const char *kind)
{
	static const struct { const char *stat, *says; } rows[] = { { "AP", "AP, mean over IoU .5 to .95" }, { "AP50", "AP at IoU .5" },
		{ "AP75", "AP at IoU .75" }, { "APs", "AP of small objects, to 32 x 32 pixels" },
		{ "APm", "AP of medium ones, to 96 x 96" }, { "APl", "AP of large ones" },
		{ "AR1", "recall of one detection per picture" }, { "AR10", "of 10" }, { "AR100", "of 100" } };
	struct nr_html_table t = { .s = s, .caption = "Average precision (AP) is the area below the curve of precision over recall, mean "
		"over classes, as COCO computes it; means over seeds. Recall is the mean over IoU .5 to .95." };
	nr_html_table_open(&t, "classes");
	nr_html_head(&t, NULL, kind);
	for (int i = 0; i < a->count; i++) nr_html_head(&t, "number", a->arm[i].label);
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
		nr_html_row(&t);
		nr_html_cell(&t, NULL, rows[r].says);
		for (int i = 0; i < a->count; i++) percent_cell(&t, mean_stat(a, i, kind, rows[r].stat));
	}
	nr_html_table_close(&t);
}

struct rank { double ap; size_t k; };

static int by_ap(const void *x, const void *y)
{
	const struct rank *a = x, *b = y;
	if (a->ap != b->ap) return a->ap < b->ap ? -1 : 1;
	return a->k < b->k ? -1 : 1;
}

/* Those that have objects; of many the ones that are found worst, the worst first. */
static void add_classes(struct nr_str *s, const struct nr_arms *a, const char *kind, const json_t *classes, struct nr_arena *arena)
{
	const size_t all = json_array_size(classes);
	struct rank *row = all && all <= MOST_CLASSES ? nr_arena_alloc(arena, all * sizeof *row) : NULL;
	size_t n = 0;
	for (size_t k = 0; row && k < all; k++) {
		double sum = 0;
		int known = 0;
		for (int i = 0; i < a->count; i++) {
			const double x = mean_class(a, i, kind, classes, k);
			if (isfinite(x)) sum += x, known++;
		}
		if (known) row[n++] = (struct rank){ sum / known, k };
	}
	if (!n) return;
	const bool many = n > MOST_ROWS;
	if (many) {
		qsort(row, n, sizeof *row, by_ap);
		nr_str_printf(s, "<p>The %d of %zu classes that are found worst:</p>\n", MOST_ROWS, n);
	}
	struct nr_html_table t = { .s = s };
	nr_html_table_open(&t, "classes");
	nr_html_head(&t, NULL, "class");
	nr_html_head(&t, "number", "objects");
	for (int i = 0; i < a->count; i++) nr_html_head(&t, "number", a->arm[i].label);
	for (size_t r = 0; r < (many ? MOST_ROWS : n); r++) {
		const json_t *one = json_array_get(classes, row[r].k);
		const char *name = json_string_value(json_object_get(one, "name"));
		char text[32];
		snprintf(text, sizeof text, "%.0f", number(one, "objects"));
		nr_html_row(&t);
		nr_html_cell(&t, NULL, name ? name : "?");
		nr_html_cell(&t, "number", text);
		for (int i = 0; i < a->count; i++) percent_cell(&t, mean_class(a, i, kind, classes, row[r].k));
	}
	nr_html_table_close(&t);
}

/* Precision over recall of one run: what->key is boxes or masks, what->kind which threshold. */
static struct nr_points curve_of(const struct nr_lines *what, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *all = json_object_get(json_object_get(r->objects, what->key), "precision");
	const json_t *list = json_array_get(all, (size_t)what->kind);
	struct nr_points p = nr_points_make(RECALLS, arena);
	for (size_t i = 0; i < RECALLS && p.x && p.y && json_array_size(list) == RECALLS; i++) {
		const json_t *v = json_array_get(list, i);
		if (!json_is_number(v)) continue;
		p.x[p.n] = (double)i;
		p.y[p.n++] = json_number_value(v);
	}
	return p;
}

static void add_curves(struct nr_str *s, const struct nr_arms *a, const char *kind, bool masks, struct nr_arena *arena)
{
	static const struct { int iou; const char *title[2]; } curves[] = {
		{ 0, { "Precision of boxes at IoU .5", "Precision of masks at IoU .5" } },
		{ 5, { "Precision of boxes at IoU .75", "Precision of masks at IoU .75" } } };
	nr_str_add(s, "<div class=\"charts\">\n");
	for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
		nr_figure(s, a, &(struct nr_lines){ .title = curves[i].title[masks], .unit = "% precision", .x_label = "% recall",
			.factor = 100, .told = NR_IN_THE_MIDDLE, .of = curve_of, .key = kind, .kind = curves[i].iou,
			.says = "Mean over classes; where a line falls to 0, no class is found that far." }, arena);
	nr_str_add(s, "</div>\n");
}

void nr_section_objects(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const json_t *record = NULL;
	for (int i = 0; i < a->runs && !record; i++) record = a->run[i].objects;
	if (!record || !first_of(a, kinds[0])) return;
	const char *split = json_string_value(json_object_get(record, "split"));
	nr_str_add(s, "<section id=\"objects\"><h2>Objects</h2>\n<p>");
	nr_html_printf(s, "What is found in %.0f pictures of the %s split, with the best weights.", number(record, "pictures"),
		split ? split : "?");
	nr_str_add(s, "</p>\n");
	nr_legend(s, a);
	for (int m = 0; m < 2; m++) {
		const json_t *first = first_of(a, kinds[m]);
		if (!first) continue;
		nr_html_element(s, "h3", NULL, m ? "Masks" : "Boxes");
		add_scores(s, a, kinds[m]);
		add_curves(s, a, kinds[m], m, arena);
		add_classes(s, a, kinds[m], json_object_get(first, "classes"), arena);
	}
	nr_str_add(s, "</section>\n");
}
