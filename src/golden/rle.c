/* coco/rle_cases.json: masks, their runs, texts, areas and boxes; polygons, boxes, IoU and merged masks. Texts must be equal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "golden/coco_json.h"
#include "picture/rle.h"

bool golden_is_rle(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return !strncmp(name, "rle_cases", 9) && strlen(name) > 5 && !strcmp(name + strlen(name) - 5, ".json");
}

static int32_t size_of(json_t *size, size_t i) { return (int32_t)json_integer_value(json_array_get(size, i)); }

static struct nr_rle *read_text(struct golden_case *c, const char *what, json_t *size, json_t *text)
{
	struct nr_error err = { 0 };
	struct nr_rle *r = nr_rle_of_string(size_of(size, 0), size_of(size, 1), json_string_value(text), json_string_length(text), &err);
	if (!r) golden_stop(c, what, "%s", err.detail);
	return r;
}

/* The text, and where they are given area and box. */
static void expect_rle(struct golden_case *c, const char *what, size_t i, const struct nr_rle *r, json_t *want)
{
	struct nr_str text = { 0 };
	double box[4];
	json_t *area = json_object_get(want, "area"), *corner = json_object_get(want, "bbox_xywh");
	const char *counts = json_string_value(json_object_get(want, "counts"));
	c->checks++;
	if (!r) {
		golden_fail(c, what, "case %zu cannot be made", i);
		return;
	}
	nr_rle_to_string(r, &text);
	if (!counts || strcmp(counts, nr_str_text(&text)))
		golden_fail(c, what, "case %zu is %s instead of %s", i, nr_str_text(&text), counts ? counts : "?");
	nr_str_release(&text);
	if (!area) return;
	if (nr_rle_area(r) != json_integer_value(area)) golden_fail(c, what, "case %zu has an area of %lld", i, (long long)nr_rle_area(r));
	nr_rle_box(r, box);
	for (size_t k = 0; k < 4; k++)
		if (box[k] != json_number_value(json_array_get(corner, k))) golden_fail(c, what, "case %zu: box %zu is %g", i, k, box[k]);
}

static void check_masks(struct golden_case *c, json_t *list)
{
	size_t i;
	json_t *m;
	json_array_foreach(list, i, m) {
		json_t *size = json_object_get(m, "size"), *plain = json_object_get(m, "counts_plain");
		const int32_t h = size_of(size, 0), w = size_of(size, 1);
		const char *pixels = json_string_value(json_object_get(m, "pixels_row_major"));
		const int64_t n = (int64_t)h * w;
		if (pixels && (int64_t)strlen(pixels) != n) golden_stop(c, "masks", "case %zu has %zu pixels", i, strlen(pixels));
		uint8_t *mask = golden_alloc(c, n, 1), *back = golden_alloc(c, n, 1);
		struct nr_rle *s = read_text(c, "masks", size, json_object_get(m, "counts"));
		for (int64_t k = 0; pixels && k < n; k++) mask[k] = pixels[k] == '1';
		if (!pixels) nr_rle_to_mask(s, mask);          /* large ones come without */
		struct nr_rle *r = nr_rle_of_mask(h, w, mask, NULL);
		expect_rle(c, "masks", i, r, m);
		bool same = r && r->runs == (int64_t)json_array_size(plain) && s->runs == r->runs;
		for (int64_t k = 0; same && k < r->runs; k++)
			same = r->run[k] == json_integer_value(json_array_get(plain, (size_t)k)) && s->run[k] == r->run[k];
		if (!same) golden_fail(c, "masks", "case %zu has other runs", i);
		nr_rle_to_mask(s, back);
		if (memcmp(mask, back, (size_t)n)) golden_fail(c, "masks", "case %zu does not come back", i);
		nr_rle_free(r);
		nr_rle_free(s);
	}
}

static double *numbers(struct golden_case *c, json_t *list, size_t *n)
{
	*n = json_array_size(list);
	double *x = golden_alloc(c, (int64_t)*n + 1, sizeof *x);
	for (size_t i = 0; i < *n; i++) x[i] = json_number_value(json_array_get(list, i));
	return x;
}

