/* See classes.h. */
#include "infer/classes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "infer/metrics.h"

enum { MOST_IN_MATRIX = 200 };                  /* 40000 numbers */

const char *nr_class_counts_name(const struct nr_class_counts *t, int64_t k, char *buf, size_t size)
{
	if (t->name) return t->name[k];
	snprintf(buf, size, "%lld", (long long)k);
	return buf;
}

static void add_pixels(json_t *o, const struct nr_class_counts *t, int64_t k, double iou)
{
	char text[8];
	json_object_set_new(o, "iou", iou >= 0 ? json_real(iou) : json_null());
	if (!t->colour) return;
	snprintf(text, sizeof text, "#%02x%02x%02x", t->colour[k][0], t->colour[k][1], t->colour[k][2]);
	json_object_set_new(o, "colour", json_string(text));
}

json_t *nr_class_counts_scores(const struct nr_class_counts *t)
{
	double *iou = malloc((size_t)(t->classes + 1) * sizeof *iou);
	json_t *list = iou ? json_array() : NULL;
	char buf[32];
	if (iou && t->pixels) nr_metric_iou((int32_t)t->classes, t->confusion, iou);
	for (int64_t k = 0; list && k < t->classes; k++) {
		const struct nr_class_score c = nr_metric_class(t->classes, t->confusion, k);
		json_t *o = json_pack("{s:s, s:I, s:f, s:f, s:f}", "name", nr_class_counts_name(t, k, buf, sizeof buf), "samples",
			(json_int_t)c.samples, "accuracy", c.recall, "precision", c.precision, "f1", c.f1);
		if (o && t->pixels) add_pixels(o, t, k, iou[k]);
		json_array_append_new(list, o);
	}
	free(iou);
	return list;
}

double nr_class_counts_miou(const struct nr_class_counts *t)
{
	double *iou = malloc((size_t)(t->classes + 1) * sizeof *iou);
	const double miou = iou ? nr_metric_iou((int32_t)t->classes, t->confusion, iou).miou : 0;
	free(iou);
	return miou;
}

json_t *nr_class_counts_matrix(const struct nr_class_counts *t)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < t->classes * t->classes; i++) json_array_append_new(list, json_integer(t->confusion[i]));
	return list;
}

int nr_class_counts_record(struct nr_str *s, const struct nr_class_counts *t, const char *split, struct nr_error *err)
{
	int64_t samples = 0, right = 0;
	for (int64_t i = 0; i < t->classes * t->classes; i++) samples += t->confusion[i];
	for (int64_t k = 0; k < t->classes; k++) right += t->confusion[k * (t->classes + 1)];
	json_t *o = json_pack("{s:s, s:I, s:f, s:f, s:o}", "split", split, "samples", (json_int_t)samples, "accuracy",
		samples ? (double)right / (double)samples : 0, "macro_f1", nr_metric_macro_f1(t->classes, t->confusion), "classes",
		nr_class_counts_scores(t));
	if (o && t->pixels) json_object_set_new(o, "miou", json_real(nr_class_counts_miou(t)));
	if (o && t->classes <= MOST_IN_MATRIX) json_object_set_new(o, "confusion", nr_class_counts_matrix(t));
	char *text = o ? nr_json_dump(o, JSON_COMPACT | JSON_REAL_PRECISION(7)) : NULL;
	if (text) nr_str_printf(s, "%s\n", text);
	free(text);
	json_decref(o);
	return text ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot record the classes", NULL, "out of memory");
}
