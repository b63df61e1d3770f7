/* Parts of detectors. See detect.h. */
#include "math/detect.h"

static double side(double lo, double hi) { return hi > lo ? hi - lo : 0; }

static double iou(const real *a, const real *b)
{
	const double x = side(fmax(a[0], b[0]), fmin(a[2], b[2])),
		     y = side(fmax(a[1], b[1]), fmin(a[3], b[3]));
	const double both = x * y,
		     all = side(a[0], a[2]) * side(a[1], a[3]) + side(b[0], b[2]) * side(b[1], b[3]) - both;
	return all > 0 ? both / all : 0;
}

void nr_box_iou(int64_t n, const real *a, int64_t m, const real *b, real *out)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < m; j++) out[i * m + j] = (real)iou(a + 4 * i, b + 4 * j);
}

/* Bottom-up merge sort: stable, no recursion. */
void nr_sort_by_score(int64_t n, const real *score, int32_t *order, int32_t *tmp)
{
	for (int64_t i = 0; i < n; i++) order[i] = (int32_t)i;
	for (int64_t width = 1; width < n; width *= 2) {
		for (int64_t lo = 0; lo < n; lo += 2 * width) {
			const int64_t mid = lo + width < n ? lo + width : n,
				      hi = lo + 2 * width < n ? lo + 2 * width : n;
			int64_t a = lo, b = mid;
			for (int64_t k = lo; k < hi; k++)
				tmp[k] = a < mid && (b >= hi || !(score[order[b]] > score[order[a]]))
					? order[a++]
					: order[b++];
		}
		for (int64_t i = 0; i < n; i++) order[i] = tmp[i];
	}
}

int64_t nr_box_nms(
	int64_t n, const real *box, const real *score, double threshold, int32_t *keep, int32_t *order)
{
	int64_t kept = 0;
	nr_sort_by_score(n, score, order, keep);
	for (int64_t i = 0; i < n; i++) {
		int64_t j = 0;
		while (j < kept && iou(box + 4 * keep[j], box + 4 * order[i]) <= threshold) j++;
		if (j == kept) keep[kept++] = order[i];
	}
	return kept;
}

void nr_box_encode(int64_t n, const real *anchor, const real *target, const double stds[4], real *out)
{
	for (int64_t i = 0; i < n; i++) {
		const real *a = anchor + 4 * i, *t = target + 4 * i;
		const double aw = a[2] - a[0], ah = a[3] - a[1], tw = t[2] - t[0], th = t[3] - t[1];
		out[4 * i] = (real)((.5 * (t[0] + t[2]) - .5 * (a[0] + a[2])) / aw / stds[0]);
		out[4 * i + 1] = (real)((.5 * (t[1] + t[3]) - .5 * (a[1] + a[3])) / ah / stds[1]);
		out[4 * i + 2] = (real)(log(tw / aw) / stds[2]);
		out[4 * i + 3] = (real)(log(th / ah) / stds[3]);
	}
}

void nr_anchors(int64_t h, int64_t w, double stride, int ratios, const double *ratio, int scales,
	const double *scale, real *out)
{
	for (int64_t p = 0; p < h * w; p++)
		for (int r = 0; r < ratios; r++)
			for (int s = 0; s < scales; s++, out += 4) {
				const double x = (double)(p % w) * stride, y = (double)(p / w) * stride;
				const double size = scale[s] * stride / 2, root = sqrt(ratio[r]);
				out[0] = (real)(x - size / root);
				out[1] = (real)(y - size * root);
				out[2] = (real)(x + size / root);
				out[3] = (real)(y + size * root);
			}
}

double nr_focal_sum(int64_t n, const real *logit, const real *target, double alpha, double gamma)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) {
		const double x = logit[i], t = target[i], p = 1 / (1 + exp(-x));
		const double ce = fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
		const double miss = p * (1 - t) + (1 - p) * t; /* 1 - p_t */
		sum += (alpha * t + (1 - alpha) * (1 - t)) * pow(miss, gamma) * ce;
	}
	return sum;
}
