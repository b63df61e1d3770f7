/* COCO's average precision: metrics/coco_eval__NAME (precision and recall) and coco/NAME_expected.json (12 numbers and AP of each
 * category), both beside coco/NAME_gt.json, NAME_det_bbox.json and NAME_det_segm.json. */
#include <math.h>
#include <string.h>

#include "analysis/coco_eval.h"
#include "base/json.h"
#include "data/coco_results.h"
#include "golden/coco_json.h"

#define TOLERANCE 1e-9                          /* of numbers with 17 digits */

static bool ends_with(const char *name, const char *tail)
{
	const size_t n = strlen(name), t = strlen(tail);
	return n > t && !strcmp(name + n - t, tail);
}

bool golden_is_coco_expected(const char *path) { return ends_with(path, "_expected.json") && strstr(path, "coco"); }

/* What the library says of a file of truth and one of detections. */
static struct nr_coco_result score(struct golden_case *c, struct nr_coco *truth, const char *gt, const char *dt, bool masks)
{
	const struct nr_coco_how how = { NR_COCO_TRUST, masks };
	struct nr_error err = { 0 };
	struct nr_coco_results found = { 0 };
	struct nr_coco_result r = { 0 };
	char text[1536];
	int code = nr_coco_read(truth, gt, &how, c->arena, &err);
	const struct nr_objects **image = golden_alloc(c, truth->images + 1, sizeof(struct nr_objects *));
	for (int64_t i = 0; i < truth->images; i++) image[i] = &truth->image[i];
	if (!code) code = nr_coco_results_read(&found, dt, truth, masks ? NR_COCO_MASKS : NR_COCO_BOXES, &err);
	if (!code) code = nr_coco_eval(image, truth->images, found.item, found.count, truth->classes, masks, &r, &err);
	nr_coco_results_release(&found);
	if (code) golden_stop(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	return r;
}

static void check_values(struct golden_case *c, const char *kind, const char *name, const double *x, int64_t n)
{
	real *out = golden_reals(c, n);
	for (int64_t i = 0; i < n; i++) out[i] = (real)x[i];
	golden_check(c, "out", out, n, "%s.%s", kind, name);
}

int golden_metric_coco_eval(struct golden_case *c)
{
	static const char *const kinds[] = { "bbox", "segm" };
	const json_t *files = json_object_get(c->config, "files");
	const char *slash = strrchr(c->path, '/');      /* files are beside the folder of this one */
	const char *folder = nr_arena_printf(c->arena, "%.*s../", slash ? (int)(slash + 1 - c->path) : 0, c->path);
	for (int k = 0; k < 2; k++) {
		const char *gt = json_string_value(json_array_get(files, 0)), *dt = json_string_value(json_array_get(files, 1 + (size_t)k));
		golden_expect(c, gt && dt && folder, "names of files");
		struct nr_coco truth;
		struct nr_coco_result r = score(c, &truth, nr_arena_printf(c->arena, "%s%s", folder, gt),
			nr_arena_printf(c->arena, "%s%s", folder, dt), k);
		const int64_t K = r.classes;
		check_values(c, kinds[k], "stats", r.stat, NR_COCO_STATS);
		check_values(c, kinds[k], "precision_all_100", r.precision, NR_COCO_IOUS * NR_COCO_RECALLS * K);
		check_values(c, kinds[k], "recall", r.recall, NR_COCO_IOUS * K * NR_COCO_AREAS * NR_COCO_LIMITS);
		nr_coco_result_release(&r);
	}
	return GOLDEN_RAN;
}

static void expect(struct golden_case *c, const char *kind, const char *name, const json_t *of, double got)
{
	const json_t *want = json_object_get(of, name);
	c->checks++;
	if (!json_is_number(want)) golden_fail(c, kind, "no %s", name);
	else if (!(fabs(got - json_number_value(want)) <= TOLERANCE))
		golden_fail(c, kind, "%s is %.12g instead of %.12g", name, got, json_number_value(want));
}

void golden_coco_expected(struct golden_case *c)
{
	static const char *const kinds[] = { "bbox", "segm" };
	struct nr_error err = { 0 };
	char text[1536];
	c->config = nr_json_load(c->path, &err);        /* the runner frees it */
	if (setjmp(c->leave)) return;
	if (!c->config) golden_stop(c, NULL, "%s", nr_error_text(&err, text, sizeof text));
	const int stem = (int)(strlen(c->path) - strlen("_expected.json"));
	for (int k = 0; k < 2; k++) {
		const json_t *want = json_object_get(c->config, kinds[k]), *each = json_object_get(want, "AP_per_category");
		struct nr_coco truth;
		struct nr_coco_result r = score(c, &truth, nr_arena_printf(c->arena, "%.*s_gt.json", stem, c->path),
			nr_arena_printf(c->arena, "%.*s_det_%s.json", stem, c->path, kinds[k]), k);
		for (int i = 0; i < NR_COCO_STATS; i++)
			expect(c, kinds[k], nr_coco_stat_names[i], json_object_get(want, "stats"), r.stat[i]);
		for (int32_t i = 0; i < r.classes; i++) {
			const char *id = nr_arena_printf(c->arena, "%lld", (long long)truth.category[i]);
			expect(c, kinds[k], id, each, r.class[i].ap);
		}
		nr_coco_result_release(&r);
	}
}
