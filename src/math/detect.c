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

/* Bottom-up merge sort of indices by falling score: stable, no recursion; tmp has room for n. */
static void sort_by_score(int64_t n, const real *score, int32_t *order, int32_t *tmp)
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
	sort_by_score(n, score, order, keep);
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

/* out (C) += weight * bilinear value at (y,x); nothing more than one pixel outside. */
static void sample(
	int64_t h, int64_t w, int64_t C, const real *f, double y, double x, double weight, real *out)
{
	if (y < -1 || y > (double)h || x < -1 || x > (double)w) return;
	y = y > 0 ? y : 0;
	x = x > 0 ? x : 0;
	int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
	if (y0 >= h - 1) y0 = y1 = h - 1, y = (double)y0;
	if (x0 >= w - 1) x0 = x1 = w - 1, x = (double)x0;
	const double b = y - (double)y0, a = x - (double)x0;
	const double k00 = (1 - b) * (1 - a), k01 = (1 - b) * a, k10 = b * (1 - a), k11 = b * a;
	for (int64_t c = 0; c < C; c++)
		out[c] += (real)(weight * (k00 * f[(y0 * w + x0) * C + c] + k01 * f[(y0 * w + x1) * C + c] +
			k10 * f[(y1 * w + x0) * C + c] + k11 * f[(y1 * w + x1) * C + c]));
}

void nr_roi_align(int64_t h, int64_t w, int64_t C, const real *f, const real box[4], double scale, int64_t ph,
	int64_t pw, real *out)
{
	const double x0 = box[0] * scale - .5, y0 = box[1] * scale - .5;
	const double bw = (box[2] - box[0]) * scale / (double)pw, bh = (box[3] - box[1]) * scale / (double)ph;
	const int64_t ny = (int64_t)ceil(bh), nx = (int64_t)ceil(bw);
	const double weight = ny > 0 && nx > 0 ? 1 / (double)(ny * nx) : 1;
	for (int64_t i = 0; i < ph * pw; i++) {
		for (int64_t c = 0; c < C; c++) out[i * C + c] = 0;
		for (int64_t s = 0; s < ny * nx; s++) {
			const double y = y0 + bh * ((double)(i / pw) + ((double)(s / nx) + .5) / (double)ny);
			const double x = x0 + bw * ((double)(i % pw) + ((double)(s % nx) + .5) / (double)nx);
			sample(h, w, C, f, y, x, weight, out + i * C);
		}
	}
}
