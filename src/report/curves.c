/* Curves and spectra: see curves.h. */
#include "report/curves.h"

#include <math.h>
#include <string.h>

#include "draw/html.h"
#include "draw/svg.h"

/* Records from which a noisy curve is smoothed; windows in its length; points of a smoothed curve. */
enum { NOISY = 60, WINDOWS = 30, SMOOTHED = 600 };
static const double FLOOR = 1e-8;                       /* of a spectrum: what is below is rounding */

struct known { const char *column, *title, *unit; enum nr_y_scale scale; bool noisy; double factor; };
static const struct known known[] = {
	{ "loss", "Training loss", "loss of a batch", NR_LOG_IF_WIDE, true, 1 },
	{ "eval_top1", "Held-out top-1", "%", NR_LINEAR, false, 100 },
	{ "eval_uniformity_cls", "Uniformity of [CLS]", "log mean Gaussian potential; lower is more even", NR_LINEAR, false, 1 },
	{ "eval_uniformity_tokens", "Uniformity of the tokens", "log mean Gaussian potential; lower is more even", NR_LINEAR, false, 1 },
	{ "eval_rank_cls", "Effective rank of [CLS]", "directions", NR_LINEAR, false, 1 },
	{ "eval_rank_tokens", "Effective rank of the tokens", "directions", NR_LINEAR, false, 1 },
	{ "eval_loss", "Held-out loss", "loss", NR_LOG_IF_WIDE, false, 1 },
	{ "loss_mae", "Reconstruction part of the training loss", "mean squared error", NR_LOG_IF_WIDE, true, 1 },
	{ "loss_unif", "Uniformity part of the training loss", "loss", NR_LINEAR, true, 1 },
	{ "train_mae", "Reconstruction part of the training loss", "mean between evaluations", NR_LOG_IF_WIDE, false, 1 },
	{ "train_unif", "Uniformity part of the training loss", "mean between evaluations", NR_LINEAR, false, 1 },
	{ "train_loss", "Training loss between evaluations", "mean loss", NR_LOG_IF_WIDE, false, 1 },
	{ "train_top1", "Training top-1", "%", NR_LINEAR, false, 100 },
	{ "eval_top5", "Held-out top-5", "%", NR_LINEAR, false, 100 },
	{ "eval_ece", "Calibration error", "%", NR_LINEAR, false, 100 },
	{ "grad_norm", "Length of the gradient", "2-norm", NR_LOG_IF_WIDE, true, 1 },
	{ "lr", "Learning rate", "", NR_LINEAR, false, 1 },
	{ "images_per_second", "Speed", "pictures/s", NR_LINEAR, true, 1 },
	{ "images_per_s", "Speed", "pictures/s", NR_LINEAR, true, 1 },
	{ NULL, NULL, NULL, NR_LINEAR, false, 1 },
};

struct points { double *x, *y; int64_t n; };
/* What a chart is filled with; series has room for two of each run. */
struct figure {
	const struct nr_arms *arms;
	struct nr_arena *arena;
	struct nr_series *series;
	int count;
	bool smoothed, failed;
};

static struct points make_points(struct figure *f, int64_t room)
{
	const size_t bytes = (size_t)(room + 1) * sizeof(double);
	const struct points p = { .x = nr_arena_alloc(f->arena, bytes), .y = nr_arena_alloc(f->arena, bytes) };
	if (!p.x || !p.y) f->failed = true;
	return p;
}

static void add_series(struct figure *f, int arm, const char *label, struct points p, enum nr_weight w)
{
	if (!p.n) return;
	f->series[f->count++] = (struct nr_series){ .label = label, .x = p.x, .y = p.y, .n = p.n, .arm = arm, .weight = w };
}

/* ---- lines of an arm --------------------------------------------------------------------------------------------------- */

/* The points of one column; x by another. */
static struct points column_points(struct figure *f, const struct nr_columns *t, const char *x, const char *y, double factor)
{
	const struct nr_column *cx = nr_column_find(t, x), *cy = nr_column_find(t, y);
	struct points p = make_points(f, cx && cy ? t->rows : 0);
	for (int64_t i = 0; !f->failed && cx && cy && i < t->rows; i++)
		if (cx->given[i] && cy->given[i]) p.x[p.n] = cx->value[i], p.y[p.n++] = factor * cy->value[i];
	return p;
}

