/* What is measured of a run, and its estimate for an arm: see arms.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report/arms.h"
#include "draw/scale.h"

/* ---- values of a run --------------------------------------------------------------------------------------------------- */

static bool pretrains(const struct nr_runfolder *r)
{
	const char *kind = nr_runfolder_env(r, "kind");
	return (kind && !strcmp(kind, "pretrain")) || nr_column_find(&r->metrics, "loss_mae");
}

static double probe_cls(const struct nr_runfolder *r) { return nr_runfolder_probe(r, "cls", "top1"); }
static double probe_cls_samples(const struct nr_runfolder *r) { return nr_runfolder_probe(r, "cls", "samples"); }
static double probe_mean(const struct nr_runfolder *r) { return nr_runfolder_probe(r, "mean", "top1"); }
static double probe_mean_samples(const struct nr_runfolder *r) { return nr_runfolder_probe(r, "mean", "samples"); }
static double eval_top1(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_top1"); }

static double eval_miou(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_miou"); }
static double eval_pixel_acc(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_pixel_acc"); }

/* The accuracy of masked words has the same name. */
static double of_texts(const struct nr_runfolder *r, const char *column)
{
	const char *task = nr_config_find(&r->settings, "task");
	return task && !strcmp(task, "text") ? nr_runfolder_last(r, column) : (double)NAN;
}
static double text_test(const struct nr_runfolder *r) { return of_texts(r, "eval_test_accuracy"); }
static double text_accuracy(const struct nr_runfolder *r) { return of_texts(r, "eval_accuracy"); }
static double text_spearman(const struct nr_runfolder *r) { return of_texts(r, "eval_spearman"); }

static double test_error(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_test_mae"); }
static double test_area(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_test_auc"); }

static double eval_linear(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_linear"); }
static double eval_knn(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_knn"); }

static double box_ap(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_ap"); }
static double mask_ap(const struct nr_runfolder *r) { return nr_runfolder_last(r, "eval_mask_ap"); }

static double eval_samples(const struct nr_runfolder *r)
{
	const json_t *n = json_object_get(r->env, "eval_samples");
	return json_is_number(n) ? json_number_value(n) : (double)NAN;
}

/* The probe sees the whole test split, the record during training perhaps a part of it. */
static double uniformity_cls(const struct nr_runfolder *r)
{
	const double v = nr_runfolder_probe(r, "cls", "uniformity");
	return isnan(v) ? nr_runfolder_last(r, "eval_uniformity_cls") : v;
}

static double rank_cls(const struct nr_runfolder *r)
{
	const double v = nr_runfolder_probe(r, "cls", "effective_rank");
	return isnan(v) ? nr_runfolder_last(r, "eval_rank_cls") : v;
}

static double reconstruction(const struct nr_runfolder *r)
{
	const double v = nr_runfolder_last(r, "eval_loss_mae");
	return !isnan(v) ? v : pretrains(r) ? nr_runfolder_last(r, "eval_loss") : (double)NAN;
}

static double eval_loss(const struct nr_runfolder *r) { return pretrains(r) ? (double)NAN : nr_runfolder_last(r, "eval_loss"); }
static double seconds(const struct nr_runfolder *r) { return r->seconds; }

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The median over all records: a pause or a slow start does not count. */
static double speed(const struct nr_runfolder *r)
{
	static const char *const names[] = { "samples_per_s", "images_per_s", "images_per_second" };    /* the latter of earlier versions */
	const struct nr_column *c = NULL;
	for (size_t i = 0; !c && i < sizeof names / sizeof *names; i++) c = nr_column_find(&r->metrics, names[i]);
	double *value = c ? malloc((size_t)(r->metrics.rows + 1) * sizeof *value) : NULL, median = NAN;
	int64_t n = 0;
	if (c && !value) nr_memory_note_failure();
	for (int64_t i = 0; value && i < r->metrics.rows; i++)
		if (c->given[i] && isfinite(c->value[i])) value[n++] = c->value[i];
	if (n) {
		qsort(value, (size_t)n, sizeof *value, by_value);
		median = (value[(n - 1) / 2] + value[n / 2]) / 2;
	}
	free(value);
	return median;
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

enum { UNIFORMITY = 14, RANK };
const struct nr_measure nr_measures[NR_MEASURES + 1] = {
	{ "probe top‑1, [CLS]", "%", "top‑1 of a linear probe on [CLS]", 1, NR_PERCENT, 2, false, probe_cls, probe_cls_samples },
	{ "probe top‑1, mean token", "%", "top‑1 of a linear probe on the mean token", 1, NR_PERCENT, 2, false, probe_mean,
	  probe_mean_samples },
	{ "held-out top‑1", "%", "held-out top‑1", 1, NR_PERCENT, 2, false, eval_top1, eval_samples },
	{ "mean IoU", "%", "held-out mean IoU", 1, NR_PERCENT, 2, false, eval_miou, NULL },
	{ "pixel accuracy", "%", "held-out pixel accuracy", 1, NR_PERCENT, 2, false, eval_pixel_acc, NULL },
	{ "test accuracy", "%", "accuracy on the test split", 1, NR_PERCENT, 2, false, text_test, NULL },
	{ "held-out accuracy", "%", "held-out accuracy", 1, NR_PERCENT, 2, false, text_accuracy, eval_samples },
	{ "Spearman", "held-out", "held-out Spearman correlation", 1, NR_PLAIN, 4, false, text_spearman, NULL },
	{ "linear head, top‑1", "%", "top‑1 of a linear head on the last blocks", 1, NR_PERCENT, 2, false, eval_linear, eval_samples },
	{ "k‑NN, top‑1", "%", "top‑1 of nearest neighbours", 1, NR_PERCENT, 2, false, eval_knn, eval_samples },
	{ "error, test (last)", "mean absolute", "mean absolute error of the last weights on the test split", -1, NR_PLAIN, 4, false,
	  test_error, NULL },
	{ "ROC AUC, test (last)", "%", "area under the ROC curve of the last weights on the test split", 1, NR_PERCENT, 2, false,
	  test_area, NULL },
	{ "AP, boxes", "%", "average precision of boxes", 1, NR_PERCENT, 2, false, box_ap, NULL },
	{ "AP, masks", "%", "average precision of masks", 1, NR_PERCENT, 2, false, mask_ap, NULL },
	[UNIFORMITY] = { "uniformity, [CLS]", "low is even", "uniformity of [CLS]", -1, NR_PLAIN, 3, false, uniformity_cls, NULL },
	[RANK] = { "effective rank, [CLS]", "directions", "effective rank of [CLS]", 1, NR_PLAIN, 1, false, rank_cls, NULL },
	{ "reconstruc\u00adtion loss", "held-out", "held-out reconstruction loss", -1, NR_PLAIN, 4, false, reconstruction, NULL },
	{ "held-out loss", "", "held-out loss", -1, NR_PLAIN, 4, false, eval_loss, NULL },
	{ "wall time", "", "wall time", -1, NR_DURATION, 0, true, seconds, NULL },
	{ "speed", "samples/s", "speed", 1, NR_PLAIN, 0, true, speed, NULL },
	{ NULL, NULL, NULL, 0, NR_PLAIN, 0, false, NULL, NULL },
};
const struct nr_measure *const nr_uniformity_measure = &nr_measures[UNIFORMITY], *const nr_rank_measure = &nr_measures[RANK];

static struct nr_estimate estimate(const struct nr_arms *a, int arm, const struct nr_measure *m)
{
	const struct nr_arm *v = &a->arm[arm];
	double *value = calloc((size_t)v->distinct + 1, sizeof *value);
	int64_t n = 0, last = -1;
	if (!value) nr_memory_note_failure();                   /* the page that has the estimate is not made then */
	for (int i = 0; value && i < v->distinct; i++) {
		const double x = m->of(&a->run[v->run[i]]);
		if (isfinite(x)) value[n++] = x, last = v->run[i];
	}
	struct nr_estimate e = nr_estimate_runs(value, n);
	free(value);
	if (n != 1 || !m->samples) return e;
	const double samples = m->samples(&a->run[last]);
	return samples >= 1 && samples < 1e15 ? nr_estimate_share(e.mean, (int64_t)samples) : e;
}

void nr_arms_measure(struct nr_arms *a)
{
	for (int i = 0; i < a->count; i++)
		for (int k = 0; k < NR_MEASURES; k++) a->arm[i].estimate[k] = estimate(a, i, &nr_measures[k]);
}

struct nr_estimate nr_arm_estimate(const struct nr_arms *a, int arm, const struct nr_measure *m)
{
	return a->arm[arm].estimate[m - nr_measures];
}

const char *nr_measure_text(const struct nr_measure *m, double v, bool with_unit, char *buf, size_t size)
{
	double step = 1;
	if (isnan(v)) return snprintf(buf, size, "–"), buf;
	if (m->kind == NR_DURATION) return nr_duration_text(v, buf, size);
	if (m->kind == NR_PERCENT) v *= 100;
	for (int i = 0; i < m->decimals; i++) step /= 10;
	if (m->kind == NR_PLAIN && v != 0 && fabs(v) < 10 * step) step = pow(10, floor(log10(fabs(v))) - 2);  /* three digits at least */
	nr_tick_text(v, step, buf, size);
	const size_t n = strlen(buf);
	if (with_unit && m->kind == NR_PERCENT && n < size) snprintf(buf + n, size - n, "\u00a0%%");
	return buf;
}

int nr_best_arm(const struct nr_arms *a, const struct nr_measure *m, int except)
{
	int best = -1;
	double value = 0;
	for (int i = 0; i < a->count && m->better; i++) {
		const double v = i == except ? (double)NAN : nr_arm_estimate(a, i, m).mean;
		if (isfinite(v) && (best < 0 || (v - value) * m->better > 0)) best = i, value = v;
	}
	return best;
}
