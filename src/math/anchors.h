/* Anchors of a pyramid, which true boxes they stand for, and what their offsets cost: RetinaNet's (Lin et al. 2017, arXiv:1708.02002) and
 * those of region proposals (Ren et al. 2015, arXiv:1506.01497). Boxes are x1 y1 x2 y2. All is computed in double, so that float and
 * double match the same boxes. */
#ifndef NR_ANCHORS_H
#define NR_ANCHORS_H

#include "base/real.h"

/* Anchors are ordered by level, place (x fastest) and shape, each centred on (x dx, y dy). */
enum { NR_ANCHOR_LEVELS = 7, NR_ANCHOR_SHAPES = 16 };
struct nr_anchor_grid {
	int levels, shapes;
	struct nr_anchor_level { int64_t h, w; double dx, dy, half[NR_ANCHOR_SHAPES][2]; } level[NR_ANCHOR_LEVELS];   /* half: x, y */
};
/* The shapes of a level: sizes (roots of areas) for each ratio h / w; rounded: half sides are whole numbers, made in single precision, as
 * torchvision's are. Others have mmdetection's last bits, which decide what ties for a box. */
void nr_anchor_shapes(struct nr_anchor_level *, int ratios, const double *ratio, int sizes, const double *size, int rounded);
int64_t nr_anchor_count(const struct nr_anchor_grid *);
int64_t nr_anchor_count_at(const struct nr_anchor_grid *, int level);
void nr_anchor_box(const struct nr_anchor_grid *, int64_t i, double box[4]);
void nr_anchor_boxes(const struct nr_anchor_grid *, double *box);               /* (count,4) */

/* Priors (anchors, proposals) and the true boxes that they should become: the one that they overlap most if the IoU is at least `high`;
 * none below `low`. Low quality: those with the highest IoU of a box, of at least low_iou, get back their own best one (torchvision), or
 * all get that box, later boxes last (mmdetection). */
enum nr_match_low { NR_MATCH_NO_LOW, NR_MATCH_OWN, NR_MATCH_THAT };
enum { NR_MATCH_BACKGROUND = -1, NR_MATCH_BETWEEN = -2 };
struct nr_match_rule { double high, low, low_iou; int low_quality; };
/* match (n): a number of a box, or one of the two above; top (m) is scratch. */
void nr_match(const struct nr_match_rule *, int64_t n, const double *prior, int64_t m, const double *box, double *top, int32_t *match);
double nr_iou(const double a[4], const double b[4]);

/* What the offset x of a prior costs whose true box is `truth`, and its gradient d (4), or NULL. */
enum nr_box_loss { NR_BOX_L1, NR_BOX_GIOU };    /* of offsets, smooth below beta; 1 - GIoU of boxes (arXiv:1902.09630) */
struct nr_box_cost { int kind; double beta, std[4], limit; int both_sides; };   /* limit: of the logarithms, as in struct nr_decode */
double nr_box_cost(const struct nr_box_cost *, const double prior[4], const real truth[4], const real x[4], double *d);

#endif
