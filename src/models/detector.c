/* See detector.h. Values are those of torchvision's retinanet_resnet50_fpn and maskrcnn_resnet50_fpn, or of mmdetection's RetinaNet and
 * Mask R-CNN on PVT. */
#include "models/detector.h"

#include <string.h>

#include "models/stages.h"
#include "norma/nn.h"
#include "norms/choice.h"

#define S struct nr_detector
#define SCOPE "detect"

static const char *const kinds[] = { "retinanet", "mask_rcnn", NULL }, *const conventions[] = { "torchvision", "mmdetection", NULL };
static const char *const box_losses[] = { "l1", "giou", NULL };
const struct nr_option nr_detector_options[] = { NR_OPT_ENUM(S, detector, "retinanet", kinds,
							 "retinanet: boxes in one stage; mask_rcnn: boxes and masks in two"),
	NR_OPT_ENUM(S, convention, "mmdetection", conventions, "whose anchors, matching and losses"),
	NR_OPT_INT(S, neck_dim, 256, 1, 65536, "channels of neck and heads"),
	NR_OPT_INT(S, head_convs, 4, 0, 16, "convolutions of RetinaNet's towers and of the mask head"),
	NR_OPT_INT(S, first_level, 0, 0, NR_MAXLEVELS, "first level of the backbone that is read, from 1; 0: 2, with mask_rcnn 1"),
	NR_OPT_INT(S, extra_levels, -1, -1, NR_MAXLEVELS, "further, coarser levels of the neck; -1: 2, with mask_rcnn 1"),
	NR_OPT_FLOAT(S, anchor, 0, 0, 1000, "side of a level's smallest anchors, in strides; 0: 4, with mask_rcnn 8"),
	NR_OPT_ENUM(S, box_loss, "l1", box_losses, "RetinaNet's: of offsets, or generalized IoU of boxes"),
	NR_OPT_INT(S, fc, 1024, 1, 65536, "width of Mask R-CNN's box head"),
	NR_OPT_INT(
		S, mask_pool, 14, 1, 256, "places of a box that Mask R-CNN's mask head reads, in each direction; masks have twice as many"),
	NR_OPT_INT(S, rpn_rows, 256, 1, 1000000, "anchors of a picture that the proposals learn from; half of them positive at most"),
	NR_OPT_INT(S, roi_rows, 512, 1, 1000000, "boxes of a picture that the heads learn from; a quarter of them positive at most"),
	NR_OPT_INT(S, before, 2000, 1, 1000000, "proposals of a level before overlapping ones are removed; half as many in evaluation"),
	NR_OPT_INT(S, proposals, 1000, 1, 1000000, "proposals of a picture"),
	NR_OPT_INT(S, roi_side, 56, 1, 65536, "boxes of up to twice this side are read from the finest level, others from coarser ones"),
	NR_OPT_FLOAT(S, score, 0.05, 0, 1, "detections have more than this score"),
	NR_OPT_FLOAT(S, nms, 0.5, 0, 1, "IoU with a better detection of the class up to which one is kept"),
	NR_OPT_INT(S, keep, 100, 1, 100000, "detections of a picture, at most"),
	NR_OPT_STRING(S, short_sides, "",
		"sides, \"480 512 544\": a picture's shorter side becomes one of them by chance, the last one in evaluation, as far as the "
		"longer one fits; none: the longer one fills the input"),
	NR_OPT_INT(S, objects, 100, 1, 10000, "objects of a picture that are learned from, at most"), NR_OPT_END };
#undef S

/* ---- what follows ----------------------------------------------------------------------------------------------------------- */

static struct nr_box_code code_of(const struct nr_detector *d, double xy, double wh)
{
	return (struct nr_box_code){ { xy, xy, wh, wh }, log(1000. / 16), d->convention == NR_MMDETECTION };
}

