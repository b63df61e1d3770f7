/* Parts of detectors (RetinaNet, Mask R-CNN): boxes are x1 y1 x2 y2. Anchors, IoU, NMS, box targets, focal
 * loss. */
#ifndef NR_DETECT_H
#define NR_DETECT_H

#include "base/real.h"

/* out (n,m): IoU of a (n,4) with b (m,4). */
void nr_box_iou(int64_t n, const real *a, int64_t m, const real *b, real *out);
/* order (n): indices by falling score, ties as they come; tmp (n) is scratch. */
void nr_sort_by_score(int64_t n, const real *score, int32_t *order, int32_t *tmp);
/* Greedy, by falling score (ties: lower index); keeps a box when its IoU with every kept one is <= threshold.
 * keep (n) gets the indices in that order; order (n) is scratch. Returns how many. */
int64_t nr_box_nms(
	int64_t n, const real *box, const real *score, double threshold, int32_t *keep, int32_t *order);
/* out (n,4): dx dy in anchor sizes, log ratios of sizes, each divided by stds. */
void nr_box_encode(int64_t n, const real *anchor, const real *target, const double stds[4], real *out);
/* out (h w ratios scales,4): location-major (x fastest), then ratio, then scale; centred on (x stride, y
 * stride), area (scale stride)^2, ratio = h/w. */
void nr_anchors(int64_t h, int64_t w, double stride, int ratios, const double *ratio, int scales,
	const double *scale, real *out);
/* sum of -alpha_t (1-p_t)^gamma log p_t (Lin et al. 2017); alpha for positives, 1-alpha for negatives. */
double nr_focal_sum(int64_t n, const real *logit, const real *target, double alpha, double gamma);

#endif