/* The mean where all lines have a point of the same x; both rise in x. */
static struct points mean_points(struct figure *f, const struct points *line, int n)
{
	struct points p = make_points(f, line[0].n);
	int64_t *at = nr_arena_alloc(f->arena, (size_t)n * sizeof *at);
	if (!at) f->failed = true;
	for (int64_t i = 0; !f->failed && i < line[0].n; i++) {
		double sum = line[0].y[i];
		bool all = true;
		for (int k = 1; k < n && all; k++) {
			while (at[k] < line[k].n && line[k].x[at[k]] < line[0].x[i]) at[k]++;
			all = at[k] < line[k].n && line[k].x[at[k]] == line[0].x[i];
			if (all) sum += line[k].y[at[k]];
		}
		if (all) p.x[p.n] = line[0].x[i], p.y[p.n++] = sum / n;
	}
	return p;
}

/* The mean of the values about i that are finite; NAN if none is. */
static double mean_about(struct points line, int64_t i, int64_t half)
{
	double sum = 0;
	int64_t count = 0;
	for (int64_t k = i > half ? i - half : 0; k <= i + half && k < line.n; k++)
		if (isfinite(line.y[k])) sum += line.y[k], count++;
	return count ? sum / (double)count : (double)NAN;
}

/* A moving mean, centred where both sides are there, at no more places than a chart shows, the last included. */
static struct points smooth_points(struct figure *f, struct points line)
{
	struct points p = make_points(f, line.n);
	const int64_t half = line.n / WINDOWS / 2 + 1, every = line.n / SMOOTHED + 1;
	for (int64_t i = (line.n - 1) % every; !f->failed && i < line.n; i += every) {
		p.x[p.n] = line.x[i];
		p.y[p.n++] = mean_about(line, i, half);
	}
	return p;
}

/* Thin lines of the runs and one in bold: the only run, the mean of several, or either smoothed. */
static void add_arm(struct figure *f, int arm, struct points *line, int n, bool noisy)
{
	const char *label = f->arms->arm[arm].label;
	if (!n || f->failed) return;
	struct points bold = n > 1 ? mean_points(f, line, n) : line[0];
	const bool smooth = noisy && bold.n > NOISY;
	if (smooth) bold = smooth_points(f, bold);
	f->smoothed |= smooth;
	for (int k = 0; k < n && (n > 1 || smooth) && !f->failed; k++) add_series(f, arm, NULL, line[k], NR_THIN);
	if (!f->failed) add_series(f, arm, label, bold, NR_BOLD);
}

static bool open_figure(struct figure *f, const struct nr_arms *a, struct nr_arena *arena)
{
	*f = (struct figure){ .arms = a, .arena = arena };
	f->series = nr_arena_alloc(arena, (size_t)(2 * a->runs + 1) * sizeof *f->series);
	return f->series != NULL;
}

/* ---- figures ----------------------------------------------------------------------------------------------------------- */

static void add_figure(struct nr_str *s, const struct figure *f, const struct nr_chart *chart)
{
	nr_html_figure_open(s, "chart", chart->name, f->smoothed ? "smoothed" : "");
	nr_svg_chart(s, chart);
	nr_html_figure_close(s);
}

/* 1 if any run has the column. */
static int add_curve(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena, const struct known *k)
{
	const struct nr_mark mark = nr_arena_mark(arena);
	struct figure f;
	struct points *line = nr_arena_alloc(arena, (size_t)a->runs * sizeof *line);
	if (!open_figure(&f, a, arena) || !line) s->failed = true;
	for (int m = 0; m < a->count && !s->failed; m++) {
		int n = 0;
		for (int i = 0; i < a->arm[m].distinct; i++) {
			line[n] = column_points(&f, &a->run[a->arm[m].run[i]].metrics, "step", k->column, k->factor);
			n += line[n].n > 0;
		}
		add_arm(&f, m, line, n, k->noisy);
	}
	if (f.failed) s->failed = true;
	const struct nr_chart chart = { .name = k->title, .x_label = "step", .y_label = k->unit, .scale = k->scale, .series = f.series,
		.count = f.count };
	if (!s->failed && f.count) add_figure(s, &f, &chart);
	const int drawn = f.count > 0;
	nr_arena_reset(arena, mark);
	return drawn;
}

