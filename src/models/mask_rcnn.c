/* See mask_rcnn.h. */
#include "models/mask_rcnn.h"

#include <string.h>

#include "base/mem.h"
#include "models/stages.h"
#include "norma/nn.h"

void nr_mask_rcnn(struct nr_net *n, const struct nr_mask_rcnn *o, nr_t *const *level, int count, int64_t h, int64_t w, nr_t *size,
	struct nr_mask_rcnn_graph *g)
{
	nr_t *logit[NR_MAXLEVELS] = { NULL }, *delta[NR_MAXLEVELS] = { NULL };
	*g = (struct nr_mask_rcnn_graph){ .pooled = count, .h = h, .w = w };
	g->levels = nr_fpn(n, &o->neck, level, count, g->map);
	if (!g->levels || !nr_anchor_grid_of(n, &o->anchors, g->map, g->levels, h, w, &g->grid)) return;
	for (int l = 0; l < g->levels; l++) {
		nr_t *x = nr_tower(n, "rpn", g->map[l], o->neck.dim, o->rpn_convs);
		logit[l] = nr_anchor_head(n, "rpn.class", x, g->grid.shapes, 1, 1);
		delta[l] = nr_anchor_head(n, "rpn.box", x, g->grid.shapes, 4, 1);
	}
	g->objectness = nr_join_levels(n, logit, g->levels);
	g->delta = nr_join_levels(n, delta, g->levels);
	nr_small_start(n, "tower.0.rpn.conv", 0);
	nr_small_start(n, "rpn.class", 0);
	nr_small_start(n, "rpn.box", 0);
	g->proposals = nr_proposals(n, g->objectness, g->delta, size, &g->grid, o->proposals, &g->count);
}

/* What each box of g->boxes is read as. */
static nr_t *read_boxes(struct nr_net *n, const struct nr_mask_rcnn *o, const struct nr_mask_rcnn_graph *g, nr_t *boxes, int64_t size,
	int channels_first)
{
	struct nr_roi_align_options pool = o->pool;
	pool.size = size;
	pool.channels_first = channels_first;
	nr_level_strides(g->h, g->map, g->pooled, pool.stride);
	return nr_roi_align(n, boxes, g->map, g->pooled, pool);
}

/* Two layers, then class and offsets of each box (B,S,4). */
static void box_head(struct nr_net *n, const struct nr_mask_rcnn *o, struct nr_mask_rcnn_graph *g, nr_t *boxes)
{
	nr_t *x = read_boxes(n, o, g, boxes, o->pool.size, 1);
	x = nr_activate(n, "relu", nr_linear(n, "roi.fc.0", x, o->fc));
	x = nr_activate(n, "relu", nr_linear(n, "roi.fc.1", x, o->fc));
	g->class_logit = nr_linear(n, "roi.class", x, o->classes + 1);
	g->offset = nr_linear(n, "roi.box", x, 4 * (o->classes + o->background_first));
	nr_small_start(n, "roi.class", 0);
	nr_small_start(n, "roi.box", 0);
}

/* (B R,M,M,K) for boxes (B,R,4). */
static nr_t *mask_head(struct nr_net *n, const struct nr_mask_rcnn *o, struct nr_mask_rcnn_graph *g, nr_t *boxes)
{
	nr_t *x = nr_tower(n, "head.mask", nr_as_tokens(n, read_boxes(n, o, g, boxes, o->mask_pool, 0)), o->neck.dim, o->mask_convs);
	x = nr_activate(n, "relu", nr_deconv(n, "mask.up", nr_as_grid(n, x), o->neck.dim));
	return nr_conv(n, "mask.out", x, o->classes + o->background_first, 1, 1, 0, 1, 1);
}

nr_t *nr_mask_rcnn_loss(struct nr_net *n, const struct nr_mask_rcnn *o, struct nr_mask_rcnn_graph *g, nr_t *truth, nr_t *classes,
	nr_t *masks)
{
	if (!g->objectness) return NULL;
	struct nr_anchor_rule rpn = o->rpn;
	rpn.grid = g->grid;
	g->weight = nr_anchor_match(n, truth, classes, &rpn, &g->match);
	g->loss_objectness =
		nr_tap(n, "loss_objectness", nr_focal_loss(n, g->objectness, g->match, g->weight, NULL, (struct nr_focal){ -1, 0 }));
	g->loss_rpn = nr_tap(n, "loss_rpn", nr_anchor_box_loss(n, g->delta, g->match, g->weight, truth, &g->grid, o->rpn_cost));

	nr_t *matched, *weight, *mask_weight, *count = g->count;
	g->boxes = nr_roi_sample(n, g->proposals, count, truth, classes, o->sample, &g->label, &matched);
	g->box_target = nr_box_targets(n, g->boxes, g->label, matched, truth, o->roi_std, o->sample.background, &weight);
	box_head(n, o, g, g->boxes);
	g->loss_class = nr_tap(n, "loss_class", nr_cross_entropy(n, g->class_logit, g->label, 0, -1));
	g->loss_box = nr_tap(n, "loss_box", nr_picked_loss(n, g->offset, g->label, g->box_target, weight,
		(struct nr_picked_options){ .kind = NR_PICKED_L1, .beta = o->roi_beta }));
	if (!g->boxes) return NULL;
	const int64_t S = g->boxes->d[1], R = o->mask_rows > 0 && o->mask_rows < S ? o->mask_rows : S;
	const struct nr_mask_target target = { .rows = R, .size = 2 * o->mask_pool, .h = g->h, .w = g->w, .aligned = o->pool.aligned,
		.threshold = o->mask_threshold, .background = o->sample.background };
	g->mask_target = nr_mask_targets(n, g->boxes, g->label, matched, masks, target, &mask_weight, &g->own);
	g->mask_logit = mask_head(n, o, g, R < S ? nr_pack(n, nr_span(n, g->boxes, 0, R)) : g->boxes);
	g->loss_mask = nr_tap(n, "loss_mask", nr_picked_loss(n, g->mask_logit, g->own, g->mask_target, mask_weight,
		(struct nr_picked_options){ .kind = NR_PICKED_BCE, .last = 1 }));
	nr_t *boxes = nr_add(n, nr_add(n, g->loss_objectness, g->loss_rpn), nr_add(n, g->loss_class, g->loss_box));
	return nr_add(n, boxes, g->loss_mask);
}

nr_t *nr_mask_rcnn_detections(struct nr_net *n, const struct nr_mask_rcnn *o, struct nr_mask_rcnn_graph *g, nr_t *size, nr_t **score,
	nr_t **label, nr_t **mask)
{
	*score = *label = *mask = NULL;
	if (!g->proposals) return NULL;
	box_head(n, o, g, g->proposals);
	nr_t *boxes = nr_detections(n, nr_softmax(n, g->class_logit, 1, NULL), g->offset, g->proposals, g->count, size, o->background_first,
		o->rule, score, label);
	if (!boxes) return NULL;
	*mask = nr_pick_masks(n, mask_head(n, o, g, boxes), *label, o->background_first);
	return boxes;
}
