/* Separable resize with antialiasing, byte-equal to Pillow 13's Image.resize: the kernel is widened by the scale, its weights
 * are scaled to sum 1 and rounded to 22 bits, and the two passes each round to bytes (math/pixel.h), so their order shows in
 * the last bit. Rows go first unless the height shrinks by more than twice what the width does (until Pillow 12: always).
 * Nearest takes the pixel under the centre, found by adding up steps from the first one, as Pillow does. */
#include "picture/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/pixel.h"

static double box_kernel(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

static double triangle(double x)
{
	x = fabs(x);
	return x < 1 ? 1 - x : 0;
}

/* Keys 1981 with a = -1/2. */
static double cubic(double x)
{
	const double a = -0.5;
	x = fabs(x);
	if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
	if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
	return 0;
}

static double sinc(double x)
{
	if (x == 0) return 1;
	x *= M_PI;
	return sin(x) / x;
}

static double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct kernel { double (*at)(double); double support; } kernels[] = {
	[NR_FILTER_BOX] = { box_kernel, 0.5 },
	[NR_FILTER_BILINEAR] = { triangle, 1 },
	[NR_FILTER_BICUBIC] = { cubic, 2 },
	[NR_FILTER_LANCZOS] = { lanczos, 3 },
};

/* One direction: lo..hi of the source (size pixels) become n outputs, of which from..from+part-1 are wanted. */
struct axis {
	float lo, hi;
	int32_t size, n, from, part;
	int32_t ld, *first, *count, *coef;
};

static bool whole(const struct axis *a) { return a->size == a->n && a->lo == 0 && a->hi == (float)a->n; }

static int32_t taps(const struct axis *a, const struct kernel *k)
{
	const double scale = (double)(a->hi - a->lo) / a->n, support = k->support * (scale < 1 ? 1 : scale);
	return ((int32_t)ceil(support) * 2 + 2) & ~1;   /* even: kernels take them in pairs */
}

static void weigh(const struct axis *a, const struct kernel *k, double *w)
{
	const double scale = (double)(a->hi - a->lo) / a->n, wide = scale < 1 ? 1 : scale, support = k->support * wide;
	const double narrow = 1 / wide;
	for (int32_t i = 0; i < a->part; i++) {
		const double center = (double)a->lo + (a->from + i + 0.5) * scale;
		int32_t first = (int32_t)(center - support + 0.5), end = (int32_t)(center + support + 0.5);
		if (first < 0) first = 0;
		if (end > a->size) end = a->size;
		const int32_t n = end - first > a->ld ? a->ld : end - first;
		double sum = 0;
		for (int32_t j = 0; j < n; j++) sum += w[j] = k->at((j + first - center + 0.5) * narrow);
		int32_t *coef = a->coef + (int64_t)i * a->ld;
		for (int32_t j = 0; j < n; j++) {
			const double v = (sum != 0 ? w[j] / sum : w[j]) * (1 << NR_PIXEL_BITS);
			coef[j] = (int32_t)(v < 0 ? v - 0.5 : v + 0.5);
		}
		for (int32_t j = n > 0 ? n : 0; j < a->ld; j++) coef[j] = 0;
		a->first[i] = first;
		a->count[i] = n > 0 ? n : 0;
	}
}

/* ---- scratch: both axes, one output's weights, the picture between the passes, four rows ---- */

struct work {
	struct axis x, y;
	bool columns_first;
	double *weights;
	uint8_t *middle, *four, *padded;
	size_t stride;                  /* of middle and four; there is slack after each row */
	int32_t top, height, left, width;       /* source pixels that the wanted outputs need */
};

void nr_resize_scratch_release(struct nr_resize_scratch *s)
{
	free(s->memory);
	*s = (struct nr_resize_scratch){ 0 };
}

static size_t up(size_t n) { return (n + 63) & ~(size_t)63; }

static void *take(uint8_t **at, size_t bytes)
{
	void *p = *at;
	*at += up(bytes);
	return p;
}

/* Room for size bytes; the first `kept` stay as they are. Some more is taken, so that random crops soon stop asking. */
static int reserve(struct nr_resize_scratch *s, size_t size, size_t kept, struct nr_error *err)
{
	if (size <= s->size) return NR_OK;
	size = up(size + size / 4);
	void *grown = aligned_alloc(64, size);
	if (!grown) return nr_fail(err, NR_EMEMORY, "cannot resize", NULL, "out of memory for %zu bytes", size);
	if (kept) memcpy(grown, s->memory, kept);
	free(s->memory);
	s->memory = grown, s->size = size;
	return NR_OK;
}

static size_t axis_bytes(const struct axis *a)
{
	return 2 * up((size_t)a->part * sizeof(int32_t)) + up((size_t)a->part * (size_t)a->ld * sizeof(int32_t));
}

static void axis_take(struct axis *a, uint8_t **at)
{
	a->first = take(at, (size_t)a->part * sizeof *a->first);
	a->count = take(at, (size_t)a->part * sizeof *a->count);
	a->coef = take(at, (size_t)a->part * (size_t)a->ld * sizeof *a->coef);
}

static void span(const struct axis *a, int32_t *first, int32_t *count)
{
	const int32_t last = a->part - 1;
	*first = whole(a) ? a->from : a->first[0];
	*count = whole(a) ? a->part : a->first[last] + a->count[last] - *first;
}

/* Coefficients of both axes, what they need of the source, and room for the middle. */
static int prepare(struct work *k, struct nr_pixels from, const struct kernel *kernel, struct nr_resize_scratch *s, struct nr_error *err)
{
	k->columns_first = k->y.n < from.h && from.h - k->y.n > 2 * (from.w - k->x.n);
	k->x.ld = taps(&k->x, kernel);
	k->y.ld = taps(&k->y, kernel);
	const size_t weights = up((size_t)(k->x.ld > k->y.ld ? k->x.ld : k->y.ld) * sizeof(double));
	const size_t axes = axis_bytes(&k->x) + axis_bytes(&k->y) + weights;
	int code = reserve(s, axes, 0, err);
	if (code) return code;
	uint8_t *at = s->memory;
	axis_take(&k->x, &at);
	axis_take(&k->y, &at);
	k->weights = take(&at, weights);
	weigh(&k->x, kernel, k->weights);
	weigh(&k->y, kernel, k->weights);
	span(&k->x, &k->left, &k->width);
	span(&k->y, &k->top, &k->height);

	const size_t wide = (size_t)(k->width > k->x.part ? k->width : k->x.part) * (size_t)from.channels;
	const size_t padded = up((size_t)from.w * (size_t)from.channels + NR_PIXEL_SLACK);
	k->stride = up(wide + NR_PIXEL_SLACK);
	const size_t middle = k->stride * (size_t)(k->columns_first ? k->y.part : k->height);
	code = reserve(s, axes + middle + NR_PIXEL_ROWS * k->stride + padded, axes, err);
	if (code) return code;
	at = s->memory;
	axis_take(&k->x, &at);
	axis_take(&k->y, &at);
	at += weights;
	k->middle = take(&at, middle);
	k->four = take(&at, NR_PIXEL_ROWS * k->stride);
	k->padded = take(&at, padded);
	return NR_OK;
}

/* ---- the passes ---- */

/* Resizes four rows; the view's last one is read from a copy if the memory after it is not known to be there. */
static void four_rows(const struct work *k, struct nr_pixels v, bool slack, int32_t y, int32_t end, uint8_t *const to[NR_PIXEL_ROWS])
{
	const struct nr_pixel_taps t = { k->x.part, k->x.ld, k->x.first, k->x.count, k->x.coef };
	const size_t line = (size_t)v.w * (size_t)v.channels;
	const bool tiny = !slack && line < NR_PIXEL_SLACK;
	const uint8_t *row[NR_PIXEL_ROWS];
	for (int32_t r = 0; r < NR_PIXEL_ROWS; r++) {
		const int32_t i = y + r < end ? y + r : end - 1;
		row[r] = v.p + i * v.stride;
		if (!slack && i == v.h - 1) row[r] = memcpy(k->padded, row[r], line);
	}
	(tiny ? &nr_pixel_plain : nr_pixel_active)->across(&t, v.channels, row, to);
}

static void rows_then_columns(const struct work *k, struct nr_pixels from, struct nr_picture *to)
{
	const size_t line = (size_t)to->w * (size_t)to->channels;
	const uint8_t *middle = from.p + k->top * from.stride + (ptrdiff_t)k->left * from.channels;
	ptrdiff_t stride = from.stride;
	if (!whole(&k->x)) {
		for (int32_t y = 0; y < k->height; y += NR_PIXEL_ROWS) {
			uint8_t *out[NR_PIXEL_ROWS];
			for (int32_t r = 0; r < NR_PIXEL_ROWS; r++)
				out[r] = k->middle + (size_t)(y + r < k->height ? y + r : k->height - 1) * k->stride;
			four_rows(k, from, false, k->top + y, k->top + k->height, out);
		}
		middle = k->middle, stride = (ptrdiff_t)k->stride;
	}
	for (int32_t y = 0; y < to->h; y++) {
		uint8_t *out = to->pixels + (size_t)y * line;
		if (whole(&k->y))
			memcpy(out, middle + y * stride, line);
		else
			nr_pixel_active->down((int64_t)line, middle + (k->y.first[y] - k->top) * stride, stride, k->y.count[y],
				k->y.coef + (int64_t)y * k->y.ld, out);
	}
}

/* Both passes are needed here: the height shrinks, and a width that stays as it is asks for no pass over rows. */
static void columns_then_rows(const struct work *k, struct nr_pixels from, struct nr_picture *to)
{
	const size_t line = (size_t)to->w * (size_t)to->channels;
	const uint8_t *left = from.p + (ptrdiff_t)k->left * from.channels;
	for (int32_t y = 0; y < to->h; y++)
		nr_pixel_active->down((int64_t)k->width * from.channels, left + k->y.first[y] * from.stride, from.stride, k->y.count[y],
			k->y.coef + (int64_t)y * k->y.ld, whole(&k->x) ? to->pixels + (size_t)y * line : k->middle + (size_t)y * k->stride);
	if (whole(&k->x)) return;
	for (int32_t i = 0; i < k->x.part; i++) k->x.first[i] -= k->left;
	const struct nr_pixels v = { to->h, k->width, from.channels, (ptrdiff_t)k->stride, k->middle };
	for (int32_t y = 0; y < to->h; y += NR_PIXEL_ROWS) {
		uint8_t *out[NR_PIXEL_ROWS];
		for (int32_t r = 0; r < NR_PIXEL_ROWS; r++) out[r] = k->four + (size_t)r * k->stride;
		four_rows(k, v, true, y, to->h, out);
		for (int32_t r = 0; r < NR_PIXEL_ROWS && y + r < to->h; r++) memcpy(to->pixels + (size_t)(y + r) * line, out[r], line);
	}
}

/* ---- nearest ---- */

/* Source pixel of each wanted output; -1: outside. */
static void nearest_axis(const struct axis *a, int32_t *index)
{
	const double step = (double)(a->hi - a->lo) / a->n;
	double at = (double)a->lo + step * 0.5;
	for (int32_t i = 0; i < a->from + a->part; i++, at += step) {
		const int32_t k = at < 0 ? -1 : (int32_t)at;
		if (i >= a->from) index[i - a->from] = k < a->size ? k : -1;
	}
}

static int nearest(const struct axis *x, const struct axis *y, struct nr_pixels from, struct nr_picture *to, struct nr_resize_scratch *s,
	struct nr_error *err)
{
	const int code = reserve(s, up((size_t)x->part * sizeof(int32_t)) + up((size_t)y->part * sizeof(int32_t)), 0, err);
	if (code) return code;
	uint8_t *at = s->memory;
	int32_t *column = take(&at, (size_t)x->part * sizeof *column), *row = take(&at, (size_t)y->part * sizeof *row);
	nearest_axis(x, column);
	nearest_axis(y, row);
	const int32_t C = from.channels;
	for (int32_t i = 0; i < y->part; i++) {
		uint8_t *out = to->pixels + (size_t)i * (size_t)x->part * (size_t)C;
		for (int32_t j = 0; j < x->part; j++, out += C) {
			const bool inside = row[i] >= 0 && column[j] >= 0;
			for (int32_t c = 0; c < C; c++) out[c] = inside ? from.p[row[i] * from.stride + column[j] * C + c] : 0;
		}
	}
	return NR_OK;
}

/* ---- the whole ---- */

static int check(struct nr_pixels from, const double box[4], int32_t h, int32_t w, enum nr_filter filter, struct nr_error *err)
{
	if (!from.p) return nr_fail(err, NR_EVALUE, "cannot resize", NULL, "the picture is empty");
	if ((unsigned)filter > NR_FILTER_LANCZOS)
		return nr_fail(err, NR_EVALUE, "cannot resize", NULL, "there is no filter %d", (int)filter);
	if (h < 1 || w < 1) return nr_fail(err, NR_EVALUE, "cannot resize", NULL, "to %d x %d pixels", (int)w, (int)h);
	if (!(box[0] >= 0 && box[1] >= 0 && box[2] <= from.w && box[3] <= from.h && box[0] < box[2] && box[1] < box[3]))
		return nr_fail(err, NR_EVALUE, "cannot resize", NULL,
			"the box %g %g %g %g is empty or outside the %d x %d picture", box[0],
			box[1], box[2], box[3], (int)from.w, (int)from.h);
	return NR_OK;
}

int nr_resize_part(struct nr_pixels from, const double box[4], int32_t h, int32_t w, struct nr_region part, enum nr_filter filter,
	struct nr_picture *to, struct nr_resize_scratch *s, struct nr_error *err)
{
	const double all[4] = { 0, 0, from.w, from.h };
	if (!box) box = all;
	int code = check(from, box, h, w, filter, err);
	if (!code) code = nr_picture_room(to, part.h, part.w, from.channels, NULL, err);
	if (code) return code;
	struct work k = {
		.x = { (float)box[0], (float)box[2], from.w, w, part.x, part.w },
		.y = { (float)box[1], (float)box[3], from.h, h, part.y, part.h },
	};
	if (filter == NR_FILTER_NEAREST) return nearest(&k.x, &k.y, from, to, s, err);
	code = prepare(&k, from, &kernels[filter], s, err);
	if (!code) (k.columns_first ? columns_then_rows : rows_then_columns)(&k, from, to);
	return code;
}

int nr_resize(const struct nr_picture *from, const double box[4], int32_t h, int32_t w, enum nr_filter filter, struct nr_picture *to,
	struct nr_resize_scratch *s, struct nr_error *err)
{
	if (from == to) return nr_fail(err, NR_EVALUE, "cannot resize", NULL,
		"a picture cannot be resized into itself");
	return nr_resize_part(nr_pixels_of(from), box, h, w, (struct nr_region){ 0, 0, h, w }, filter, to, s, err);
}