static void settle_anchors(const struct nr_detector *d, const double *stride, int levels, int sizes, struct nr_anchor_plan *p)
{
	const double first = d->anchor > 0 ? d->anchor : d->detector == NR_RETINANET ? 4 : 8;
	const bool tv = d->convention == NR_TORCHVISION;
	*p = (struct nr_anchor_plan){ .ratios = 3, .ratio = { .5, 1, 2 }, .sizes = sizes, .rounded = tv };
	for (int l = 0; l < levels; l++) {
		p->stride[l] = tv ? 0 : stride[l];
		for (int s = 0; s < sizes; s++) {
			const double size = first * stride[l] * exp2(s / 3.);
			p->size[l][s] = tv ? floor(size + 1e-6) : size;
		}
	}
}

static struct nr_region_rule detection_rule(const struct nr_detector *d, struct nr_box_code code)
{
	return (struct nr_region_rule){ .code = code, .score = d->score, .nms = d->nms, .before = 1000, .keep = d->keep,
		.min_size = d->detector == NR_RETINANET ? -1 : d->convention == NR_TORCHVISION ? .01 : 0 };
}

static struct nr_retinanet retinanet_of(const struct nr_detector *d, int64_t classes, const double *stride, int levels)
{
	const bool tv = d->convention == NR_TORCHVISION;
	const struct nr_box_code code = code_of(d, 1, 1);
	struct nr_retinanet o = { .classes = classes, .convs = d->head_convs, .prior = .01,
		.neck = { .dim = d->neck_dim, .extra = tv ? NR_FPN_CONV_OUTPUT : NR_FPN_CONV_INPUT, .relu_between = tv,
			.extras = d->extra_levels < 0 ? 2 : (int32_t)d->extra_levels },
		.match = { .high = .5, .low = .4, .low_quality = tv ? NR_MATCH_OWN : NR_MATCH_THAT },
		.mean = tv ? NR_ANCHOR_PER_PICTURE : NR_ANCHOR_POSITIVES, .focal = { .25, 2 },
		.cost = { .kind = d->box_loss, .std = { 1, 1, 1, 1 }, .limit = code.limit, .both_sides = code.both_sides },
		.rule = detection_rule(d, code),
	};
	settle_anchors(d, stride, levels, 3, &o.anchors);
	return o;
}

static struct nr_mask_rcnn mask_rcnn_of(const struct nr_detector *d, int64_t classes, const double *stride, int levels, bool training)
{
	const bool tv = d->convention == NR_TORCHVISION;
	struct nr_mask_rcnn o = {
		.classes = classes,
		.fc = d->fc,
		.rpn_convs = 1,
		.neck = { .dim = d->neck_dim, .extra = NR_FPN_POOL, .extras = d->extra_levels < 0 ? 1 : (int32_t)d->extra_levels },
		.rpn = { .match = { .high = .7, .low = .3, .low_iou = tv ? 0 : .3, .low_quality = tv ? NR_MATCH_OWN : NR_MATCH_THAT },
			.mean = tv ? NR_ANCHOR_DRAWN : NR_ANCHOR_DRAWN_BOTH,
			.rows = d->rpn_rows,
			.positive = .5 },
		.rpn_cost = { .kind = NR_BOX_L1, .beta = tv ? 1 / 9. : 0, .std = { 1, 1, 1, 1 } },
		.proposals = { .code = code_of(d, 1, 1),
			.nms = .7,
			.min_size = tv ? 1e-3 : 0,
			.before = training ? d->before : (d->before + 1) / 2,
			.keep = d->proposals },
		.background_first = tv,
		.sample = { .rows = d->roi_rows,
			.positive = .25,
			.iou = .5,
			.low_quality = !tv,
			.low_iou = .5,
			.boxes_first = !tv,
			.positives_first = 1,
			.background = tv ? 0 : (int32_t)classes },
		.roi_std = { .1, .1, .2, .2 },
		.roi_beta = tv ? 1 / 9. : 0,
		.pool = { .size = 7,
			.samples = tv ? 2 : 0,
			.aligned = !tv,
			.side = (double)d->roi_side * (tv ? 4 : 1),
			.at = tv ? 2 : 0,
			.inside = !tv },
		.rule = detection_rule(d, code_of(d, .1, .2)),
		.mask_convs = d->head_convs,
		.mask_pool = d->mask_pool,
		.mask_threshold = !tv,
		.mask_rows = (d->roi_rows + 3) / 4,
	};
	settle_anchors(d, stride, levels, 1, &o.anchors);
	return o;
}

