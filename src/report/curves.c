/* Curves and spectra: see curves.h. */
#include "report/curves.h"

#include <math.h>
#include <string.h>

#include "draw/html.h"
#include "norma/task.h"
#include "report/figure.h"

/* The points of one column; x by another. */
static struct nr_points column_points(const struct nr_columns *t, const char *x, const char *y, struct nr_arena *arena)
{
	const struct nr_column *cx = nr_column_find(t, x), *cy = nr_column_find(t, y);
	struct nr_points p = nr_points_make(cx && cy ? t->rows : 0, arena);
	for (int64_t i = 0; p.x && p.y && cx && cy && i < t->rows; i++)
		if (cx->given[i] && cy->given[i]) p.x[p.n] = cx->value[i], p.y[p.n++] = cy->value[i];
	return p;
}

/* ---- metrics over steps ------------------------------------------------------------------------------------------------ */

static struct nr_points metric(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	return column_points(&r->metrics, "step", v->key, arena);
}

#define CURVE(column, name, of_what, axis, scale_by, is_noisy, see)                                                                        \
	{ .key = column, .title = name, .unit = of_what, .x_label = "step", .scale = axis, .factor = scale_by, .noisy = is_noisy,          \
	  .says = see, .of = metric }
/* Of the loop, and of records of earlier versions; those of tasks stand in their registry. */
static const struct nr_lines loss = CURVE("loss", "Training loss", "loss of a batch", NR_LOG_IF_WIDE, 1, true, NULL);
static const struct nr_lines known[] = {
	CURVE("loss_mae", "Reconstruction part of the training loss", "mean squared error", NR_LOG_IF_WIDE, 1, true, NULL),
	CURVE("loss_unif", "Uniformity part of the training loss", "loss", NR_LINEAR, 1, true, NULL),
	{ .key = "train_loss", .unless = "loss", .title = "Training loss between evaluations", .unit = "mean loss", .x_label = "step",
	  .scale = NR_LOG_IF_WIDE, .factor = 1, .of = metric },
	CURVE("grad_norm",
		"Gradient norm", "2-norm", NR_LOG_IF_WIDE, 1, true,
		"Peaks are steps that may have been clipped."),
	CURVE("lr", "Learning rate", "", NR_LINEAR, 1, false, "The schedule; arms with the same schedule coincide."),
	CURVE("images_per_second", "Speed", "samples/s", NR_LINEAR, 1, true, NULL),
	CURVE("images_per_s", "Speed", "samples/s", NR_LINEAR, 1, true, NULL),
	CURVE("samples_per_s", "Speed", "samples/s", NR_LINEAR, 1, true, NULL),
	{ .key = NULL },
};

static struct nr_lines lines_of(const char *column, const struct nr_task_metric *m)
{
	const bool percent = nr_metric_percent(m);
	const char *title = m->title ? m->title : m->name, *unit = m->unit ? m->unit : "";
	return (struct nr_lines)CURVE(column, title, unit, m->wide ? NR_LOG_IF_WIDE : NR_LINEAR, percent ? 100 : 1, false, m->says);
}

static const struct nr_lines *known_of(const char *column)
{
	const struct nr_lines *k = known;
	while (k->key && strcmp(k->key, column) != 0) k++;
	return k->key ? k : strcmp(column, loss.key) ? NULL : &loss;
}

static bool is_known(const char *column)
{
	if (!strcmp(column, "step") || !strcmp(column, "epoch") || !strcmp(column, "seconds")) return true;
	return known_of(column) || nr_task_metric_of(column, NULL);
}

/* Whether a run before it, or a column before it, has that name. */
static bool seen_before(const struct nr_arms *a, int run, int column, const char *name)
{
	for (int q = 0; q < run; q++)
		if (nr_column_find(&a->run[q].metrics, name)) return true;
	for (int q = 0; q < column; q++)
		if (!strcmp(a->run[run].metrics.column[q].name, name)) return true;
	return false;
}

static bool decides(const char *column)
{
	for (const struct nr_task *const *t = nr_tasks(); *t && !strncmp(column, "eval_", 5); t++)
		if (!strcmp(column + 5, (*t)->of_eval[(*t)->decides].name)) return true;
	return false;
}

static int rank_of(const char *column, const struct nr_task_metric *m)
{
	if (m && decides(column)) return nr_metric_percent(m) ? NR_RANK_SHARE : NR_RANK_DECIDES;
	if (!strncmp(column, "eval_", 5)) return NR_RANK_EVAL;
	if (!strcmp(column, loss.key)) return NR_RANK_LOSS;
	return m ? NR_RANK_TRAIN : NR_RANK_REST;
}

struct nr_curve_kind nr_curve_kind(const char *column)
{
	const struct nr_lines *k = known_of(column);
	const struct nr_task_metric *m = k ? NULL : nr_task_metric_of(column, NULL);
	const struct nr_lines one = k ? *k : m ? lines_of(column, m) : (struct nr_lines){ .factor = 1, .scale = NR_LOG_IF_WIDE };
	return (struct nr_curve_kind){ one.title, one.unit, one.factor, one.scale != NR_LINEAR, one.noisy, rank_of(column, m) };
}

