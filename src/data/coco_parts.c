/* See coco_parts.h. */
#include "data/coco_parts.h"

#include <math.h>
#include <stdlib.h>

bool nr_coco_whole(const json_t *j, int64_t *to)
{
	const double x = json_real_value(j);
	if (json_is_integer(j)) *to = json_integer_value(j);
	else if (json_is_real(j) && fabs(x) <= 0x1p53 && x == trunc(x)) *to = (int64_t)x;
	else return false;
	return true;
}

int nr_coco_box(const json_t *j, double xywh[4], struct nr_error *err)
{
	for (size_t i = 0; i < 4; i++) {
		const json_t *x = json_array_get(j, i);
		xywh[i] = json_number_value(x);
		if (json_array_size(j) != 4 || !json_is_number(x) || !isfinite(xywh[i]))
			return nr_coco_wrong(err, "it has no 'bbox' of four numbers");
	}
	return NR_OK;
}

/* One outline. Walking a line that leads far away takes long and shows nothing. */
static int read_polygon(const json_t *j, size_t number, int32_t h, int32_t w, struct nr_rle **to, struct nr_error *err)
{
	const size_t n = json_array_size(j);
	if (!json_is_array(j) || n < 4 || n % 2)
		return nr_coco_wrong(err, "polygon %zu of its mask is not a list of points x, y", number + 1);
	double *xy = malloc(n * sizeof *xy);
	if (!xy) return nr_coco_wrong(err, "out of memory");
	int code = NR_OK;
	for (size_t i = 0; !code && i < n; i++) {
		const json_t *x = json_array_get(j, i);
		const double most = i % 2 ? h : w;
		xy[i] = json_number_value(x);
		if (!json_is_number(x)) code = nr_coco_wrong(err, "value %zu of polygon %zu of its mask is not a number", i + 1,
			number + 1);
		else if (!(xy[i] >= -most - 1 && xy[i] <= 2 * most + 1))
			code = nr_coco_wrong(err, "point %zu of polygon %zu of its mask is far outside the picture", i / 2 + 1, number + 1);
	}
	struct nr_error why = { 0 };
	if (!code) *to = n == 4 ? nr_rle_of_box(h, w, xy, &why) : nr_rle_of_polygon(h, w, xy, (int64_t)n / 2, &why);
	if (!code && !*to) code = nr_coco_wrong(err, "polygon %zu of its mask: %s", number + 1, why.detail);
	free(xy);
	return code;
}

static int read_polygons(const json_t *j, int32_t h, int32_t w, struct nr_rle **to, struct nr_error *err)
{
	const size_t n = json_array_size(j);
	struct nr_error why = { 0 };
	struct nr_rle **part = calloc(n + 1, sizeof *part);
	if (!part) return nr_coco_wrong(err, "out of memory");
	int code = NR_OK;
	for (size_t i = 0; i < n && !code; i++) code = read_polygon(json_array_get(j, i), i, h, w, &part[i], err);
	if (!code && !(*to = nr_rle_merge((const struct nr_rle *const *)part, (int64_t)n, false, &why)))
		code = nr_coco_wrong(err, "its mask: %s", why.detail);
	for (size_t i = 0; i < n; i++) nr_rle_free(part[i]);
	free(part);
	return code;
}

static struct nr_rle *read_runs(const json_t *j, int32_t h, int32_t w, struct nr_error *err)
{
	const size_t n = json_array_size(j);
	uint32_t *run = malloc((n + 1) * sizeof *run);
	struct nr_rle *r = NULL;
	size_t i = 0;
	for (int64_t x; run && i < n && nr_coco_whole(json_array_get(j, i), &x) && x >= 0 && x <= UINT32_MAX; i++) run[i] = (uint32_t)x;
	if (run && i == n) r = nr_rle_of_runs(h, w, run, (int64_t)n, err);
	else if (run) nr_coco_wrong(err, "run %zu is not a length", i + 1);
	else nr_coco_wrong(err, "out of memory");
	free(run);
	return r;
}

int nr_coco_mask(const json_t *j, int32_t h, int32_t w, struct nr_rle **to, struct nr_error *err)
{
	if (json_array_size(j)) return read_polygons(j, h, w, to, err);
	const json_t *size = json_object_get(j, "size"), *counts = json_object_get(j, "counts");
	const bool text = json_is_string(counts);
	struct nr_error why = { 0 };
	int64_t rows = 0, columns = 0;
	if (!json_is_object(j) || json_array_size(size) != 2 || !(text || json_is_array(counts)))
		return nr_coco_wrong(err, "its 'segmentation' is neither polygons nor runs with 'size' and 'counts'");
	if (!nr_coco_whole(json_array_get(size, 0), &rows) || !nr_coco_whole(json_array_get(size, 1), &columns) || rows != h ||
		columns != w)
		return nr_coco_wrong(err, "its mask has %lld x %lld pixels (height x width), the picture %d x %d", (long long)rows,
			(long long)columns, h, w);
	*to = text ? nr_rle_of_string(h, w, json_string_value(counts), json_string_length(counts), &why) : read_runs(counts, h, w, &why);
	return *to ? NR_OK : nr_coco_wrong(err, "its mask cannot be read: %s", why.detail);
}
