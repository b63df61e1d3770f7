/* metrics/anchor_matching: IoU, and which box each prior is given by the rules of two libraries. */
#include <string.h>

#include "golden/check.h"
#include "math/anchors.h"

static void check_iou(struct golden_case *c, int64_t n, const double *prior, int64_t m, const double *box)
{
	real *iou = golden_reals(c, n * m);
	for (int64_t i = 0; i < n * m; i++) iou[i] = (real)nr_iou(box + 4 * (i / n), prior + 4 * (i % n));
	golden_check(c, "out", iou, n * m, "iou");
}

/* "mmdet_rpn": [high, low, least IoU of low quality, "no low quality"] */
static void check_rule(struct golden_case *c, const char *name, const json_t *list, int64_t n, const double *prior, int64_t m,
	const double *box)
{
	const bool mmdet = !strncmp(name, "mmdet_", 6), strict = json_is_string(json_array_get(list, json_array_size(list) - 1));
	const struct nr_match_rule rule = { .high = json_number_value(json_array_get(list, 0)),
		.low = json_number_value(json_array_get(list, 1)), .low_iou = mmdet ? json_number_value(json_array_get(list, 2)) : 0,
		.low_quality = strict ? NR_MATCH_NO_LOW : mmdet ? NR_MATCH_THAT : NR_MATCH_OWN };
	int32_t *match = golden_alloc(c, n, sizeof *match);
	golden_expect(c, json_array_size(list) >= 2, name);
	nr_match(&rule, n, prior, m, box, golden_alloc(c, m, sizeof(double)), match);
	for (int64_t i = 0; i < n; i++) match[i] += mmdet;      /* boxes count from 1 there */
	golden_check_ints(c, match, n, "%s", name);
}

int golden_metric_anchor_matching(struct golden_case *c)
{
	const struct golden_tensor prior = golden_tensor(c, 2, "in.priors"), box = golden_tensor(c, 2, "in.boxes");
	const int64_t n = prior.d[0], m = box.d[0];
	double *priors = golden_alloc(c, 4 * n, sizeof *priors), *boxes = golden_alloc(c, 4 * m, sizeof *boxes);
	json_t *rules = json_object_get(c->config, "thresholds"), *list;
	const char *name;
	golden_expect(c, prior.d[1] == 4 && box.d[1] == 4, "priors and boxes");
	for (int64_t i = 0; i < 4 * n; i++) priors[i] = (double)prior.x[i];
	for (int64_t i = 0; i < 4 * m; i++) boxes[i] = (double)box.x[i];
	check_iou(c, n, priors, m, boxes);
	json_object_foreach(rules, name, list) check_rule(c, name, list, n, priors, m, boxes);
	return GOLDEN_RAN;
}