/* A column that several tasks have is drawn once, as the task of the runs has it. */
static int task_curve(struct nr_str *s, const struct nr_arms *a, const char *when, const struct nr_task_metric *m, struct nr_arena *arena)
{
	const char *column = nr_arena_printf(arena, "%s_%s", when, m->name);
	if (!column || nr_task_metric_of(column, NULL) != m) return 0;
	const struct nr_lines v = lines_of(column, nr_task_metric_of(column, nr_config_find(&a->run[0].settings, "task")));
	return nr_figure(s, a, &v, arena);
}

/* What decides comes first. */
static int task_curves(struct nr_str *s, const struct nr_arms *a, bool eval, struct nr_arena *arena)
{
	int count = 0;
	for (const struct nr_task *const *t = nr_tasks(); *t; t++) {
		const struct nr_task_metric *first = eval ? &(*t)->of_eval[(*t)->decides] : NULL;
		if (first) count += task_curve(s, a, "eval", first, arena);
		for (const struct nr_task_metric *m = eval ? (*t)->of_eval : (*t)->of_step; m->name; m++)
			if (m != first) count += task_curve(s, a, eval ? "eval" : "train", m, arena);
	}
	return count;
}

int nr_curves(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	const char *sample = a->runs ? nr_runfolder_env(&a->run[0], "sample") : NULL;
	int count = a->runs ? task_curves(s, a, true, arena) : 0;
	count += nr_figure(s, a, &loss, arena);
	if (a->runs) count += task_curves(s, a, false, arena);
	for (const struct nr_lines *k = known; k->key; k++) {
		struct nr_lines v = *k;
		const char *unit = sample && !strcmp(k->key, "samples_per_s") ? nr_arena_printf(arena, "%ss/s", sample) : NULL;
		if (unit) v.unit = unit;
		count += nr_figure(s, a, &v, arena);
	}
	for (int r = 0; r < a->runs; r++)
		for (int c = 0; c < a->run[r].metrics.count; c++) {
			const char *name = a->run[r].metrics.column[c].name;
			if (is_known(name) || seen_before(a, r, c, name)) continue;
			const struct nr_lines other = CURVE(name, name, "", NR_LOG_IF_WIDE, 1, false, NULL);
			count += nr_figure(s, a, &other, arena);
		}
	return count;
}

/* ---- spectra ----------------------------------------------------------------------------------------------------------- */

static struct nr_points spectrum(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	return column_points(&r->spectrum, "index", v->key, arena);
}

int nr_spectra(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	static const struct nr_lines of[] = {
		{ .key = "cls", .title = "Spectrum of [CLS]" }, { .key = "mean", .title = "Spectrum of the mean token" } };
	int count = 0;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct nr_lines v = of[i];
		v.unit = "singular value", v.x_label = "index", v.scale = NR_LOG, v.factor = 1, v.x_whole = true;
		v.told = NR_IN_THE_MIDDLE, v.of = spectrum;
		v.says = "The highest uses most of its directions; one that falls at once has collapsed onto a few.";
		count += nr_figure(s, a, &v, arena);
	}
	return count;
}

/* ---- probes by depth ------------------------------------------------------------------------------------------------------------ */

/* "layers" of probe.json: a probe for what leaves each block. */
static struct nr_points probe_by_depth(const struct nr_lines *v, const struct nr_runfolder *r, struct nr_arena *arena)
{
	const json_t *layers = json_object_get(r->probe, "layers");
	struct nr_points p = nr_points_make((int64_t)json_array_size(layers), arena);
	for (size_t i = 0; p.x && p.y && i < json_array_size(layers); i++) {
		const json_t *top1 = json_object_get(json_object_get(json_array_get(layers, i), v->key), "top1");
		if (json_is_number(top1)) p.x[p.n] = (double)i, p.y[p.n++] = json_number_value(top1);
	}
	return p;
}

int nr_probes_by_depth(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	static const struct nr_lines of[] = {
		{ .key = "cls", .title = "Probe of [CLS] by depth" }, { .key = "mean", .title = "Probe of the mean token by depth" } };
	int count = 0;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct nr_lines v = of[i];
		v.unit = "top‑1, %", v.x_label = "after block", v.scale = NR_LINEAR, v.factor = 100, v.x_whole = true;
		v.of = probe_by_depth;
		v.says = "A curve that falls at the end: the last blocks serve the training's own task more than the classes.";
		count += nr_figure(s, a, &v, arena);
	}
	return count;
}

/* ---- legend ------------------------------------------------------------------------------------------------------------ */

void nr_legend(struct nr_str *s, const struct nr_arms *a)
{
	nr_str_add(s, "<ul class=\"legend\" aria-label=\"arms\">");
	for (int i = 0; i < a->count; i++) {
		nr_str_printf(s, "<li data-arm=\"%d\">", i);
		nr_svg_sample(s, i);
		if (strcmp(a->arm[i].label, a->arm[i].name)) nr_html_printf(s, " %s", a->arm[i].letter);
		nr_str_add(s, " ");
		nr_html_element(s, "span", "plan", a->arm[i].name);
		nr_str_add(s, "</li>");
	}
	nr_str_add(s, "</ul>\n");
}
