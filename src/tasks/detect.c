/* detect: boxes of objects, with mask_rcnn also their masks, learned from COCO's annotations; the detectors are models/detector.c.
 *
 * An evaluation looks at every picture once and scores as COCO does; what the best weights found is written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "analysis/coco_record.h"
#include "analysis/detector_eval.h"
#include "data/coco_file.h"
#include "data/coco_results.h"
#include "data/object_view.h"
#include "norms/choice.h"
#include "tasks/detect_sheet.h"
#include "train/task.h"

enum { AP, AP50, AP75, AP_SMALL, AP_MEDIUM, AP_LARGE, AR, MASK_AP, MASK_AP50, MASK_AP75, MASK_AR, OF_EVAL };
enum { CLASS, BOX, OBJECTNESS, PROPOSALS, MASK, OF_STEP };

struct detect {
	struct nr_object_view view, eval_view;
	struct nr_detector_graph g;
	struct nr_detector_runner runner;
	const char *dir;
	struct nr_detector_found found;         /* by the last evaluation */
	struct nr_detector_score score;
	enum nr_split split;                    /* of which samples */
	const int32_t *index;
	int64_t left_out;                       /* objects beyond the limit */
};

static const struct nr_detector *settings(const struct nr_task_run *r) { return r->settings; }
static bool has_masks(const struct nr_task_run *r) { return settings(r)->detector == NR_MASK_RCNN; }

/* ---- before the first step --------------------------------------------------------------------------------------------------- */

static int64_t learned(const struct nr_objects *o)
{
	int64_t n = 0;
	for (int32_t i = 0; o && i < o->count; i++) n += !o->object[i].crowd;
	return n;
}

/* How many objects a picture has room for: those of the fullest one, as far as the limit goes. */
static int count_objects(struct nr_task_run *r, struct nr_error *err)
{
	struct detect *s = r->own;
	int64_t most = 1;
	for (int64_t i = 0; i < r->train.count; i++) {
		const struct nr_objects *o = nr_source_objects(r->source, r->train.split, r->train.index ? r->train.index[i] : i);
		if (!o) return nr_fail(err, NR_EVALUE, "cannot detect", r->c->data, "its pictures have no objects");
		const int64_t n = learned(o), limit = settings(r)->objects;
		for (int32_t k = 0; has_masks(r) && k < o->count; k++)
			if (!o->object[k].crowd && !o->object[k].mask) {
				nr_fail(err, NR_EVALUE, "cannot learn masks from", r->c->data, "object %lld has none",
					(long long)o->object[k].id);
				return nr_hint(err, "use --detector retinanet, or data with masks");
			}
		if (n > limit) s->left_out += n - limit;
		most = n > most ? n : most;
	}
	s->view.objects = most < settings(r)->objects ? most : settings(r)->objects;
	return NR_OK;
}

static int settle(struct nr_task_run *r, struct nr_error *err)
{
	if (nr_model_expect(&r->w->model, NR_PICTURES, err)) return err->code;
	if (!r->source->of->objects) {
		nr_fail(err, NR_EVALUE, "cannot detect", r->c->data, "its pictures have no objects");
		return nr_hint(err, "use --data coco:path=DIR; norma data make shapes draws some");
	}
	if (nr_task_set(r, "classes", r->source->classes, err) || nr_task_set(r, "channels", r->source->channels, err)) return err->code;
	if (nr_model_int(&r->w->model, "classes") != r->source->classes)
		return nr_fail(err, NR_EVALUE, "cannot detect", r->w->model.text, "the data have %d classes", r->source->classes);
	r->w->norms = nr_detector_backbone_norms(r->norms, r->arena);   /* a checkpoint may be read as a backbone */
	return count_objects(r, err);
}

static nr_t *record(struct nr_task_run *r)
{
	struct detect *s = r->own;
	return nr_detector_loss(r->net, &r->w->model, settings(r), r->c->batch, s->view.objects, &s->g);
}

static int ready(struct nr_task_run *r, int64_t batch, struct nr_error *err)
{
	struct detect *s = r->own;
	const struct nr_pixel_stats stats = nr_source_pixel_stats(r->source);
	const int64_t objects = s->view.objects;
	if (nr_object_view_init(&s->view, &r->c->augment, &stats, settings(r)->short_sides, err)) return err->code;
	s->eval_view = s->view;
	s->view.objects = objects;
	s->view.chance = true;
	s->view.masks = has_masks(r);
	return nr_detector_runner_open(&s->runner, r->w, settings(r), r->norms, batch, err);
}

static int begin(struct nr_task_run *r, const char *dir, struct nr_error *err)
{
	struct detect *s = r->own;
	s->dir = nr_arena_strdup(r->arena, dir);
	return s->dir ? NR_OK : nr_fail(err, NR_EMEMORY, "cannot start the training", NULL, "out of memory");
}

static void load(const struct nr_task_run *r, struct nr_loader_config *l)
{
	const struct detect *s = r->own;
	l->make = nr_object_view_make;
	l->maker = &s->view;
	l->height = l->width = s->view.size;
	l->extra = nr_object_bytes(&s->view);
}

