/* See coco_results.h. */
#include "data/coco_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/save.h"
#include "base/str.h"
#include "data/coco_parts.h"

void nr_coco_results_release(struct nr_coco_results *r)
{
	for (int64_t i = 0; i < r->count; i++) nr_rle_free(r->item[i].mask);
	free(r->item);
	*r = (struct nr_coco_results){ 0 };
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */

/* boxed: the first detection has a box, and boxes decide what is small and large; else masks do, also which boxes there are. So does
 * pycocotools. */
static int read_one(const struct nr_coco *truth, const json_t *j, bool masks, bool boxed, struct nr_detection *d, struct nr_error *err)
{
	const json_t *score = json_object_get(j, "score"), *box = json_object_get(j, "bbox"), *mask = json_object_get(j, "segmentation");
	int64_t category, at;
	if (!json_is_object(j)) return nr_coco_wrong(err, "it is not an object {...}");
	if (!nr_coco_whole(json_object_get(j, "image_id"), &d->image_id)) return nr_coco_wrong(err, "it has no 'image_id', a whole number");
	if ((at = nr_coco_image(truth, d->image_id)) < 0)
		return nr_coco_wrong(err, "there is no image %lld in '%s'", (long long)d->image_id, truth->path);
	if (!nr_coco_whole(json_object_get(j, "category_id"), &category))
		return nr_coco_wrong(err, "it has no 'category_id', a whole number");
	if ((d->label = nr_coco_class(truth, category)) < 0)
		return nr_coco_wrong(err, "there is no category %lld in '%s'", (long long)category, truth->path);
	d->score = json_number_value(score);
	if (!json_is_number(score) || !isfinite(d->score)) return nr_coco_wrong(err, "it has no 'score', a number");
	if (boxed || (!masks && !mask)) {
		if (nr_coco_box(box, d->xywh, err)) return err->code;
		d->area = d->xywh[2] * d->xywh[3];
		if (!masks) return NR_OK;
	}
	const struct nr_objects *o = &truth->image[at];
	if (!mask) return nr_coco_wrong(err, "it has no 'segmentation'");
	if (nr_coco_mask(mask, o->h, o->w, &d->mask, err)) return err->code;
	if (boxed) return NR_OK;
	nr_rle_box(d->mask, d->xywh);
	d->area = (double)nr_rle_area(d->mask);
	return NR_OK;
}

static int read_list(struct nr_coco_results *r, const json_t *root, const char *path, const struct nr_coco *truth,
	enum nr_coco_scored scored, struct nr_error *err)
{
	const size_t n = json_array_size(root);
	*r = (struct nr_coco_results){ 0 };
	if (!json_is_array(root)) {
		nr_fail(err, NR_EFORMAT, "cannot read", path, "it is not a list of detections");
		return nr_hint(err, "[{\"image_id\": 1, \"category_id\": 1, \"bbox\": [x, y, width, height], \"score\": 0.5}, ...]");
	}
	if (!(r->item = calloc(n + 1, sizeof *r->item))) return nr_fail(err, NR_EMEMORY, "cannot read", path, "out of memory");
	const bool boxed = json_array_size(json_object_get(json_array_get(root, 0), "bbox")) > 0;
	const bool outlined = json_object_get(json_array_get(root, 0), "segmentation");
	r->masks = scored == NR_COCO_MASKS || (scored == NR_COCO_EITHER && outlined && !boxed);
	for (size_t i = 0; i < n; i++) {
		struct nr_error why = { 0 };
		r->count++;
		if (!read_one(truth, json_array_get(root, i), r->masks, boxed, &r->item[i], &why)) continue;
		nr_coco_results_release(r);
		return nr_fail(err, NR_EFORMAT, "cannot use", path, "detection %zu: %s", i + 1, why.detail);
	}
	return NR_OK;
}

int nr_coco_results_read(struct nr_coco_results *r, const char *path, const struct nr_coco *truth, enum nr_coco_scored scored,
	struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	json_t *root = nr_json_load(path, slot);
	*r = (struct nr_coco_results){ 0 };
	if (!root) return slot->code;
	const int code = read_list(r, root, path, truth, scored, slot);
	json_decref(root);
	return code;
}

int nr_coco_results_parse(struct nr_coco_results *r, const char *text, size_t size, const char *path, const struct nr_coco *truth,
	enum nr_coco_scored scored, struct nr_error *err)
{
	struct nr_error own = { 0 };
	struct nr_error *slot = err ? err : &own;
	json_t *root = nr_json_parse(text, size, path, slot);
	*r = (struct nr_coco_results){ 0 };
	if (!root) return slot->code;
	const int code = read_list(r, root, path, truth, scored, slot);
	json_decref(root);
	return code;
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------- */

/* Text of runs has characters from '0' to 'o': a backslash is among them. */
static void add_mask(struct nr_str *out, const struct nr_rle *mask)
{
	struct nr_str runs = { 0 };
	nr_rle_to_string(mask, &runs);
	nr_str_printf(out, ", \"segmentation\": {\"size\": [%d, %d], \"counts\": \"", mask->h, mask->w);
	for (size_t i = 0; i < runs.len; i++) {
		if (runs.text[i] == '\\') nr_str_add(out, "\\");
		nr_str_add_n(out, &runs.text[i], 1);
	}
	nr_str_add(out, "\"}");
	out->failed = out->failed || runs.failed;
	nr_str_release(&runs);
}

static void add_number(struct nr_str *out, const char *before, double x)
{
	char text[40];
	nr_str_add(out, before);
	nr_str_add(out, nr_double_text(x, false, text, sizeof text));
}

static void add_one(struct nr_str *out, const struct nr_detection *d, int64_t category, bool masks)
{
	nr_str_printf(out, "{\"image_id\": %lld, \"category_id\": %lld", (long long)d->image_id, (long long)category);
	if (masks) add_mask(out, d->mask);
	for (int i = 0; i < 4 && !masks; i++) add_number(out, i ? ", " : ", \"bbox\": [", d->xywh[i]);
	add_number(out, masks ? ", \"score\": " : "], \"score\": ", d->score);
	nr_str_add(out, "}");
}

int nr_coco_results_write(const char *path, const struct nr_detection *d, int64_t n, const int64_t *category, bool masks,
	struct nr_error *err)
{
	enum { PIECE = 1 << 20 };
	struct nr_save save;
	struct nr_str out = { 0 };
	for (int64_t i = 0; i < n; i++)
		if (masks && !d[i].mask)
			return nr_fail(err, NR_EVALUE, "cannot write", path, "detection %lld has no mask", (long long)i + 1);
	if (nr_save_open(&save, path, err)) return err ? (int)err->code : NR_EIO;
	int code = NR_OK;
	nr_str_add(&out, "[");
	for (int64_t i = 0; i <= n && !code; i++) {
		if (i < n) {
			nr_str_add(&out, i ? ",\n" : "\n");
			add_one(&out, &d[i], category ? category[d[i].label] : d[i].label + 1, masks);
		} else nr_str_add(&out, "\n]\n");
		if (i < n && out.len < PIECE) continue;
		if (out.failed) {
			nr_save_drop(&save);
			code = nr_fail(err, NR_EMEMORY, "cannot write", path, "out of memory");
		} else code = nr_save_write(&save, out.text, out.len, err);
		out.len = 0;
	}
	nr_str_release(&out);
	return code ? code : nr_save_close(&save, err);
}
