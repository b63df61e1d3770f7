/* What files of detectors share: feature maps instead of a backbone, true boxes, anchors, the conventions of two libraries. */
#ifndef GOLDEN_DETECTOR_H
#define GOLDEN_DETECTOR_H

#include "golden/model.h"
#include "models/detector.h"

struct golden_detector {
	struct golden_model m;
	bool mmdet;
	int levels;
	int64_t B, G, h, w;                 /* pictures, most boxes of one, size of all */
	nr_t *map[NR_MAXLEVELS], *truth, *classes, *size;
	struct golden_ints image;           /* of each box */
};
/* A store and a net with that norm plan; inputs for maps, boxes, sizes. */
void golden_detector_open(struct golden_case *, struct golden_detector *, const char *norms);
void golden_detector_bind(struct golden_case *, struct golden_detector *);     /* after golden_model_load */
/* The place among those of its picture that comes first of row i: for lists that say which picture a row belongs to. */
int64_t golden_place_of(const struct golden_ints *image, int64_t i);
/* (n) by place -> (B,most,each), zeros elsewhere. */
void golden_by_picture(const struct golden_ints *image, const real *x, int64_t each, int64_t most, real *out);

void golden_anchor_plan(struct golden_case *, const struct golden_detector *, struct nr_anchor_plan *);
struct nr_fpn golden_neck(struct golden_case *);
/* limits of decoding; stds, or the weights whose inverses they are */
struct nr_box_code golden_box_code(struct golden_case *, const char *stds, const char *weights);
void golden_check_maps(struct golden_case *, struct golden_detector *, nr_t *const *map, int count, int first);
void golden_check_anchors(struct golden_case *, const struct nr_anchor_grid *);
void golden_check_map_grads(struct golden_case *, struct golden_detector *);
/* Detections of all pictures, image by image: out.det_boxes, det_scores, det_labels, det_image. Labels get `from` added. */
void golden_check_detections(struct golden_case *, struct golden_detector *, const nr_t *box, const nr_t *score, const nr_t *label,
	int from);
/* Ends the case if the file has other conventions than these. */
double golden_number_in(struct golden_case *, const char *key, const char *otherwise);  /* of two keys the one that is there */

#endif