/* ---- a step -------------------------------------------------------------------------------------------------------------------- */

static void bind(struct nr_task_run *r, const struct nr_batch *b, int64_t number)
{
	const struct detect *s = r->own;
	const struct nr_object_view *v = &s->view;
	const size_t G = (size_t)v->objects, bytes = nr_object_bytes(v), mask = ((size_t)v->size * (size_t)v->size + 7) / 8;
	real *truth = nr_plan_data(r->plan, s->g.truth), *size = nr_plan_data(r->plan, s->g.sizes);
	int32_t *classes = nr_plan_data(r->plan, s->g.classes);
	(void)number;
	nr_from_floats(nr_plan_data(r->plan, s->g.image), b->image, nr_len(s->g.image));
	for (size_t i = 0; i < (size_t)r->c->batch; i++) {
		const void *extra = (const char *)b->extra + i * bytes;
		const struct nr_object_sample *of = extra;
		size[2 * i] = of->h, size[2 * i + 1] = of->w;
		nr_from_floats(truth + 4 * i * G, nr_object_boxes(v, extra), (int64_t)(4 * G));
		memcpy(classes + i * G, nr_object_labels(v, extra), G * sizeof *classes);
		if (s->g.masks) memcpy((uint8_t *)nr_plan_data(r->plan, s->g.masks) + i * G * mask, nr_object_masks(v, extra), G * mask);
	}
}

static double loss_of(const struct nr_task_run *r, const nr_t *loss)
{
	return loss ? (double)r->c->batch * (double)*(const real *)nr_plan_data(r->plan, loss) : NAN;
}
static void measure(struct nr_task_run *r, const struct nr_batch *b, double *sum)
{
	const struct detect *s = r->own;
	const bool one = settings(r)->detector == NR_RETINANET;
	(void)b;
	sum[CLASS] += loss_of(r, one ? s->g.retina.class_loss : s->g.rcnn.loss_class);
	sum[BOX] += loss_of(r, one ? s->g.retina.box_loss : s->g.rcnn.loss_box);
	sum[OBJECTNESS] += loss_of(r, one ? NULL : s->g.rcnn.loss_objectness);
	sum[PROPOSALS] += loss_of(r, one ? NULL : s->g.rcnn.loss_rpn);
	sum[MASK] += loss_of(r, one ? NULL : s->g.rcnn.loss_mask);
}

/* ---- evaluation ---------------------------------------------------------------------------------------------------------------- */

/* -1: there is no such object. */
static double known(const struct nr_coco_result *r, enum nr_coco_stat stat)
{
	return r->classes && r->stat[stat] >= 0 ? r->stat[stat] : (double)NAN;
}

static int evaluate(struct nr_task_run *r, const struct nr_evaluation *e, double *value, int64_t *samples, struct nr_error *err)
{
	static const enum nr_coco_stat of[OF_EVAL] = { NR_AP, NR_AP50, NR_AP75, NR_AP_SMALL, NR_AP_MEDIUM, NR_AP_LARGE, NR_AR100,
		NR_AP, NR_AP50, NR_AP75, NR_AR100 };
	struct detect *s = r->own;
	nr_detector_found_release(&s->found);
	nr_detector_score_release(&s->score);
	s->split = e->split;
	s->index = e->index;
	int code = nr_detector_look(&s->runner, &s->eval_view, e, has_masks(r), &s->found, err);
	if (!code) code = nr_detector_score(&s->found, r->source->classes, has_masks(r), &s->score, err);
	for (int i = 0; !code && i < OF_EVAL; i++) value[i] = known(i < MASK_AP ? &s->score.box : &s->score.mask, of[i]);
	*samples = s->found.images;
	return code;
}

/* What pycocotools reads, and the scores for the report. */
static int predictions(struct nr_task_run *r, struct nr_str *text, struct nr_error *err)
{
	const struct detect *s = r->own;
	const struct nr_coco *coco = nr_coco_of(r->source, s->split);
	if (!s->score.box.classes) return NR_OK;
	for (int masks = 0; masks < (has_masks(r) ? 2 : 1) && s->dir; masks++) {
		const char *path = nr_arena_printf(r->arena, "%s/detections_%s.json", s->dir, masks ? "segm" : "bbox");
		if (!path) return nr_fail(err, NR_EMEMORY, "cannot write the detections", NULL, "out of memory");
		if (nr_coco_results_write(path, s->found.item, s->found.count, coco ? coco->category : NULL, masks, err)) return err->code;
	}
	return nr_coco_record(text, &s->score.box, has_masks(r) ? &s->score.mask : NULL, r->source->class_name, nr_split_name(s->split),
		s->found.images, err);
}

static int draw(struct nr_task_run *r, const char *path, struct nr_error *err)
{
	const struct detect *s = r->own;
	return nr_detect_sheet_draw(r->source, s->split, s->index, &s->found, path, err);
}