/* ---- backbones -------------------------------------------------------------------------------------------------------------- */

/* Maps of 1/2, 1/4, ... of a patch, the patches and half of them: strides 4, 8, 16, 32 of a ViT with patches of 16. */
static int simple_pyramid(struct nr_net *n, const struct nr_model_spec *m, const struct nr_inputs *in, nr_t *level[NR_MAXLEVELS])
{
	nr_t *x = nr_model_tokens(n, m, in);
	if (!x) return 0;
	if (!x->tok || x->tok->h < 1) {
		nr_net_fail(n, NR_ESHAPE, SCOPE, "the model's tokens have no grid");
		return 0;
	}
	x = nr_as_grid(n, nr_with_tokens(n, nr_pack(n, nr_span(n, x, x->tok->special, NR_END)),
		(struct nr_tokens){ .h = x->tok->h, .w = x->tok->w }));
	if (!x) return 0;
	const int64_t C = x->d[3];
	nr_push(n, SCOPE ".pyramid");
	nr_t *twice = nr_deconv(n, "up4", x, C / 2 > 0 ? C / 2 : 1);
	level[0] = nr_as_tokens(n, nr_deconv(n, "up2", nr_activate(n, "gelu", twice), C / 4 > 0 ? C / 4 : 1));
	level[1] = nr_as_tokens(n, nr_deconv(n, "up", x, C / 2 > 0 ? C / 2 : 1));
	level[2] = nr_as_tokens(n, x);
	level[3] = nr_as_tokens(n, nr_pool(n, "max", x, 2, 2, 0));
	return nr_pop(n, level[3]) ? 4 : 0;
}

/* The levels that the neck reads, and the strides of all that it makes; how many it reads. */
static int backbone(struct nr_net *n, const struct nr_model_spec *m, const struct nr_detector *d, int64_t size, nr_t *image,
	nr_t *level[NR_MAXLEVELS], double *stride)
{
	const struct nr_inputs in = { .image = image };
	nr_t *all[NR_MAXLEVELS];
	const int count = m->of->levels ? m->of->levels(n, &in, m->conf, all) : simple_pyramid(n, m, &in, all);
	const int first = (int)(d->first_level ? d->first_level : d->detector == NR_RETINANET ? 2 : 1) - 1;
	if (count < 1) return 0;
	if (first >= count) {
		nr_net_fail(n, NR_EVALUE, SCOPE, "first level %d of a model that has %d", first + 1, count);
		return 0;
	}
	for (int i = first; i < count; i++) level[i - first] = all[i];
	nr_level_strides(size, level, count - first, stride);
	for (int i = count - first; i < NR_MAXLEVELS; i++) stride[i] = 2 * stride[i - 1];
	return count - first;
}

