/* Maps of probabilities in boxes as masks of pictures, by the conventions of torchvision and mmdetection. */
#ifndef NR_PASTE_H
#define NR_PASTE_H

#include "base/real.h"

enum nr_paste {
	NR_PASTE_PADDED,                /* the map with a border of zeros, enlarged to whole pixels; above 1/2 */
	NR_PASTE_CENTRES,               /* read at the centres of pixels, zero outside; 1/2 or above */
};
/* map (M,M), box x1 y1 x2 y2 -> mask (h,w), 0 and 1. */
void nr_mask_paste(enum nr_paste, int64_t M, const real *map, const real box[4], int64_t h, int64_t w, uint8_t *mask);

#endif
