/* What a detector found in a picture. */
#ifndef NR_DETECTION_H
#define NR_DETECTION_H

#include <stdint.h>

#include "picture/rle.h"

struct nr_detection {
	int64_t image_id;
	int32_t label;
	double xywh[4];                     /* its box: left, top, width, height in pixels of the picture */
	double score;
	struct nr_rle *mask;                /* of the whole picture; NULL: none */
	double area;                        /* what counts for small, medium and large; 0: that of the box, or of the mask */
};

#endif