/* Inputs and neck; false after an error. */
struct parts { nr_t *level[NR_MAXLEVELS]; double stride[NR_MAXLEVELS]; int count, all; int64_t classes; };
static bool begin(struct nr_net *n, const struct nr_model_spec *m, const struct nr_detector *d, int64_t batch,
	struct nr_detector_graph *g, struct parts *p)
{
	*g = (struct nr_detector_graph){ .size = nr_model_int(m, "image") };
	g->image = nr_input(n, "image", NR_REAL, NR_SHAPE(batch, nr_model_int(m, "channels"), g->size, g->size));
	g->sizes = nr_input(n, "sizes", NR_REAL, NR_SHAPE(batch, 2));
	p->classes = nr_model_int(m, "classes");
	p->count = backbone(n, m, d, g->size, g->image, p->level, p->stride);
	p->all = p->count + (int)(d->extra_levels >= 0 ? d->extra_levels : d->detector == NR_RETINANET ? 2 : 1);
	if (p->count && p->all > NR_ANCHOR_LEVELS) {
		nr_net_fail(n, NR_EVALUE, SCOPE, "%d levels of a neck: at most %d", p->all, NR_ANCHOR_LEVELS);
		return false;
	}
	return p->count > 0;
}

nr_t *nr_detector_loss(struct nr_net *n, const struct nr_model_spec *m, const struct nr_detector *d, int64_t batch, int64_t G,
	struct nr_detector_graph *g)
{
	struct parts p;
	if (!begin(n, m, d, batch, g, &p)) return NULL;
	g->truth = nr_input(n, "truth", NR_REAL, NR_SHAPE(batch, G, 4));
	g->classes = nr_input(n, "classes", NR_I32, NR_SHAPE(batch, G));
	nr_push(n, SCOPE);
	if (d->detector == NR_RETINANET) {
		const struct nr_retinanet o = retinanet_of(d, p.classes, p.stride, p.all);
		nr_retinanet(n, &o, p.level, p.count, g->size, g->size, &g->retina);
		return nr_pop(n, nr_retinanet_loss(n, &o, &g->retina, g->truth, g->classes));
	}
	const struct nr_mask_rcnn o = mask_rcnn_of(d, p.classes, p.stride, p.all, true);
	g->masks = nr_input(n, "masks", NR_U8, NR_SHAPE(batch, G, (g->size * g->size + 7) / 8));
	nr_mask_rcnn(n, &o, p.level, p.count, g->size, g->size, g->sizes, &g->rcnn);
	return nr_pop(n, nr_mask_rcnn_loss(n, &o, &g->rcnn, g->truth, g->classes, g->masks));
}

nr_t *nr_detector_detections(struct nr_net *n, const struct nr_model_spec *m, const struct nr_detector *d, int64_t batch,
	struct nr_detector_graph *g)
{
	struct parts p;
	if (!begin(n, m, d, batch, g, &p)) return NULL;
	nr_push(n, SCOPE);
	if (d->detector == NR_RETINANET) {
		const struct nr_retinanet o = retinanet_of(d, p.classes, p.stride, p.all);
		nr_retinanet(n, &o, p.level, p.count, g->size, g->size, &g->retina);
		g->boxes = nr_retinanet_detections(n, &o, &g->retina, g->sizes, &g->scores, &g->labels);
	} else {
		const struct nr_mask_rcnn o = mask_rcnn_of(d, p.classes, p.stride, p.all, false);
		nr_mask_rcnn(n, &o, p.level, p.count, g->size, g->size, g->sizes, &g->rcnn);
		g->boxes = nr_mask_rcnn_detections(n, &o, &g->rcnn, g->sizes, &g->scores, &g->labels, &g->mask);
		nr_tap(n, "detections.mask", g->mask);
	}
	nr_tap(n, "detections.boxes", g->boxes), nr_tap(n, "detections.scores", g->scores), nr_tap(n, "detections.labels", g->labels);
	return nr_pop(n, g->mask ? g->mask : g->boxes);
}

const char *nr_detector_backbone_norms(const char *text, struct nr_arena *arena)
{
	static const char *const own[] = { SCOPE, "neck", "levels", "tower", "head", "rpn" };
	for (size_t i = 0; i < sizeof own / sizeof *own && text; i++) text = nr_norms_without(text, own[i], arena);
	return text;
}

bool nr_detector_entry(const char *name) { return !strncmp(name, SCOPE ".", sizeof SCOPE); }