static bool is_known(const char *column)
{
	if (!strcmp(column, "step") || !strcmp(column, "epoch") || !strcmp(column, "seconds")) return true;
	for (const struct known *k = known; k->column; k++)
		if (!strcmp(k->column, column)) return true;
	return false;
}

struct nr_curve_kind nr_curve_kind(const char *column)
{
	for (const struct known *k = known; k->column; k++)
		if (!strcmp(k->column, column)) return (struct nr_curve_kind){ k->title, k->unit, k->factor, k->scale != NR_LINEAR };
	return (struct nr_curve_kind){ .factor = 1, .wide = true };
}

int nr_curves(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	int count = 0;
	for (const struct known *k = known; k->column; k++) count += add_curve(s, a, arena, k);
	for (int r = 0; r < a->runs; r++) {
		const struct nr_columns *t = &a->run[r].metrics;
		for (int c = 0; c < t->count; c++) {
			const char *name = t->column[c].name;
			bool seen = is_known(name);
			for (int q = 0; q < r && !seen; q++) seen = nr_column_find(&a->run[q].metrics, name) != NULL;
			for (int q = 0; q < c && !seen; q++) seen = !strcmp(t->column[q].name, name);
			const struct known k = { name, name, "", NR_LOG_IF_WIDE, false, 1 };
			if (!seen) count += add_curve(s, a, arena, &k);
		}
	}
	return count;
}

/* ---- spectra ----------------------------------------------------------------------------------------------------------- */

static void divide_by_largest(struct points p)
{
	double most = 0;
	for (int64_t i = 0; i < p.n; i++)
		if (isfinite(p.y[i]) && p.y[i] > most) most = p.y[i];
	for (int64_t i = 0; i < p.n && most > 0; i++) p.y[i] /= most;
}

static int add_spectrum(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena, const char *column, const char *title)
{
	struct figure f;
	struct points *line = nr_arena_alloc(arena, (size_t)a->runs * sizeof *line);
	if (!open_figure(&f, a, arena) || !line) s->failed = true;
	for (int m = 0; m < a->count && !s->failed; m++) {
		int n = 0;
		for (int i = 0; i < a->arm[m].distinct; i++) {
			line[n] = column_points(&f, &a->run[a->arm[m].run[i]].spectrum, "index", column, 1);
			divide_by_largest(line[n]);
			n += line[n].n > 0;
		}
		add_arm(&f, m, line, n, false);
	}
	if (f.failed) s->failed = true;
	const struct nr_chart chart = { .name = title, .x_label = "index", .y_label = "singular value / largest", .scale = NR_LOG,
		.floor = FLOOR, .series = f.series, .count = f.count };
	if (!s->failed && f.count) add_figure(s, &f, &chart);
	return f.count > 0;
}

int nr_spectra(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	return add_spectrum(s, a, arena, "cls", "Spectrum of [CLS]") + add_spectrum(s, a, arena, "mean", "Spectrum of the mean token");
}

/* ---- legend ------------------------------------------------------------------------------------------------------------ */

void nr_legend(struct nr_str *s, const struct nr_arms *a)
{
	nr_str_add(s, "<ul class=\"legend\" aria-label=\"arms\">");
	for (int i = 0; i < a->count; i++) {
		nr_str_printf(s, "<li data-arm=\"%d\">", i);
		nr_svg_sample(s, i);
		nr_html_printf(s, " %s ", a->arm[i].letter);
		nr_html_element(s, "span", "plan", a->arm[i].name);
		nr_str_add(s, "</li>");
	}
	nr_str_add(s, "</ul>\n");
}
