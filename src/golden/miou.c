/* metrics/miou: confusion matrix and what is read off it. */
#include "golden/check.h"
#include "infer/metrics.h"

int golden_metric_miou(struct golden_case *c)
{
	const struct golden_ints truth = golden_ints(c, -1, "in.gt"), pred = golden_ints(c, -1, "in.pred");
	const int32_t K = (int32_t)golden_number(c, "classes");
	golden_expect(c, truth.n == pred.n && K > 0 && K < 100000, "one prediction per pixel");
	int64_t *confusion = golden_alloc(c, (int64_t)K * K, sizeof *confusion);
	double *iou = golden_alloc(c, K, sizeof *iou);
	real *out = golden_reals(c, (int64_t)K * K);
	nr_metric_confusion(truth.n, truth.x, pred.x, K, (int32_t)golden_number(c, "ignore"), confusion);
	const struct nr_iou r = nr_metric_iou(K, confusion, iou);
	for (int64_t i = 0; i < (int64_t)K * K; i++) out[i] = (real)confusion[i];
	golden_check(c, "out", out, (int64_t)K * K, "confusion");
	for (int32_t i = 0; i < K; i++) out[i] = (real)iou[i];
	golden_check(c, "out", out, K, "iou");
	golden_check_value(c, "out", r.miou, "miou");
	golden_check_value(c, "out", r.mean_acc, "mean_acc");
	golden_check_value(c, "out", r.pixel_acc, "pixel_acc");
	return GOLDEN_RAN;
}
