/* What the entries of detectors are called in torchvision and in mmdetection; those of the backbone keep their names behind "backbone.". */
#include "models/detector.h"

#include <string.h>

#include "base/mem.h"
#include "models/names.h"

static const struct nr_rename torchvision[] = {
	{ "levels.#.neck.lateral.conv.", "backbone.fpn.inner_blocks.#.0." },
	{ "levels.#.neck.lateral.", "backbone.fpn.inner_blocks.#.1." },
	{ "levels.#.neck.out.conv.", "backbone.fpn.layer_blocks.#.0." },
	{ "levels.#.neck.out.", "backbone.fpn.layer_blocks.#.1." },
	{ "tower.#.head.class.conv.", "head.classification_head.conv.#.0." },
	{ "tower.#.head.class.", "head.classification_head.conv.#.1." },
	{ "tower.#.head.box.conv.", "head.regression_head.conv.#.0." },
	{ "tower.#.head.box.", "head.regression_head.conv.#.1." },
	{ "head.class.out.", "head.classification_head.cls_logits." },
	{ "head.box.out.", "head.regression_head.bbox_reg." },
	{ "tower.#.rpn.conv.", "rpn.head.conv.#.0." },
	{ "tower.#.rpn.", "rpn.head.conv.#.1." },
	{ "rpn.class.", "rpn.head.cls_logits." },
	{ "rpn.box.", "rpn.head.bbox_pred." },
	{ "roi.fc.0.", "roi_heads.box_head.fc6." },
	{ "roi.fc.1.", "roi_heads.box_head.fc7." },
	{ "roi.class.", "roi_heads.box_predictor.cls_score." },
	{ "roi.box.", "roi_heads.box_predictor.bbox_pred." },
	{ "tower.#.head.mask.conv.", "roi_heads.mask_head.#.0." },
	{ "tower.#.head.mask.", "roi_heads.mask_head.#.1." },
	{ "mask.up.", "roi_heads.mask_predictor.conv5_mask." },
	{ "mask.out.", "roi_heads.mask_predictor.mask_fcn_logits." },
	{ NULL, NULL },
};
static const struct nr_rename mmdetection[] = {
	{ "levels.#.neck.lateral.conv.", "neck.lateral_convs.#.conv." }, { "levels.#.neck.lateral.", "neck.lateral_convs.#.bn." },
	{ "levels.#.neck.extra.conv.", "neck.fpn_convs.#.conv." }, { "levels.#.neck.extra.", "neck.fpn_convs.#.bn." },
	{ "levels.#.neck.out.conv.", "neck.fpn_convs.#.conv." }, { "levels.#.neck.out.", "neck.fpn_convs.#.bn." },
	{ "tower.#.head.class.conv.", "bbox_head.cls_convs.#.conv." }, { "tower.#.head.class.", "bbox_head.cls_convs.#.bn." },
	{ "tower.#.head.box.conv.", "bbox_head.reg_convs.#.conv." }, { "tower.#.head.box.", "bbox_head.reg_convs.#.bn." },
	{ "head.class.out.", "bbox_head.retina_cls." }, { "head.box.out.", "bbox_head.retina_reg." },
	{ "tower.0.rpn.conv.", "rpn_head.rpn_conv." }, { "rpn.class.", "rpn_head.rpn_cls." }, { "rpn.box.", "rpn_head.rpn_reg." },
	{ "roi.fc.#.", "roi_head.bbox_head.shared_fcs.#." },
	{ "roi.class.", "roi_head.bbox_head.fc_cls." }, { "roi.box.", "roi_head.bbox_head.fc_reg." },
	{ "tower.#.head.mask.conv.", "roi_head.mask_head.convs.#.conv." }, { "tower.#.head.mask.", "roi_head.mask_head.convs.#.bn." },
	{ "mask.up.", "roi_head.mask_head.upsample." }, { "mask.out.", "roi_head.mask_head.conv_logits." }, { NULL, NULL },
};
/* torchvision's further levels are P6, P7, ... behind any number of levels. */
static const struct nr_rename *further_levels(const struct nr_numbers *n, struct nr_arena *arena)
{
	enum { MOST = NR_MAXLEVELS };
	struct nr_rename *rule = nr_arena_alloc(arena, (MOST + 1) * sizeof *rule);
	for (int i = 0; rule && i < MOST; i++) {
		rule[i].ours = nr_arena_printf(arena, "levels.%lld.neck.extra.conv.", (long long)n->levels + i);
		rule[i].theirs = nr_arena_printf(arena, "backbone.fpn.extra_blocks.p%d.", 6 + i);
		if (!rule[i].ours || !rule[i].theirs) return NULL;
	}
	if (rule) rule[MOST] = (struct nr_rename){ NULL, NULL };
	return rule;
}

static const struct nr_naming names[2] = { { .name = "torchvision", .rules = torchvision, .numbered = further_levels },
	{ .name = "mmdet", .rules = mmdetection } };
const struct nr_naming *nr_detector_naming(int convention, int64_t levels, struct nr_arena *arena)
{
	return nr_naming_numbered(&names[convention], &(struct nr_numbers){ .levels = levels }, arena);
}

const struct nr_scope_names nr_detector_scopes[2][2] = { { { "detect.", &names[NR_TORCHVISION] }, { NULL, NULL } },
	{ { "detect.", &names[NR_MMDETECTION] }, { NULL, NULL } } };