static void check_drawn(struct golden_case *c, const char *what, json_t *list)
{
	size_t i, n;
	json_t *p;
	json_array_foreach(list, i, p) {
		json_t *size = json_object_get(p, "size"), *polygon = json_object_get(p, "polygon");
		const int32_t h = size_of(size, 0), w = size_of(size, 1);
		const double *x = numbers(c, polygon ? polygon : json_object_get(p, "bbox_xywh"), &n);
		struct nr_rle *r = polygon ? nr_rle_of_polygon(h, w, x, (int64_t)n / 2, NULL) : nr_rle_of_box(h, w, x, NULL);
		json_t *want = json_copy(p);
		if (!polygon) json_object_del(want, "area");
		expect_rle(c, what, i, r, want);
		json_decref(want);
		nr_rle_free(r);
	}
}

static void check_iou(struct golden_case *c, json_t *of, const char *what)
{
	const bool masks = !strcmp(what, "iou");
	json_t *size = json_object_get(of, "size"), *d = json_object_get(of, masks ? "det" : "det_xywh");
	json_t *t = json_object_get(of, masks ? "gt" : "gt_xywh"), *crowds = json_object_get(of, "iscrowd");
	for (size_t i = 0, n; i < json_array_size(d); i++)
		for (size_t j = 0; j < json_array_size(t); j++) {
			json_t *one = json_array_get(d, i), *two = json_array_get(t, j);
			const bool crowd = json_integer_value(json_array_get(crowds, j)) != 0;
			const double want = json_number_value(json_array_get(json_array_get(json_object_get(of, "iou"), i), j));
			struct nr_rle *a = masks ? read_text(c, what, size, one) : NULL, *b = masks ? read_text(c, what, size, two) : NULL;
			const double got = masks ? nr_rle_iou(a, b, crowd) :
				nr_box_iou_xywh(numbers(c, one, &n), numbers(c, two, &n), crowd);
			c->checks++;
			if (!(fabs(got - want) <= 1e-15)) golden_fail(c, what, "%zu with %zu is %.17g instead of %.17g", i, j, got, want);
			nr_rle_free(a);
			nr_rle_free(b);
		}
}

static void check_merge(struct golden_case *c, json_t *of)
{
	json_t *in = json_object_get(of, "in"), *size = json_object_get(of, "size");
	const size_t n = json_array_size(in);
	struct nr_rle **part = golden_alloc(c, (int64_t)n, sizeof *part);
	for (size_t i = 0; i < n; i++) part[i] = read_text(c, "merge", size, json_array_get(in, i));
	for (int common = 0; common < 2 && n; common++) {
		struct nr_rle *r = nr_rle_merge((const struct nr_rle *const *)part, (int64_t)n, common, NULL);
		json_t *want = json_pack("{s:O}", "counts", json_object_get(of, common ? "intersection" : "union"));
		expect_rle(c, "merge", (size_t)common, r, want);
		json_decref(want);
		nr_rle_free(r);
	}
	for (size_t i = 0; i < n; i++) nr_rle_free(part[i]);
}

void golden_rle(struct golden_case *c)
{
	struct nr_error err = { 0 };
	char text[1536];
	c->config = nr_json_load(c->path, &err);        /* the runner frees it */
	if (setjmp(c->leave)) return;
	if (!c->config) golden_stop(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	check_masks(c, json_object_get(c->config, "masks"));
	check_drawn(c, "polygons", json_object_get(c->config, "polygons"));
	check_drawn(c, "boxes", json_object_get(c->config, "boxes"));
	check_iou(c, json_object_get(c->config, "iou"), "iou");
	check_iou(c, json_object_get(c->config, "box_iou"), "box_iou");
	check_merge(c, json_object_get(c->config, "merge"));
	if (!c->checks) golden_fail(c, NULL, "nothing was compared");
}
