/* Fuzzer: any text as annotations of COCO, strict and forgiving, and as detections. What is accepted has its objects inside its pictures
 * and can be scored. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/coco_eval.h"
#include "base/mem.h"
#include "data/coco_results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void objects(const struct nr_coco *c, const struct nr_coco_how *how)
{
	for (int64_t i = 0; i < c->images; i++) {
		const struct nr_objects *o = &c->image[i];
		assert(o->h > 0 && o->w > 0 && c->file[i][0] && nr_coco_image(c, o->image_id) == i);
		for (int32_t k = 0; k < o->count; k++) {
			const struct nr_object *x = &o->object[k];
			assert(x->label >= 0 && x->label < c->classes && isfinite(x->xywh[0] + x->xywh[1] + x->xywh[2] + x->xywh[3]));
			assert(how->bad == NR_COCO_TRUST || (x->xywh[2] > 0 && x->xywh[3] > 0 && x->xywh[0] + x->xywh[2] <= o->w + 1));
			assert(!x->mask || (x->mask->h == o->h && x->mask->w == o->w && nr_rle_area(x->mask) <= (int64_t)o->h * o->w));
		}
	}
}

static void score(const struct nr_coco *truth, const struct nr_coco_results *found, enum nr_coco_scored scored)
{
	const struct nr_objects *image[2] = { &truth->image[0], &truth->image[1] };
	struct nr_coco_result r;
	assert(!nr_coco_eval(image, 2, found->item, found->count, truth->classes, scored == NR_COCO_MASKS, &r, NULL));
	assert(r.stat[NR_AP] >= 0 && r.stat[NR_AP] <= 1 + 1e-12);
	nr_coco_result_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nr_coco_how all[] = { { NR_COCO_FAIL, true }, { NR_COCO_SKIP, true }, { NR_COCO_TRUST, false } };
	static const char truth[] = "{\"images\": [{\"id\": 1, \"file_name\": \"a\", \"height\": 8, \"width\": 9}, {\"id\": 2, "
		"\"file_name\": \"b\", \"height\": 8, \"width\": 9}], \"categories\": [{\"id\": 1, \"name\": \"x\"}, "
		"{\"id\": 2, \"name\": \"y\"}], "
		"\"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 2, \"bbox\": [1, 1, 3, 4], \"segmentation\": "
		"[[1, 1, 4, 1, 4, 5, 1, 5]]}]}";
	struct nr_arena *arena = nr_arena_make();
	struct nr_coco c;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct nr_error err = { 0 };
		const int e = nr_coco_parse(&c, (const char *)data, size, "fuzz", &all[i], arena, &err);
		assert(e == (int)err.code && (e ? err.detail[0] != 0 : true));
		if (!e) objects(&c, &all[i]);
	}
	assert(!nr_coco_parse(&c, truth, strlen(truth), "truth", &all[0], arena, NULL));
	for (int scored = NR_COCO_BOXES; scored <= NR_COCO_MASKS; scored++) {
		struct nr_coco_results found;
		struct nr_error err = { 0 };
		const int e = nr_coco_results_parse(&found, (const char *)data, size, "fuzz", &c, (enum nr_coco_scored)scored, &err);
		assert(e == (int)err.code && (e ? err.detail[0] && !found.item : true));
		if (!e) score(&c, &found, (enum nr_coco_scored)scored);
		nr_coco_results_release(&found);
	}
	nr_arena_free(arena);
	return 0;
}
