/* Measures of predictions: accuracy by rank, confusion matrix and IoU, corruption error. */
#ifndef NR_METRICS_H
#define NR_METRICS_H

#include "base/real.h"

/* rank[r]: how many classes come before the label; ties go to the lower class. Top-k accuracy = mean(rank <
 * k). A label outside [0,C) gets rank C; NaN logits come first, so that a broken model is never right. */
void nr_metric_rank(int64_t rows, int64_t C, const real *logits, const int32_t *label, int32_t *rank);
double nr_metric_topk(int64_t rows, const int32_t *rank, int32_t k);

/* confusion (classes,classes): row = truth, column = prediction; added to. Pixels whose truth is `ignore` do
 * not count. */
void nr_metric_confusion(int64_t n, const int32_t *truth, const int32_t *pred, int32_t classes,
	int32_t ignore, int64_t *confusion);
struct nr_iou { double miou, mean_acc, pixel_acc; };
/* iou (classes): -1 for a class that neither occurs nor is predicted; they are left out of the mean. */
struct nr_iou nr_metric_iou(int32_t classes, const int64_t *confusion, double *iou);

/* Of one class: the share of its samples that are found (its accuracy), the share of what is called so that is, and their harmonic mean,
 * 0 if neither occurs. */
struct nr_class_score { int64_t samples; double recall, precision, f1; };
struct nr_class_score nr_metric_class(int64_t classes, const int64_t *confusion, int64_t k);
/* The mean F1 over the classes that occur or are predicted. */
double nr_metric_macro_f1(int64_t classes, const int64_t *confusion);

/* Hendrycks & Dietterich 2019. error (corruptions,severities), fractions. All results in percent; ce,
 * relative (corruptions) may be NULL. */
struct nr_mce { double mce, relative_mce, unnormalised; };
struct nr_mce nr_metric_mce(int64_t corruptions, int64_t severities, const real *error,
	const double *baseline, double clean, double baseline_clean, double *ce, double *relative);

#endif
