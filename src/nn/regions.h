/* Regions of pictures, for detectors in two stages (Mask R-CNN): boxes that a network proposes are drawn, matched, read from a pyramid and
 * scored. Every picture of a batch has the same number of rows; those that are not used are zeros with label -1, and count for nothing.
 *
 *   proposals     decoded, clipped anchors, the best of each level that do not overlap
 *   detections    the same for the classes of scored boxes
 *   sample        proposals and true boxes with their labels
 *   roi_align     maps of boxes
 *   picked_loss   of the values that belong to a row's class */
#ifndef NR_REGIONS_H
#define NR_REGIONS_H

#include "math/anchors.h"
#include "norma/graph.h"

enum { NR_REGION_LEVELS = NR_MAXIN - 1 };

struct nr_roi_align_options {
	int64_t size, samples;              /* results are size x size; samples in each direction of a place, 0: by the box's size */
	int aligned;                        /* see math/roi.h */
	int channels_first;                 /* (B,S,C size size), as checkpoints' linear layers read them; else (B S,size,size,C) */
	double side, at;                    /* which level: nr_roi_pick */
	int inside;
	double stride[NR_REGION_LEVELS];
};
/* boxes (B,S,4) of maps (B,T,C) with their grids. */
nr_t *nr_roi_align(struct nr_net *, nr_t *boxes, nr_t *const *maps, int levels, struct nr_roi_align_options);

/* (B,h,w,4 C) -> (B,2 h,2 w,C): channels are (C,2,2) there, as a transposed convolution's. */
nr_t *nr_shuffle(struct nr_net *, nr_t *x);
/* Transposed convolution 2 x 2 with stride 2, (B,h,w,in) -> (B,2 h,2 w,out): name.weight (in,out,2,2), name.bias (out). */
nr_t *nr_deconv(struct nr_net *, const char *name, nr_t *x, int64_t out);

/* sum over rows r of weight[r] times the sum over j of f(x[r, label[r], j], target[r, j]): x has for each row the values of several
 * classes, (classes,values) or, with `last`, (values,classes). No label: there is but one class. Rows of weight 0 are not looked at. */
enum nr_picked { NR_PICKED_BCE, NR_PICKED_L1 };
struct nr_picked_options { enum nr_picked kind; double beta; int last; };       /* L1: smooth below beta */
nr_t *nr_picked_loss(struct nr_net *, nr_t *x, nr_t *label, nr_t *target, nr_t *weight, struct nr_picked_options);

struct nr_box_code {                        /* how offsets become boxes */
	double std[4];
	double limit;                       /* of the logarithms of sizes */
	int both_sides;                     /* the limit holds for small ones, too */
};
struct nr_region_rule {
	struct nr_box_code code;
	double score, nms, min_size;        /* scores above; IoU up to; sides at least, and more than 0 */
	int64_t before, keep;               /* of a level, before the others are removed (0: all); rows of a picture */
};
/* logit (B,N), offset (B,N,4) of anchors, size (B,2) of the pictures (height, width). Returns boxes (B,keep,4), best first; how many:
 * *count (B) int32. */
nr_t *nr_proposals(struct nr_net *, nr_t *logit, nr_t *offset, nr_t *size, const struct nr_anchor_grid *, struct nr_region_rule,
	nr_t **count);
/* probability (B,P,K+1), offset (B,P,4 K or 4 (K+1)), boxes (B,P,4) with their counts, size -> boxes (B,keep,4), best first, scores
 * (B,keep), classes from 0 on (B,keep). Class 0 stands in column 1 if the background is first. */
nr_t *nr_detections(struct nr_net *, nr_t *probability, nr_t *offset, nr_t *boxes, nr_t *count, nr_t *size, int background_first,
	struct nr_region_rule, nr_t **score, nr_t **label);

struct nr_sample_options {
	int64_t rows;                       /* of a picture; 0: all proposals and boxes, none is drawn */
	double positive;                    /* at most this share of them */
	double iou;                         /* that makes a positive */
	int low_quality;                    /* the best proposals of a box are its own, from this IoU on */
	double low_iou;
	int boxes_first;                    /* true boxes come before the proposals, else after them */
	int positives_first;
	int32_t background;                 /* its label; classes count from 0, or from 1 if it is 0 */
};
/* boxes (B,P,4) with their counts; truth (B,G,4) with classes (B,G) int32 from 0 on, -1: none. *label (B,S): -1 for unused rows; *match
 * (B,S): the true box. Returns the boxes (B,S,4). */
nr_t *nr_roi_sample(struct nr_net *, nr_t *boxes, nr_t *count, nr_t *truth, nr_t *classes, struct nr_sample_options, nr_t **label,
	nr_t **match);
/* What sampled boxes should become: offsets (B,S,4) and weights (B,S), of positives 1 / number of rows in use. */
nr_t *nr_box_targets(struct nr_net *, nr_t *boxes, nr_t *label, nr_t *match, nr_t *truth, const double std[4], int32_t background,
	nr_t **weight);
/* The probabilities of each box's class (B R,M M): logit (B R,M,M,K), label (B,R) from 0 on, -1: zeros. Column 0 is the background's if
 * that is first. */
nr_t *nr_pick_masks(struct nr_net *, nr_t *logit, nr_t *label, int background_first);
struct nr_mask_target { int64_t rows, size, h, w; int aligned, threshold; int32_t background; };
/* Of the first rows of each picture: the share of the true mask in each place (B,rows,size size), or whether it is half with a threshold;
 * weights (B,rows), of positives 1 / their number / places; their labels (B,rows). masks (B,G,bytes) are bits of h x w pixels
 * (nr_roi_mask). */
nr_t *nr_mask_targets(struct nr_net *, nr_t *boxes, nr_t *label, nr_t *match, nr_t *masks, struct nr_mask_target, nr_t **weight,
	nr_t **own_label);

#endif
