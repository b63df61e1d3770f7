/* What a detector found in a picture. */
#ifndef NR_DETECTION_H
#define NR_DETECTION_H

#include <stdint.h>

#include "picture/rle.h"

struct nr_detection {
	int64_t image_id;
	int32_t label;
	float box[4];                       /* x1 y1 x2 y2, pixels of the picture */
	double score;
	struct nr_rle *mask;                /* of the whole picture; NULL: none */
};

#endif
