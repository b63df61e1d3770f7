/* norma score DETECTIONS ANNOTATIONS: COCO's average precision of a file of detections, whoever made it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/coco_record.h"
#include "base/save.h"
#include "cli.h"
#include "data/coco_results.h"
#include "picture/mark.h"
#include "picture/picture.h"
#include "score_tables.h"

struct score { int32_t of; char *pictures, *draw; int64_t count; double least; bool json; };
static const char *const kinds[] = { "boxes", "masks", "auto", NULL };     /* enum nr_coco_scored */
static const struct nr_option options[] = {
	NR_OPT_ENUM(struct score, of, "auto", kinds, "what is compared; auto: masks if the detections have no boxes"),
	CLI_TEXT(struct score, draw, "", "DIR", "also draw detections onto pictures, as PNGs into this folder"),
	CLI_TEXT(struct score, pictures, "", "DIR", "where the pictures of the annotations are, for --draw"),
	NR_OPT_INT(struct score, count, 16, 1, 1000000, "how many pictures to draw"),
	NR_OPT_FLOAT(struct score, least, 0.5, 0, 1, "lowest score that is drawn"),
	NR_OPT_BOOL(struct score, json, "0", "print one line of JSON, with precision at 101 recalls"),
	NR_OPT_END
};

/* ---- pictures -------------------------------------------------------------------------------------------------------------- */

static int draw_one(struct cli *c, const struct score *o, const struct nr_coco *truth, int64_t image, const struct nr_coco_results *found)
{
	struct nr_picture from = { 0 }, to = { 0 };
	struct nr_mark_of *mark = calloc((size_t)found->count + 1, sizeof *mark);
	const char *path = nr_arena_printf(c->arena, "%s/%s", o->pictures, truth->file[image]);
	const char *out = nr_arena_printf(c->arena, "%s/%lld.png", o->draw, (long long)truth->image[image].image_id);
	int64_t n = 0;
	int code = mark && path && out ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot draw", o->draw, "out of memory");
	for (int64_t i = 0; i < found->count && !code; i++) {
		const struct nr_detection *d = &found->item[i];
		if (d->image_id != truth->image[image].image_id || d->score < o->least) continue;
		mark[n] = (struct nr_mark_of){ .mask = d->mask, .label = d->label,
			.text = nr_arena_printf(c->arena, "%s %.2f", truth->name[d->label], d->score) };
		memcpy(mark[n++].xywh, d->xywh, sizeof d->xywh);
	}
	if (!code) code = nr_picture_read(&from, path, 3, c->err);
	if (!code) code = nr_picture_as_sized(&from, truth->image[image].h, truth->image[image].w, path, c->err);
	if (!code) code = nr_picture_mark(&from, mark, n, 0, &to, c->err);
	if (!code) code = nr_picture_write_png(&to, out, c->err);
	nr_picture_release(&from);
	nr_picture_release(&to);
	free(mark);
	return code;
}

static int draw(struct cli *c, const struct score *o, const struct nr_coco *truth, const struct nr_coco_results *found)
{
	if (!*o->pictures) {
		cli_usage(c, "--draw needs --pictures");
		return nr_hint(c->err, "--pictures val2017");
	}
	const int64_t n = o->count < truth->images ? o->count : truth->images;
	if (nr_folder_make(o->draw, c->err)) return c->err->code;
	for (int64_t i = 0; i < n; i++)
		if (draw_one(c, o, truth, i, found)) return c->err->code;
	if (!o->json) printf("%lld pictures with the detections from a score of %g on, in '%s'\n", (long long)n, o->least, o->draw);
	return NR_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------------------ */

static int print(struct cli *c, const struct score *o, const struct nr_list *args, const struct nr_coco *truth,
	const struct nr_coco_results *found, const struct nr_coco_result *r)
{
	if (o->json) {
		json_t *j = nr_coco_json(r, truth->name);
		json_object_set_new(j, "file", json_string(args->item[0]));
		json_object_set_new(j, "annotations", json_string(args->item[1]));
		json_object_set_new(j, "of", json_string(kinds[found->masks]));
		json_object_set_new(j, "pictures", json_integer(truth->images));
		json_object_set_new(j, "found", json_integer(found->count));
		return cli_print_json(j, c->err);
	}
	printf("%s of %lld detections, %lld objects in %lld pictures\n", found->masks ? "masks" : "boxes", (long long)found->count,
		(long long)truth->objects, (long long)truth->images);
	cli_print_objects(r, truth->name);
	return NR_OK;
}

static int run(struct cli *c, const void *conf, const struct nr_list *args)
{
	const struct score *o = conf;
	struct nr_coco truth;
	struct nr_coco_results found = { 0 };
	struct nr_coco_result r = { 0 };
	if (args->count != 2) {
		cli_usage(c, "score needs a file of detections and one of annotations");
		return nr_hint(c->err, "norma score detections.json instances_val2017.json");
	}
	if (nr_coco_read(&truth, args->item[1], &(struct nr_coco_how){ NR_COCO_TRUST, o->of != NR_COCO_BOXES }, c->arena, c->err))
		return c->err->code;
	const struct nr_objects **image = nr_arena_alloc(c->arena, ((size_t)truth.images + 1) * sizeof(struct nr_objects *));
	int code = image ? NR_OK : nr_fail(c->err, NR_EMEMORY, "cannot score", args->item[0], "out of memory");
	for (int64_t i = 0; i < truth.images && image; i++) image[i] = &truth.image[i];
	if (!code) code = nr_coco_results_read(&found, args->item[0], &truth, (enum nr_coco_scored)o->of, c->err);
	if (!code) code = nr_coco_eval(image, truth.images, found.item, found.count, truth.classes, found.masks, &r, c->err);
	if (!code) code = print(c, o, args, &truth, &found, &r);
	if (!code && *o->draw) code = draw(c, o, &truth, &found);
	nr_coco_result_release(&r);
	nr_coco_results_release(&found);
	return code;
}

const struct cli_command cli_score = {
	.name = "score",
	.title = "COCO's average precision of a file of detections",
	.usage = "DETECTIONS.json ANNOTATIONS.json",
	.about = "Compares detections, boxes or masks, with the annotations of COCO and prints average precision and recall as\n"
		 "pycocotools does (COCOeval): AP over IoU .5 to .95, at .5 and .75, by size of the objects, and of each class. The\n"
		 "detections may come from `norma detect` or any other program: a list of {\"image_id\", \"category_id\", \"bbox\" or\n"
		 "\"segmentation\", \"score\"}.",
	.conf_size = sizeof(struct score),
	.options = options,
	.run = run,
};
