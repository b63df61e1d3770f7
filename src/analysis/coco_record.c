/* See coco_record.h. */
#include "analysis/coco_record.h"

#include <math.h>

#include "base/json.h"
#include "base/str.h"

/* Enough digits for a curve. */
static json_t *rounded(double x) { return x < 0 ? json_null() : json_real(round(x * 1e4) / 1e4); }

static json_t *known(double x) { return x < 0 ? json_null() : json_real(x); }

static json_t *class_curve(const struct nr_coco_result *r, int32_t class)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < NR_COCO_RECALLS; i++) json_array_append_new(list, rounded(r->precision[i * r->classes + class]));
	return list;
}

/* Of all classes that have objects, at one threshold. */
static json_t *mean_curve(const struct nr_coco_result *r, int64_t threshold)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < NR_COCO_RECALLS; i++) {
		const double *p = r->precision + (threshold * NR_COCO_RECALLS + i) * r->classes;
		double sum = 0;
		int64_t n = 0;
		for (int32_t k = 0; k < r->classes; k++)
			if (p[k] >= 0) sum += p[k], n++;
		json_array_append_new(list, rounded(n ? sum / (double)n : -1));
	}
	return list;
}

json_t *nr_coco_json(const struct nr_coco_result *r, char *const *names)
{
	json_t *j = json_object(), *classes = json_array(), *curves = json_array();
	for (int i = 0; i < NR_COCO_STATS; i++) json_object_set_new(j, nr_coco_stat_names[i], known(r->stat[i]));
	for (int32_t k = 0; k < r->classes; k++) {
		const struct nr_coco_class *c = &r->class[k];
		json_t *one = json_pack("{s:s?, s:I, s:I, s:o, s:o, s:o, s:o}", "name", names ? names[k] : NULL, "objects",
			(json_int_t)c->truths,
			"detections", (json_int_t)c->found, "AP", known(c->ap), "AP50", known(c->ap50), "AP75", known(c->ap75), "AR100",
			known(c->ar100));
		if (c->ap >= 0) json_object_set_new(one, "precision", class_curve(r, k));
		json_array_append_new(classes, one);
	}
	for (int t = 0; t < NR_COCO_IOUS; t++) json_array_append_new(curves, mean_curve(r, t));
	json_object_set_new(j, "classes", classes);
	json_object_set_new(j, "precision", curves);
	return j;
}

int nr_coco_record(struct nr_str *text, const struct nr_coco_result *boxes, const struct nr_coco_result *masks, char *const *names,
	const char *split, int64_t pictures, struct nr_error *err)
{
	json_t *j = json_pack("{s:s, s:I, s:o}", "split", split, "pictures", (json_int_t)pictures, "boxes", nr_coco_json(boxes, names));
	if (masks) json_object_set_new(j, "masks", nr_coco_json(masks, names));
	return nr_json_add(text, j, err);
}
