/* Detectors: what a user chooses, and what follows from it by the conventions of torchvision or mmdetection. */
#ifndef NR_DETECTOR_H
#define NR_DETECTOR_H

#include "models/mask_rcnn.h"
#include "models/retinanet.h"

enum nr_detector_kind { NR_RETINANET, NR_MASK_RCNN };
enum nr_convention { NR_TORCHVISION, NR_MMDETECTION };

/* Public names of the entries of a detector, without the scope and the backbone. */
const struct nr_naming *nr_detector_naming(int convention);

#endif
