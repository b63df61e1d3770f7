/* Curves and spectra: see curves.h. */
#include "report/curves.h"

#include <math.h>
#include <string.h>

#include "draw/html.h"
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
#define EVEN "log mean Gaussian potential; lower is more even"
static const struct nr_lines known[] = {
	CURVE("loss", "Training loss", "loss of a batch", NR_LOG_IF_WIDE, 1, true, NULL),
	CURVE("eval_top1", "Held-out top-1", "%", NR_LINEAR, 100, false, NULL),
	CURVE("eval_mae", "Held-out mean absolute error", "in units of the target", NR_LOG_IF_WIDE, 1, false, NULL),
	CURVE("eval_auc", "Held-out area under the ROC curve", "%", NR_LINEAR, 100, false, NULL),
	CURVE("eval_test_mae", "Mean absolute error on the test split", "in units of the target", NR_LOG_IF_WIDE, 1, false, NULL),
	CURVE("eval_test_auc", "Area under the ROC curve on the test split", "%", NR_LINEAR, 100, false, NULL),
	CURVE("eval_uniformity_cls", "Uniformity of [CLS]", EVEN, NR_LINEAR, 1, false, "The lowest spreads [CLS] most evenly."),
	CURVE("eval_uniformity_tokens", "Uniformity of the tokens", EVEN, NR_LINEAR, 1, false,
		"The lowest spreads patches most evenly."),
	CURVE("eval_rank_cls", "Effective rank of [CLS]", "directions", NR_LINEAR, 1, false, "The highest uses most directions."),
	CURVE("eval_rank_tokens", "Effective rank of the tokens", "directions", NR_LINEAR, 1, false,
		"The highest uses most directions."),
	CURVE("eval_loss", "Held-out loss", "loss", NR_LOG_IF_WIDE, 1, false, NULL),
	CURVE("loss_mae", "Reconstruction part of the training loss", "mean squared error", NR_LOG_IF_WIDE, 1, true, NULL),
	CURVE("loss_unif", "Uniformity part of the training loss", "loss", NR_LINEAR, 1, true, NULL),
	CURVE("train_mae", "Reconstruction part of the training loss", "mean between evaluations", NR_LOG_IF_WIDE, 1, false, NULL),
	CURVE("train_unif", "Uniformity part of the training loss", "mean between evaluations", NR_LINEAR, 1, false, NULL),
	{ .key = "train_loss", .unless = "loss", .title = "Training loss between evaluations", .unit = "mean loss", .x_label = "step",
	  .scale = NR_LOG_IF_WIDE, .factor = 1, .of = metric },
	CURVE("train_top1", "Training top-1", "%", NR_LINEAR, 100, false, NULL),
	CURVE("eval_top5", "Held-out top-5", "%", NR_LINEAR, 100, false, NULL),
	CURVE("eval_ece", "Calibration error", "%", NR_LINEAR, 100, false, "Low is well calibrated."),
	CURVE("grad_norm", "Length of the gradient", "2-norm", NR_LOG_IF_WIDE, 1, true, "Peaks are steps that may have been cut."),
	CURVE("lr", "Learning rate", "", NR_LINEAR, 1, false, "The schedule, the same for arms that lie on each other."),
	CURVE("images_per_second", "Speed", "samples/s", NR_LINEAR, 1, true, NULL),
	CURVE("images_per_s", "Speed", "samples/s", NR_LINEAR, 1, true, NULL),
	{ .key = NULL },
};

static bool is_known(const char *column)
{
	if (!strcmp(column, "step") || !strcmp(column, "epoch") || !strcmp(column, "seconds")) return true;
	for (const struct nr_lines *k = known; k->key; k++)
		if (!strcmp(k->key, column)) return true;
	return false;
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

struct nr_curve_kind nr_curve_kind(const char *column)
{
	for (const struct nr_lines *k = known; k->key; k++)
		if (!strcmp(k->key, column)) return (struct nr_curve_kind){ k->title, k->unit, k->factor, k->scale != NR_LINEAR };
	return (struct nr_curve_kind){ .factor = 1, .wide = true };
}

int nr_curves(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	int count = 0;
	for (const struct nr_lines *k = known; k->key; k++) count += nr_figure(s, a, k, arena);
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
	const struct nr_points p = column_points(&r->spectrum, "index", v->key, arena);
	double most = 0;
	for (int64_t i = 0; i < p.n; i++)
		if (isfinite(p.y[i]) && p.y[i] > most) most = p.y[i];
	for (int64_t i = 0; i < p.n && most > 0; i++) p.y[i] /= most;
	return p;
}

int nr_spectra(struct nr_str *s, const struct nr_arms *a, struct nr_arena *arena)
{
	static const struct nr_lines of[] = {
		{ .key = "cls", .title = "Spectrum of [CLS]" }, { .key = "mean", .title = "Spectrum of the mean token" } };
	int count = 0;
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		struct nr_lines v = of[i];
		v.unit = "singular value / largest", v.x_label = "index", v.scale = NR_LOG, v.factor = 1, v.floor = 1e-8, v.x_whole = true;
		v.told = NR_IN_THE_MIDDLE, v.of = spectrum;
		v.says = "The highest uses most of its directions; one that falls at once has collapsed onto a few.";
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
