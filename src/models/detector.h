/* Detectors on any model that has a pyramid, or on the last map of a plain ViT, from which a simple one is made (Li et al. 2022,
 * arXiv:2203.16527): what a user chooses, and what follows from it by the conventions of torchvision or mmdetection.
 *
 * The store then holds the backbone under its own names and the rest under "detect". */
#ifndef NR_DETECTOR_H
#define NR_DETECTOR_H

#include "models/mask_rcnn.h"
#include "models/retinanet.h"
#include "norma/model.h"

enum nr_detector_kind { NR_RETINANET, NR_MASK_RCNN };
enum nr_convention { NR_TORCHVISION, NR_MMDETECTION };

struct nr_detector {
	int32_t detector, convention;       /* enum nr_detector_kind, enum nr_convention */
	int64_t neck_dim, head_convs;
	int64_t first_level;                /* of the backbone, from 1; 0: 2 for RetinaNet, 1 for Mask R-CNN */
	int64_t extra_levels;               /* of the neck; -1: 2 and 1 */
	double anchor;                      /* side of the smallest anchor of a level, in strides; 0: 4 and 8 */
	int32_t box_loss;                   /* enum nr_box_loss */
	int64_t fc, mask_pool, rpn_rows, roi_rows, before, proposals, roi_side;
	double score, nms;                  /* of detections */
	int64_t keep;
	/* pictures */
	char *short_sides; /* "480 512": a picture's shorter side becomes one of them; "": the longer side fills the input */
	int64_t objects;                    /* of a picture, at most */
};
extern const struct nr_option nr_detector_options[];

struct nr_detector_graph {
	int64_t size;                       /* of the input, height and width */
	nr_t *image, *sizes;                /* (B,channels,size,size); (B,2): height and width of what is no padding */
	nr_t *truth, *classes, *masks;      /* in training: (B,G,4), (B,G), (B,G,bytes) or NULL */
	nr_t *boxes, *scores, *labels;      /* detections: (B,keep,4), (B,keep), (B,keep), -1 behind the last */
	nr_t *mask;                         /* (B keep,M,M,1) or NULL */
	struct nr_retinanet_graph retina;
	struct nr_mask_rcnn_graph rcnn;
};
/* Inputs, backbone, detector; the loss. G: boxes of a picture. */
nr_t *nr_detector_loss(struct nr_net *, const struct nr_model_spec *, const struct nr_detector *, int64_t batch, int64_t G,
	struct nr_detector_graph *);
/* The same without truth; returns what is to be computed last. */
nr_t *nr_detector_detections(struct nr_net *, const struct nr_model_spec *, const struct nr_detector *, int64_t batch,
	struct nr_detector_graph *);

/* A norm plan's text without the rules that mean neck and heads; NULL: out of memory. */
const char *nr_detector_backbone_norms(const char *text, struct nr_arena *);
bool nr_detector_entry(const char *name);   /* is it the detector's, not the backbone's? */
/* Public names of the entries of a detector on so many levels, without the scope and the backbone; NULL: out of memory. */
const struct nr_naming *nr_detector_naming(int convention, int64_t levels, struct nr_arena *);
/* The same as scopes of a backbone's naming, by convention. */
extern const struct nr_scope_names nr_detector_scopes[2][2];
#define NR_DETECTOR_NAMINGS(rules_)                                                                                       \
	{ .name = "torchvision", .rules = rules_, .prefix = "backbone.body.", .scopes = nr_detector_scopes[NR_TORCHVISION] },  \
	{ .name = "mmdetection", .rules = rules_, .prefix = "backbone.", .scopes = nr_detector_scopes[NR_MMDETECTION] }

#endif
