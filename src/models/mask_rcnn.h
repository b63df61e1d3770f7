/* Mask R-CNN (He et al. 2017, arXiv:1703.06870): a network proposes boxes of anything (Ren et al. 2015, arXiv:1506.01497); of each, read
 * from a pyramid, a head says class and box, another one the mask.
 *
 *   parameters  those of the neck (fpn.h); tower.0.rpn.conv, rpn.class, rpn.box; roi.fc.0, roi.fc.1, roi.class, roi.box;
 *               tower.I.head.mask.conv, mask.up, mask.out
 *   sites       tower[0].rpn, tower[I].head.mask: no norm by default */
#ifndef NR_MASK_RCNN_H
#define NR_MASK_RCNN_H

#include "models/retinanet.h"

struct nr_mask_rcnn {
	int64_t classes, fc;                /* width of the box head */
	struct nr_fpn neck;
	struct nr_anchor_plan anchors;
	/* proposals */
	int64_t rpn_convs;
	struct nr_anchor_rule rpn;          /* its grid follows from the maps */
	struct nr_box_cost rpn_cost;
	struct nr_region_rule proposals;
	/* boxes: background_first: class 0 is the background, and offsets exist for it, too; else it is the last one */
	int background_first;
	struct nr_sample_options sample;
	double roi_std[4], roi_beta;
	struct nr_roi_align_options pool;   /* strides follow from the maps */
	struct nr_region_rule rule;         /* of detections */
	/* masks: of the first mask_rows boxes of a picture */
	int64_t mask_convs, mask_pool, mask_rows;
	int mask_threshold;                 /* targets are 0 or 1 */
};
struct nr_mask_rcnn_graph {
	nr_t *map[NR_MAXLEVELS];
	int levels, pooled;                 /* of the neck; those that boxes are read from */
	int64_t h, w;
	struct nr_anchor_grid grid;
	nr_t *objectness, *delta;           /* of anchors: (B,N,1) (B,N,4) */
	nr_t *proposals, *count;            /* (B,P,4), (B) */
	nr_t *match, *weight;               /* of anchors */
	nr_t *boxes, *label, *own;          /* sampled: (B,S,4), (B,S), (B,S) */
	nr_t *box_target, *mask_target;     /* (B,S,4) (B,R,M M) */
	nr_t *class_logit, *offset;         /* (B,S,K+1), (B,S,4 K) */
	nr_t *mask_logit;                   /* (B R,M,M,K) */
	nr_t *loss_objectness, *loss_rpn, *loss_class, *loss_box, *loss_mask;
};
/* Neck, proposals; h x w: of the pictures. size (B,2): of what is no padding. objectness is NULL after an error. */
void nr_mask_rcnn(struct nr_net *, const struct nr_mask_rcnn *, nr_t *const *level, int count, int64_t h, int64_t w, nr_t *size,
	struct nr_mask_rcnn_graph *);
/* The sum of the five losses. truth (B,G,4), classes (B,G), masks (B,G,bytes): bits of h x w pixels. Boxes are sampled from
 * g->proposals, which the caller may have replaced. */
nr_t *nr_mask_rcnn_loss(struct nr_net *, const struct nr_mask_rcnn *, struct nr_mask_rcnn_graph *, nr_t *truth, nr_t *classes,
	nr_t *masks);
/* Boxes (B,keep,4), scores, classes, and of each the probabilities of its mask (B keep,M,M,1). */
nr_t *nr_mask_rcnn_detections(struct nr_net *, const struct nr_mask_rcnn *, struct nr_mask_rcnn_graph *, nr_t *size, nr_t **score,
	nr_t **label, nr_t **mask);

#endif
