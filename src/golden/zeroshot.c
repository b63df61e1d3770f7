/* metrics/zeroshot: classes from several prompts each, scores of pictures, top-1 and top-5; and what comes of the other order. */
#include <string.h>

#include "analysis/zeroshot.h"
#include "golden/check.h"
#include "infer/metrics.h"

/* Scores, and the accuracy of the best k. */
static double score(struct golden_case *c, const struct golden_tensor *image, const struct golden_ints *label, int64_t classes,
	const real *of_class, int32_t k, real *scores)
{
	struct nr_error err = { 0 };
	real *x = golden_reals(c, image->n);
	int32_t *rank = golden_alloc(c, image->d[0], sizeof *rank);
	memcpy(x, image->x, (size_t)image->n * sizeof *x);
	if (nr_zeroshot_scores(image->d[0], image->d[1], x, classes, of_class, scores, &err)) golden_stop(c, NULL, "out of memory");
	nr_metric_rank(image->d[0], classes, scores, label->x, rank);
	return nr_metric_topk(image->d[0], rank, k);
}

int golden_metric_zeroshot(struct golden_case *c)
{
	const struct golden_tensor text = golden_tensor(c, 3, "in.text"), image = golden_tensor(c, 2, "in.image");
	const struct golden_ints label = golden_ints(c, 1, "in.label");
	const int64_t K = text.d[0], P = text.d[1], dim = text.d[2], n = image.d[0];
	golden_expect(c, image.d[1] == dim && label.n == n, "in.image, in.label");
	real *of_class = golden_reals(c, K * dim), *scores = golden_reals(c, n * K), *copy = golden_reals(c, text.n);
	int64_t *first = golden_alloc(c, K + 1, sizeof *first);
	for (int64_t k = 0; k <= K; k++) first[k] = k * P;
	memcpy(copy, text.x, (size_t)text.n * sizeof *copy);
	nr_zeroshot_classes(K, dim, first, copy, of_class);
	golden_check(c, "out", of_class, K * dim, "class_embedding");
	golden_check_value(c, "out", score(c, &image, &label, K, of_class, 5, scores), "top5");
	golden_check_value(c, "out", score(c, &image, &label, K, of_class, 1, scores), "top1");
	golden_check(c, "out", scores, n * K, "scores");
	int32_t *pred = golden_alloc(c, n, sizeof *pred);
	for (int64_t i = 0; i < n; i++)
		for (int32_t k = 1; k < K; k++)
			if (scores[i * K + k] > scores[i * K + pred[i]]) pred[i] = k;
	golden_check_ints(c, pred, n, "pred");
	real *sum = golden_reals(c, K * dim);                    /* means of texts as they are */
	for (int64_t i = 0; i < text.n; i++) sum[i / (P * dim) * dim + i % dim] += text.x[i];
	nr_unit_length(K, dim, sum);
	golden_check_value(c, "out", score(c, &image, &label, K, sum, 1, scores), "top1_without_first_normalise");
	return GOLDEN_RAN;
}
