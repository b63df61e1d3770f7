/* Measures of predictions. See metrics.h. */
#include "infer/metrics.h"

#include <stdbool.h>

void nr_metric_rank(int64_t rows, int64_t C, const real *logits, const int32_t *label, int32_t *rank)
{
#pragma omp parallel for schedule(static) if (rows * C > 100000)
	for (int64_t r = 0; r < rows; r++) {
		const real *x = logits + r * C;
		const int32_t k = label[r];
		int32_t before = 0;
		if (k < 0 || k >= C || isnan(x[k])) {
			rank[r] = (int32_t)C;
			continue;
		}
		for (int64_t j = 0; j < C; j++)
			before += isnan(x[j]) || x[j] > x[k] || (x[j] == x[k] && j < k);
		rank[r] = before;
	}
}

double nr_metric_topk(int64_t rows, const int32_t *rank, int32_t k)
{
	int64_t hits = 0;
	for (int64_t r = 0; r < rows; r++) hits += rank[r] < k;
	return rows ? (double)hits / (double)rows : 0;
}

void nr_metric_confusion(int64_t n, const int32_t *truth, const int32_t *pred, int32_t classes,
	int32_t ignore, int64_t *confusion)
{
	for (int64_t i = 0; i < n; i++) {
		if (truth[i] == ignore || truth[i] < 0 || truth[i] >= classes || pred[i] < 0 ||
			pred[i] >= classes)
			continue;
		confusion[(int64_t)truth[i] * classes + pred[i]]++;
	}
}

struct nr_iou nr_metric_iou(int32_t classes, const int64_t *confusion, double *iou)
{
	double sum_iou = 0, sum_acc = 0, right = 0, all = 0;
	int32_t seen = 0, present = 0;
	for (int32_t k = 0; k < classes; k++) {
		double row = 0, column = 0;
		const double hit = (double)confusion[(int64_t)k * classes + k];
		for (int32_t j = 0; j < classes; j++) {
			row += (double)confusion[(int64_t)k * classes + j];
			column += (double)confusion[(int64_t)j * classes + k];
		}
		const double either = row + column - hit;
		iou[k] = either > 0 ? hit / either : -1;
		if (either > 0) sum_iou += iou[k], seen++;
		if (row > 0) sum_acc += hit / row, present++;
		right += hit;
		all += row;
	}
	return (struct nr_iou){ seen ? sum_iou / seen : 0, present ? sum_acc / present : 0,
		all > 0 ? right / all : 0 };
}

struct nr_mce nr_metric_mce(int64_t corruptions, int64_t severities, const real *error,
	const double *baseline, double clean, double baseline_clean, double *ce, double *relative)
{
	struct nr_mce m = { 0 };
	for (int64_t k = 0; k < corruptions; k++) {
		double mean = 0;
		for (int64_t s = 0; s < severities; s++) mean += error[k * severities + s];
		mean /= (double)severities;
		const double a = 100 * mean / baseline[k],
			     b = 100 * (mean - clean) / (baseline[k] - baseline_clean);
		if (ce) ce[k] = a;
		if (relative) relative[k] = b;
		m.mce += a / (double)corruptions;
		m.relative_mce += b / (double)corruptions;
		m.unnormalised += 100 * mean / (double)corruptions;
	}
	return m;
}

struct nr_class_score nr_metric_class(int64_t classes, const int64_t *confusion, int64_t k)
{
	int64_t truth = 0, called = 0;
	for (int64_t i = 0; i < classes; i++) truth += confusion[k * classes + i], called += confusion[i * classes + k];
	const double right = (double)confusion[k * classes + k];
	return (struct nr_class_score){ .samples = truth, .recall = truth ? right / (double)truth : 0,
		.precision = called ? right / (double)called : 0, .f1 = truth + called ? 2 * right / (double)(truth + called) : 0 };
}

double nr_metric_macro_f1(int64_t classes, const int64_t *confusion)
{
	double sum = 0;
	int64_t counted = 0;
	for (int64_t k = 0; k < classes; k++) {
		const struct nr_class_score c = nr_metric_class(classes, confusion, k);
		bool occurs = c.samples > 0;
		for (int64_t i = 0; i < classes && !occurs; i++) occurs = confusion[i * classes + k] > 0;
		if (occurs) sum += c.f1, counted++;
	}
	return counted ? sum / (double)counted : 0;
}
