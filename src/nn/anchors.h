/* Losses and detections of heads that say something of every anchor of a pyramid (math/anchors.h): RetinaNet's, and region proposals.
 *
 *   anchor_match      which true box each anchor stands for, and what it counts in the losses
 *   focal_loss        of the classes of anchors
 *   anchor_box_loss   of their offsets
 *   anchor_detections the best boxes of each picture */
#ifndef NR_NN_ANCHORS_H
#define NR_NN_ANCHORS_H

#include "math/anchors.h"
#include "nn/regions.h"

/* What the sum over anchors is divided by: each picture's positives (at least 1), then the pictures; all positives, at least 1 of each
 * picture; all anchors that were drawn; the same, at least one positive and one negative of each picture. */
enum nr_anchor_mean { NR_ANCHOR_PER_PICTURE, NR_ANCHOR_POSITIVES, NR_ANCHOR_DRAWN, NR_ANCHOR_DRAWN_BOTH };
struct nr_anchor_rule {
	struct nr_anchor_grid grid;
	struct nr_match_rule match;
	int mean;
	int64_t rows;                       /* drawn of a picture; 0: none is drawn, all positives count and */
	int64_t every;                      /* every such negative, from the first on; 1: all */
	double positive;                    /* of those drawn, at most this share */
};
/* truth (B,G,4), classes (B,G) int32, -1: none. Returns what each anchor counts (B,N); *match (B,N) int32: its box, NR_MATCH_*. */
nr_t *nr_anchor_match(struct nr_net *, nr_t *truth, nr_t *classes, const struct nr_anchor_rule *, nr_t **match);

/* sum of weight -alpha_t (1 - p_t)^gamma log p_t over anchors and classes: logit (B,N,K); classes NULL: K is 1, what is matched is
 * something. alpha < 0: none. */
struct nr_focal { double alpha, gamma; };
nr_t *nr_focal_loss(struct nr_net *, nr_t *logit, nr_t *match, nr_t *weight, nr_t *classes, struct nr_focal);
/* sum of weight times nr_box_cost over the anchors that have a box: offset (B,N,4). */
nr_t *nr_anchor_box_loss(struct nr_net *, nr_t *offset, nr_t *match, nr_t *weight, nr_t *truth, const struct nr_anchor_grid *,
	struct nr_box_cost);

/* logit (B,N,K), offset (B,N,4), size (B,2) -> boxes (B,keep,4), best first, scores (B,keep), classes (B,keep), -1 behind the last.
 * rule.before: places and classes of a level that are looked at, 0: 1000; rule.min_size < 0: empty boxes, too. */
nr_t *nr_anchor_detections(struct nr_net *, nr_t *logit, nr_t *offset, nr_t *size, const struct nr_anchor_grid *, struct nr_region_rule,
	nr_t **score, nr_t **label);

#endif
