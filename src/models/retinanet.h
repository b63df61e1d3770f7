/* RetinaNet (Lin et al. 2017, arXiv:1708.02002): on each level of a pyramid two towers of convolutions, shared by all levels, say the class
 * of every anchor and its offset to a box. What libraries do otherwise is a setting here; nr_detector (detector.h) knows their values.
 *
 *   parameters  those of the neck (fpn.h); tower.I.head.class.conv, head.class.out; tower.I.head.box.conv, head.box.out
 *   sites       tower[I].head.class, tower[I].head.box: no norm by default */
#ifndef NR_RETINANET_H
#define NR_RETINANET_H

#include "models/fpn.h"
#include "nn/anchors.h"

enum { NR_ANCHOR_RATIOS = 4, NR_ANCHOR_SIZES = 4 };
struct nr_anchor_plan {                     /* anchors of the levels of a neck */
	int ratios, sizes, rounded;
	double ratio[NR_ANCHOR_RATIOS], size[NR_ANCHOR_LEVELS][NR_ANCHOR_SIZES];
	double stride[NR_ANCHOR_LEVELS];    /* 0: the picture's size over the grid's, a whole number */
};
/* The anchors of these maps, of a picture of h x w pixels. False: the net has failed. */
bool nr_anchor_grid_of(struct nr_net *, const struct nr_anchor_plan *, nr_t *const *map, int levels, int64_t h, int64_t w,
	struct nr_anchor_grid *);

struct nr_retinanet {
	int64_t classes, convs;             /* of a tower */
	double prior;                       /* probability of anything at first */
	struct nr_fpn neck;
	struct nr_anchor_plan anchors;
	struct nr_match_rule match;
	int mean;                           /* enum nr_anchor_mean */
	struct nr_focal focal;
	struct nr_box_cost cost;
	struct nr_region_rule rule;         /* of detections */
};
struct nr_retinanet_graph {
	nr_t *map[NR_MAXLEVELS];            /* of the neck */
	int levels;
	struct nr_anchor_grid grid;
	nr_t *logit, *offset;               /* (B,N,K) (B,N,4) */
	nr_t *match, *weight, *class_loss, *box_loss;
};
/* Neck and heads on the maps of a backbone; logit is NULL after an error. */
void nr_retinanet(struct nr_net *, const struct nr_retinanet *, nr_t *const *level, int count, int64_t h, int64_t w,
	struct nr_retinanet_graph *);
/* The sum of both losses. truth (B,G,4), classes (B,G). */
nr_t *nr_retinanet_loss(struct nr_net *, const struct nr_retinanet *, struct nr_retinanet_graph *, nr_t *truth, nr_t *classes);
/* Boxes, scores and classes; size (B,2). */
nr_t *nr_retinanet_detections(struct nr_net *, const struct nr_retinanet *, struct nr_retinanet_graph *, nr_t *size, nr_t **score,
	nr_t **label);

/* A chain of convolutions 3 x 3 with relu: tower.I.SITE of each. */
nr_t *nr_tower(struct nr_net *, const char *site, nr_t *map, int64_t dim, int64_t convs);
/* A convolution k x k whose channels are `each` values for each anchor of a place: (B,T shapes,each). */
nr_t *nr_anchor_head(struct nr_net *, const char *name, nr_t *map, int64_t shapes, int64_t each, int64_t k);
/* The same of all levels, one after the other. */
nr_t *nr_join_levels(struct nr_net *, nr_t *const *x, int count);
/* A layer of the present scope whose weight starts as N(0, .01^2), its bias as that number. */
void nr_small_start(struct nr_net *, const char *name, double bias);

#endif