static void describe(const struct nr_task_run *r, struct nr_str *text)
{
	const struct detect *s = r->own;
	const struct nr_detector *d = settings(r);
	nr_str_printf(text, "detector          %s, as %s has it; pictures fill %d x %d pixels", d->detector == NR_RETINANET ? "RetinaNet" :
		"Mask R-CNN", d->convention == NR_TORCHVISION ? "torchvision" : "mmdetection", s->view.size, s->view.size);
	if (s->view.sides) nr_str_printf(text, ", shorter sides of %s", d->short_sides);
	nr_str_printf(text, "; up to %lld objects each\n", (long long)s->view.objects);
	if (s->left_out)
		nr_str_printf(text, "                  %lld objects of fuller pictures are left out (--objects)\n", (long long)s->left_out);
}

/* So that weights can be read with their detector. */
static int meta(const struct nr_task_run *r, struct nr_st_meta *m)
{
	m[0] = (struct nr_st_meta){ "norma.detector", nr_options_text(nr_detector_options, r->settings, r->arena) };
	m[1] = (struct nr_st_meta){ "norma.detector.norms", r->norms };
	return 2;
}

static void close(struct nr_task_run *r)
{
	struct detect *s = r->own;
	nr_detector_runner_close(&s->runner);
	nr_detector_found_release(&s->found);
	nr_detector_score_release(&s->score);
}

static const struct nr_task_default defaults[] = { { "optimizer", "adamw" }, { "lr", "1e-4" }, { "weight_decay", "1e-4" },
	{ "schedule", "detection" }, { "warmup", "0.1" }, { "epochs", "12" }, { "batch", "16" }, { "flip", "0.5" }, { NULL, NULL } };

#define STEP_LOSS(name_, title_) { .name = name_, .title = title_, .unit = "mean between evaluations", .lower = true, .wide = true }
static const struct nr_task_metric of_step[] = {
	STEP_LOSS("class", "Classes in the training loss"), STEP_LOSS("box", "Boxes in the training loss"),
	STEP_LOSS("objectness", "Objectness in the training loss"), STEP_LOSS("proposals", "Proposals in the training loss"),
	STEP_LOSS("mask", "Masks in the training loss"), { .name = NULL },
};
static const struct nr_task_metric of_eval[] = {
	{ .name = "ap", .label = "AP", .unit = "%", .title = "Average precision of boxes", .says = "Mean over IoU of .5 to .95." },
	{ .name = "ap50", .unit = "%", .title = "Average precision of boxes at IoU .5" },
	{ .name = "ap75", .unit = "%", .title = "Average precision of boxes at IoU .75" },
	{ .name = "ap_small", .unit = "%", .title = "Average precision, small objects" },
	{ .name = "ap_medium", .unit = "%", .title = "Average precision, medium objects" },
	{ .name = "ap_large", .unit = "%", .title = "Average precision, large objects" },
	{ .name = "ar", .unit = "%", .title = "Average recall of boxes", .says = "Of 100 detections of a picture." },
	{ .name = "mask_ap", .label = "mask AP", .unit = "%", .title = "Average precision of masks" },
	{ .name = "mask_ap50", .unit = "%", .title = "Average precision of masks at IoU .5" },
	{ .name = "mask_ap75", .unit = "%", .title = "Average precision of masks at IoU .75" },
	{ .name = "mask_ar", .unit = "%", .title = "Average recall of masks" },
	{ .name = NULL },
};

const struct nr_task nr_task_detect = {
	.name = "detect",
	.title = "detection of objects",
	.cite = "arXiv:1708.02002",
	.command = "detect",
	.summary = "train a detector of objects (RetinaNet, Mask R-CNN)",
	.usage = "[RECIPE.yaml] | --resume DIRECTORY",
	.about = "Trains a detector on pictures with COCO's annotations (--data coco:path=DIR), on any model of pictures: one with\n"
		 "levels (PVT, Swin), or a ViT, of whose last map a pyramid is made. The model's option image is the side of the\n"
		 "input, which pictures fill with their proportions kept. A norm plan covers neck and heads too, which have no norms\n"
		 "unless it says so: \"neck.**=gn:groups=32 head.**=gn:groups=32\". Settings, metrics, checkpoints, Ctrl-C\n"
		 "and resuming work as in `norma train`.\n"
		 "\n"
		 "Each evaluation computes COCO's average precision of boxes, with mask_rcnn also of masks, and draws what was found.\n"
		 "What the best weights found is in detections_bbox.json and detections_segm.json, which pycocotools and `norma\n"
		 "score` read, their scores in objects.json.",
	.options = nr_detector_options,
	.settings_size = sizeof(struct nr_detector),
	.defaults = defaults,
	.sample = "picture",
	.own_size = sizeof(struct detect),
	.of_step = of_step,
	.of_eval = of_eval,
	.decides = AP,
	.settle = settle,
	.record = record,
	.ready = ready,
	.begin = begin,
	.load = load,
	.bind = bind,
	.measure = measure,
	.evaluate = evaluate,
	.draw = draw,
	.picture = "objects.png",
	.predictions = predictions,
	.predicted = "objects.json",
	.describe = describe,
	.meta = meta,
	.close = close,
};
