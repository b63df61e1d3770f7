/* metrics/detection_ops: IoU, NMS, box targets, anchors, focal loss, RoIAlign; sizes stand in the tensors'
 * names. */
#include <string.h>

#include "golden/check.h"
#include "math/detect.h"
#include "math/roi.h"

static void boxes(struct golden_case *c)
{
	const struct golden_tensor box = golden_tensor(c, 2, "in.boxes"),
				   score = golden_tensor(c, 1, "in.scores");
	const char *text = golden_text(c, "encode");
	const int64_t n = box.d[0], first = (int64_t)golden_after(c, text, "first"),
		      last = (int64_t)golden_after(c, text, "last");
	golden_expect(c, box.d[1] == 4 && score.n == n && first == last && first <= n, "boxes and scores");
	static const double one[4] = { 1, 1, 1, 1 }, rcnn[4] = { .1, .1, .2, .2 };
	real *out = golden_reals(c, n * n > 4 * n ? n * n : 4 * n);
	nr_box_encode(first, box.x, box.x + 4 * (n - last), one, out);
	golden_check(c, "out", out, 4 * first, "encode_std1");
	nr_box_encode(first, box.x, box.x + 4 * (n - last), rcnn, out);
	golden_check(c, "out", out, 4 * first, "encode_rcnn");
	int32_t *keep = golden_alloc(c, n, sizeof *keep), *order = golden_alloc(c, n, sizeof *order);
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		double threshold;
		int m, end = 0;
		if (sscanf(name, "iou_with_first_%d%n", &m, &end) == 1 && !name[end]) {
			golden_expect(c, m >= 0 && m <= n, "boxes of the IoU matrix");
			nr_box_iou(n, box.x, m, box.x, out);
			golden_check(c, "out", out, n * m, "%s", name);
		} else if (sscanf(name, "nms_keep_%lf%n", &threshold, &end) == 1 && !name[end]) {
			const int64_t kept = nr_box_nms(n, box.x, score.x, threshold, keep, order);
			golden_check_ints(c, keep, kept, "%s", name);
		}
	}
}

static void anchors(struct golden_case *c)
{
	static const double ratio[] = { .5, 1, 2 }, rpn[] = { 8 };
	const double retina[] = { 4, 4 * cbrt(2), 4 * cbrt(4) };
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		double stride;
		int h, w, end = 0;
		const bool is_retina =
			sscanf(name, "retina_anchors_stride%lf_%dx%d%n", &stride, &h, &w, &end) == 3 &&
			!name[end];
		if (!is_retina &&
			(sscanf(name, "rpn_anchors_stride%lf_%dx%d%n", &stride, &h, &w, &end) != 3 ||
				name[end]))
			continue;
		golden_expect(c, h > 0 && w > 0 && h < 10000 && w < 10000, "sizes of grids");
		const int scales = is_retina ? 3 : 1;
		const int64_t n = (int64_t)h * w * 3 * scales * 4;
		real *out = golden_reals(c, n);
		nr_anchors(h, w, stride, 3, ratio, scales, is_retina ? retina : rpn, out);
		golden_check(c, "out", out, n, "%s", name);
	}
}

/* "scale 1/4, ..." */
static double roi_scale(struct golden_case *c)
{
	const char *text = golden_text(c, "roi_align"), *at = strstr(text, "scale");
	double a, b;
	if (!at) golden_stop(c, NULL, "no scale in '%s'", text);
	return sscanf(at, "scale %lf/%lf", &a, &b) == 2 ? a / b : golden_after(c, text, "scale");
}

/* "..., adaptive sampling ceil(size/7), aligned (half-pixel)"; or "2 x 2 samples", "sampling ratio 2", "unaligned" */
static struct nr_roi roi_of(struct golden_case *c, int64_t h, int64_t w)
{
	const char *text = golden_text(c, "roi_align"), *comma = strchr(text, ','), *rest = comma ? comma + 1 : text;
	struct nr_roi o = { .h = h, .w = w, .aligned = !strstr(text, "unaligned") && !strstr(text, "not aligned") };
	if (!strstr(rest, "adaptive") && strpbrk(rest, "123456789")) o.samples = (int64_t)golden_after(c, rest, "");
	return o;
}

static void rois(struct golden_case *c)
{
	const struct golden_tensor f = golden_tensor(c, 4, "in.feature"),
				   roi = golden_tensor(c, 2, "in.rois");
	const int64_t B = f.d[0], C = f.d[1], h = f.d[2], w = f.d[3], n = roi.d[0];
	golden_expect(c, roi.d[1] == 5, "a box and its image");
	real *last = golden_reals(c, f.n); /* channels last */
	for (int64_t i = 0; i < f.n; i++)
		last[(i / (C * h * w) * h * w + i % (h * w)) * C + i / (h * w) % C] = f.x[i];
	for (int64_t i = 0; i < nr_st_count(c->file); i++) {
		const char *name = nr_st_get(c->file, i)->name;
		int ph, pw, end = 0;
		if (sscanf(name, "roi_align_%dx%d%n", &ph, &pw, &end) != 2 || name[end]) continue;
		golden_expect(c, ph > 0 && pw > 0 && ph < 1000 && pw < 1000, "size of the pooled map");
		const struct nr_roi how = roi_of(c, ph, pw);
		const int64_t P = (int64_t)ph * pw;
		real *one = golden_reals(c, P * C), *out = golden_reals(c, n * P * C);
		for (int64_t r = 0; r < n; r++) {
			const int64_t image = (int64_t)roi.x[5 * r];
			golden_expect(c, image >= 0 && image < B, "image of a box");
			nr_roi_one(&how, h, w, C, last + image * h * w * C, roi.x + 5 * r + 1, roi_scale(c), one);
			for (int64_t k = 0; k < P * C; k++) out[r * P * C + k % C * P + k / C] = one[k];
		}
		golden_check(c, "out", out, n * P * C, "%s", name);
	}
}

int golden_metric_detection_ops(struct golden_case *c)
{
	boxes(c);
	anchors(c);
	rois(c);
	const struct golden_tensor logit = golden_tensor(c, -1, "in.cls_logits"),
				   target = golden_tensor(c, -1, "in.cls_target");
	golden_expect(c, logit.n == target.n, "logits and targets");
	golden_check_value(c, "out", nr_focal_sum(logit.n, logit.x, target.x, golden_number(c, "focal.alpha"),
		golden_number(c, "focal.gamma")), "focal_sum");
	return GOLDEN_RAN;
}
