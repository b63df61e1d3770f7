/* Pictures with objects as inputs of detectors: resized with their proportions kept, in the upper left corner of a square whose rest is
 * zeros; boxes, classes and masks go along. */
#ifndef NR_OBJECT_VIEW_H
#define NR_OBJECT_VIEW_H

#include "norma/data.h"

enum { NR_OBJECT_SIDES = 16 };
struct nr_object_view {
	int32_t size, channels;             /* of the square */
	int32_t filter;                     /* enum nr_filter */
	int32_t sides, side[NR_OBJECT_SIDES]; /* for the shorter side, one by chance; without chance the last; none: it fills the square */
	double flip;                        /* probability of a mirror image */
	bool chance, masks;
	int64_t objects;                    /* at most; crowds and empty boxes are left out */
	float table[3][256];                /* what a byte of a channel becomes */
};
/* The square of `augment`, its filter, flips and scaling; sides: "480 512" or "". */
int nr_object_view_init(struct nr_object_view *, const struct nr_augment *augment, const struct nr_pixel_stats *, const char *sides,
	struct nr_error *);

struct nr_object_sample {                   /* what lies in `extra` first; then */
	float h, w;                         /* of the picture in the square */
	float y, x;                         /* original pixels in one of those, about 1 / scale */
	int32_t count;                      /* objects */
};
size_t nr_object_bytes(const struct nr_object_view *);                             /* of extra */
const float *nr_object_boxes(const struct nr_object_view *, const void *extra);    /* (objects,4): x1 y1 x2 y2 */
const int32_t *nr_object_labels(const struct nr_object_view *, const void *extra); /* (objects), -1 behind the last */
const uint8_t *nr_object_masks(const struct nr_object_view *, const void *extra);  /* (objects,size size / 8): bits by rows */

/* One picture without chance, of whose objects nothing is known: image (channels,size,size). */
int nr_object_view_picture(const struct nr_object_view *, const struct nr_picture *, float *image, struct nr_object_sample *,
	struct nr_augment_scratch *, struct nr_error *);
nr_make_fn nr_object_view_make;             /* for the loader; its first argument is a struct nr_object_view */

#endif
