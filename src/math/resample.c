/* Separable resampling. See resample.h. The weights follow PyTorch's interpolate, so that public checkpoints
 * agree. */
#include "math/resample.h"

#include <string.h>

size_t nr_axis_bytes(int64_t from, int64_t to)
{
	return ((size_t)(from * to) * sizeof(real) + 7) / 8 * 8 + 2 * (size_t)to * sizeof(int32_t);
}

/* Keys' cubic kernel. */
static double cubic(double x, double a)
{
	x = fabs(x);
	if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static void put(struct nr_axis *ax, int64_t i, int64_t k, double w)
{
	k = k < 0               ? 0
		: k >= ax->from ? ax->from - 1
				: k; /* border clamp: weights of outer samples add up there */
	ax->weight[i * ax->from + k] += (real)w;
	if (k < ax->first[i]) ax->first[i] = (int32_t)k;
	if (k >= ax->last[i]) ax->last[i] = (int32_t)k + 1;
}

static void antialias(struct nr_axis *ax, int64_t i)
{
	const double scale = (double)ax->from / (double)ax->to, wide = scale > 1 ? scale : 1,
		     support = 2 * wide;
	const double centre = scale * ((double)i + .5);
	int64_t lo = (int64_t)(centre - support + .5), hi = (int64_t)(centre + support + .5);
	double sum = 0;
	lo = lo < 0 ? 0 : lo;
	hi = hi > ax->from ? ax->from : hi;
	for (int64_t k = lo; k < hi; k++) sum += cubic(((double)k - centre + .5) / wide, -.5);
	for (int64_t k = lo; k < hi; k++) put(ax, i, k, cubic(((double)k - centre + .5) / wide, -.5) / sum);
}

static void interpolate(struct nr_axis *ax, int64_t i, double at, int is_cubic)
{
	const double base = floor(at), t = at - base;
	const int64_t k = (int64_t)base;
	if (is_cubic) {
		for (int64_t j = -1; j <= 2; j++) put(ax, i, k + j, cubic(t - (double)j, -.75));
	} else {
		put(ax, i, k, 1 - t);
		if (t > 0) put(ax, i, k + 1, t);
	}
}

struct nr_axis nr_axis_init(enum nr_resample kind, int64_t from, int64_t to, void *memory)
{
	struct nr_axis ax = { .from = from, .to = to, .weight = memory };
	memset(memory, 0, nr_axis_bytes(from, to));
	ax.first = (int32_t *)((char *)memory + ((size_t)(from * to) * sizeof(real) + 7) / 8 * 8);
	ax.last = ax.first + to;
	for (int64_t i = 0; i < to; i++) {
		ax.first[i] = (int32_t)from;
		double step = (double)from / (double)to;
		switch (kind) {
		case NR_RESAMPLE_TIMM:
			antialias(&ax, i);
			break;
		case NR_RESAMPLE_DINO:
			step = (double)from / ((double)to + .1);
			interpolate(&ax, i, step * ((double)i + .5) - .5, 1);
			break;
		case NR_RESAMPLE_BICUBIC:
			interpolate(&ax, i, step * ((double)i + .5) - .5, 1);
			break;
		case NR_RESAMPLE_BILINEAR: {
			const double at = step * ((double)i + .5) - .5;
			interpolate(&ax, i, at > 0 ? at : 0, 0);
			break;
		}
		case NR_RESAMPLE_BILINEAR_CORNERS:
			interpolate(
				&ax, i, to > 1 ? (double)i * (double)(from - 1) / (double)(to - 1) : 0, 0);
			break;
		}
	}
	return ax;
}

/* out (n) += w in (n) */
static void axpy(int64_t n, real w, const real *in, real *out)
{
	for (int64_t i = 0; i < n; i++) out[i] += w * in[i];
}

/* out (n) = w in (n) */
static void scale(int64_t n, real w, const real *in, real *out)
{
	for (int64_t i = 0; i < n; i++) out[i] = w * in[i];
}

void nr_resample_row(const struct nr_axis *rows, int64_t i, int64_t n, const real *x, real *line)
{
	const real *weight = rows->weight + i * rows->from;
	const int64_t first = rows->first[i];
	scale(n, weight[first], x + first * n, line);
	for (int64_t k = first + 1; k < rows->last[i]; k++) axpy(n, weight[k], x + k * n, line);
}

void nr_resample_across(const struct nr_axis *cols, int64_t C, const real *line, real *y)
{
	for (int64_t j = 0; j < cols->to; j++) nr_resample_row(cols, j, C, line, y + j * C);
}

void nr_resample_across_back(const struct nr_axis *cols, int64_t C, const real *dy, real *d_line)
{
	for (int64_t j = 0; j < cols->to; j++)
		for (int64_t k = cols->first[j]; k < cols->last[j]; k++)
			axpy(C, cols->weight[j * cols->from + k], dy + j * C, d_line + k * C);
}

void nr_resample_forward(
	const struct nr_axis *rows, const struct nr_axis *cols, int64_t C, const real *x, real *y, real *tmp)
{
	const int64_t H = rows->to, W = cols->to, w = cols->from;
#pragma omp parallel for schedule(static) if (H * W * C > 20000)
	for (int64_t i = 0; i < H; i++) {
		real *line = tmp + i * w * C;
		nr_resample_row(rows, i, w * C, x, line);
		nr_resample_across(cols, C, line, y + i * W * C);
	}
}

void nr_resample_backward(const struct nr_axis *rows, const struct nr_axis *cols, int64_t C, const real *dy,
	real *dx, int add, real *tmp)
{
	const int64_t h = rows->from, H = rows->to, W = cols->to, w = cols->from;
#pragma omp parallel for schedule(static) if (H * W * C > 20000)
	for (int64_t i = 0; i < H; i++) {
		real *line = memset(tmp + i * w * C, 0, (size_t)(w * C) * sizeof(real));
		nr_resample_across_back(cols, C, dy + i * W * C, line);
	}
#pragma omp parallel for schedule(static) if (H * W * C > 20000)
	for (int64_t k = 0; k < h; k++) {
		if (!add) memset(dx + k * w * C, 0, (size_t)(w * C) * sizeof(real));
		for (int64_t i = 0; i < H; i++)
			if (k >= rows->first[i] && k < rows->last[i])
				axpy(w * C, rows->weight[i * h + k], tmp + i * w * C, dx + k * w * C);
	}
}
